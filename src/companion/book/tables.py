"""Tables as values: text in a terminal, an accessible table in a page."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

WRAPPED = 40  # a longer cell may take several lines


@dataclass(frozen=True)
class Table:
    """Rows under a header with a caption; text in a terminal, an accessible table in a page."""

    header: tuple[str, ...]
    rows: tuple[tuple, ...]
    caption: str

    def __repr__(self) -> str:
        cells = [list(self.header), *([_cell(x) for x in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        rule = "  ".join("-" * width for width in widths)
        return "\n".join([self.caption, "", lines[0], rule, *lines[1:]])

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{html.escape(x)}</th>' for x in self.header)
        body = "".join(f"<tr>{''.join(map(_td, row))}</tr>" for row in self.rows)
        caption = html.escape(self.caption)
        # The theme gives tables of this class, and no others, colours for its dark mode.
        return (
            '<div style="overflow-x: auto"><table class="dataframe">'
            f'<caption style="caption-side: top">{caption}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )


def table(rows: Iterable[Sequence], header: Sequence[str], caption: str) -> Table:
    """A table to end a cell with.

    >>> table([("binary", 6, 0.666667)], ["family", "k", "coherence"], "All pairs.")
    All pairs.
    <BLANKLINE>
    family  k  coherence
    ------  -  ---------
    binary  6  0.6667

    Raises ValueError for a row that does not fit the header.
    """
    rows = tuple(tuple(row) for row in rows)
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"expected {len(header)} cells under {list(header)}, got {list(row)}")
    return Table(tuple(header), rows, caption)


def _cell(x: object) -> str:
    """Numbers with separators or four digits, truth in words."""
    if isinstance(x, bool | np.bool_):
        return "yes" if x else "no"
    if isinstance(x, int | np.integer):
        return f"{x:,}"
    if isinstance(x, float | np.floating):
        return f"{x:.4g}"
    return "–" if x is None else str(x)


def _td(x: object) -> str:
    number = isinstance(x, int | float | np.number) and not isinstance(x, bool)
    style, text = f"text-align: {'right' if number else 'left'}", _cell(x)
    if len(text) > WRAPPED:
        style += "; white-space: normal; min-width: 16rem"
    return f'<td style="{style}">{html.escape(text)}</td>'
