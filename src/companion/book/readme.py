"""The table of separations in README.md: `make tidy` writes it again, a test compares it."""

from __future__ import annotations

from pathlib import Path

from companion.book.separations import AFTER, BEFORE, chapter_page
from companion.theory.table import ARCHITECTURES, TABLE, Entry

BEGIN, END = "<!-- separations: written by make tidy -->", "<!-- end of separations -->"


def cell(entry: Entry, chapter: str) -> str:
    """What an entry says, who showed it, and where it is run.

    >>> cell(TABLE[0].rnn, "chapter 3")
    'exactly $N\\\\log\\\\lvert\\\\Sigma\\\\rvert$†; Theorem 3, chapter 3'
    """
    if entry.bound == "open":
        return f"{entry.source}, {chapter}"
    formula = entry.formula.replace(r"|\Sigma|", r"\lvert\Sigma\rvert")  # a bar would end a cell
    claim = BEFORE.get(entry.bound, "") + f"${formula}$" + AFTER.get(entry.bound, "")
    return f"{claim}{'†' * entry.ours}; {entry.source}, {chapter}"


def table(root: Path) -> str:
    """The whole table in Markdown, with links to the notebooks below `root`."""
    notebooks = {f"notebooks/{path.stem}" for path in (root / "notebooks").glob("*.ipynb")}

    def link(entry: Entry) -> str:
        page = chapter_page(notebooks, entry.chapter)
        text = f"chapter {entry.chapter}"
        return f"[{text}]({page}.ipynb)" if page else text

    rows = [["Task", *ARCHITECTURES.values()], ["---"] * (1 + len(ARCHITECTURES))]
    for row in TABLE:
        entries = [getattr(row, key) for key in ARCHITECTURES]
        rows.append([row.task, *(cell(entry, link(entry)) for entry in entries)])
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def with_table(text: str, root: Path) -> str:
    """A README with the table as it is now between its two marks."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"expected one {BEGIN!r} and one {END!r} in README.md")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table(root)}\n{END}{rest.split(END)[1]}"


def draw(root: Path) -> list[Path]:
    """Write the table into README.md below `root` if it has changed; the files changed."""
    path = root / "README.md"
    text = path.read_text(encoding="utf8")
    if with_table(text, root) == text:
        return []
    path.write_text(with_table(text, root), encoding="utf8")
    return [path]
