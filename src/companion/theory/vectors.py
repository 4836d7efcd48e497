"""Many nearly orthogonal sign vectors in few dimensions (Lemma 2, Corollary 8.1, Appendix B.3).

====== ==========================================================================
N      how many vectors T_0, ..., T_{N-1} the family holds (the paper counts from 1)
k      their dimension
n      bits of an index, ceil(log2 N)
gamma  coherence: the largest inner product of two different vectors, after 1/k
====== ==========================================================================

Vectors have entries +1 and -1; the paper's have +-1/sqrt(k). Keeping the integers and dividing
the *inner product* by k says the same and is exact in every arithmetic.

Three of the four families are linear: T_i(x) = (-1)^<i, c_x>, where c_x is an n-bit *column* and
<i, c> the parity of their common bits. Then T_i . T_j depends on i XOR j alone, so N - 1 numbers
hold all N(N-1)/2 inner products, and one Walsh-Hadamard transform finds them.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Int8

from companion.theory._check import check_int, check_open_unit, check_whole
from companion.theory.galois import IRREDUCIBLE, gf_mul, gf_trace, splitmix64, splitmix64_array

_LARGEST_GRAM = 1 << 13  # N beyond which all pairs of a family without structure take minutes
_LARGEST_SPECTRUM = 1 << 24  # N beyond which the transform takes more than a few hundred MB


class Coherence(NamedTuple):
    """The extreme inner products of two different vectors, each divided by k."""

    highest: float
    lowest: float
    pair: tuple[int, int]  # two vectors that reach `highest`; (0, 0) where there is no pair

    @property
    def absolute(self) -> float:
        """Largest absolute inner product, the gamma of Lemma 2."""
        return max(self.highest, -self.lowest)


@dataclass(frozen=True)
class Family(ABC):
    """N sign vectors of dimension k, any of which can be made on its own."""

    N: int
    k: int

    def __post_init__(self):
        check_int("N", self.N, low=1)
        check_int("k", self.k, low=1)

    @property
    def n(self) -> int:
        """Bits of an index."""
        return max(1, (self.N - 1).bit_length())

    def rows(self, indices: Int[np.ndarray, " r"]) -> Int8[np.ndarray, "r k"]:
        """The vectors with these indices, one a row.

        >>> binary(4).rows(np.array([0, 3])).tolist()
        [[1, 1], [-1, -1]]
        """
        check_whole("index", indices, low=0, high=self.N - 1)
        return self._rows(indices)

    @abstractmethod
    def _rows(self, indices: np.ndarray) -> np.ndarray:
        """`rows` of indices that are there."""

    def vector(self, i: int) -> Int8[np.ndarray, " k"]:
        """T_i as k signs.

        >>> binary(8).vector(5).tolist()  # 5 is 101 in binary, lowest bit first
        [-1, 1, -1]
        """
        check_int("i", i, low=0, high=self.N - 1)
        return self.rows(np.array([i]))[0]

    def table(self) -> Int8[np.ndarray, "N k"]:
        """All N vectors at once: N k bytes."""
        return self.rows(np.arange(self.N))

    def blocks(self, size: int = 1 << 14) -> Iterator[tuple[int, Int8[np.ndarray, "r k"]]]:
        """(first index, vectors) for consecutive blocks: the whole family in O(k) memory."""
        for start in range(0, self.N, size):
            yield start, self.rows(np.arange(start, min(start + size, self.N)))

    @abstractmethod
    def coherence(self) -> Coherence:
        """Exact extremes over *all* pairs. Raises where that would take minutes."""


class Linear(Family):
    """T_i(x) = (-1)^<i, c_x> for n-bit columns c_0, ..., c_{k-1}."""

    @abstractmethod
    def column(self, x: int) -> int:
        """c_x as an n-bit integer, from O(n) working bits."""

    @cached_property
    def columns(self) -> Int[np.ndarray, " k"]:
        """All columns, k n-bit integers."""
        return np.array([self.column(x) for x in range(self.k)], dtype=np.int64)

    def _rows(self, indices: np.ndarray) -> np.ndarray:
        common = indices.astype(np.int64)[:, None] & self.columns  # (r, k)
        return (1 - 2 * (np.bitwise_count(common) & 1).astype(np.int8)).astype(np.int8)

    @cached_property
    def spectrum(self) -> Int[np.ndarray, " M"]:
        """T_i . T_j as a function of d = i XOR j, for all d < M = 2^n; entry 0 is k.

        >>> binary(4).spectrum.tolist()
        [2, 0, 0, -2]
        """
        if self.N > _LARGEST_SPECTRUM:
            raise ValueError(
                f"the exact spectrum is computed up to N = {_LARGEST_SPECTRUM}, got N = {self.N}"
            )
        counts = np.bincount(self.columns, minlength=1 << self.n).astype(np.int32)
        return walsh_hadamard(counts)

    def coherence(self) -> Coherence:
        """Exact extremes over all pairs, in O(N log N)."""
        if self.N == 1:
            return Coherence(0.0, 0.0, (0, 0))
        # With 2^(n-1) < N <= 2^n every difference d < 2^n occurs between two indices below N.
        others = self.spectrum[1:]
        d = int(others.argmax()) + 1
        top = 1 << (self.n - 1)
        pair = (top ^ d, top) if d & top else (0, d)
        return Coherence(float(others.max()) / self.k, float(others.min()) / self.k, pair)


@dataclass(frozen=True)
class Binary(Linear):
    """The bits of i themselves: k = n, the fewest dimensions that keep N vectors apart."""

    def column(self, x: int) -> int:
        """Bit x."""
        return 1 << x


@dataclass(frozen=True)
class LinearHash(Linear):
    """Seeded random columns: a random linear code."""

    seed: int = 0

    def column(self, x: int) -> int:
        """An n-bit hash of (seed, x)."""
        return splitmix64(splitmix64(self.seed) ^ (x + 1)) & ((1 << self.n) - 1)


@dataclass(frozen=True)
class TraceCode(Linear):
    """T_i(x) = (-1)^Tr(a_1 x + a_3 x^3 + ...) over GF(2^m), where i spells (a_1, a_3, ...).

    k = 2^m and up to 2^(m t) vectors. The Weil-Carlitz-Uchiyama theorem bounds every inner
    product by 2(t - 1) 2^(-m/2), with no randomness.
    """

    m: int = 5
    t: int = 2

    @property
    def guarantee(self) -> float:
        """The proved bound on the absolute inner product, after 1/k."""
        return 2 * (self.t - 1) * 2 ** (-self.m / 2)

    def column(self, x: int) -> int:
        """Bit (m s + b) is Tr(beta^b x^(2s+1)), beta the field's generator."""
        bits, power, square = 0, x, gf_mul(x, x, self.m)
        for s in range(self.t):
            for b in range(self.m):
                bits |= gf_trace(gf_mul(1 << b, power, self.m), self.m) << (self.m * s + b)
            power = gf_mul(power, square, self.m)
        return bits & ((1 << self.n) - 1)


@dataclass(frozen=True)
class Random(Family):
    """Independent fair signs, as in the proof of Lemma 2, from a seeded hash of (i, block)."""

    seed: int = 0

    def _rows(self, indices: np.ndarray) -> np.ndarray:
        seeded = indices.astype(np.uint64) + np.uint64(splitmix64(self.seed))
        own = splitmix64_array(seeded)
        blocks = range(-(-self.k // 64))
        words = [splitmix64_array(own ^ np.uint64(block)) for block in blocks]
        octets = np.stack(words, axis=-1).astype("<u8").view(np.uint8)  # (r, 8 blocks)
        bits = np.unpackbits(octets, axis=-1, bitorder="little")[:, : self.k]
        return 1 - 2 * bits.astype(np.int8)

    def coherence(self) -> Coherence:
        """Exact extremes over all pairs by the Gram matrix, block by block: O(N^2 k)."""
        if self.N > _LARGEST_GRAM:
            raise ValueError(
                f"all pairs of a family without structure are tried up to N = {_LARGEST_GRAM}, "
                f"got N = {self.N}; a linear family of that size takes seconds"
            )
        if self.N == 1:
            return Coherence(0.0, 0.0, (0, 0))
        T = self.table().astype(np.float32)
        highest, lowest, pair = -math.inf, math.inf, (0, 0)
        for start in range(0, self.N, 1024):
            G = T[start : start + 1024] @ T.T  # integers below 2^24: exact in float32
            own = np.arange(len(G))
            G[own, start + own] = -math.inf
            if G.max() > highest:
                highest = float(G.max())
                row, column = np.unravel_index(G.argmax(), G.shape)
                pair = (start + int(row), int(column))
            G[own, start + own] = math.inf
            lowest = min(lowest, float(G.min()))
        return Coherence(highest / self.k, lowest / self.k, pair)


def binary(N: int) -> Binary:
    """The n-bit binary code of N indices.

    >>> binary(1024)
    Binary(N=1024, k=10)
    >>> binary(1024).coherence().highest  # one bit of ten differs: (9 - 1) / 10
    0.8
    """
    check_int("N", N, low=1)
    return Binary(N, max(1, (N - 1).bit_length()))


def linear_hash(N: int, k: int, *, seed: int = 0) -> LinearHash:
    """A random linear code with N words and k seeded columns.

    >>> linear_hash(1024, 256).coherence().absolute < 0.3
    True
    """
    return LinearHash(N, k, seed)


def random(N: int, k: int, *, seed: int = 0) -> Random:
    """N independent random sign vectors (the proof of Lemma 2).

    >>> random(64, 256).coherence().absolute < 0.35
    True
    """
    return Random(N, k, seed)


def trace_code(N: int, m: int, t: int = 2) -> TraceCode:
    """A trace code over GF(2^m) of degree 2t - 1: k = 2^m, N up to 2^(m t).

    Raises where Weil's theorem says nothing (2t - 2 >= 2^(m/2)); the codes just beyond that line,
    such as m = 4, t = 3, do contain two equal vectors.

    >>> trace_code(4096, 6).coherence().absolute  # 4096 vectors in 64 dimensions
    0.25
    """
    if m not in IRREDUCIBLE:
        raise ValueError(f"trace codes are built for m in {sorted(IRREDUCIBLE)}, got m = {m}")
    check_int("t", t, low=1)
    if 2 * t - 2 >= 2 ** (m / 2):
        raise ValueError(
            f"a trace code needs 2t - 2 < 2^(m/2) = {2 ** (m / 2):g}, got 2t - 2 = {2 * t - 2}"
        )
    check_int("N", N, low=1, high=1 << (m * t))
    return TraceCode(N, 1 << m, m, t)


def nearly_orthogonal(N: int, gamma: float = 0.25) -> TraceCode:
    """A family with a *proved* coherence of at most gamma: the narrowest trace code that has it.

    >>> nearly_orthogonal(1 << 20)
    TraceCode(N=1048576, k=256, m=8, t=3)
    """
    check_int("N", N, low=1)
    check_open_unit("gamma", gamma)
    for m in sorted(IRREDUCIBLE):
        t = max(1, -(-max(1, (N - 1).bit_length()) // m))
        code = TraceCode(min(N, 1 << (m * t)), 1 << m, m, t)
        if code.guarantee <= gamma and 2 * t - 2 < 2 ** (m / 2):
            return code
    raise ValueError(
        f"no trace code with m <= {max(IRREDUCIBLE)} proves coherence {gamma} for N = {N}; "
        f"use linear_hash(N, k) and check its coherence()"
    )


def walsh_hadamard(h: Int[np.ndarray, " M"]) -> Int[np.ndarray, " M"]:
    """sum_c h(c) (-1)^<d, c> for every d, M a power of two, in M log2 M additions.

    >>> walsh_hadamard(np.array([1, 0, 0, 1])).tolist()
    [2, 0, 0, 2]
    """
    M = len(h)
    if M & (M - 1) or M == 0:
        raise ValueError(f"the Walsh-Hadamard transform needs a power of two, got length {M}")
    h = h.copy()
    step = 1
    while step < M:
        low, high = np.moveaxis(h.reshape(-1, 2, step), 1, 0)
        h = np.stack([low + high, low - high], axis=1).reshape(M)
        step *= 2
    return h
