"""The directive ``{separations}``: the table of `companion.theory.table` as a page shows it.

Each cell says what an architecture needs, who showed it, and links to the chapter that runs it;
chapters that are not written yet are marked as coming.
"""

from __future__ import annotations

from collections.abc import Sequence

from docutils import nodes
from sphinx import addnodes
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from companion.theory.table import ARCHITECTURES, TABLE, Entry

BEFORE = {"needs": "needs at least ", "exactly": "exactly "}
AFTER = {"enough": " is enough", "open": "open"}


class Separations(SphinxDirective):
    """The whole table."""

    def run(self) -> list[nodes.Node]:
        header = ["Task", *ARCHITECTURES.values()]
        rows = [
            [self._task(row.task), *(self._cell(getattr(row, key)) for key in ARCHITECTURES)]
            for row in TABLE
        ]
        return [make_table(header, rows, widths=(22, 26, 26, 26), name="separations")]

    def _task(self, task: str) -> list[nodes.Node]:
        parts = enumerate(task.split("$"))
        inline = [nodes.math(s, s) if i % 2 else nodes.Text(s) for i, s in parts]
        return [nodes.paragraph("", "", *inline)]

    def _cell(self, entry: Entry) -> list[nodes.Node]:
        claim = nodes.paragraph("", "", nodes.Text(BEFORE.get(entry.bound, "")))
        if entry.formula:
            claim += nodes.math(entry.formula, entry.formula)
        claim += nodes.Text(AFTER.get(entry.bound, ""))
        if entry.ours:
            claim += nodes.superscript("", "†")
        link = chapter_link(self.env, entry.chapter)
        return [claim, nodes.paragraph("", "", nodes.Text(entry.source + ", "), link)]


def chapter_page(docnames: set[str], chapter: int) -> str | None:
    """The page of a chapter, or None while it is not written; 0 is the landing page.

    >>> chapter_page({"book/index", "notebooks/03_one_way"}, 3)
    'notebooks/03_one_way'
    """
    prefix = f"notebooks/{chapter:02d}_" if chapter else "book/index"
    return next((name for name in sorted(docnames) if name.startswith(prefix)), None)


def chapter_link(env: BuildEnvironment, chapter: int, words: str = "") -> nodes.Node:
    """A link to a chapter, in its own words or by its number, or a word that it is coming."""
    docname = chapter_page(env.found_docs, chapter)
    if docname is None:
        return nodes.emphasis("", words or f"chapter {chapter}, coming")
    text = nodes.inline("", words or (f"chapter {chapter}" if chapter else "first page"))
    link = addnodes.pending_xref("", text, refdomain="std", reftype="doc", refexplicit=True)
    link["reftarget"], link["refdoc"] = "/" + docname, env.docname
    return link


def make_table(header: Sequence[str], rows: list, widths: tuple[int, ...], name: str) -> nodes.Node:
    """A table whose cells are lists of nodes, of class `name`."""
    head = [[nodes.paragraph("", text)] for text in header]
    group = nodes.tgroup("", cols=len(header))
    group += [nodes.colspec(colwidth=width) for width in widths]
    group += nodes.thead("", _row(head))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group, classes=[name])


def _row(cells: list) -> nodes.row:
    return nodes.row("", *(nodes.entry("", *cell) for cell in cells))
