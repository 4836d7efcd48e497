"""The table of separations in bits, for an N, a p and a |Σ| of the reader's choice.

It is an explorer like the others, and also stands on the landing page, which is no notebook: the
directive ``{separations-explorer}`` writes it into the page with its data and no widget runtime.
"""

from __future__ import annotations

import json
import math

import traitlets
from docutils import nodes
from matplotlib.axes import Axes
from sphinx.util.docutils import SphinxDirective

from companion.book.appearance import INK, legend_above, log2_x, look, tick_powers
from companion.book.explorer import Explorer, source
from companion.book.separations import make_table
from companion.book.tables import Table, table
from companion.theory.table import ARCHITECTURES, TABLE, Row, bits

LENGTHS = tuple(1 << n for n in range(4, 21))
PRECISIONS = (8, 16, 32, 64)
ALPHABETS = (2, 4, 16, 64, 256, 1024)
SHORT = ("recurrent: state", "one layer: vector", "two layers: vector")
SIGNS = {"needs": "≥", "enough": "≤", "exactly": "="}


class SeparationsExplorer(Explorer):
    """What each architecture needs for each task of `companion.theory.table`.

    >>> explorer = SeparationsExplorer(n=6, p=16, q=64)  # N = 2^(n + 4) = 1024
    >>> explorer.table().rows[0]
    ('Index Lookup, index last', '= 6,144', '≤ 572', '≤ 572')

    `n`: which length, N = 2^(n + 4) up to 2^20. `p`: 8, 16, 32 or 64. `q`: |Σ|, a power of two.
    """

    _esm = source("base.js", "separations.js")
    n = traitlets.Int(12, min=0, max=len(LENGTHS) - 1).tag(sync=True)
    p = traitlets.Enum(PRECISIONS, 16).tag(sync=True)
    q = traitlets.Enum(ALPHABETS, 64).tag(sync=True)
    data = traitlets.Dict(read_only=True).tag(sync=True)

    def __init__(self, **choices):
        super().__init__(**choices)
        self.set_trait("data", _data())

    def figure(self, ax: Axes) -> Axes:
        """Bits against N of the first task, for the chosen p and |Σ|."""
        for key, name in (("rnn", "lstm"), ("one", "transformer")):
            needed = [bits(TABLE[0], key, N, self.p, self.q) for N in LENGTHS]
            label = ARCHITECTURES[key].split(":")[0]
            ax.plot(LENGTHS, needed, **look(name), label=label)
        log2_x(ax)
        ax.set_yscale("log", base=2)
        tick_powers(ax.yaxis)
        ax.set_xlabel("length N", color=INK)
        ax.set_ylabel("bits")
        legend_above(ax)
        return ax

    def table(self) -> Table:
        """All tasks at the chosen N, p and |Σ|."""
        N = LENGTHS[self.n]

        def cell(row: Row, key: str) -> str:
            needed = bits(row, key, N, self.p, self.q)
            sign = SIGNS.get(getattr(row, key).bound)
            return "open" if needed is None else f"{sign} {math.ceil(needed):,}"

        rows = [(_plain(row.task), *(cell(row, key) for key in ARCHITECTURES)) for row in TABLE]
        caption = f"Bits at N = {N:,}, p = {self.p}, |Σ| = {self.q}: = exactly, ≥ needed, ≤ enough."
        return table(rows, ["task", *SHORT], caption)

    def html(self, name: str) -> str:
        """The explorer as a part of a page, without Jupyter: element, style, data and script."""
        state = {key: getattr(self, key) for key in ("n", "p", "q", "data")}
        return (
            f'<style>{self._css}</style><div id="{name}"></div><script type="module">\n'
            f"{self._esm}\nconst state = {json.dumps(state)};\nconst heard = [];\n"
            "const model = {\n"
            "  get: (key) => state[key], set: (key, value) => { state[key] = value; },\n"
            "  on: (_, f) => heard.push(f), off: () => {},\n"
            "  save_changes: () => heard.forEach((f) => f()),\n};\n"
            f'render({{ model, el: document.getElementById("{name}") }});\n</script>'
        )


class SeparationsDirective(SphinxDirective):
    """The explorer, and below it the same numbers as a table."""

    def run(self) -> list[nodes.Node]:
        explorer = SeparationsExplorer()
        shown = explorer.table()
        body = [[[nodes.paragraph("", x)] for x in row] for row in shown.rows]
        plain = make_table(shown.header, body, widths=(40, 20, 20, 20), name="separations")
        plain.insert(0, nodes.title("", shown.caption))
        return [nodes.raw("", explorer.html("separations-explorer"), format="html"), plain]


def _data() -> dict:
    """All values, rounded up: by task, architecture, p, |Σ| and N."""

    def values(row, key):
        return [
            [[_whole(bits(row, key, N, p, q)) for N in LENGTHS] for q in ALPHABETS]
            for p in PRECISIONS
        ]

    return {
        "tasks": [_plain(row.task) for row in TABLE],
        "N": list(LENGTHS),
        "p": list(PRECISIONS),
        "q": list(ALPHABETS),
        "signs": [[SIGNS.get(getattr(row, key).bound) for key in ARCHITECTURES] for row in TABLE],
        "values": [[values(row, key) for key in ARCHITECTURES] for row in TABLE],
    }


def _plain(task: str) -> str:
    return task.replace("$d'$", "d′ = log N").replace("$", "")


def _whole(x: float | None) -> int | None:
    return None if x is None else math.ceil(x)
