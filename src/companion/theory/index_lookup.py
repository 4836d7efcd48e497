"""Index Lookup by one layer of attention (Section 3, Theorem 1, Appendix C.2).

IdxL(s_1 ... s_N, p) = s_p: symbols first, then the position that is asked for. The construction
writes position i as a nearly orthogonal vector T(i) and lets the index token p *ask with* T(p):

    x_i = [rho(s_i), 0, T(i)]        p = [0, T(p), 0]
    W_Q = (eta / k) [O; I; O]        W_K = [O, O, I]        W_V = [I, O, O]

======= ==========================================================================
N       longest string; shorter ones work too. Positions count from 0 here
|Σ| size of the alphabet; symbols are 0, ..., |Σ| - 1
b       bits of a symbol, rho(s) its binary code
k       dimension of T(i), entries +1 and -1
eta     sharpness of the attention
q_p     weight that the query p puts on position p
======= ==========================================================================

The value read is q_p rho(s_p) plus at most 1 - q_p of the other symbols, and the network psi is
exact on values <= 1/4 and >= 3/4. So the output is exactly rho(s_p) on *every* string if and only
if min_p q_p >= 3/4, and N queries settle |Σ|^N N inputs.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from companion.theory._check import check_int
from companion.theory.copy_and_count import exact_eta, weights_of
from companion.theory.fixed_point import EXACT, Arithmetic, FixedPoint
from companion.theory.transformer import LAST, FeedForward, Head, Layer, stream_attention
from companion.theory.vectors import Family, Linear, nearly_orthogonal

THRESHOLD = 0.75  # weight that psi needs
_LARGEST_TABLE = 1 << 13  # N up to which all queries of any family are tried one by one


def sufficient_eta(N: int, gamma: float) -> float:
    """ln(3N) / (1 - gamma): enough for q_p >= 3/4 when every T(i).T(j) <= gamma k, i != j.

    Then q_p >= 1 / (1 + (N - 1) / 3N + 1 / 3N) = 3/4; the last term is the index token itself,
    whose key is 0, so a negative gamma is worth no more than 0.

    >>> round(sufficient_eta(1024, 0.25), 2)
    10.71
    """
    check_int("N", N, low=1)
    if not -1 <= gamma < 1:
        raise ValueError(f"expected a coherence in [-1, 1), got {gamma}")
    return math.log(3 * N) / (1 - max(gamma, 0.0))


def paper_eta(N: int) -> float:
    """The paper's scale, 2 ln 3N."""
    check_int("N", N, low=1)
    return 2 * math.log(3 * N)


@dataclass(frozen=True, eq=False)
class IndexLookup:
    """One attention layer of width b + 2k that answers every lookup in strings up to length N.

    It is built for one arithmetic and refuses to be built where it would be wrong there: eta too
    small, vectors too close together, a grid too coarse.

    >>> lookup = IndexLookup.build(N=50, alphabet=64)
    >>> lookup([7, 3, 9], p=2)
    9
    >>> lookup.width, lookup.margin > 0
    (134, True)
    """

    N: int
    alphabet: int
    T: Family
    eta: float
    arithmetic: Arithmetic = EXACT

    def __post_init__(self):
        check_int("N", self.N, low=1)
        check_int("alphabet", self.alphabet, low=2)
        if self.T.N < self.N:
            raise ValueError(f"expected at least N = {self.N} vectors, got {self.T.N}")
        if not self.eta > 0 or not math.isfinite(self.eta):
            raise ValueError(f"expected 0 < eta < infinity, got {self.eta}")
        if self.margin < 0:
            raise ValueError(
                f"expected attention weight >= {THRESHOLD} on the right position, got "
                f"{self.weight:.4f} with N = {self.N}, k = {self.T.k}, eta = {self.eta:g} in "
                f"{self.arithmetic}: raise eta or k"
            )

    @classmethod
    def build(
        cls,
        N: int,
        alphabet: int,
        T: Family | None = None,
        eta: float | None = None,
        arithmetic: Arithmetic = EXACT,
    ) -> "IndexLookup":
        """By default: a trace code of coherence <= 1/4, and an eta half as much again as enough.

        At gamma = 1/4 that eta is the paper's 2 ln 3N. On a grid it is rounded up until the entries
        eta / k of W_Q are grid points, and `exact_eta` is enough.
        """
        check_int("N", N, low=1)
        T = nearly_orthogonal(N) if T is None else T
        if eta is None:
            gamma = T.coherence().highest
            if gamma >= 1:
                raise ValueError(f"expected distinct vectors, got two equal ones with k = {T.k}")
            eta = 1.5 * sufficient_eta(N, gamma)
            if isinstance(arithmetic, FixedPoint):
                eta = min(eta, exact_eta(gamma, arithmetic))
                eta = T.k * math.ceil(eta / T.k * arithmetic.S) / arithmetic.S
        return cls(N, alphabet, T, eta, arithmetic)

    @property
    def b(self) -> int:
        """Bits of a symbol."""
        return (self.alphabet - 1).bit_length()

    @property
    def width(self) -> int:
        """Embedding size d = b + 2k, the width of the model."""
        return self.b + 2 * self.T.k

    @cached_property
    def layer(self) -> Layer:
        """The weights: W_Q, W_K, W_V and a network that snaps each coordinate to 0 or 1."""
        b, k = self.b, self.T.k
        symbol, query, position = np.split(np.eye(b + 2 * k), [b, b + k])
        head = Head(W_Q=self.eta / k * query, W_K=position, W_V=symbol)
        return Layer([head], ffn=snap_to_bits(b))

    @property
    def parameters(self) -> int:
        """Numbers in W_Q, W_K, W_V and psi. Embeddings are formulas and need no storage."""
        head, psi = self.layer.heads[0], self.layer.ffn
        stored = (head.W_Q, head.W_K, head.W_V, psi.W_1, psi.b_1, psi.W_2, psi.b_2)
        return sum(W.size for W in stored)

    def embed(self, symbols, p) -> Float[np.ndarray, "*B nq d"]:
        """A row x_i for each symbol (..., n), then a row for each index asked for (..., q)."""
        x = np.zeros((*symbols.shape, self.width))
        x[..., : self.b] = self.code(symbols)
        x[..., self.b + self.T.k :] = self.T.rows(np.arange(symbols.shape[-1]))
        asked = np.zeros((*p.shape, self.width))
        asked[..., self.b : self.b + self.T.k] = self.T.rows(p.ravel()).reshape(*p.shape, -1)
        return np.concatenate([x, asked], axis=-2)

    def code(self, symbols: Int[np.ndarray, "..."]) -> Int[np.ndarray, "... b"]:
        """rho(s): the b bits of a symbol, lowest first."""
        return symbols[..., None] >> np.arange(self.b) & 1

    def __call__(self, symbols, p: int) -> int:
        """s_p, by running the layer on s_0 ... s_{n-1} p."""
        return int(self.many(np.asarray(symbols)[None], np.array([[p]]))[0, 0])

    def many(
        self, symbols: Shaped[np.ndarray, "B n"], p: Shaped[np.ndarray, "B q"]
    ) -> Int[np.ndarray, "B q"]:
        """Multi-Index Lookup, B strings at once: q indices after the symbols, the same weights.

        Each further index token takes a little of the weight, as its key is 0. More than the margin
        carries are refused.

        >>> IndexLookup.build(8, 4).many(np.array([[3, 1, 2]]), np.array([[2, 0, 2]]))
        array([[2, 3, 2]])
        """
        self._check(symbols, p)
        asked = p.shape[1]
        if asked > 1 and self.margin_with(asked) < 0:
            raise ValueError(
                f"expected attention weight >= {THRESHOLD} on the right position, got "
                f"{self.weight_with(asked):.4f} with {asked} indices asked at once: raise eta"
            )
        out = self.layer(self.embed(symbols, p), self.arithmetic, rows=slice(-p.shape[1], None))
        return (np.rint(out).astype(np.int64) << np.arange(self.b)).sum(-1)

    def attention(self, symbols, p: int) -> Float[np.ndarray, " n1"]:
        """Weights that the query puts on the n symbols and, last, on itself."""
        symbols, p = np.asarray(symbols)[None], np.array([[p]])
        self._check(symbols, p)
        return self.layer.attention(self.embed(symbols, p), self.arithmetic, rows=LAST)[0][0, 0]

    @cached_property
    def weight(self) -> float:
        """min_p q_p over all positions of a string of full length."""
        return self.weight_with(1)

    def weight_with(self, queries: int) -> float:
        """The same when several indices are asked at once."""
        return weakest_weight(self.T, self.N, self.eta, self.arithmetic, queries)

    @property
    def margin(self) -> float:
        """How far the worst input is from where psi ceases to be exact.

        min_p q_p - 3/4, less what rounding may do to the average.
        """
        return self.margin_with(1)

    def margin_with(self, queries: int) -> float:
        """The same when several indices are asked at once."""
        weight = self.weight if queries == 1 else self.weight_with(queries)
        rounded = self.arithmetic.average_error(self.N + queries, 1 - weight)
        return weight - THRESHOLD - rounded

    def worst_error(self, p: int) -> float:
        """Error 1 - q_p in every bit read, when all other symbols are the complement of s_p.

        Computed in float64 from the string as a stream: memory O(k), whatever N.
        """
        check_int("p", p, low=0, high=self.N - 1)
        query = self.eta / self.T.k * self.T.vector(p)

        def blocks():
            yield np.zeros(1), np.zeros((1, 1))  # the index token itself: logit 0, no value
            for start, rows in self.T.blocks():
                rows = rows[: max(0, self.N - start)]
                right = np.arange(start, start + len(rows)) == p
                yield rows @ query, right[:, None].astype(float)

        return 1 - float(stream_attention(blocks())[0])

    def _check(self, symbols: np.ndarray, p: np.ndarray) -> None:
        n = symbols.shape[-1]
        check_int("length", n, low=1, high=self.N)
        for name, value, count in (("symbol", symbols, self.alphabet), ("p", p, n)):
            if not np.issubdtype(value.dtype, np.integer):
                raise TypeError(f"expected whole numbers for {name}, got {value.dtype}")
            for extreme in (value.min(initial=0), value.max(initial=0)):
                check_int(name, int(extreme), low=0, high=count - 1)


class Tried(NamedTuple):
    """How many inputs an exhaustive check ran, and how many came out wrong."""

    inputs: int
    wrong: int


def try_every_input(lookup: IndexLookup) -> Tried:
    """Every string of every length up to N over the whole alphabet, at every position.

    >>> try_every_input(IndexLookup.build(N=3, alphabet=2))  # 1*2 + 2*4 + 3*8 inputs
    Tried(inputs=34, wrong=0)
    """
    check_int("inputs", lookup.N * lookup.alphabet**lookup.N, low=1, high=1 << 22)
    inputs = wrong = 0
    for n in range(1, lookup.N + 1):
        strings = np.array(list(itertools.product(range(lookup.alphabet), repeat=n)))
        for p in range(n):
            said = lookup.many(strings, np.full((len(strings), 1), p))[:, 0]
            inputs, wrong = inputs + len(strings), wrong + int((said != strings[:, p]).sum())
    return Tried(inputs, wrong)


def snap_to_bits(b: int) -> FeedForward:
    """psi on b coordinates: 0 up to 1/4 and 1 from 3/4, by relu(2z - 1/2) - relu(2z - 3/2)."""
    eye = np.eye(b)
    return FeedForward(
        W_1=2 * np.vstack([eye, eye]),
        b_1=np.repeat([-0.5, -1.5], b),
        W_2=np.hstack([eye, -eye]),
        b_2=np.zeros(b),
    )


def weakest_weight(
    T: Family, N: int, eta: float, arithmetic: Arithmetic = EXACT, queries: int = 1
) -> float:
    """min_p min(q_p, 1 - weight elsewhere) for logits eta T(p).T(i) / k, i < N, and the queries' 0.

    For every order in which the k terms of a logit are summed (`weights_of`).

    A lower bound for shorter strings too: with fewer keys q_p grows, and what lies elsewhere is at
    most 1 - q_p, plus half a step for each weight that is rounded to nearest.

    For a linear family with N = 2^n every query sees the same multiset of logits, its spectrum, so
    one row stands for all. The same row is used, as a lower bound, beyond N = 8192.
    """
    if isinstance(T, Linear) and (N == 1 << T.n or N > _LARGEST_TABLE):
        products, own = T.spectrum[None].astype(np.int64), np.zeros(1, int)
    else:
        check_int("N", N, low=1, high=_LARGEST_TABLE)
        signs = T.rows(np.arange(N)).astype(np.float32)
        products, own = np.rint(signs @ signs.T).astype(np.int64), np.arange(N)
    products = np.concatenate([products, np.zeros((len(products), queries), np.int64)], axis=1)
    at = np.arange(products.shape[1]) == own[:, None]
    weights = weights_of(products, at, eta / T.k, T.k, arithmetic)
    right = weights[at]
    elsewhere = weights.sum(-1) - right
    if isinstance(arithmetic, FixedPoint):
        elsewhere = np.maximum(elsewhere, 1 - right + _rounded_up(products, eta / T.k, arithmetic))
    return float(np.minimum(right, 1 - elsewhere).min())


def _rounded_up(products: np.ndarray, unit: float, a: FixedPoint) -> float:
    """By how much rounding to nearest may raise a sum of weights: half a step for each."""
    if a.rounding == "floor":
        return 0.0
    logits = a.times(products, a.encode(np.array([unit])))
    alive = logits > logits.max(-1, keepdims=True) - a.S * math.log(2 * a.S) - 1
    return (logits.shape[-1] if a.softmax == "late" else int(alive.sum(-1).max())) / (2 * a.S)


def needed_eta(T: Family, N: int, weight: float = THRESHOLD) -> float:
    """The smallest eta with min_p q_p >= weight, by bisection on the exact weights.

    >>> from companion.theory.vectors import trace_code
    >>> round(needed_eta(trace_code(1024, 5), 1024), 2), round(math.log(3 * 1024), 2)
    (9.32, 8.03)
    """
    low, high = 0.0, 2 * sufficient_eta(N, T.coherence().highest)
    if weakest_weight(T, N, high) < weight:
        raise ValueError(f"expected a weight that eta = {high:g} reaches, got {weight}")
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if weakest_weight(T, N, middle) >= weight else (middle, high)
    return high
