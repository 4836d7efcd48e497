"""Figures of what trained models have learned, beside what theory builds."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from companion.book.appearance import (
    DASHED,
    DOTTED,
    INK,
    chance_line,
    legend_above,
    looks,
    percent,
)
from companion.book.dyck_figures import EMPTY, filled
from companion.theory.dimensions import welch


def weight_on_target(ax: Axes, right: Mapping[str, Sequence | np.ndarray]) -> Axes:
    """The weight on the position asked for, against that position, by name.

    >>> from matplotlib.figure import Figure
    >>> ax = weight_on_target(Figure().subplots(), {"transformer, N = 3": [0.9, 0.8, 0.7]})
    >>> ax.get_xlabel()
    'position p asked for'
    """
    for name, mark in looks(right).items():
        q = np.asarray(right[name], dtype=float)
        ax.plot(np.arange(len(q)), q, **mark, ms=4.5, markevery=max(1, len(q) // 12), label=name)
    ax.axhline(0.75, color=INK, lw=1, ls=DASHED)
    ax.text(1.0, 0.75, " 3/4", transform=ax.get_yaxis_transform(), ha="left", va="center")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="position p asked for", ylabel="weight on p", ylim=(0, 1.05))
    legend_above(ax)
    return ax


def right_by_questions(ax: Axes, asked: Sequence, right: Sequence, enough: float) -> Axes:
    """Accuracy at each place against how often training asked for it; a line at `enough` times.

    >>> from matplotlib.figure import Figure
    >>> right_by_questions(Figure().subplots(), [90, 50], [1.0, 0.1], enough=60.0).get_xlabel()
    'times asked for in training'
    """
    mark = looks(["transformer"])["transformer"]
    ax.plot(asked, right, **{**mark, "linestyle": "none"}, alpha=0.6)
    ax.axvline(enough, color=INK, lw=1, ls=DASHED)
    ax.text(enough, 0.3, f" {enough:.0f} times", ha="left", va="center")
    ax.set_xscale("log")
    percent(ax)
    return ax.set(xlabel="times asked for in training") and ax


def errors_and_prediction(
    ax: Axes, curves: Mapping[str, Sequence[Iterable[tuple]]], predicted: Iterable[tuple]
) -> Axes:
    """Share of mistakes along training, by name the runs, each with rows (step, loss, accuracy),
    and as predicted, rows (step, share). Axes are logarithmic, and no mistake at all is not drawn.

    >>> from matplotlib.figure import Figure
    >>> curves, ax = {"rate 0.001": [[(100, 2.0, 0.5)]]}, Figure().subplots()
    >>> errors_and_prediction(ax, curves, [(100, 0.4)]).get_ylabel()
    'share of mistakes'
    """
    for name, mark in looks(curves).items():
        for i, curve in enumerate(curves[name]):
            step, _, accuracy = np.array([tuple(row) for row in curve], dtype=float).T
            mistakes = np.where(accuracy < 1, 1 - accuracy, np.nan)
            label = name if i == 0 else None
            ax.plot(step, mistakes, color=mark["color"], lw=1, alpha=0.8, label=label)
    step, share = np.array(list(predicted), dtype=float).T
    ax.plot(step, np.where(share > 0, share, np.nan), color=INK, lw=1.6, label="predicted")
    ax.set(xscale="log", yscale="log", xlabel="training step", ylabel="share of mistakes")
    return ax


def accuracy_by_place(ax: Axes, right: Mapping[str, Sequence | np.ndarray], chance: float) -> Axes:
    """Accuracy at each place of the string, counted from 1, by name.

    >>> from matplotlib.figure import Figure
    >>> ax = accuracy_by_place(Figure().subplots(), {"lstm": [0.1, 0.2]}, chance=1 / 64)
    >>> ax.get_xlabel()
    'place asked for'
    """
    for name, mark in looks(right).items():
        ax.plot(range(1, len(right[name]) + 1), right[name], **mark, ms=4.5, label=name)
    chance_line(ax, chance)
    percent(ax)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="place asked for")
    legend_above(ax, 3)
    return ax


def pointing_map(ax: Axes, weights: np.ndarray) -> Axes:
    """One head: the weight that the index token for each p puts on each symbol, in [0, 1].

    >>> from matplotlib.figure import Figure
    >>> pointing_map(Figure().subplots(), np.eye(4)).get_ylabel()
    'asked for p'
    """
    filled(ax, weights)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    return ax.set(xlabel="weight on position", ylabel="asked for p") and ax


def cosine_distribution(
    ax: Axes, cosines: Mapping[str, Sequence | np.ndarray], N: int, k: int
) -> Axes:
    """Share of the pairs whose |cosine| is larger, by name, for N vectors of dimension k.

    A full line is where random signs end, sqrt(4 ln N / k) as in Lemma 2; a dotted one is Welch's
    bound, that no N vectors can all stay below.

    >>> from matplotlib.figure import Figure
    >>> ax = cosine_distribution(Figure().subplots(), {"learned": [0.1, -0.3]}, N=20, k=64)
    >>> ax.get_xlabel()
    '|cosine| of two position vectors'
    """
    for name, mark in looks(cosines).items():
        x = np.sort(np.abs(np.asarray(cosines[name], dtype=float)))
        above = 1 - np.arange(1, len(x) + 1) / len(x)
        ax.step(x, above, where="post", color=mark["color"], ls=mark["linestyle"], label=name)
    random = math.sqrt(4 * math.log(N) / k)
    ax.axvline(random, color=INK, lw=1, label="√(4 ln N / k)")
    if welch(N, k) > 0:
        ax.axvline(welch(N, k), color=INK, lw=1.2, ls=DOTTED, label="Welch's bound")
    ax.set(xlabel="|cosine| of two position vectors", ylabel="share of pairs above it")
    ax.set(xlim=(0, 1), ylim=(0, 1.02))
    legend_above(ax)
    return ax


def accepted_after(
    ax: Axes, shares: Mapping[str, Sequence | np.ndarray], suffixes: Sequence[str]
) -> Axes:
    """How often each suffix is accepted after each state, a shade of one colour.

    >>> from matplotlib.figure import Figure
    >>> ax = accepted_after(Figure().subplots(), {"": [1.0, 0.0], "(": [0.0, 1.0]}, ["", ")"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['ε', '(']
    """
    rows = [state or EMPTY for state in shares]
    filled(ax, np.stack([np.asarray(row, dtype=float) for row in shares.values()]), rows)
    ax.set_xticks(range(len(suffixes)), [v or EMPTY for v in suffixes])
    return ax.set(xlabel="then read", ylabel="stack") and ax
