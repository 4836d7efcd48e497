"""On average over inputs: inner product mod 2 is hard, Equality and Dyck are not.

Alice holds a row x and Bob a column y of a sign matrix M, and Bob must say M(x, y); the uniform
distribution draws both. A protocol is right with probability 1/2 + advantage / 2.

======= ==========================================================================
IP2     M(x, y) = (-1)^<x, y>, x and y of n = N / 2 bits: the Hadamard matrix
c       bits of a protocol; one way, Alice's message alone
disc    discrepancy: the largest |sum over a rectangle| / 4^n
error   1/2 - epsilon, epsilon > 0 being what is asked for over guessing
======= ==========================================================================

Lindsey's lemma, |sum over A x B| <= sqrt(|A| |B| 2^n), gives disc <= 2^(-n/2), and a protocol of c
bits cuts the matrix into 2^c rectangles. One way it cuts into 2^c bands of rows, where
Cauchy-Schwarz does better. What a fingerprint of c bits computes has no such ceiling.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from companion.theory._check import check_even, check_int, check_whole


def inner_product(n: int) -> Int[np.ndarray, "X Y"]:
    """(-1)^<x, y> for all x and y of n bits.

    >>> inner_product(1).tolist()
    [[1, 1], [1, -1]]
    """
    check_int("n", n, low=0, high=12)
    x = np.arange(1 << n)
    return 1 - 2 * (np.bitwise_count(x[:, None] & x).astype(np.int64) & 1)


def equality_matrix(n: int) -> Int[np.ndarray, "X Y"]:
    """1 where x = y and -1 elsewhere; Dyck-(2, 2) of length n + 1, odd positions against even."""
    check_int("n", n, low=0, high=12)
    return 2 * np.eye(1 << n, dtype=np.int64) - 1


def discrepancy(M: Int[np.ndarray, "X Y"]) -> float:
    """Exactly, by all sets of rows: for each, the best columns are those of one sign.

    >>> [discrepancy(inner_product(n)) for n in (1, 2, 3)]
    [0.5, 0.3125, 0.171875]
    """
    check_int("rows", len(M), low=1, high=16)
    _check_signs(M)
    sets = np.arange(1 << len(M))[:, None] >> np.arange(len(M)) & 1
    sums = sets @ M  # (2^X, Y)
    best = np.maximum(np.maximum(sums, 0).sum(1), np.maximum(-sums, 0).sum(1))
    return float(best.max()) / M.size


def lindsey(rows: int, columns: int, n: int) -> float:
    """sqrt(|A| |B| 2^n): no rectangle of IP2 has a larger sum."""
    check_int("rows", rows, low=0, high=1 << n)
    check_int("columns", columns, low=0, high=1 << n)
    return math.sqrt(rows * columns * 2**n)


def two_way_ceiling(c: float | int, n: int) -> float:
    """The best chance of being right about IP2 with c bits exchanged: 1/2 + 2^(c - n/2) / 2.

    It holds for randomised protocols too, being an average over deterministic ones.

    >>> two_way_ceiling(2, 8), two_way_ceiling(4, 8)
    (0.625, 1.0)
    """
    _check(c, n)
    return 0.5 + 0.5 * 2.0 ** min(0.0, c - n / 2)


def one_way_ceiling(c: float | int, n: int) -> float:
    """The same for one message of c bits, and so for a recurrent model: 1/2 + 2^((c - n)/2) / 2.

    A band A of rows has sum_y |sum_A M(x, y)| <= sqrt(2^n |A| 2^n), its rows being orthogonal, and
    2^c bands share the 2^n rows.

    >>> one_way_ceiling(4, 8), one_way_ceiling(8, 8)
    (0.625, 1.0)
    """
    _check(c, n)
    return 0.5 + 0.5 * 2.0 ** min(0.0, (c - n) / 2)


def recurrent_bits(N: int, epsilon: float) -> float:
    """State bits m p that an error of 1/2 - epsilon on IP2 takes: N/2 - 2 log2(1 / 2 epsilon).

    >>> recurrent_bits(400, 0.25)
    198.0
    """
    _check_gain(N, epsilon)
    return max(0.0, N / 2 - 2 * math.log2(1 / (2 * epsilon)))


def one_layer_bits(N: int, epsilon: float) -> float:
    """Bits that a one-layer Transformer's protocol (Theorem 4) must have: N/4 - log2(1 / 2 eps).

    >>> one_layer_bits(400, 0.25)
    99.0
    """
    _check_gain(N, epsilon)
    return max(0.0, N / 4 - math.log2(1 / (2 * epsilon)))


def one_way_accuracy(
    M: Int[np.ndarray, "X Y"],
    message: Int[np.ndarray, " X"],
    weight: Float[np.ndarray, "X Y"] | None = None,
) -> float:
    """Chance of being right when Alice sends message[x] and Bob answers as well as he can.

    `weight` is the distribution of (x, y), uniform if not given.

    >>> one_way_accuracy(inner_product(2), np.array([0, 0, 1, 1]))  # the high bit of x
    0.75
    """
    _check_signs(M)
    weight = np.full(M.shape, 1 / M.size) if weight is None else weight
    if not math.isclose(float(weight.sum()), 1.0, rel_tol=1e-9) or float(weight.min()) < 0:
        raise ValueError(f"expected a distribution, got a total of {float(weight.sum()):g}")
    check_whole("message", message, low=0)
    votes = np.zeros((int(message.max()) + 1, M.shape[1]))
    np.add.at(votes, message, M * weight)
    return 0.5 + 0.5 * float(np.abs(votes).sum())


class Protocol(NamedTuple):
    """A one-way protocol and how often it is right."""

    message: Int[np.ndarray, " X"]
    accuracy: float


def every_protocol(M: Int[np.ndarray, "X Y"], c: int) -> Protocol:
    """The best protocol of c bits, by trying all (2^c)^X messages."""
    check_int("c", c, low=0)
    check_int("protocols", (1 << c) ** len(M), low=1, high=1 << 16)
    tried = (np.array(m) for m in itertools.product(range(1 << c), repeat=len(M)))
    return max((Protocol(m, one_way_accuracy(M, m)) for m in tried), key=lambda p: p.accuracy)


def search_protocol(
    M: Int[np.ndarray, "X Y"], c: int, *, rng: np.random.Generator, starts: int = 5
) -> Protocol:
    """A good protocol of c bits by Lloyd's iteration, so a lower bound on the best.

    Bob's best answers to given messages, then Alice's best messages to given answers, until nothing
    changes; the accuracy never falls.
    """
    check_int("c", c, low=0, high=16)
    check_int("starts", starts, low=1)
    best = Protocol(np.zeros(len(M), np.int64), one_way_accuracy(M, np.zeros(len(M), np.int64)))
    for _ in range(starts):
        answers = rng.choice(np.array([-1, 1]), size=(1 << c, M.shape[1]))
        accuracy = 0.0
        while True:
            message = (M.astype(np.float64) @ answers.T).argmax(1)
            reached = one_way_accuracy(M, message)
            if reached <= accuracy:
                break
            accuracy = reached
            votes = np.zeros(answers.shape)
            np.add.at(votes, message, M)
            answers = np.where(votes > 0, 1, -1)
        if accuracy > best.accuracy:
            best = Protocol(message, accuracy)
    return best


def parity_fingerprint(n: int, c: int, *, rng: np.random.Generator) -> Int[np.ndarray, " X"]:
    """c random parities of x, the message of a protocol for Equality.

    >>> parity_fingerprint(3, 1, rng=np.random.default_rng(1)).shape
    (8,)
    """
    check_int("n", n, low=1, high=12)
    check_int("c", c, low=0, high=16)
    masks = rng.integers(0, 1 << n, c)
    parities = np.bitwise_count(np.arange(1 << n)[:, None] & masks).astype(np.int64) & 1
    return (parities << np.arange(c)).sum(-1)


def balanced(M: Int[np.ndarray, "X Y"]) -> Float[np.ndarray, "X Y"]:
    """The distribution that is uniform on the 1s and on the -1s, half the time each."""
    _check_signs(M)
    ones = M == 1
    if ones.all() or not ones.any():
        raise ValueError("expected both 1 and -1 in the matrix, got one of them alone")
    return np.where(ones, 0.5 / ones.sum(), 0.5 / (~ones).sum())


def _check_signs(M: Int[np.ndarray, "X Y"]) -> None:
    wrong = M[(M != 1) & (M != -1)]
    if not M.size:
        raise ValueError(f"expected at least one row and column, got {M.shape}")
    if wrong.size:
        raise ValueError(f"expected entries 1 and -1, got {wrong.flat[0]}")


def _check(c: float | int, n: int) -> None:
    check_int("n", n, low=1)
    if not c >= 0:
        raise ValueError(f"expected c >= 0 bits, got {c}")


def _check_gain(N: int, epsilon: float) -> None:
    check_even(N)
    if not 0 < epsilon <= 0.5:
        raise ValueError(f"expected 0 < epsilon <= 1/2, got {epsilon}")
