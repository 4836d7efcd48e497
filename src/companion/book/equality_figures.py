"""Figures of equality: the register, its profile, copy and count, widths, fingerprints."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator

from companion.book.appearance import (
    DASHED,
    DOTTED,
    INK,
    NEGATIVE,
    PAPER,
    POSITIVE,
    SOLID,
    legend_above,
    log2_x,
    look,
    tick_powers,
)
from companion.theory.one_layer_equality import miss_probability

_SHADES = LinearSegmentedColormap.from_list("shades", [NEGATIVE + "00", NEGATIVE])  # 0: the page
_LINES = ((INK, SOLID), (INK, DASHED), (INK, DOTTED))


def cells(ax: Axes, values: np.ndarray, *, columns: Sequence = (), rows: Sequence = ()) -> Axes:
    """Numbers in [0, 1] as shades of one colour; columns are named above, rows on the left.

    >>> from matplotlib.figure import Figure
    >>> ax = cells(Figure().subplots(), np.eye(2), columns="01", rows=["u", "v"])
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['u', 'v']

    Raises ValueError for numbers outside [0, 1].
    """
    values = np.asarray(values, dtype=float)
    if values.size and not (values.min() >= 0 and values.max() <= 1 + 1e-9):
        raise ValueError(f"expected numbers in [0, 1], got {values.min():g} to {values.max():g}")
    ax.imshow(values, cmap=_SHADES, vmin=0, vmax=1, interpolation="none", aspect="auto")
    ax.spines[["top", "right"]].set_visible(True)
    ax.set_xticks(range(values.shape[1]) if columns else [], columns or None)
    ax.set_yticks(range(len(values)) if rows else [], rows or None)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    return ax


def register(ax: Axes, states: np.ndarray, x: Sequence) -> Axes:
    """The cells of a register after each symbol: row t is its state after t symbols of x.

    >>> from matplotlib.figure import Figure
    >>> states = np.array([[0, 0], [1, 0], [0, 1], [0, 0], [0, 0]])  # reads 1010
    >>> register(Figure().subplots(), states, [1, 0, 1, 0]).get_ylabel()
    'symbol read'
    """
    if len(states) != len(x) + 1:
        raise ValueError(f"expected {len(x) + 1} states for {len(x)} symbols, got {len(states)}")
    cells(ax, states, rows=["–", *map(str, x)])
    half = states.shape[1]
    for column in range(1, half):
        ax.axvline(column - 0.5, color=INK, lw=0.4, ls=DOTTED)
    ax.axhline(half + 0.5, color=INK, lw=1.2, ls=DASHED)
    ax.xaxis.tick_bottom()
    return ax.set(xlabel="cells of the register", ylabel="symbol read") and ax


def profile(ax: Axes, counts: Mapping[str, Sequence[int]]) -> Axes:
    """States or residuals after t = 0, ..., N symbols, by name; a staircase for the first.

    >>> from matplotlib.figure import Figure
    >>> rows = {"residuals": [1, 2, 4, 3, 2], "register": [1, 2, 4, 4, 4]}
    >>> profile(Figure().subplots(), rows).get_xlabel()
    'symbols read, t'
    """
    for (name, values), kind in zip(counts.items(), ("transformer", "lstm", "mamba"), strict=False):
        ax.plot(range(len(values)), values, **look(kind), label=name)
    first = next(iter(counts.values()))
    ax.fill_between(range(len(first)), 1, first, color="#80848c", alpha=0.2, lw=0)
    ax.set_yscale("log", base=2)
    tick_powers(ax.yaxis)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="symbols read, t", ylabel="states")
    legend_above(ax)
    return ax


def copy_then_count(
    axes: Mapping[str, Axes], x: Sequence[int], look: np.ndarray, differ: np.ndarray, out: float
) -> Mapping[str, Axes]:
    """The two layers on x: weights `look` of the first, bits `differ` it finds, and the answer.

    `axes` holds "copy", "compare" and "count". Rows of `look` ask, columns are read; the second
    layer weighs all positions equally.

    >>> from matplotlib.figure import Figure
    >>> axes = Figure().subplot_mosaic([["copy", "compare"], ["copy", "count"]])
    >>> look = np.array([[1.0, 0.0], [1.0, 0.0]])
    >>> copy_then_count(axes, [0, 1], look, np.array([0, 1]), 0.0)["count"].get_title()
    'layer 2 counts: 1 of 2'
    """
    N, differ = len(x), np.asarray(differ)
    found = np.asarray(look).argmax(1)
    cells(axes["copy"], look, columns=list(x), rows=list(x))
    axes["copy"].set(title="layer 1 copies", xlabel="is read", ylabel="asks")
    for line in (axes["copy"].axhline, axes["copy"].axvline):
        line(N / 2 - 0.5, color=INK, lw=0.8, ls=DOTTED)
    bits = np.stack([x, np.asarray(x)[found], differ])
    cells(axes["compare"], bits, rows=["own bit", "copied bit", "differ"])
    _write(axes["compare"], bits)
    axes["compare"].set(title="its network compares")
    cells(axes["count"], np.full((1, N), 1 / N), rows=[f"weights 1/{N}"])
    axes["count"].set(title=f"layer 2 counts: {differ.sum()} of {N}")
    axes["count"].set_xlabel(f"answer EQ(x) = {out:g}", color=POSITIVE)
    return axes


def sizes(
    ax: Axes,
    bounds: Mapping[str, Iterable[tuple]],
    models: Mapping[str, Iterable[tuple]],
    ylabel: str,
) -> Axes:
    """Pairs (N, size) by name, log-log: lower bounds as lines, models with markers.

    What lies below the highest of `bounds`, given at the same N, is shaded: it is ruled out.

    >>> from matplotlib.figure import Figure
    >>> rows = {"state": [(64, 32), (256, 128)]}, {"two layers": [(64, 196), (256, 324)]}
    >>> sizes(Figure().subplots(), *rows, "bits").get_ylabel()
    'bits'
    """
    for (name, rows), (colour, dash) in zip(bounds.items(), _LINES, strict=False):
        ax.plot(*zip(*rows, strict=True), color=colour, ls=dash, lw=1.4, label=name)
    for (name, rows), kind in zip(models.items(), ("transformer", "lstm", "mamba"), strict=False):
        ax.plot(*zip(*rows, strict=True), **look(kind), label=name)
    log2_x(ax)
    ax.set_yscale("log", base=2)
    tick_powers(ax.yaxis)
    bottom = ax.get_ylim()[0]
    N, needed = np.array([list(rows) for rows in bounds.values()], dtype=float).T
    ax.fill_between(N[:, 0], bottom, needed.max(1), color="#80848c", alpha=0.2, lw=0)
    ax.set(xlabel="length N", ylabel=ylabel, ylim=(bottom, None))
    legend_above(ax)
    return ax


def misses(ax: Axes, measured: Mapping[int, Iterable[tuple]]) -> Axes:
    """Shares of draws that miss a difference, rows (r, share, low, high) by mismatches t.

    >>> from matplotlib.figure import Figure
    >>> ax = misses(Figure().subplots(), {2: [(1, 0.49, 0.45, 0.52), (2, 0.25, 0.22, 0.28)]})
    >>> ax.get_xlabel()
    'channels r'
    """
    last = max(r for rows in measured.values() for r, *_ in rows)
    r = np.arange(1, last + 1)
    ax.plot(r, 0.5**r, color=INK, lw=1.4, label=r"$2^{-r}$")
    kinds = ("transformer", "lstm", "linear_transformer", "mamba")
    for (t, rows), kind in zip(measured.items(), kinds, strict=False):
        mark = look(kind)
        x, y, low, high = np.array(list(rows), dtype=float).T
        error = np.stack([y - low, high - y]).clip(0)
        ax.errorbar(x, y, error, **{**mark, "linestyle": "none"}, capsize=3, label=f"{t} differ")
        exact = [miss_probability(t, int(k)) for k in r]
        ax.plot(r, exact, color=mark["color"], lw=1, ls=mark["linestyle"])
    ax.set_yscale("log", base=2)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="channels r", ylabel="missed")
    legend_above(ax, 4)
    return ax


def _write(ax: Axes, values: Iterable[Iterable]) -> None:
    """Numbers into the cells, legible on filled and on empty ones."""
    shades = ax.get_images()[0].get_array()
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            ink = PAPER if shades[i, j] > 0.6 else INK
            ax.text(j, i, str(value), ha="center", va="center", color=ink)
