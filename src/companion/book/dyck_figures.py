"""Figures of bounded brackets: automaton, communication matrix, weights, attention, widths."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import FancyArrowPatch

from companion.book.appearance import (
    DOTTED,
    INK,
    PAPER,
    POSITIVE,
    SERIES,
    legend_above,
    log2_x,
    look,
)
from companion.theory.dyck import Dyck

EMPTY, DEAD = "ε", "dead"
BLUE = SERIES["transformer"][0]
FILLED = LinearSegmentedColormap.from_list("filled", [BLUE + "00", BLUE])  # 0 is the page itself
_SPREAD = 0.18  # how far the two arrows between two states bend apart
_LABEL = 0.38  # where on its way an arrow has its symbol
_ASPECT = 0.6  # height of a unit square


def layout(dyck: Dyck) -> dict[str, tuple[float, float]]:
    """Where each state of the automaton is drawn, in a unit square.

    The stacks are a tree with the empty one at the top; the dead state lies below them all.

    >>> layout(Dyck(1, 2))
    {'': (0.5, 1.0), '(': (0.5, 0.667), '((': (0.5, 0.333), 'dead': (0.5, 0.0)}
    """
    places, row = {}, [""]
    for depth in range(dyck.k + 1):
        y = round(1 - depth / (dyck.k + 1), 3)
        places |= {s: (round((i + 0.5) / len(row), 3), y) for i, s in enumerate(row)}
        row = [stack + opening for stack in row for opening in dyck.symbols[::2]]
    return places | {DEAD: (0.5, 0.0)}


def automaton(ax: Axes, dyck: Dyck, lit: str | None = None) -> Axes:
    """The minimal automaton; `lit` is filled. Moves that are not drawn go to the dead state.

    >>> from matplotlib.figure import Figure
    >>> ax = automaton(Figure().subplots(), Dyck(2, 2), lit="(")
    >>> len(ax.texts) - 12, len(ax.patches)  # names of 8 states and a remark, 12 moves
    (9, 12)
    """
    places = layout(dyck)
    if lit is not None and lit not in places:
        raise ValueError(f"expected a state of {list(places)}, got {lit!r}")
    for state, row in dyck.automaton().transitions.items():
        for symbol, target in row.items():
            if target != DEAD:
                _move(ax, places[state], places[target], symbol)
    for state, (x, y) in places.items():
        style = {"ec": INK, "fc": POSITIVE if state == lit else PAPER, "pad": 0.55}
        ax.text(
            x, y, state or EMPTY, ha="center", va="center", color=PAPER if state == lit else INK,
            bbox={"boxstyle": "round", "lw": 2.4 if state == "" else 1.0, **style},
            zorder=3,
        )  # fmt: skip
    ax.text(0.57, 0, "every move that is not drawn", ha="left", va="center")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.12, 1.12), aspect=_ASPECT)
    ax.set_axis_off()
    return ax


def _move(ax: Axes, start: tuple, end: tuple, symbol: str) -> None:
    """A bent arrow with its symbol."""
    bend = f"arc3,rad={_SPREAD}"
    options = {"arrowstyle": "-|>", "mutation_scale": 12, "shrinkA": 15, "shrinkB": 15}
    ax.add_patch(FancyArrowPatch(start, end, connectionstyle=bend, color=INK, lw=1, **options))
    (dx, dy), t = (end[0] - start[0], _ASPECT * (end[1] - start[1])), _LABEL
    length = np.hypot(dx, dy)
    out = 2 * t * (1 - t) * _SPREAD + 0.022 / length  # on the outer side of the bend
    x = start[0] + t * dx + out * dy
    y = start[1] + (t * dy - out * dx) / _ASPECT
    ax.text(x, y, symbol, ha="center", va="center")


def filled(ax: Axes, M: np.ndarray, rows: Sequence[str] = (), columns: Sequence[str] = ()) -> Axes:
    """A matrix with entries in [0, 1], each a shade of one colour; names for rows and columns.

    >>> from matplotlib.figure import Figure
    >>> ax = filled(Figure().subplots(), np.eye(2), rows=["a", "b"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['a', 'b']
    """
    M = np.asarray(M, dtype=float)
    for names, size in ((rows, len(M)), (columns, M.shape[1])):
        if names and len(names) != size:
            raise ValueError(f"expected {size} names, got {len(names)}")
    ax.imshow(M, cmap=FILLED, vmin=0, vmax=1, interpolation="none", aspect="equal")
    ax.spines[["top", "right"]].set_visible(True)
    ax.set_yticks(range(len(M)) if rows else [], rows or None)
    ax.set_xticks(range(M.shape[1]) if columns else [], columns or None)
    ax.tick_params(length=0)
    return ax


def attention_map(ax: Axes, weights: np.ndarray, word: str) -> Axes:
    """Causal attention on a word: a row for each position that asks; weights in [0, 1].

    >>> from matplotlib.figure import Figure
    >>> attention_map(Figure().subplots(), np.eye(2), "()").get_ylabel()
    'asks'
    """
    filled(ax, weights, list(word), list(word))
    i = np.arange(len(word))
    edge = np.repeat(i + 0.5, 2), np.stack([i - 0.5, i + 0.5], axis=1).ravel()
    ax.plot(*edge, color=INK, lw=0.8, ls=DOTTED)
    return ax.set(xlabel="is read", ylabel="asks") and ax


def widths(
    ax: Axes, one_layer: Mapping[str, Iterable[tuple]], others: Mapping[str, Iterable[tuple]]
) -> Axes:
    """Width against length: least widths of one layer by count of bits, and widths that exist.

    Rows (N, width) by name; what lies below the lowest of `one_layer` is ruled out.

    >>> from matplotlib.figure import Figure
    >>> bounds = {"one layer, at least": [(256, 3), (1024, 12)]}
    >>> ax = widths(Figure().subplots(), bounds, {"two layers": [(256, 23), (1024, 27)]})
    >>> ax.get_ylabel()
    'width'
    """
    for (name, rows), dash in zip(
        one_layer.items(), ("-", (0, (5, 2)), (0, (1, 1.5))), strict=False
    ):
        N, width = np.array(list(rows), dtype=float).T
        ax.plot(N, width, color=INK, lw=1.4, ls=dash, label=name)
    for (name, rows), kind in zip(others.items(), ("transformer", "lstm", "mamba"), strict=False):
        ax.plot(*zip(*rows, strict=True), **look(kind), label=name)
    log2_x(ax)
    ax.set(xlabel="length N", ylabel="width")
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter(lambda x, _: f"{x:g}")
    N, lowest = np.array(list(next(iter(one_layer.values()))), dtype=float).T
    ax.fill_between(N, ax.get_ylim()[0], lowest, color="#80848c", alpha=0.2, lw=0)
    legend_above(ax)
    return ax
