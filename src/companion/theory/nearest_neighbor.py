"""Nearest neighbour by two layers (Section 5.2, Theorem 7): pair, then match.

The input is x_0 y_0 x_1 y_1 ... x_(n-1) with unit vectors x_i and labels y_i; the answer is the
label of the point before the last that is nearest to it. Layer 1 copies every point to its label,
layer 2 matches the query with *labels*. The query's own label comes later, so that nothing must be
kept away from it, and addresses need a coherence of 1/4 only: width 2d' + 3 + 2k, one head a layer,
any margin that the numbers resolve. The paper's construction, which works the other way round, is
in `paper_nearest_neighbor`.

======= ==========================================================================
N       most points of an input, the query among them; 2N - 1 tokens
n       points of this input
d'      dimension of a point
gamma   margin: x_q.x_best >= x_q.x_i + gamma for all other i
T, k    addresses of the 2N tokens, and their dimension
eta_1, eta_2   sharpness of the two layers
======= ==========================================================================
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int, Shaped

from companion.theory._check import check_int
from companion.theory.copy_and_count import copy_eta, copying
from companion.theory.fixed_point import EXACT, Arithmetic, FixedPoint
from companion.theory.transformer import LAST, FeedForward, Head, Layer, Stack
from companion.theory.vectors import Family, nearly_orthogonal

DOUBT = 2e-13  # by how much the margin of an input may be overestimated


def clip_network(b: int = 1, gain: float = 1.0) -> FeedForward:
    """sigma(gain z) on b coordinates: -1 below -1, 1 above 1, by relu(a + 1) - relu(a - 1) - 1."""
    eye = np.eye(b)
    return FeedForward(
        W_1=gain * np.vstack([eye, eye]),
        b_1=np.repeat([1.0, -1.0], b),
        W_2=np.hstack([eye, -eye]),
        b_2=-np.ones(b),
    )


@dataclass(frozen=True, eq=False)
class NearestNeighbor:
    """The repaired construction, for inputs of up to N points with a margin of at least gamma.

    Tokens carry [x, y, is a label, 1, T(own), T(source), slot]; a label's source is its point.
    Layer 1 fills the slot with x at the source. Layer 2 asks [slot; 4 is-label - 4] with [x; 1], so
    that labels compete by inner products alone, with nothing added that a float would round.
    With `causal=True` one pass answers every point as a query (`all_queries`).

    >>> nearest = NearestNeighbor.build(N=4, d=2, gamma=0.1)
    >>> points = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])  # x_2 is nearer to x_1 than to x_0
    >>> nearest(points, np.array([0, 1])), nearest(points, np.array([1, 0]))
    (1, 0)
    """

    N: int
    d: int
    gamma: float
    T: Family
    eta_1: float
    eta_2: float
    arithmetic: Arithmetic = EXACT
    causal: bool = False

    def __post_init__(self):
        check_int("N", self.N, low=2)
        check_int("d", self.d, low=1)
        check_margin(self.gamma)
        check_addresses(self.T, self.N)
        self._check_eta_2()
        if not self.margin >= 0:
            raise ValueError(
                f"expected a margin gamma that {self.arithmetic} resolves, got {self.gamma:g} with "
                f"d = {self.d}, logits off by "
                f"{logit_error(self.eta_2, self.d, self.arithmetic):.3g} "
                f"and copies by {self.copy_error:.3g}"
            )

    def _check_eta_2(self) -> None:
        """Refuse a sharpness that this arithmetic rounds down, or whose logits leave its range."""
        a, eta = self.arithmetic, self.eta_2
        if not 0 < eta < math.inf:
            raise ValueError(f"expected 0 < eta_2 < infinity, got {eta}")
        a.check_range(6 * eta)
        if isinstance(a, FixedPoint) and a.decode(a.encode(np.array([eta])))[0] != eta:
            raise ValueError(f"expected eta_2 to be a multiple of 1/{a.S}, got {eta:g} in {a}")

    @classmethod
    def build(
        cls,
        N: int,
        d: int,
        gamma: float,
        T: Family | None = None,
        arithmetic: Arithmetic = EXACT,
        causal: bool = False,
    ) -> "NearestNeighbor":
        """Layer 1 copies within gamma / 8; eta_2 leaves others an eighth at what then is left."""
        check_int("N", N, low=2)
        check_margin(gamma)
        T = nearly_orthogonal(2 * N) if T is None else T
        check_addresses(T, N)
        eta_1 = copy_eta(T, 2 * N, gamma / 8, arithmetic)
        copied = copying(T, 2 * N, eta_1, arithmetic, fewer=True).error
        eta_2 = math.log(16 * N) / (0.75 * gamma)
        left = gamma - 2 * max(gamma / 8, copied) - 2 * logit_error(eta_2, d, arithmetic) / eta_2
        if left > 0:
            eta_2 = math.log(16 * N) / left
        if isinstance(arithmetic, FixedPoint):
            eta_2 = math.ceil(eta_2 * arithmetic.S) / arithmetic.S
        return cls(N, d, gamma, T, eta_1, eta_2, arithmetic, causal)

    @property
    def width(self) -> int:
        """2d' + 3 + 2k."""
        return 2 * self.d + 3 + 2 * self.T.k

    @cached_property
    def stack(self) -> Stack:
        """The weights."""
        d, k = self.d, self.T.k
        parts = [d, d + 1, d + 2, d + 3, d + 3 + k, d + 3 + 2 * k]
        x, y, flag, one, own, source, slot = np.split(np.eye(self.width), parts)
        pair = Head(W_Q=self.eta_1 / k * source, W_K=own, W_V=slot.T @ x)
        match = Head(
            W_Q=self.eta_2 * np.vstack([x, one]), W_K=np.vstack([slot, 4 * (flag - one)]), W_V=y
        )
        return Stack(
            [
                Layer([pair], residual=True, causal=self.causal),
                Layer([match], ffn=clip_network(gain=2.0), causal=self.causal),
            ]
        )

    @cached_property
    def copy_error(self) -> float:
        """How far, in norm, the copy of a point may be off, in inputs of any length up to N."""
        return copying(self.T, 2 * self.N, self.eta_1, self.arithmetic, fewer=True).error

    @cached_property
    def weight(self) -> float:
        """Least weight on the right label: N - 2 other labels, N points 2 below it or more."""
        a, eta = self.arithmetic, self.eta_2
        closer = 2 * eta * self.copy_error + 2 * logit_error(eta, self.d, a)
        flag = 0.0 if isinstance(a, FixedPoint) else 5 * eta * a.eps
        labels = (self.N - 2) * math.exp(min(closer - eta * (self.gamma - DOUBT), 700.0))
        points = self.N * math.exp(min(closer + flag - 2 * eta, 700.0))
        return 1 / (1 + labels + points)

    @property
    def margin(self) -> float:
        """What the worst input leaves of 2(weight - the rest) >= 1, where the label is exact."""
        return surplus(self.weight, 2 * self.N, self.arithmetic)

    def embed(
        self, points: Float[np.ndarray, "*B n d"], labels: Shaped[np.ndarray, "*B n1"]
    ) -> Float[np.ndarray, "*B tokens width"]:
        """x_0 y_0 x_1 y_1 ... x_(n-1) as rows; labels 0, 1 become -1, 1."""
        d, k, n = self.d, self.T.k, points.shape[-2]
        z = np.zeros((*points.shape[:-2], 2 * n, self.width))
        z[..., 0::2, :d] = points
        z[..., 1:-1:2, d] = 2.0 * labels - 1
        z[..., 1::2, d + 1] = 1
        z[..., d + 2] = 1
        z[..., d + 3 : d + 3 + k] = self.T.rows(np.arange(2 * n))
        z[..., d + 3 + k : d + 3 + 2 * k] = self.T.rows(np.arange(2 * n) // 2 * 2)
        return z[..., :-1, :]

    def __call__(self, points, labels) -> int:
        """The label of the point nearest to the last one."""
        return int(self.many(np.asarray(points)[None], np.asarray(labels)[None])[0])

    def many(
        self, points: Float[np.ndarray, "B n d"], labels: Shaped[np.ndarray, "B n1"]
    ) -> Int[np.ndarray, " B"]:
        """B inputs of one length at once, their last point the query."""
        check_input(points, labels, self.N, self.d)
        check_margins(points, slice(-1, None), self.gamma)
        z = self.embed(points, labels)
        return self._labels(self.stack(z, self.arithmetic, LAST))[:, 0]

    def all_queries(
        self, points: Float[np.ndarray, "B n d"], labels: Shaped[np.ndarray, "B n1"], first: int
    ) -> Int[np.ndarray, "B queries"]:
        """Points first, ..., n - 1 as queries in one causal pass, each asked about those before it.

        This is the task as the paper defines it (first = N / 2), and MQAR.
        """
        if not self.causal:
            raise ValueError("expected causal=True for many queries, got causal=False")
        check_input(points, labels, self.N, self.d)
        check_int("first", first, low=1, high=points.shape[-2] - 1)
        check_margins(points, slice(first, None), self.gamma)
        z = self.embed(points, labels)
        return self._labels(self.stack(z, self.arithmetic, slice(2 * first, None, 2)))

    def _labels(self, out: np.ndarray) -> np.ndarray:
        return (out[..., 0] > 0).astype(np.int64)


def surplus(w: float, n: int, a: Arithmetic) -> float:
    """What 2(w - the rest) exceeds 1 by, w being the weight on the right one of n signs."""
    if isinstance(a, FixedPoint):
        lost = (n if a.rounding == "nearest" else 2) / a.S
    else:
        lost = a.average_error(n, 1 - w) + 2 * a.eps
    return 2 * (w - (1 - w) - lost) - 1


def logit_error(eta: float, d: int, a: Arithmetic) -> float:
    """What rounding may do to eta x.x' with unit vectors of dimension d, x' copied without error.

    In a float x, x', eta, their product and the sum are rounded, relative to a sum of sizes <= eta.
    """
    if not isinstance(a, FixedPoint):
        return 1.05 * eta * (2.5 * a.eps + a.relative_error(d + 1))
    step = 1 / a.S
    return step * ((3 * eta + 1) * math.sqrt(d) + 2 * (eta + 1) * step * d + 1)


def margins(points: Float[np.ndarray, "B n d"]) -> Float[np.ndarray, "B n"]:
    """For every point as a query: the best inner product with earlier points, less the second.

    Infinite where fewer than two points come before.
    """
    n = points.shape[-2]
    dots = np.where(np.tri(n, k=-1, dtype=bool), points @ np.swapaxes(points, -1, -2), -np.inf)
    if n < 3:
        return np.full(points.shape[:-1], np.inf)
    second, best = np.moveaxis(np.partition(dots, -2, axis=-1)[..., -2:], -1, 0)
    return np.where(np.isinf(second), np.inf, best - np.where(np.isinf(second), 0, second))


def check_input(points: np.ndarray, labels: np.ndarray, N: int, d: int) -> None:
    """Raise unless there are 2 to N unit vectors of dimension d and a bit for all but the last."""
    check_int("points", points.shape[-2], low=2, high=N)
    check_int("dimension", points.shape[-1], low=d, high=d)
    check_int("labels", labels.shape[-1], low=points.shape[-2] - 1, high=points.shape[-2] - 1)
    longest = float(np.abs(np.linalg.norm(points, axis=-1) - 1).max())
    if not longest <= 1e-9:
        raise ValueError(f"expected unit vectors, got a norm that is {longest:.3g} off")
    if not (np.issubdtype(labels.dtype, np.integer) or labels.dtype == bool):
        raise TypeError(f"expected labels as whole numbers, got {labels.dtype}")
    for extreme in (labels.min(initial=0), labels.max(initial=0)):
        check_int("label", int(extreme), low=0, high=1)


def check_margins(points: np.ndarray, queries: slice, gamma: float) -> None:
    """Raise unless these points have their nearest neighbour by a margin of gamma."""
    found = float(margins(points)[:, queries].min(initial=math.inf))
    if found < gamma - DOUBT / 2:
        raise ValueError(f"expected a margin >= gamma = {gamma:g}, got {found:g}")


def check_margin(gamma: float) -> None:
    """Raise unless 0 < gamma <= 2, the margins that unit vectors can have."""
    if not 0 < gamma <= 2:
        raise ValueError(f"expected 0 < gamma <= 2, got {gamma}")


def check_addresses(T: Family, N: int) -> None:
    """Raise unless the 2N tokens of N points have a vector each."""
    if T.N < 2 * N:
        raise ValueError(f"expected at least 2N = {2 * N} vectors, got {T.N}")


def hardest(
    N: int, d: int, gamma: float, *, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "N d"], Int[np.ndarray, " labels"]]:
    """An input on which all wrong points are exactly gamma further off, with the other label.

    >>> points, labels = hardest(8, 4, 0.25, rng=np.random.default_rng(0))
    >>> round(float(margins(points[None])[0, -1]), 9), int(labels.sum()) in (1, 6)
    (0.25, True)
    """
    check_int("N", N, low=2)
    check_int("d", d, low=2)
    check_margin(gamma)
    frame = np.linalg.qr(rng.normal(size=(d, d)))[0]
    best = rng.integers(0, N - 1)
    top = rng.uniform(gamma - 1, 1)
    dots = np.where(np.arange(N - 1) == best, top, top - gamma)
    sides = rng.normal(size=(N - 1, d - 1))
    sides *= np.sqrt(1 - dots**2)[:, None] / np.linalg.norm(sides, axis=1, keepdims=True)
    points = np.concatenate([dots[:, None], sides], axis=1)
    points = np.vstack([points, np.eye(1, d)]) @ frame.T
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    label = rng.integers(0, 2)
    return points, np.where(np.arange(N - 1) == best, label, 1 - label)
