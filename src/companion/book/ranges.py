"""The directives ``{ranges}`` and ``{refusals}``: which arithmetic is enough, and what says so.

Both ask the constructions themselves, when the page is built.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from companion.book.separations import chapter_link, make_table
from companion.theory.ranges import CONSTRUCTIONS, EVERY, FORMATS, Construction, Range, measure

_ARITHMETIC = re.compile(r"( in )?(?:FixedPoint|Floating)\([^)]*\)")
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@lru_cache
def measured(construction: Construction) -> list[Range]:
    """A row of the table, format by format."""
    return [measure(construction, format) for format in FORMATS]


def power(N: int) -> str:
    """A power of two as one.

    >>> power(2), power(1024)
    ('2', '2¹⁰')
    """
    exponent = N.bit_length() - 1
    return str(N) if exponent < 2 else "2" + str(exponent).translate(_SUPERSCRIPT)


def said(found: Range, sizes: tuple[int, ...]) -> str:
    """The lengths that are accepted, in a cell.

    >>> said(Range("", "", 4, 16, 32, "too long", False), (2, 4, 8, 16, 32))
    '2² to 2⁴'
    >>> said(Range("", "", 2, 32, None, "", False), (2, 4, 8, 16, 32))
    '≥ 2⁵'
    """
    if found.first is None:
        return "–"
    if found.last == EVERY:
        return "every"
    later = found.first != sizes[0]
    if found.refused is None:
        return f"from {power(found.first)}" if later else f"≥ {power(found.last)}"
    start = f"{power(found.first)} to " if later else ""
    return start + power(found.last) + ("‡" if found.ours else "")


def plainly(reason: str) -> str:
    """A refusal without the arithmetic, which stands beside it.

    >>> plainly("expected counts within 1/2, got inf with N = 16 in FixedPoint(f=4, R=7)")
    'expected counts within 1/2, got inf with N = 16'
    >>> plainly("expected a margin that Floating(dtype=torch.float16) resolves, got 0.1")
    'expected a margin that it resolves, got 0.1'
    """
    return _ARITHMETIC.sub(lambda match: "" if match[1] else "it", reason)


class RangeTable(SphinxDirective):
    """One row a construction, one column a format."""

    def run(self) -> list[nodes.Node]:
        for path in (Path(self.env.srcdir) / "src" / "companion" / "theory").glob("*.py"):
            self.env.note_dependency(str(path))
        measured.cache_clear()
        rows = [self._row(construction) for construction in CONSTRUCTIONS]
        widths = (28, *[8] * len(FORMATS))
        return [make_table(["construction", *FORMATS], rows, widths=widths, name="ranges")]

    def _row(self, construction: Construction) -> list[list[nodes.Node]]:
        name = nodes.paragraph(
            "", "", chapter_link(self.env, construction.chapter, construction.name)
        )
        cells = [said(found, construction.sizes) for found in measured(construction)]
        return [[name], *([nodes.paragraph("", cell)] for cell in cells)]


class RefusalList(SphinxDirective):
    """For each construction, what it said when it first refused."""

    def run(self) -> list[nodes.Node]:
        result = nodes.definition_list()
        for construction in CONSTRUCTIONS:
            refused = [found for found in measured(construction) if found.reason]
            # Of the paper's grids, which depend on N, there is none for every length.
            named = [f for f in refused if f.refused != EVERY or not f.format.startswith("K_c")]
            lines = [self._line(found) for found in named]
            if lines:
                item = nodes.definition_list_item("", nodes.term("", construction.name))
                item += nodes.definition("", nodes.bullet_list("", *lines))
                result += item
        return [result]

    def _line(self, found: Range) -> nodes.Node:
        at = f" at {found.refused:,}" if found.refused else ""
        text = f"{found.format}{at}: {plainly(found.reason)}"
        return nodes.list_item("", nodes.paragraph("", text))
