"""Figures of fast weights: matrices that change, states that merge, accuracy against length."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from companion.book.appearance import (
    DASHED,
    DIVERGING,
    INK,
    legend_above,
    log2_x,
    looks,
)
from companion.book.language_figures import SHADES


def matrix(
    ax: Axes, M: Float[np.ndarray, "R C"], rows: Sequence[str], columns: Sequence[str]
) -> Axes:
    """Fast weights as a heat map; a number x has the strength x / (1 + |x|), and few are written.

    >>> from matplotlib.figure import Figure
    >>> ax = matrix(Figure().subplots(), np.array([[1.0, -2.0]]), ["key"], ["(", "["])
    >>> [text.get_text() for text in ax.texts]
    ['1', '−2']
    """
    ax.imshow(M / (1 + np.abs(M)), cmap=DIVERGING, vmin=-1, vmax=1, interpolation="none")
    ax.spines[["top", "right"]].set_visible(True)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xticks(range(len(columns)), columns)
    ax.tick_params(length=0)
    if M.shape[1] <= 4:
        for (i, j), x in np.ndenumerate(M):
            ax.text(j, i, f"{x:g}".replace("-", "−"), ha="center", va="center")
    return ax


def orbit(ax: Axes, tracks: Mapping[str, Sequence | np.ndarray]) -> Axes:
    """The number stored after n times the same symbol, n = 0, 1, ..., by name.

    >>> from matplotlib.figure import Figure
    >>> orbit(Figure().subplots(), {"deltanet": [0, 0.5, 0.75]}).get_xlabel()
    'symbols 1 read'
    """
    for name, mark in looks(tracks).items():
        ax.plot(tracks[name], **mark, ms=4.5, label=name, clip_on=False)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="symbols 1 read", ylabel="number stored")
    legend_above(ax)
    return ax


def merging(ax: Axes, rows: Mapping[str, Iterable[tuple]]) -> Axes:
    """The n from which one more symbol makes no difference, (bits p, n) pairs by model.

    >>> from matplotlib.figure import Figure
    >>> merging(Figure().subplots(), {"deltanet": [(4, 9), (8, 20)]}).get_ylabel()
    'n at which 1ⁿ and 1ⁿ⁺¹ merge'
    """
    for name, mark in looks(rows).items():
        ax.plot(*zip(*sorted(rows[name]), strict=True), **mark, label=name)
    ax.set_yscale("log", base=10)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="bits p of a number", ylabel="n at which 1ⁿ and 1ⁿ⁺¹ merge")
    legend_above(ax, 3)
    return ax


def lost_steps(ax: Axes, forms: Mapping[str, Iterable[tuple]], units: Mapping[str, float]) -> Axes:
    """The step from 0 to 1 open bracket, (t, step) pairs by form, and what float formats resolve.

    >>> from matplotlib.figure import Figure
    >>> ax = lost_steps(Figure().subplots(), {"average": [(2, 0.5), (8, 0.125)]}, {"bf16": 2**-8})
    >>> ax.texts[0].get_text()
    'bf16'
    """
    for name, mark in looks(forms).items():
        ax.plot(*zip(*sorted(forms[name]), strict=True), **mark, label=name)
    for name, unit in units.items():
        ax.axhline(unit, color=INK, lw=1, ls=DASHED)
        ax.text(1.01, unit, name, transform=ax.get_yaxis_transform(), va="center")
    log2_x(ax)
    ax.set_yscale("log", base=2)
    ax.set(xlabel="symbols read, t", ylabel="step from 0 to 1")
    legend_above(ax)
    return ax


def beyond_training(ax: Axes, shares: Mapping[str, Mapping[int, float]], trained: int) -> Axes:
    """A row for each model, a column for each length; the shade is a share from 0 to 1.

    A line marks the longest string of training. The last column is written out.

    >>> from matplotlib.figure import Figure
    >>> ax = beyond_training(Figure().subplots(), {"lstm": {10: 1.0, 60: 0.4}}, trained=50)
    >>> ax.texts[0].get_text()
    '40%'

    Raises ValueError for models that were not asked for the same lengths.
    """
    lengths = sorted({n for row in shares.values() for n in row})
    if any(sorted(row) != lengths for row in shares.values()):
        raise ValueError(f"expected shares at the lengths {lengths} for each model, got others")
    values = np.array([[row[n] for n in lengths] for row in shares.values()])
    ax.imshow(values, cmap=SHADES, vmin=0, vmax=1, interpolation="none", aspect="auto")
    ax.hlines(np.arange(1, len(shares)) - 0.5, -0.5, len(lengths) - 0.5, color=INK, lw=0.5)
    ax.axvline(sum(n <= trained for n in lengths) - 0.5, color=INK, lw=1.6, ls=DASHED)
    for i, share in enumerate(values[:, -1]):
        ax.text(len(lengths) - 0.4, i, f"{share:.0%}", va="center")
    ax.spines[["top", "right"]].set_visible(True)
    ax.set_yticks(range(len(shares)), [name.replace("_", " ") for name in shares])
    every = -(-len(lengths) // 10)
    ax.set_xticks(range(0, len(lengths), every), lengths[::every])
    ax.tick_params(length=0)
    ax.set(xlabel="length of the string", title="share right, from 0 (blank) to 1 (full)")
    return ax
