"""Figures as functions of data and an axis: they train nothing and return the axis.

Data are plain pairs and rows by the name of a model or family; `appearance` says how each name
looks. A notebook calls `style()` once, first.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from companion.book.appearance import (
    DASHED,
    DIVERGING,
    DOTTED,
    INK,
    PAPER,
    POSITIVE,
    chance_line,
    legend_above,
    log2_x,
    look,
    looks,
    percent,
    style,
    tick_powers,
)
from companion.book.tables import table
from companion.theory import bounds, dimensions, vectors

__all__ = [
    "accuracy_against_length",
    "answers",
    "attention_row",
    "ceiling",
    "coherence_against_k",
    "eta_needed",
    "gram",
    "learning_curves",
    "model_size_bits",
    "state_bits",
    "style",
    "table",
]


def coherence_against_k(
    ax: Axes, measured: Mapping[str, Iterable[tuple]], N: int, gamma: float = 0.25
) -> Axes:
    """Coherence of families of N vectors, (k, coherence) pairs by name, against what is proved.

    On the level `gamma` two dimensions are marked: the paper's, and the one that the same proof
    gives with the sharp constant.

    >>> from matplotlib.figure import Figure
    >>> ax = coherence_against_k(Figure().subplots(), {"trace code": [(32, 0.25)]}, N=1024)
    >>> ax.get_xlabel()
    'dimension k'
    """
    rows = {name: sorted(points) for name, points in measured.items()}
    paper, sharp = dimensions.paper_k(N, gamma), dimensions.random_k(N, gamma)
    highest = max([paper, *(k for points in rows.values() for k, _ in points)])
    k = np.geomspace(4 * math.log(N), 1.4 * highest, 100)
    ax.plot(k, np.sqrt(4 * math.log(N) / k), color=INK, lw=1.2, label="√(4 ln N / k)")
    ax.plot(
        k,
        np.sqrt(2 * math.log(N) / k),
        color=INK,
        lw=1.2,
        ls=DASHED,
        label="√(2 ln N / k)",
    )
    for name, mark in looks(rows).items():
        ax.plot(*zip(*rows[name], strict=True), **mark, label=name)
    for dimension, text, height in ((sharp, "enough", 2.2), (paper, "paper", 1.4)):
        ax.vlines(dimension, gamma, height * gamma, color=INK, lw=1)
        ax.plot(dimension, gamma, marker="|", ms=12, mew=2, color=INK)
        ax.text(dimension * 1.05, height * gamma, f"{text}: k = {dimension:,}", va="center")
    ax.axhline(gamma, color=INK, lw=0.8, ls=DOTTED)
    log2_x(ax)
    ax.set(yscale="log", xlabel="dimension k", ylabel="coherence γ", xlim=(None, 3 * highest))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticks([0.125, 0.25, 0.5, 1], ["1/8", "1/4", "1/2", "1"])
    legend_above(ax, 3)
    return ax


def gram(ax: Axes, family: vectors.Family | np.ndarray) -> Axes:
    """All inner products T_i · T_j / k of a family, or a matrix of numbers in [-1, 1].

    >>> from matplotlib.figure import Figure
    >>> gram(Figure().subplots(), vectors.trace_code(16, m=4)).get_xlabel()
    'j'
    """
    if isinstance(family, vectors.Family):
        T = family.table().astype(np.int64)
        family = T @ T.T / family.k
    options = {"cmap": DIVERGING, "vmin": -1, "vmax": 1, "interpolation": "none"}
    ax.imshow(family, **options)
    ax.spines[["top", "right"]].set_visible(True)
    ax.set(xlabel="j", ylabel="i")
    bar = ax.inset_axes((1.05, 0.0, 0.05, 1.0))
    bar.imshow(
        np.linspace(-1, 1, 201)[:, None], origin="lower", extent=(0, 1, -1, 1), aspect="auto",
        **options,
    )  # fmt: skip
    bar.spines[["top", "right"]].set_visible(True)
    bar.set(xticks=[], yticks=[-1, -0.5, 0, 0.5, 1])
    bar.yaxis.tick_right()
    bar.yaxis.set_label_position("right")
    bar.set_ylabel(r"$T_i \cdot T_j \;/\; k$")
    return ax


def eta_needed(ax: Axes, rows: Mapping[str, Iterable[tuple]]) -> Axes:
    """Sharpness η that attention needs for weight 3/4, (N, η) pairs by family, and the paper's.

    >>> from matplotlib.figure import Figure
    >>> ax = eta_needed(Figure().subplots(), {"trace code": [(1024, 9.32)]})
    >>> ax.get_ylabel()
    'sharpness η'
    """
    rows = {name: sorted(points) for name, points in rows.items()}
    N = np.array(sorted({n for points in rows.values() for n, _ in points}), dtype=float)
    ax.plot(N, 2 * np.log(3 * N), color=INK, lw=1.2, label="paper: 2 ln 3N")
    ax.plot(N, np.log(3 * N), color=INK, lw=1.2, ls=DASHED, label="ln 3N")
    for name, mark in looks(rows).items():
        ax.plot(*zip(*rows[name], strict=True), **mark, label=name)
    log2_x(ax)
    ax.set(xlabel="length N", ylabel="sharpness η", ylim=(0, None))
    legend_above(ax, 3)
    return ax


def attention_row(ax: Axes, weights: Sequence | np.ndarray, p: int) -> Axes:
    """Weights that the index token p puts on each symbol and, last, on itself.

    >>> from matplotlib.figure import Figure
    >>> attention_row(Figure().subplots(), [0.1, 0.8, 0.05, 0.05], p=1).get_xlabel()
    'position'
    """
    weights = np.asarray(weights, dtype=float)
    if not 0 <= p < len(weights):
        raise ValueError(f"expected 0 <= p < {len(weights)}, got {p}")
    position, colour = np.arange(len(weights)), look("transformer")["color"]
    ax.vlines(position, 0, weights, color=colour, lw=2.5 if len(weights) <= 64 else 1.2)
    others = position != p
    ax.plot(position[others], weights[others], "o", ms=4, mfc=PAPER, color=colour)
    ax.plot(p, weights[p], "o", ms=8, color=POSITIVE)
    left = p <= len(weights) / 2
    ax.annotate(
        f"asked: p = {p}, weight {weights[p]:.3f}", (p, weights[p]),
        xytext=(10 if left else -10, 0), textcoords="offset points",
        ha="left" if left else "right", va="center",
    )  # fmt: skip
    ax.axhline(0.75, color=INK, lw=1, ls=DASHED)
    ax.text(1.0, 0.75, "3/4", transform=ax.get_yaxis_transform(), ha="left", va="center")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="position", ylabel="attention weight", ylim=(0, 1.05))
    return ax


def accuracy_against_length(
    ax: Axes, results: Mapping[str, Iterable[tuple]], chance: float
) -> Axes:
    """Accuracy of each model as rows (N, accuracy, low, high), low and high its interval.

    >>> from matplotlib.figure import Figure
    >>> rows = {"LSTM": [(20, 0.18, 0.17, 0.19), (50, 0.06, 0.05, 0.07)]}
    >>> accuracy_against_length(Figure().subplots(), rows, chance=1 / 64).get_xlabel()
    'length N'
    """
    for name, mark in looks(results).items():
        _with_intervals(ax, results[name], mark, name)
    chance_line(ax, chance)
    log2_x(ax, sorted({row[0] for rows in results.values() for row in rows}))
    percent(ax)
    ax.set(xlabel="length N")
    legend_above(ax, 3)
    return ax


def learning_curves(ax: Axes, curves: Mapping[str, Iterable[tuple]], chance: float) -> Axes:
    """Accuracy along training, rows (step, loss, accuracy) by label.

    >>> from matplotlib.figure import Figure
    >>> curves = {"transformer": [(0, 4.2, 0.02), (100, 0.1, 1.0)]}
    >>> learning_curves(Figure().subplots(), curves, chance=1 / 64).get_xlabel()
    'training step'
    """
    for name, mark in looks(curves).items():
        step, _, accuracy = zip(*curves[name], strict=True)
        ax.plot(step, accuracy, **mark, ms=4.5, markevery=max(1, len(step) // 8), label=name)
    chance_line(ax, chance)
    percent(ax)
    ax.set(xlabel="training step")
    legend_above(ax, 3)
    return ax


def state_bits(ax: Axes, models: Mapping[str, Iterable[tuple]], alphabet: int) -> Axes:
    """Bits on the wire, (N, bits) pairs by model, against the N log2 |Σ| that lookup needs.

    >>> from matplotlib.figure import Figure
    >>> ax = state_bits(Figure().subplots(), {"lstm": [(1, 4096), (64, 4096)]}, alphabet=64)
    >>> ax.get_ylabel()
    'bits of state'
    """
    _against_bound(ax, models, alphabet, "lookup needs N log₂|Σ|")
    return ax.set(ylabel="bits of state") and ax


def model_size_bits(ax: Axes, sizes: Mapping[str, Iterable[tuple]], alphabet: int) -> Axes:
    """Bits of a Transformer's matrices, (N, bits), against an RNN's *state* alone.

    >>> from matplotlib.figure import Figure
    >>> rows = {"transformer, binary code": [(16, 900), (65536, 29000)]}
    >>> model_size_bits(Figure().subplots(), rows, alphabet=64).get_ylabel()
    'bits'
    """
    _against_bound(ax, sizes, alphabet, "state of any RNN: N log₂|Σ|")
    return ax.set(ylabel="bits") and ax


def ceiling(ax: Axes, points: Iterable[tuple], q: int) -> Axes:
    """Rows (model, R, accuracy, low, high), R state bits a symbol, under the best that R allows.

    >>> from matplotlib.figure import Figure
    >>> ax = ceiling(Figure().subplots(), [("lstm", 2.0, 0.11, 0.10, 0.12)], q=64)
    >>> ax.get_xlabel()
    'state bits a symbol, R = B / N'
    """
    points = list(points)
    rates = [R for _, R, *_ in points] + [math.log2(q)]
    R = np.geomspace(min(rates) / 2, max(rates) * 2, 300)
    best = np.array([bounds.accuracy_ceiling(float(r), q) for r in R])
    ax.plot(R, best, color=INK, lw=1.4, label="ceiling")
    ax.fill_between(R, best, 1.0, color="#80848c", alpha=0.2, lw=0)
    for name, mark in looks(dict.fromkeys(row[0] for row in points)).items():
        mine = sorted(row[1:] for row in points if row[0] == name)
        _with_intervals(ax, mine, {**mark, "linestyle": "none"}, name)
    log2_x(ax)
    percent(ax)
    ax.set(xlabel="state bits a symbol, R = B / N", xlim=(R[0], R[-1]))
    legend_above(ax, 3)
    return ax


def answers(ax: Axes, right: Mapping[str, Sequence | np.ndarray]) -> Axes:
    """Which positions Bob can answer: one row a model, a disc where he is right, else a cross.

    >>> from matplotlib.figure import Figure
    >>> answers(Figure().subplots(), {"shift register": [True, True]}).get_xlabel()
    'position i that Bob is asked for'
    """
    names = list(right)
    for row, (name, mark) in enumerate(looks(names).items()):
        good = np.asarray(right[name], dtype=bool)
        i = np.arange(len(good))
        ax.plot(i[good], np.full(good.sum(), row), "o", ms=8, color=mark["color"], clip_on=False)
        ax.plot(i[~good], np.full((~good).sum(), row), "x", ms=6, color=INK, clip_on=False)
        ax.text(
            1.01, row, f"{good.sum()} of {len(good)}", transform=ax.get_yaxis_transform(),
            va="center",
        )  # fmt: skip
    ax.set_yticks(range(len(names)), names)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="position i that Bob is asked for", ylim=(len(names) - 0.5, -0.5))
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _with_intervals(ax: Axes, rows: Iterable[tuple], mark: dict, name: str) -> None:
    """Rows (x, accuracy, low, high) with their intervals."""
    x, y, low, high = np.array(sorted(rows), dtype=float).T
    error = np.stack([y - low, high - y]).clip(0)
    ax.errorbar(x, y, error, **mark, capsize=3, elinewidth=1.2, label=name)


def _against_bound(ax: Axes, rows: Mapping, alphabet: int, bound: str) -> None:
    """Bits against N by name, log-log, over the line N log2 |Σ| and the region below it."""
    N = np.array(sorted({n for points in rows.values() for n, _ in points}), dtype=float)
    needed = [bounds.lookup_bits(int(n), alphabet) for n in N]
    ax.plot(N, needed, color=INK, lw=1.4, label=bound)
    for name, mark in looks(rows).items():
        ax.plot(*zip(*sorted(rows[name]), strict=True), **mark, label=name)
    log2_x(ax)
    ax.set(xlabel="length N", yscale="log")
    ax.set_yscale("log", base=2)
    tick_powers(ax.yaxis)
    bottom = ax.get_ylim()[0]
    ax.fill_between(N, bottom, needed, color="#80848c", alpha=0.2, lw=0)
    ax.set_ylim(bottom=bottom)
    legend_above(ax)
