"""Figures of the two-way protocol: matrices of problems, bits of each step, bits against length."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.ticker import MaxNLocator

from companion.book.appearance import (
    DASHED,
    INK,
    PAPER,
    SERIES,
    SOLID,
    legend_above,
    log2_x,
    looks,
    tick_powers,
)
from companion.theory.problems import Problem

STEPS = {  # colour and hatching of each step
    "last position": (SERIES["retnet"][0], "xx"),
    "maxima": (SERIES["linear_transformer"][0], "\\\\"),
    "denominators": (SERIES["mamba"][0], "--"),
    "sums": (SERIES["transformer"][0], ""),
    "answer": (SERIES["lstm"][0], "//"),
}
_ONES = ListedColormap(["#00000000", SERIES["transformer"][0]])  # a zero is the page itself
_VARIANTS = {"literal": (SERIES["lstm"][0], "s", DASHED), "lean": (STEPS["sums"][0], "o", SOLID)}


def matrix(ax: Axes, problem: Problem) -> Axes:
    r"""A communication matrix, its ones filled; a cross on each pair of the known fooling set.

    >>> from matplotlib.figure import Figure
    >>> from companion.theory.problems import equality
    >>> matrix(Figure().subplots(), equality(2)).get_title()
    '$\\mathrm{EQ}_{2}$'
    """
    ax.imshow(problem.matrix, cmap=_ONES, vmin=0, vmax=1, interpolation="none")
    if problem.fooling:
        x, y = np.array(problem.fooling).T
        on_ones = problem.matrix[x[0], y[0]] == 1
        ax.plot(y, x, "x", color=PAPER if on_ones else INK, ms=5, mew=1.6)
    ax.spines[["top", "right"]].set_visible(True)
    name, _, n = problem.name.partition("_")
    title = rf"$\mathrm{{{name}}}_{{{n}}}$" if n.isdigit() else problem.name
    ax.set(title=title, xlabel="Bob's y", ylabel="Alice's x")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(4, integer=True))
    return ax


def step_bits(ax: Axes, steps: Mapping[str, Mapping[str, int]], claim: float) -> Axes:
    """Bits of each step by variant, stacked, against the bits that the theorem allows.

    >>> from matplotlib.figure import Figure
    >>> ax = step_bits(Figure().subplots(), {"lean": {"maxima": 48, "sums": 304}}, claim=720.0)
    >>> ax.texts[0].get_text()
    ' 352 bits'
    """
    labelled = set()
    for row, bits in enumerate(steps.values()):
        left = 0
        for step, count in bits.items():
            colour, hatch = STEPS[step]
            ax.barh(
                row, count, left=left, height=0.55, color=colour, hatch=hatch, edgecolor=PAPER,
                label=None if step in labelled else step,
            )  # fmt: skip
            left += count
            labelled.add(step)
        ax.text(left, row, f" {left:,} bits", va="center")
    ax.axvline(claim, color=INK, lw=1.2, ls=DASHED)
    ax.text(claim, len(steps) - 0.55, f" 3m(p + log N)H = {claim:,.0f}", va="center")
    most = max([claim, *(sum(bits.values()) for bits in steps.values())])
    ax.set_yticks(range(len(steps)), list(steps))
    ax.set(xlabel="bits", xlim=(0, 1.2 * most), ylim=(len(steps) - 0.35, -0.5))
    legend_above(ax, 3)
    return ax


def running_total(ax: Axes, transcripts: Mapping[str, Sequence[int]], claim: float) -> Axes:
    """Bits sent after each message by variant, against the bits that the theorem allows.

    >>> from matplotlib.figure import Figure
    >>> ax = running_total(Figure().subplots(), {"lean": [4, 24, 24]}, claim=720.0)
    >>> ax.lines[0].get_ydata().tolist()
    [0, 4, 28, 52]
    """
    for name, bits in transcripts.items():
        colour, marker, dash = _VARIANTS[name]
        total = np.cumsum([0, *bits])
        ax.plot(total, color=colour, marker=marker, ls=dash, label=name, clip_on=False)
        ax.annotate(
            f"{total[-1]:,}", (len(bits), total[-1]), xytext=(8, 0), textcoords="offset points",
            va="center",
        )  # fmt: skip
    ax.axhline(claim, color=INK, lw=1.2, ls=DASHED)
    ax.text(0, 1.02 * claim, f"3m(p + log N)H = {claim:,.0f}", va="bottom")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="messages sent", ylabel="bits", ylim=(0, None))
    legend_above(ax)
    return ax


def against_length(ax: Axes, rows: Mapping[str, Iterable[tuple]], ylabel: str) -> Axes:
    """Quantities (N, value) by name, log-log.

    >>> from matplotlib.figure import Figure
    >>> against_length(Figure().subplots(), {"lstm": [(8, 384), (16, 384)]}, "bits").get_ylabel()
    'bits'
    """
    for name, mark in looks(rows).items():
        ax.plot(*zip(*sorted(rows[name]), strict=True), **mark, label=name)
    log2_x(ax)
    ax.set_yscale("log", base=2)
    tick_powers(ax.yaxis)
    ax.set(xlabel="length N", ylabel=ylabel)
    legend_above(ax)
    return ax
