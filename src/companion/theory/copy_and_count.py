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
from jaxtyping import Bool, Float, Int

from companion.theory._check import check_int
from companion.theory.fixed_point import EXACT, Arithmetic, FixedPoint, TooWide
from companion.theory.transformer import FeedForward, Head, Layer
from companion.theory.vectors import Family, Linear

_LARGEST_TABLE = 1 << 13  # L beyond which queries of a family without structure take minutes


class Copy(NamedTuple):
    """Worst weights over all positions that may be asked for."""

    right: float  # on the position asked for
    elsewhere: float  # on all others together
    rounded: float = 0.0  # what rounding may do to the average of the values

    @property
    def error(self) -> float:
        """A value x of size at most 1 is read as r, and |r - x| is at most this."""
        return 1 - self.right + self.elsewhere + self.rounded


def copying(
    T: Family, L: int, eta: float, arithmetic: Arithmetic = EXACT, *, fewer: bool = False
) -> Copy:
    """Weights of a copying head on L keys, as the layer computes them.

    A logit is a sum of k terms +-eta / k. Where a float may round partial sums, the right logit is
    lowered by twice what that can do: so these are bounds, for every order of summation.

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
    unit, keys = eta / T.k, 0
    rights, elsewheres = [], []
    for products, own in blocks:
        keys = products.shape[-1]
        right = np.arange(keys) == own[:, None]
        w = weights_of(products, right, unit, T.k, arithmetic)
        rights.append(w[right].min())
        if fewer:
            pairs = np.stack([np.full_like(products, T.k), products], axis=-1)
            w = weights_of(pairs, np.array([True, False]), unit, T.k, arithmetic)[..., 1]
        elsewheres.append(np.where(right, 0, w).sum(-1).max())
    right, elsewhere = float(min(rights)), float(max(elsewheres))
    return Copy(right, elsewhere, arithmetic.average_error(keys, max(1 - right, elsewhere)))


def weights_of(
    products: Int[np.ndarray, "*B n"],
    right: Bool[np.ndarray, "..."],
    unit: float,
    k: int,
    arithmetic: Arithmetic,
) -> Float[np.ndarray, "*B n"]:
    """Softmax of products x `unit`, each a sum of k terms +-unit or 0; a bound on `right` ones."""
    encoded = arithmetic.encode(np.array([unit]))
    logits = arithmetic.times(products, encoded)
    off = arithmetic.sum_error(k, float(arithmetic.decode(encoded)[0]))
    if off:
        logits = arithmetic.encode(arithmetic.decode(logits) - 2 * off * right)
    return arithmetic.decode(arithmetic.weights(logits))


def copy_eta(T: Family, L: int, error: float = 0.5, arithmetic: Arithmetic = EXACT) -> float:
    """1.5 ln(2L / error) / (1 - gamma): half as much again as keeps a copy within `error`.

    On a grid eta is rounded up until eta / k is a grid point, and at most R; and where exponentials
    are rounded first, no larger than makes the copy exact (`exact_eta`).

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
    eta = min(eta, exact_eta(gamma, arithmetic))
    steps = min(math.ceil(eta / T.k * arithmetic.S), arithmetic.R * arithmetic.S // T.k)
    return T.k * steps / arithmetic.S


def exact_eta(gamma: float, grid: FixedPoint) -> float:
    """ln 2S / (1 - gamma): exponentials of all other logits, however many, are rounded to 0.

    Only if they are rounded before they are added, the early softmax; else infinity.

    >>> round(exact_eta(0.0, FixedPoint(f=1, R=8, softmax="early")), 2)  # ln 4
    1.39
    """
    if grid.softmax == "late":
        return math.inf
    return 1.001 * math.log(2 * grid.S) / (1 - max(gamma, 0.0))


def count_layer(L: int, b: int = 0, *, negate: bool = False) -> Layer:
    """From L bits, one a position, to [count > b], or with `negate` to [count <= b].

    The latter is relu(b + 1 - La) - relu(b - La), a the average. For b = 0 both are 0 for every
    larger count, so that floats need not tell large counts apart.

    >>> bits = np.array([[1.0], [0.0], [1.0], [0.0]])
    >>> [float(count_layer(4, b)(bits)[-1, 0]) for b in (0, 1, 2)]
    [1.0, 1.0, 0.0]
    """
    check_int("L", L, low=1)
    check_int("b", b, low=0)
    zero, one, sign = np.zeros((1, 1)), np.ones((1, 1)), 1.0 if negate else -1.0
    network = FeedForward(
        W_1=np.full((2, 1), -float(L)),
        b_1=np.array([b + 1.0, b]),
        W_2=sign * np.array([[1.0, -1.0]]),
        b_2=np.array([float(not negate)]),
    )
    return Layer([Head(zero, zero, one)], ffn=network)


def count_error(
    L: int, b: int, most: int, arithmetic: Arithmetic, *, negate: bool = False
) -> float:
    """How far the answer of `count_layer` is from 0 or 1, at worst over the counts 0, ..., `most`.

    A count is a sum of weights 1 / L. Where a float may round partial sums, both ends of what it
    may come to are tried. What overflows is infinitely far.

    >>> import torch
    >>> from companion.theory.fixed_point import Floating
    >>> [count_error(1 << 9, b, 1 << 9, Floating(torch.bfloat16)) for b in (0, 511)]
    [0.0, 1.0]
    """
    a, counts = arithmetic, np.arange(most + 1)
    share = a.weights(a.encode(np.zeros((1, L))))[0, :1]
    off = counts / max(1, most) * a.sum_error(most, float(a.decode(share)[0]))
    averages = a.decode(a.times(counts, share)) + np.array([[-1.0], [1.0]]) * off  # (2, counts)
    try:
        out = a.decode(count_layer(L, b, negate=negate).ffn(a.encode(averages[..., None]), a))
    except TooWide:
        raise
    except OverflowError:
        return math.inf
    return float(np.abs(out[..., 0] - ((counts > b) != negate)).max())


def told(error: float) -> str:
    """An error in a message: its size, or that the numbers leave the range."""
    return f"{error:.3g}" if error < math.inf else "an overflow"
