"""Figures of nearest neighbours: points on a circle, two layers of attention, what margins cost."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from companion.book.appearance import (
    DASHED,
    DOTTED,
    INK,
    NEGATIVE,
    PAPER,
    POSITIVE,
    legend_above,
    log2_x,
    looks,
    percent,
)

_WEIGHTS = LinearSegmentedColormap.from_list("weights", [POSITIVE + "00", POSITIVE])


def circle(ax: Axes, points: Float[np.ndarray, "n 2"], labels: Int[np.ndarray, " n1"]) -> Axes:
    """Points on the unit circle with their labels; the last is the query, joined to its answer.

    >>> from matplotlib.figure import Figure
    >>> points = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> ax = circle(Figure().subplots(), points, np.array([0, 1]))
    >>> [text.get_text() for text in ax.texts]
    ['0', '1', '?']
    """
    angle = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(angle), np.sin(angle), color=INK, lw=0.8, ls=DOTTED)
    query, best = points[-1], points[int((points[:-1] @ points[-1]).argmax())]
    ax.plot(*zip(query, best, strict=True), color=POSITIVE, lw=3)
    for (x, y), text in zip(points, [*map(str, labels.tolist()), "?"], strict=True):
        fill = {"0": PAPER, "1": NEGATIVE, "?": POSITIVE}[text]
        ax.plot(x, y, "s" if text == "?" else "o", ms=11, mfc=fill, mec=INK)
        ax.text(1.2 * x, 1.2 * y, text, ha="center", va="center")
    ax.set(aspect="equal", xlim=(-1.35, 1.35), ylim=(-1.35, 1.35))
    ax.axis("off")
    return ax


def two_layers(
    axes: Sequence[Axes] | np.ndarray,
    first: Float[np.ndarray, "tokens tokens"],
    second: Float[np.ndarray, " tokens"],
    names: Sequence[str],
) -> np.ndarray:
    """Attention of the first layer, all rows, over that of the last token in the second.

    `names`: of the tokens. Of more than twenty a dozen at most are written, always with them the
    token that the last one reads in layer 2, and the one that this token reads in layer 1.

    >>> from matplotlib.figure import Figure
    >>> last = np.array([0.0, 1.0, 0.0])
    >>> axes = two_layers(Figure().subplots(2), np.eye(3), last, ["x0", "y0", "x1"])
    >>> axes[1].get_xlabel()
    'token that is read'
    """
    if len(names) != len(second):
        raise ValueError(f"expected {len(second)} names, got {len(names)}")
    options = {"cmap": _WEIGHTS, "vmin": 0, "vmax": 1, "interpolation": "none", "aspect": "auto"}
    read = int(np.argmax(second))
    partner = int(np.argmax(first[read]))
    for ax, weights, named in zip(axes, (first, second[None]), (partner, read), strict=True):
        ax.imshow(weights, **options)
        ax.spines[["top", "right"]].set_visible(True)
        ax.set_xticks(*_ticks(names, named))
    axes[0].set_yticks(*_ticks(names, read))
    axes[0].set(ylabel="layer 1, row of", title="weights from 0 (blank) to 1 (full)")
    axes[1].set_yticks([0], [names[-1]])
    axes[1].set(ylabel="layer 2", xlabel="token that is read")
    return np.asarray(axes)


def _ticks(names: Sequence[str], named: int) -> tuple[list[int], list[str]]:
    """All tokens, or of many every so manieth, making room for the one that must be named."""
    step = 1 if len(names) <= 20 else 2 * -(-len(names) // 24)
    at = [i for i in range(0, len(names), step) if i == named or abs(i - named) >= step]
    at = sorted({*at, named})
    return at, [names[i] for i in at]


def misled(ax: Axes, shares: Mapping[str, Iterable[tuple]], orthogonal: int) -> Axes:
    """Share of inputs on which layer 1 prefers a wrong point, (k, share) by margin.

    A line marks the k at which addresses can be exactly orthogonal.

    >>> from matplotlib.figure import Figure
    >>> misled(Figure().subplots(), {"γ = 1/2": [(64, 0.9), (256, 0.8)]}, 128).get_ylabel()
    'inputs misled'
    """
    for name, mark in looks(shares).items():
        ax.plot(*zip(*sorted(shares[name]), strict=True), **mark, label=name, clip_on=False)
    ax.axvline(orthogonal, color=INK, lw=1.2, ls=DASHED, label=f"2N = {orthogonal}")
    log2_x(ax)
    percent(ax)
    ax.set(xlabel="dimension k of an address", ylabel="inputs misled")
    legend_above(ax, 4)
    return ax


def against_margin(ax: Axes, rows: Mapping[str, Iterable[tuple]], ylabel: str) -> Axes:
    """Quantities (gamma, value) by name, log-log; the margin shrinks to the right.

    >>> from matplotlib.figure import Figure
    >>> ax = against_margin(Figure().subplots(), {"eta": [(0.5, 9.0), (1e-6, 4e6)]}, "sharpness")
    >>> ax.get_xlabel(), bool(ax.xaxis_inverted())
    ('margin γ', True)
    """
    for name, mark in looks(rows).items():
        ax.plot(*zip(*sorted(rows[name]), strict=True), **mark, label=name)
    ax.set(xscale="log", yscale="log", xlabel="margin γ", ylabel=ylabel)
    ax.invert_xaxis()
    legend_above(ax)
    return ax
