"""Equality by two small layers (Theorem 6), for every partition (Lemma 5, Corollary 13.1).

EQ(x) = 1 if the first half of x equals the second. The first layer copies to every position i the
bit at src(i), its partner if that comes earlier and i itself otherwise, and compares; the second
counts the mismatches.

    x_i = [x_i, 0, T(i), T(src i)], x_i in {-1, 1}
    W_Q = (eta / k) [O, I to T(src i)]    W_K = [O, I to T(i)]    W_V: x_i to the second coordinate

======= ==========================================================================
N       length of x, even; positions count from 0
T, k    position vectors and their dimension; gamma is their coherence
eta     sharpness of the first layer
K_c     the paper's grid has Delta = N^-K_c
m, p, H width, bits of a number, heads
======= ==========================================================================

In our reading the paper's sketch needs weights that *round* to exactly 1, and its eta is too small
for that. The network used here decides by a threshold instead, which the paper names as the other
way: a copy with |r - x| <= 1/2 gives an exclusive or that is exactly 0 or 1.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int, Shaped

from companion.theory._check import check_even, check_int, check_whole
from companion.theory.copy_and_count import (
    Copy,
    copy_eta,
    copying,
    count_error,
    count_layer,
    told,
)
from companion.theory.fixed_point import EXACT, Arithmetic, FixedPoint, Floating
from companion.theory.transformer import LAST, FeedForward, Head, Layer, Stack
from companion.theory.vectors import Family, nearly_orthogonal


def paper_eta(N: int, K_c: int) -> float:
    """The paper's scale, ln N + K_c ln 2N, meant to round the right weight to 1."""
    check_int("N", N, low=2)
    check_int("K_c", K_c, low=1)
    return math.log(N) + K_c * math.log(2 * N)


def rounding_eta(N: int, K_c: int, gap: float = 0.5) -> float:
    """(ln N + ln 2 N^K_c) / gap: what does round it to 1, to nearest on the paper's grid.

    The weights elsewhere together must not exceed half a step, 1 / (2 N^K_c), and are less than
    N exp(-eta gap). Corollary 8.1 promises the gap 3/4 - 1/4 = 1/2; unit vectors have 1 - gamma.

    >>> round(paper_eta(1024, 2), 1), round(rounding_eta(1024, 2), 1)
    (22.2, 43.0)
    """
    check_int("N", N, low=2)
    check_int("K_c", K_c, low=1)
    if not 0 < gap <= 2:
        raise ValueError(f"expected 0 < gap <= 2, got {gap}")
    return (math.log(N) + math.log(2) + K_c * math.log(N)) / gap


def difference(threshold: bool) -> FeedForward:
    """[x, r, ...] to [x != r], exactly: by thresholds for |r - x| <= 1/2, or |x - r| / 2 for r = x.

    u = x - r is near 0 or +-2: relu(u - 1/2) - relu(u - 3/2), and the same of -u.
    """
    if not threshold:
        return FeedForward(np.array([[0.5], [-0.5]]), np.zeros(2), np.ones((1, 2)), np.zeros(1))
    return FeedForward(
        W_1=np.array([[1.0], [1.0], [-1.0], [-1.0]]),
        b_1=np.array([-0.5, -1.5, -0.5, -1.5]),
        W_2=np.array([[1.0, -1.0, 1.0, -1.0]]),
        b_2=np.zeros(1),
    )


def equality_layers(
    N: int, T: Family, eta: float, *, threshold: bool = True, causal: bool = False
) -> Stack:
    """The two layers alone, right or wrong: `Equality` builds them where they are right."""
    d = 2 + 2 * T.k
    x, r, position, source = np.split(np.eye(d), [1, 2, 2 + T.k])
    compare = difference(threshold)
    compare = FeedForward(compare.W_1 * (x - r), compare.b_1, compare.W_2, compare.b_2)
    copy = Head(W_Q=eta / T.k * source, W_K=position, W_V=np.outer(r, x))
    first = Layer([copy], ffn=compare, causal=causal, residual=True)
    return Stack([first, count_layer(N, negate=True)])


@dataclass(frozen=True, eq=False)
class Equality:
    """Two layers, one head each, of width 2 + 2k: 1 exactly when x_A = x_B.

    A and B are the halves of the input, or, for Lemma 5, any two sets of N / 2 positions: `alice`
    holds A. With `threshold=False` it is the paper's network, which compares without a tolerance.

    >>> equal = Equality.build(8)
    >>> equal([0, 1, 1, 0, 0, 1, 1, 0]), equal([0, 1, 1, 0, 0, 1, 1, 1])
    (1, 0)
    >>> Equality.build(4, alice=[0, 3])([0, 1, 0, 1]) == 0  # x_0 x_3 = 01 and x_1 x_2 = 10
    True
    """

    N: int
    T: Family
    eta: float
    alice: tuple[int, ...]
    arithmetic: Arithmetic = EXACT
    causal: bool = False
    threshold: bool = True

    def __post_init__(self):
        check_even(self.N)
        if self.T.N < self.N:
            raise ValueError(f"expected at least N = {self.N} vectors, got {self.T.N}")
        if sorted(set(self.alice)) != list(self.alice) or len(self.alice) != self.N // 2:
            raise ValueError(
                f"expected {self.N // 2} different positions in order, got {list(self.alice)}"
            )
        check_whole("position", np.array(self.alice), low=0, high=self.N - 1)
        if isinstance(self.arithmetic, FixedPoint) and self.arithmetic.R < 4:
            raise ValueError(f"expected a range R >= 4, got {self.arithmetic.R}")
        if not self.eta > 0 or not math.isfinite(self.eta):
            raise ValueError(f"expected 0 < eta < infinity, got {self.eta}")
        if not self.count_error < 0.5:
            raise ValueError(
                f"expected counts within 1/2, got {told(self.count_error)} with N = {self.N} "
                f"in {self.arithmetic}"
            )
        if self.margin < 0:
            raise ValueError(
                f"expected copies within {self.tolerance:.3g}, got {self.copy.error:.3g} with "
                f"N = {self.N}, k = {self.T.k}, eta = {self.eta:g} in {self.arithmetic}"
            )

    @classmethod
    def build(
        cls,
        N: int,
        T: Family | None = None,
        eta: float | None = None,
        alice: Iterable[int] | None = None,
        **options,
    ) -> "Equality":
        """By default the halves, a trace code, and an eta half as much again as enough."""
        check_even(N)
        T = nearly_orthogonal(N) if T is None else T
        eta = copy_eta(T, N, 0.5, options.get("arithmetic", EXACT)) if eta is None else eta
        held = range(N // 2) if alice is None else alice
        return cls(N, T, eta, tuple(np.sort(list(held)).tolist()), **options)

    @cached_property
    def source(self) -> Int[np.ndarray, " N"]:
        """src(i): the position that i copies from, never a later one."""
        mine = np.array(self.alice)
        yours = np.setdiff1d(np.arange(self.N), mine)
        partner = np.empty(self.N, np.int64)
        partner[mine], partner[yours] = yours, mine
        return np.minimum(partner, np.arange(self.N))

    @cached_property
    def stack(self) -> Stack:
        """The weights."""
        return equality_layers(
            self.N, self.T, self.eta, threshold=self.threshold, causal=self.causal
        )

    @cached_property
    def copy(self) -> Copy:
        """Worst weights of the first layer."""
        return copying(self.T, self.N, self.eta, self.arithmetic, fewer=self.causal)

    @cached_property
    def count_error(self) -> float:
        """Worst error of the second layer's answer."""
        return count_error(self.N, 0, self.N // 2, self.arithmetic, negate=True)

    @property
    def tolerance(self) -> float:
        """How far off a copy may be: 1/2, less what a float sum may lose; 0 without thresholds."""
        a = self.arithmetic
        return 0.5 - (4 * a.eps if isinstance(a, Floating) else 0.0) if self.threshold else 0.0

    @property
    def margin(self) -> float:
        """How much more error either layer could bear on the worst input."""
        return min(self.tolerance - self.copy.error, 0.5 - self.count_error)

    @property
    def mpH(self) -> int:
        """Width x bits of a number x heads, the size that the lower bounds speak of."""
        return self.stack.width * self.arithmetic.p * self.stack.heads

    def embed(self, x: Shaped[np.ndarray, "*B N"]) -> Float[np.ndarray, "*B N d"]:
        """[x_i, 0, T(i), T(src i)] with bits 0, 1 as -1, 1."""
        k = self.T.k
        rows = np.zeros((*x.shape, 2 + 2 * k))
        rows[..., 0] = 2.0 * x - 1
        rows[..., 2 : 2 + k] = self.T.rows(np.arange(self.N))
        rows[..., 2 + k :] = self.T.rows(self.source)
        return rows

    def __call__(self, x) -> int:
        """1 if x_A = x_B, else 0."""
        return int(self.many(np.asarray(x)[None])[0])

    def many(self, x: Shaped[np.ndarray, "B n"]) -> Int[np.ndarray, " B"]:
        """The answers for B inputs at once.

        >>> Equality.build(2).many(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]))
        array([1, 0, 0, 1])
        """
        check_bits(x, self.N)
        return np.rint(self.stack(self.embed(x), self.arithmetic, LAST)[:, 0, 0]).astype(np.int64)


def check_bits(x: Shaped[np.ndarray, "..."], N: int) -> None:
    """Raise unless the rows of x are N bits."""
    check_int("length", x.shape[-1], low=N, high=N)
    if not (np.issubdtype(x.dtype, np.integer) or x.dtype == bool):
        raise TypeError(f"expected bits as whole numbers, got {x.dtype}")
    for extreme in (x.min(initial=0), x.max(initial=0)):
        check_int("bit", int(extreme), low=0, high=1)
