"""Figures of chapter 8: sign matrices, model size against communication, ceilings on average."""

from collections.abc import Iterable, Mapping

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.ticker import MaxNLocator

from companion.book.appearance import (
    DASHED,
    INK,
    NEGATIVE,
    chance_line,
    legend_above,
    log2_x,
    looks,
    percent,
    tick_powers,
)
from companion.theory.average_case import one_way_ceiling, two_way_ceiling

_SIGNS = ListedColormap(["#00000000", NEGATIVE])  # +1 is the page itself


def signs(ax: Axes, M: Int[np.ndarray, "X Y"], title: str) -> Axes:
    """A sign matrix, its -1s filled.

    >>> from matplotlib.figure import Figure
    >>> signs(Figure().subplots(), np.array([[1, 1], [1, -1]]), "IP2").get_title()
    'IP2'
    """
    ax.imshow(M < 0, cmap=_SIGNS, vmin=0, vmax=1, interpolation="none")
    ax.spines[["top", "right"]].set_visible(True)
    ax.set(title=title, xlabel="Bob's y", ylabel="Alice's x")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(4, integer=True))
    return ax


def crossover(ax: Axes, sizes: Mapping[str, Iterable[tuple]]) -> Axes:
    """Sizes m p H of two-layer models, (N, bits) by name, against the N / 2 that must cross.

    >>> from matplotlib.figure import Figure
    >>> crossover(Figure().subplots(), {"binary code": [(16, 100), (4096, 676)]}).get_ylabel()
    'bits'
    """
    N = np.array(sorted({n for rows in sizes.values() for n, _ in rows}), dtype=float)
    ax.plot(N, N / 2, color=INK, lw=1.4, label="players need N / 2")
    for name, mark in looks(sizes).items():
        ax.plot(*zip(*sorted(sizes[name]), strict=True), **mark, label=f"mpH, {name}")
    log2_x(ax)
    ax.set_yscale("log", base=2)
    tick_powers(ax.yaxis)
    ax.fill_between(N, ax.get_ylim()[0], N / 2, color="#80848c", alpha=0.2, lw=0)
    ax.set(xlabel="length N", ylabel="bits", ylim=(ax.get_ylim()[0], None))
    legend_above(ax)
    return ax


def ceilings(ax: Axes, n: int, reached: Mapping[str, Iterable[tuple]]) -> Axes:
    """Accuracies (c, accuracy) by name, under the best that c bits allow for IP2 on n bits each.

    >>> from matplotlib.figure import Figure
    >>> ceilings(Figure().subplots(), 8, {"found": [(4, 0.6)]}).get_xlabel()
    'bits c that are sent'
    """
    c = np.linspace(0, n, 201)
    one = np.array([one_way_ceiling(float(x), n) for x in c])
    two = np.array([two_way_ceiling(float(x), n) for x in c])
    ax.plot(c, one, color=INK, lw=1.4, label="IP2 ceiling, one way")
    ax.plot(c, two, color=INK, lw=1.4, ls=DASHED, label="IP2 ceiling, both ways")
    ax.fill_between(c, np.maximum(one, two), 1.0, color="#80848c", alpha=0.2, lw=0)
    for name, mark in looks(reached).items():
        ax.plot(*zip(*sorted(reached[name]), strict=True), **mark, label=name, clip_on=False)
    chance_line(ax, 0.5)
    percent(ax)
    ax.set(xlabel="bits c that are sent", ylim=(0.48, 1.02), xlim=(0, n))
    legend_above(ax)
    return ax
