"""The two layers of Theorems 6 and 13 and Lemma 5: copy what you need, then count what you found.

Layer 1, a head that *copies*: position i asks with T(p) and the keys are T(0), ..., T(L - 1), so
that it reads the value at p. Layer 2 *counts*: all logits are 0, the average of L bits is a count
divided by L, and a network compares it with a threshold b.

======= ==========================================================================
L       keys: N, or N + 1 with a first token in front
k, T    dimension and family of the position vectors; gamma their coherence
eta     sharpness of the copying head; logits are eta T(p).T(j) / k
error   how far a copied number of size at most 1 may be off
======= ==========================================================================
"""

import math
from typing import NamedTuple

import numpy as np

from companion.theory._check import check_int
from companion.theory.fixed_point import EXACT, Arithmetic, FixedPoint
from companion.theory.transformer import LAST, FeedForward, Head, Layer
from companion.theory.vectors import Family, Linear

_LARGEST_TABLE = 1 << 13  # L beyond which queries of a family without structure take minutes


class Copy(NamedTuple):
    """Worst weights over all positions that may be asked for."""

    right: float  # on the position asked for
    elsewhere: float  # on all others together

    @property
    def error(self) -> float:
        """A value x of size at most 1 is read as r with |r - x| <= 1 - right + elsewhere."""
        return 1 - self.right + self.elsewhere


def copying(
    T: Family, L: int, eta: float, arithmetic: Arithmetic = EXACT, *, fewer: bool = False
) -> Copy:
    """Weights of a copying head on L keys, exactly as the layer computes them.

    With `fewer`, a bound for every subset of these keys that holds the one asked for, and so for
    shorter inputs and for a causal mask. Fewer keys have a smaller sum of exponentials, so the
    right weight is least on all L; but each other weight *grows*, and where all L keys round it to
    0, some of them may not. No key weighs more than beside the right one alone.

    For a linear family with L = 2^n every query sees one multiset of logits, its spectrum; beyond
    8192 keys that row, with `fewer`, stands for the L < 2^n that are not powers of two.

    >>> from companion.theory.vectors import binary
    >>> round(copying(binary(8), 8, eta=12.0).error, 4)
    0.002
    >>> grid = FixedPoint(f=3, R=64)  # weights are multiples of 1/8, rounded down
    >>> copying(binary(8), 8, 2.4, grid).error, copying(binary(8), 8, 2.4, grid, fewer=True).error
    (0.5, 0.875)
    """
    check_int("L", L, low=1, high=T.N)
    if isinstance(T, Linear) and (L == 1 << T.n or L > _LARGEST_TABLE):
        blocks = [(T.spectrum[None].astype(np.int64), np.zeros(1, int))]
        fewer = fewer or L != 1 << T.n
    else:
        check_int("L", L, low=1, high=_LARGEST_TABLE)
        signs = T.rows(np.arange(L)).astype(np.float32)
        blocks = (
            (np.rint(signs[own] @ signs.T).astype(np.int64), own)
            for own in np.split(np.arange(L), range(512, L, 512))
        )
    unit = arithmetic.encode(np.array([eta / T.k]))
    rights, elsewheres = [], []
    for products, own in blocks:
        w = arithmetic.decode(arithmetic.weights(arithmetic.times(products, unit))).copy()
        row = np.arange(len(own))
        rights.append(w[row, own].min())
        if fewer:
            pairs = np.stack([np.full_like(products, T.k), products], axis=-1)
            w = arithmetic.decode(arithmetic.weights(arithmetic.times(pairs, unit)))[..., 1].copy()
        w[row, own] = 0
        elsewheres.append(w.sum(-1).max())
    return Copy(float(min(rights)), float(max(elsewheres)))


def copy_eta(T: Family, L: int, error: float = 0.5, arithmetic: Arithmetic = EXACT) -> float:
    """1.5 ln(2L / error) / (1 - gamma): half as much again as keeps a copy within `error`.

    On a grid eta is rounded up until eta / k is a grid point, and at most R.

    >>> from companion.theory.vectors import binary
    >>> round(copy_eta(binary(8), 8), 2)
    7.8
    """
    if not 0 < error < 2:
        raise ValueError(f"expected 0 < error < 2, got {error}")
    gamma = T.coherence().highest
    if gamma >= 1:
        raise ValueError(f"expected distinct vectors, got two equal ones with k = {T.k}")
    eta = 1.5 * math.log(2 * L / error) / (1 - max(gamma, 0.0))
    if not isinstance(arithmetic, FixedPoint):
        return eta
    steps = min(math.ceil(eta / T.k * arithmetic.S), arithmetic.R * arithmetic.S // T.k)
    return T.k * steps / arithmetic.S


def count_layer(L: int, b: int = 0, *, negate: bool = False) -> Layer:
    """From L bits, one a position, to [count > b]: relu(La - b) - relu(La - b - 1), a the average.

    >>> bits = np.array([[1.0], [0.0], [1.0], [0.0]])
    >>> [float(count_layer(4, b)(bits)[-1, 0]) for b in (0, 1, 2)]
    [1.0, 1.0, 0.0]
    """
    check_int("L", L, low=1)
    check_int("b", b, low=0)
    zero, one, sign = np.zeros((1, 1)), np.ones((1, 1)), -1.0 if negate else 1.0
    network = FeedForward(
        W_1=np.full((2, 1), float(L)),
        b_1=np.array([-b, -b - 1.0]),
        W_2=sign * np.array([[1.0, -1.0]]),
        b_2=np.array([float(negate)]),
    )
    return Layer([Head(zero, zero, one)], ffn=network)


def count_error(
    L: int, b: int, most: int, arithmetic: Arithmetic, *, negate: bool = False
) -> float:
    """How far the answer of `count_layer` is from 0 or 1, on the counts that are hardest.

    These are b and b + 1, and 0 and `most`, each with its ones first and with its ones last:
    weights are equal and the network is monotone. What overflows is infinitely far.
    """
    counts = np.array(sorted({c for c in (0, b, b + 1, most) if c <= most}))
    first = (np.arange(L) < counts[:, None]).astype(float)
    bits = np.concatenate([first, first[:, ::-1]])[..., None]  # (2 counts, L, 1)
    wanted = (np.tile(counts, 2) > b) != negate
    try:
        out = count_layer(L, b, negate=negate)(bits, arithmetic, rows=LAST)[:, 0, 0]
    except OverflowError:
        return math.inf
    return float(np.abs(out - wanted).max()) if np.isfinite(out).all() else math.inf
