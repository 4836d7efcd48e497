"""Equality by one layer: what Theorem 12 rules out, what meets it, and what escapes it.

======= ==========================================================================
N       length of x, even; EQ(x) = 1 if its halves are equal
c, r    coefficients c_i, and how many such sums (channels) the layer forms
m, p, H width, bits of a number, heads
t       positions at which the halves differ
======= ==========================================================================

Theorem 12 is about a layer that is never wrong. Its bound is met by c_i = 2^i, numbers of about
N / 2 bits; and a layer that may miss a difference with probability 2^-r has width r.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped

from companion.theory._check import check_even, check_int
from companion.theory.equality import check_bits
from companion.theory.fixed_point import EXACT, Arithmetic, FixedPoint
from companion.theory.transformer import LAST, FeedForward, Head, Layer


@dataclass(frozen=True, eq=False)
class OneLayerEquality:
    """One layer, no position asked for: the sums sum_i c_i (x_i - x_(i + N/2)) must all be 0.

    c_i = 2^i is exact and needs about N / 2 bits, which Theorem 12 says it must. Random signs in r
    channels never call equal strings different and miss a difference with probability <= 2^-r.

    >>> exact = OneLayerEquality.exact(8)
    >>> exact([0, 1, 1, 0, 0, 1, 1, 0]), exact([0, 1, 1, 0, 1, 0, 1, 0])
    (1, 0)
    """

    c: Int[np.ndarray, "half r"]
    arithmetic: Arithmetic = EXACT

    def __post_init__(self):
        if self.c.shape[0] < 1 or self.c.shape[1] < 1:
            raise ValueError(f"expected N / 2 >= 1 rows and r >= 1 channels, got {self.c.shape}")
        if not self.margin > 0:
            raise ValueError(
                f"expected the sum 1 to be told from 0, got an error of {0.5 - self.margin:.3g} "
                f"with N = {self.N} and numbers up to {np.abs(self.c).max()} in {self.arithmetic}"
            )

    @classmethod
    def exact(cls, N: int, arithmetic: Arithmetic = EXACT) -> "OneLayerEquality":
        """c_i = 2^i: different strings are different numbers."""
        check_even(N)
        check_int("N", N, low=2, high=120)
        return cls(2 ** np.arange(N // 2)[:, None], arithmetic)

    @classmethod
    def random(
        cls, N: int, r: int, arithmetic: Arithmetic = EXACT, *, rng: np.random.Generator
    ) -> "OneLayerEquality":
        """Signs drawn once, known to the model: width r, whatever N."""
        check_even(N)
        check_int("r", r, low=1)
        return cls(2 * rng.integers(0, 2, (N // 2, r)) - 1, arithmetic)

    @property
    def N(self) -> int:
        """Length of the input."""
        return 2 * len(self.c)

    @cached_property
    def layer(self) -> Layer:
        """The weights."""
        return fingerprint_layer(self.N, self.c.shape[1])

    @cached_property
    def margin(self) -> float:
        """1/2 less the largest error of a sum |D| = 1, from a bound on every rounding on the way.

        On a grid equal strings cancel exactly and the average of 1 is N floor(S / N) / S. In a
        float all partial sums are whole multiples of the weight 1 / N. Where these are numbers of
        the type that sums are formed in, equal strings cancel exactly, too, and what is rounded is
        D alone; else a sum of N terms loses at most N + 2 half units of sum |c_i|.
        """
        a, N, size = self.arithmetic, self.N, int(np.abs(self.c).sum())
        if isinstance(a, FixedPoint):
            return N * (a.S // N) / a.S - 0.5 if size <= a.R else -math.inf
        if size > torch.finfo(a.dtype).max:
            return -math.inf
        share = float(a.decode(a.weights(a.encode(np.zeros((1, N)))))[0, 0])
        kept = bool((a.decode(a.encode(self.c)) == self.c).all())
        if kept and share > 0 and a.sum_error(2 * size, share) == 0:
            return 0.5 - abs(N * share - 1) - 3 * a.eps
        return 0.5 - (N + 2) * a.eps / 2 * size

    def embed(self, x: Shaped[np.ndarray, "*B N"]) -> Float[np.ndarray, "*B N r"]:
        """c_i x_i in the first half, -c_i x_i in the second."""
        return (2.0 * x - 1)[..., None] * np.concatenate([self.c, -self.c]).astype(float)

    def __call__(self, x) -> int:
        """1 if all sums are 0, else 0."""
        return int(self.many(np.asarray(x)[None])[0])

    def many(self, x: Shaped[np.ndarray, "B n"]) -> Int[np.ndarray, " B"]:
        """The answers for B inputs at once."""
        check_bits(x, self.N)
        out = self.layer(self.embed(x), self.arithmetic, LAST)[:, 0, 0]
        return (out > 0.5).astype(np.int64)


def fingerprint_layer(N: int, r: int) -> Layer:
    """Uniform attention over r channels, then 1 - sum_h |N a_h / 2|."""
    eye = np.eye(r)
    network = FeedForward(
        N / 2 * np.vstack([eye, -eye]), np.zeros(2 * r), -np.ones((1, 2 * r)), np.ones(1)
    )
    return Layer([Head(np.zeros((1, r)), np.zeros((1, r)), eye)], ffn=network)


def miss_probability(t: int, r: int) -> float:
    """Chance that r random fingerprints overlook t mismatches: (C(t, t/2) / 2^t)^r, 0 for odd t.

    >>> miss_probability(2, 1), miss_probability(3, 1), miss_probability(2, 8)
    (0.5, 0.0, 0.00390625)
    """
    check_int("t", t, low=1)
    check_int("r", r, low=1)
    return 0.0 if t % 2 else (math.comb(t, t // 2) / 2**t) ** r


def paper_one_layer_width(N: int, p: int, H: int = 1) -> int:
    """Theorem 12 by the paper's count, 3m(p + log N)H >= N / 2: no narrower layer computes EQ.

    By ours, and larger: `bounds.least_width(needed_bits("equality", N), N, p, H)`.

    >>> paper_one_layer_width(1 << 20, p=42)
    2819
    """
    check_even(N)
    check_int("p", p, low=1)
    check_int("H", H, low=1)
    return math.ceil(N / (6 * (p + math.log2(N)) * H))
