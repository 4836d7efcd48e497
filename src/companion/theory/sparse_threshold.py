"""A compiler to two layers: thresholds of k-sparse features, k-CNF and k-DNF (Theorem 13).

A k-sparse feature depends on at most k of the N bits; the functions compiled are
[g_1(x) + ... + g_M(x) > b]. Layer 1 has k heads, which copy the bits that the feature of a position
depends on, and a network that looks the answer up in a table; layer 2 counts.

    token 0: a first token of value +1, which heads without work read; then x_0 ... x_(N-1), pads
    [x, T(own), T(source 1), ..., T(source k), table of 2^k answers, k slots]

======= ==========================================================================
N, M, k bits of the input, features, and how many bits a feature depends on at most
b       threshold; `negate` answers 1 - [sum > b]
L       tokens, 1 + N + pads
T, r    addresses of the tokens, and their dimension; width 1 + (k + 1)r + 2^k + k
eta     sharpness of layer 1
======= ==========================================================================

The table is ours: the network of a layer is the same at all positions and cannot know which feature
is due, so that the input has to say it. Pads make room for M > N features, and under a causal mask
for features that depend on later bits (the remark on causal attention): a feature sits no earlier
than its last bit. Only the *width* is logarithmic. The tables hold what there is to say about the
function, and there are 3^N of the simplest kind alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float, Int, Shaped

from companion.theory._check import check_even, check_int
from companion.theory.copy_and_count import (
    copy_eta,
    copying,
    count_error,
    count_layer,
    told,
)
from companion.theory.equality import check_bits
from companion.theory.features import Feature, clauses_fail, terms_hold
from companion.theory.fixed_point import EXACT, Arithmetic, FixedPoint, Floating
from companion.theory.transformer import LAST, FeedForward, Head, Layer, Stack
from companion.theory.vectors import Family, nearly_orthogonal


@dataclass(frozen=True, eq=False)
class SparseThreshold:
    """Two layers, k heads, width 1 + (k + 1)r + 2^k + k, for [g_1(x) + ... + g_M(x) > b].

    >>> xor = Feature.of((0, 1), lambda a, b: a != b)
    >>> both = Feature.of((1, 2), lambda a, b: a and b)
    >>> model = SparseThreshold.build(N=3, features=[xor, both], b=1)  # both of the two
    >>> model([0, 1, 1]), model([1, 1, 1])
    (1, 0)
    """

    N: int
    features: tuple[Feature, ...]
    places: tuple[int, ...]
    L: int
    b: int
    T: Family
    eta: float
    negate: bool = False
    arithmetic: Arithmetic = EXACT
    causal: bool = False

    def __post_init__(self):
        check_int("N", self.N, low=1)
        check_int("b", self.b, low=0)
        for feature, place in zip(self.features, self.places, strict=True):
            last = max(feature.indices, default=-1)
            check_int("index of a bit", last, low=-1, high=self.N - 1)
            check_int("place", place, low=last + 1 if self.causal else 1, high=self.L - 1)
        if len(set(self.places)) < len(self.places):
            raise ValueError(f"expected one place a feature, got {self.places}")
        if isinstance(self.arithmetic, FixedPoint) and self.arithmetic.R < 2 * self.k + 2:
            raise ValueError(f"expected R >= {2 * self.k + 2}, got {self.arithmetic.R}")
        if not self.count_error < 0.5:
            raise ValueError(
                f"expected counts within 1/2, got {told(self.count_error)} with L = {self.L}, "
                f"b = {self.b} in {self.arithmetic}"
            )
        if self.margin < 0:
            raise ValueError(
                f"expected copies within {self.tolerance:.3g}, got {self.copy_error:.3g} with "
                f"L = {self.L}, eta = {self.eta:g} in {self.arithmetic}"
            )

    @classmethod
    def build(
        cls,
        N: int,
        features: Iterable[Feature],
        b: int = 0,
        T: Family | None = None,
        eta: float | None = None,
        **options,
    ) -> "SparseThreshold":
        """Places for all features, as few pads as they need, and a sharp enough layer 1."""
        check_int("N", N, low=1)
        features = tuple(features)
        causal = options.get("causal", False)
        places, L = place(features, N, causal=causal)
        T = nearly_orthogonal(L) if T is None else T
        if T.N < L:
            raise ValueError(f"expected at least L = {L} vectors, got {T.N}")
        if eta is None:
            k = max([1, *(len(f.indices) for f in features)])
            eta = copy_eta(T, L, 1 / (2 * k), options.get("arithmetic", EXACT))
        return cls(N, features, places, L, b, T, eta, **options)

    @property
    def k(self) -> int:
        """Heads: the most bits that a feature depends on, at least 1."""
        return max([1, *(len(f.indices) for f in self.features)])

    @cached_property
    def stack(self) -> Stack:
        """The weights."""
        k, r = self.k, self.T.k
        cuts = np.cumsum([1, r, *[r] * k, 2**k])
        x, own, *sources, table, slots = np.split(np.eye(1 + (k + 1) * r + 2**k + k), cuts)
        heads = [Head(W_Q=self.eta / r * source, W_K=own, W_V=x) for source in sources]
        # One unit pair for each row a of the table: table[a] + (a.slots - k) / 2 is 1 or at most 0,
        # up to a quarter, and relu(2u - 1/2) - relu(2u - 3/2) takes that quarter away.
        signs = 2.0 * (np.arange(2**k)[:, None] >> np.arange(k) & 1) - 1
        u = 2 * table + signs @ slots
        look_up = FeedForward(
            W_1=np.vstack([u, u]),
            b_1=np.repeat([-k - 0.5, -k - 1.5], 2**k),
            W_2=np.repeat([[1.0, -1.0]], 2**k, axis=1),
            b_2=np.zeros(1),
        )
        first = Layer(heads, W_O=slots.T.copy(), ffn=look_up, causal=self.causal, residual=True)
        return Stack([first, count_layer(self.L, self.b, negate=self.negate)])

    @cached_property
    def copy_error(self) -> float:
        """How far a copied bit may be off."""
        return copying(self.T, self.L, self.eta, self.arithmetic, fewer=self.causal).error

    @cached_property
    def count_error(self) -> float:
        """Worst error of the second layer's answer."""
        most = len(self.features)
        return count_error(self.L, self.b, most, self.arithmetic, negate=self.negate)

    @property
    def tolerance(self) -> float:
        """k copies may be off by 1/2 together, less what float sums may lose."""
        a = self.arithmetic
        return (0.5 - (8 * self.k * a.eps if isinstance(a, Floating) else 0.0)) / self.k

    @property
    def margin(self) -> float:
        """How much more error either layer could bear on the worst input."""
        return min(self.tolerance - self.copy_error, 0.5 - self.count_error)

    @cached_property
    def positions(self) -> Float[np.ndarray, "L d"]:
        """All that the embedding says apart from the bits: addresses, sources, tables."""
        k, r = self.k, self.T.k
        own = self.T.rows(np.arange(self.L)).astype(float)
        sources, tables = np.zeros((self.L, k), np.int64), np.zeros((self.L, 2**k))
        for feature, at in zip(self.features, self.places, strict=True):
            sources[at, : len(feature.indices)] = 1 + np.array(feature.indices, np.int64)
            # Bits that the feature does not have read the first token, +1: they are high bits.
            missing = 2**k - 2 ** len(feature.indices)
            tables[at, missing + np.arange(len(feature.table))] = feature.table
        asked = own[sources].reshape(self.L, k * r)
        return np.hstack([np.zeros((self.L, 1)), own, asked, tables, np.zeros((self.L, k))])

    def embed(self, x: Shaped[np.ndarray, "B N"]) -> Float[np.ndarray, "B L d"]:
        """Bits 0, 1 as -1, 1 behind a first token of value 1."""
        z = np.tile(self.positions, (len(x), 1, 1))
        z[:, 0, 0] = 1
        z[:, 1 : 1 + self.N, 0] = 2.0 * x - 1
        return z

    def __call__(self, x) -> int:
        """h(x)."""
        return int(self.many(np.asarray(x)[None])[0])

    def many(self, x: Shaped[np.ndarray, "B n"]) -> Int[np.ndarray, " B"]:
        """The answers for B inputs at once."""
        check_bits(x, self.N)
        return np.rint(self.stack(self.embed(x), self.arithmetic, LAST)[:, 0, 0]).astype(np.int64)

    def definition(self, x: Shaped[np.ndarray, "B n"]) -> Int[np.ndarray, " B"]:
        """The same answers from the definition, without a transformer."""
        check_bits(x, self.N)
        total = sum((f(x) for f in self.features), np.zeros(len(x), np.int64))
        return ((total > self.b) != self.negate).astype(np.int64)


def place(
    features: Sequence[Feature], N: int, *, causal: bool = False
) -> tuple[tuple[int, ...], int]:
    """Tokens for the features, and the number L of tokens, with as few pads as will do.

    Under a causal mask a feature needs a token no earlier than its last bit. The one whose last bit
    is latest gets the last token, and so on: if any assignment fits in L tokens, this one does.
    """
    lasts = np.array([max(f.indices, default=-1) for f in features], dtype=np.int64)
    if not causal:
        return tuple(range(1, len(features) + 1)), 1 + max(N, len(features))
    order = np.argsort(-lasts, kind="stable")
    L = 1 + max(N, len(features), *(lasts[order] + 1 + np.arange(len(order))))
    places = np.empty(len(features), np.int64)
    places[order] = L - 1 - np.arange(len(order))
    return tuple(places.tolist()), int(L)


def compile_cnf(clauses: Sequence[Iterable[int]], N: int, **options) -> SparseThreshold:
    """k-CNF: no clause fails. Literals as in DIMACS, 1, ..., N and negative when negated.

    >>> model = compile_cnf([(1, -2), (2, 3)], N=3)
    >>> model([1, 1, 0]), model([0, 1, 0])
    (1, 0)
    """
    return SparseThreshold.build(N, clauses_fail(clauses), negate=True, **options)


def compile_dnf(terms: Sequence[Iterable[int]], N: int, **options) -> SparseThreshold:
    """k-DNF: some term holds."""
    return SparseThreshold.build(N, terms_hold(terms), **options)


def inequality(N: int, **options) -> SparseThreshold:
    """INEQ: some bit of the first half differs from its partner; N / 2 features."""
    return SparseThreshold.build(N, _pairs(N, lambda a, b: a != b), **options)


def intersection(N: int, **options) -> SparseThreshold:
    """DISJ in the paper's sense: 1 if the sets whose indicators the halves are have an element.

    >>> intersection(4)([0, 1, 1, 1]), intersection(4)([0, 1, 1, 0])
    (1, 0)
    """
    return SparseThreshold.build(N, _pairs(N, lambda a, b: a and b), **options)


def majority(N: int, **options) -> SparseThreshold:
    """1 if more than half of the bits are 1: k = 1, b = floor(N / 2)."""
    return SparseThreshold.build(N, _bits(N), b=N // 2, **options)


@lru_cache(maxsize=16)
def _bits(N: int) -> tuple[Feature, ...]:
    table = Feature.of((0,), bool).table
    return tuple(Feature((i,), table) for i in range(N))


def _pairs(N: int, function) -> list[Feature]:
    check_even(N)
    table = Feature.of((0, 1), function).table
    return [Feature((i, i + N // 2), table) for i in range(N // 2)]
