"""The directive ``{separations}``: the table of `companion.theory.table` as a page sees it.

Each cell says what an architecture needs, who showed it, and links to the chapter that runs it;
chapters that are not written yet are marked as coming.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from companion.theory.table import ARCHITECTURES, TABLE, Entry

WORDS = {"needs": "needs at least", "enough": "is enough", "exactly": "exactly", "open": "open"}


class Separations(SphinxDirective):
    """The whole table."""

    def run(self) -> list[nodes.Node]:
        header = ["Task", *ARCHITECTURES.values()]
        body = [
            [self._task(row.task), *(self._cell(getattr(row, key)) for key in ARCHITECTURES)]
            for row in TABLE
        ]
        return [_table([[nodes.paragraph("", text)] for text in header], body)]

    def _task(self, task: str) -> list[nodes.Node]:
        parts = task.split("$")
        inline = [nodes.math(s, s) if i % 2 else nodes.Text(s) for i, s in enumerate(parts)]
        return [nodes.paragraph("", "", *inline)]

    def _cell(self, entry: Entry) -> list[nodes.Node]:
        claim = nodes.paragraph()
        if entry.bound in ("needs", "exactly"):
            claim += nodes.Text(WORDS[entry.bound] + " ")
        if entry.formula:
            claim += nodes.math(entry.formula, entry.formula)
        if entry.bound in ("enough", "open"):
            claim += nodes.Text(f" {WORDS[entry.bound]}".strip() if not entry.formula else " is enough")
        if entry.ours:
            claim += nodes.superscript("", "†")
        return [claim, nodes.paragraph("", "", nodes.Text(entry.source + ", "), self._link(entry))]

    def _link(self, entry: Entry) -> nodes.Node:
        docname = chapter_page(self.env.found_docs, entry.chapter)
        if docname is None:
            return nodes.emphasis("", f"chapter {entry.chapter}, coming")
        text = nodes.inline("", f"chapter {entry.chapter}")
        link = addnodes.pending_xref("", text, refdomain="std", reftype="doc", refexplicit=True)
        link["reftarget"], link["refdoc"] = "/" + docname, self.env.docname
        return link


def chapter_page(docnames: set[str], chapter: int) -> str | None:
    """The page of a chapter, or None while it is not written.

    >>> chapter_page({"book/index", "notebooks/03_one_way"}, 3)
    'notebooks/03_one_way'
    """
    prefix = f"notebooks/{chapter:02d}_"
    return next((name for name in sorted(docnames) if name.startswith(prefix)), None)


def _table(header: list, body: list) -> nodes.table:
    group = nodes.tgroup("", cols=len(header))
    group += [nodes.colspec(colwidth=w) for w in (22, 26, 26, 26)]
    group += nodes.thead("", _row(header))
    group += nodes.tbody("", *map(_row, body))
    return nodes.table("", group, classes=["separations"])


def _row(cells: list) -> nodes.row:
    return nodes.row("", *(nodes.entry("", *cell) for cell in cells))


def setup(app) -> dict:
    """Register the directive with Sphinx."""
    app.add_directive("separations", Separations)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
