"""Communication problems as objects: matrix, fooling sets, rank, exact cost (Appendix B.1).

Alice holds x, Bob holds y, and both want f(x, y), a bit. How much they must send depends on the
0/1 matrix of f alone, so a problem *is* its matrix, and any finite 0/1 matrix is a problem.

======= ==========================================================================
M       communication matrix, M[x, y] = f(x, y); J - M is its complement
D       bits sent by the best deterministic protocol, both ways, in the worst case
S, b    fooling set (Definition 1): pairs (x, y), all of value b, such that of two
        different pairs at least one crossed pair has another value than b
======= ==========================================================================

A protocol with D bits cuts M into at most 2^D rectangles of one value. Two pairs of a fooling set
never share one (Fact 4), and b-rectangles sum to a matrix of rank at most their number. Both count
for b = 0 and b = 1 *separately*, so D >= log2(leaves of value 0 + leaves of value 1).

The cost is always that of the given partition. Read as "for every partition", a bound would be one
on the easiest partition: Dyck-(2,2), for instance, takes 3 bits if Alice has the first half.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Int, Shaped

from companion.theory._check import check_int, check_whole

_LARGEST_SEARCH = 16  # distinct rows or columns that the search for a protocol is willing to split
_LARGEST_CLIQUE = 64  # cells among which a largest fooling set is looked for
_LARGEST_TABLE = 1 << 22  # cells of a matrix made from a function
_PRIME = (1 << 31) - 1

Cells = Sequence[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Problem:
    """A function of two arguments, by its matrix; `fooling` is a fooling set known for it.

    >>> greater = Problem("GREATER", np.tri(4, k=-1, dtype=int))
    >>> greater.rank(1), greater.one_way("Alice"), greater.complexity()
    (3, 2, 3)

    Raises ValueError for entries other than 0 and 1, and for a `fooling` that is none.
    """

    name: str
    matrix: Shaped[np.ndarray, "X Y"]
    fooling: tuple[tuple[int, int], ...] = ()

    def __post_init__(self):
        if self.matrix.size == 0:
            raise ValueError(f"expected at least one row and column, got {self.matrix.shape}")
        wrong = self.matrix[(self.matrix != 0) & (self.matrix != 1)]
        if wrong.size:
            raise ValueError(f"expected a matrix of 0 and 1, got {wrong.flat[0]}")
        object.__setattr__(self, "matrix", self.matrix.astype(np.int8))
        self.matrix.setflags(write=False)
        if self.fooling and not self.is_fooling(self.fooling):
            raise ValueError(f"expected a fooling set, got {len(self.fooling)} pairs that are none")

    def is_fooling(self, S: Cells) -> bool:
        """Definition 1, pair by pair; b is the value of the first pair.

        >>> equality(1).is_fooling([(0, 0), (1, 1)]), equality(1).is_fooling([(0, 0), (0, 1)])
        (True, False)
        """
        if len(set(S)) < len(S):
            raise ValueError(f"expected different pairs, got {len(S)} with repetitions")
        if not S:
            return True
        x, y = np.array(S).T
        for name, side, count in zip("xy", (x, y), self.matrix.shape, strict=True):
            check_whole(name, side, low=0, high=count - 1)
        crossed = self.matrix[np.ix_(x, y)] == self.matrix[x[0], y[0]]  # still of value b
        both = crossed & crossed.T
        return bool(crossed.diagonal().all()) and int(both.sum()) == len(S)

    def largest_fooling(self, b: int) -> list[tuple[int, int]]:
        """A largest fooling set of value b, by exhaustion; for at most 64 cells of that value.

        >>> disjointness(2).largest_fooling(0)
        [(0, 3), (1, 2), (2, 1), (3, 0)]
        """
        check_int("b", b, low=0, high=1)
        cells = [(int(x), int(y)) for x, y in np.argwhere(self.matrix == b)]
        if len(cells) > _LARGEST_CLIQUE:
            raise ValueError(
                f"expected at most {_LARGEST_CLIQUE} cells of value {b}, got {len(cells)}"
            )
        return max(_fooling_sets(self.matrix == b, [], cells), key=len)

    def rank(self, b: int = 1) -> int:
        """Rank over the rationals of the matrix that marks value b: M, or J - M for b = 0."""
        check_int("b", b, low=0, high=1)
        return rank(np.asarray(self.matrix == b, dtype=np.int64))

    def one_way(self, sender: str) -> int:
        """Bits if only one of them sends: that the other can tell all rows (or columns) apart.

        >>> index(8).one_way("Alice"), index(8).one_way("Bob")  # Fact 3, and why it needs one way
        (8, 3)
        """
        if sender not in ("Alice", "Bob"):
            raise ValueError(f"expected sender Alice or Bob, got {sender!r}")
        M = self.matrix if sender == "Alice" else self.matrix.T
        return (len(np.unique(M, axis=0)) - 1).bit_length()

    @cached_property
    def lower_bound(self) -> int:
        """ceil(log2(leaves)): for each b at least the rank, and at least the known fooling set."""
        leaves = [self.rank(0), self.rank(1)]
        if self.fooling:
            b = int(self.matrix[self.fooling[0]])
            leaves[b] = max(leaves[b], len(self.fooling))
        return (sum(leaves) - 1).bit_length()

    @property
    def upper_bound(self) -> int:
        """The plain protocol: one says which row (or column) it has, the other the value."""
        if self.matrix.min() == self.matrix.max():
            return 0
        return min(self.one_way("Alice"), self.one_way("Bob")) + 1

    def complexity(self) -> int:
        """D, exactly: where the two bounds differ, all protocols are searched.

        >>> [index(N).complexity() for N in (2, 3, 4)], equality(7).complexity()
        ([2, 3, 3], 8)

        Raises ValueError where the bounds differ and there are over 16 distinct rows or columns.
        """
        low, high = self.lower_bound, self.upper_bound
        M = _distinct(tuple(map(tuple, self.matrix.tolist())))
        size = max(len(M), len(M[0]))
        if low < high and size > _LARGEST_SEARCH:
            raise ValueError(
                f"expected at most {_LARGEST_SEARCH} distinct rows and columns to search, got "
                f"{size}; {low} <= D <= {high}"
            )
        return next(c for c in range(low, high + 1) if c == high or _solvable(M, c))


def equality(n: int) -> Problem:
    """EQ(a, b) = 1 if a = b, on n bits (Fact 2). Fooling set: the pairs (a, a).

    >>> equality(3).rank(), len(equality(3).fooling), equality(3).complexity()
    (8, 8, 4)
    """
    check_int("n", n, low=0, high=11)
    return Problem(f"EQ_{n}", np.eye(1 << n, dtype=int), tuple((a, a) for a in range(1 << n)))


def disjointness(n: int) -> Problem:
    """DISJ(a, b) = max_i a_i b_i (Fact 1): 0 for disjoint sets. Fooling set: complements.

    >>> disjointness(3).rank(0), disjointness(3).rank(1), disjointness(3).complexity()
    (8, 7, 4)
    """
    x = _numbers(n)
    complements = tuple((a, (1 << n) - 1 - a) for a in range(1 << n))
    return Problem(f"DISJ_{n}", (x[:, None] & x != 0).astype(int), complements)


def index(N: int) -> Problem:
    """INDEX(a, i) = a_i (Fact 3): Alice has N bits, Bob a position, counted from 0."""
    check_int("N", N, low=1, high=11)
    return Problem(f"INDEX_{N}", _numbers(N)[:, None] >> np.arange(N) & 1)


def inner_product(n: int) -> Problem:
    """IP2(a, b) = sum_i a_i b_i mod 2, on n bits."""
    x = _numbers(n)
    return Problem(f"IP2_{n}", (np.bitwise_count(x[:, None] & x) & 1).astype(int))


def split(
    f: Callable[[tuple[int, ...]], object] | Sequence[int] | np.ndarray,
    N: int,
    alice: Sequence[int],
    *,
    alphabet: int = 2,
    name: str = "f",
) -> Problem:
    """Any finite function of N symbols, its positions split between Alice and Bob.

    `f`: a predicate of a tuple of symbols, or its |Σ|^N values, the first symbol most significant.
    `alice`: her positions, from 0; Bob has the rest. Rows and columns are ordered the same way.

    >>> palindrome = split(lambda s: s == s[::-1], N=4, alice=[0, 1])
    >>> palindrome.complexity(), split([0, 1, 1, 0], N=2, alice=[1]).matrix.tolist()
    (3, [[0, 1], [1, 0]])
    """
    check_int("N", N, low=0)
    check_int("alphabet", alphabet, low=1)
    check_int("|Σ|^N", alphabet**N, low=1, high=_LARGEST_TABLE)
    mine = sorted(set(alice))
    if len(mine) < len(alice) or not set(mine) <= set(range(N)):
        raise ValueError(f"expected different positions below N = {N}, got {list(alice)}")
    strings = itertools.product(range(alphabet), repeat=N)
    table = np.array([f(s) for s in strings]) if callable(f) else np.asarray(f)
    if table.size != alphabet**N:
        raise ValueError(f"expected |Σ|^N = {alphabet**N} values, got {table.size}")
    order = mine + [i for i in range(N) if i not in mine]
    matrix = table.reshape((alphabet,) * N).transpose(order)
    return Problem(name, matrix.reshape(alphabet ** len(mine), -1))


def rank(M: Int[np.ndarray, "X Y"]) -> int:
    """Rank of a 0/1 matrix over the rationals, exactly.

    The rank modulo a prime is a lower bound. If it is r modulo each of several primes, all minors
    of order r + 1 are multiples of them all, hence 0 once the product of the primes exceeds the
    largest determinant of such a 0/1 matrix (Hadamard): (r + 2)^((r + 2) / 2) / 2^(r + 1).

    >>> rank(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])), rank(np.ones((3, 2), dtype=int))
    (3, 1)
    """
    M = np.unique(np.unique(M, axis=0), axis=1)
    M = M[M.any(1)][:, M.any(0)]
    best, product = 0, 1
    for q in _primes():
        best, product = max(best, _rank_modulo(M, q)), product * q
        if best == min(M.shape) or product**2 << 2 * (best + 1) > (best + 2) ** (best + 2):
            return best
    raise AssertionError("there are enough primes below 2^31 for any matrix that fits in memory")


def _primes() -> Iterator[int]:
    """Primes from 2^31 - 1 downwards."""
    for q in range(_PRIME, 1 << 30, -2):
        if all(q % divisor for divisor in range(3, int(q**0.5) + 1, 2)):
            yield q


def _rank_modulo(M: np.ndarray, q: int) -> int:
    """Gaussian elimination; q < 2^31, so that products fit an int64."""
    M, r = M.astype(np.int64) % q, 0
    for column in range(M.shape[1]):
        pivots = np.flatnonzero(M[r:, column])
        if not len(pivots):
            continue
        M[[r, r + pivots[0]]] = M[[r + pivots[0], r]]
        M[r] = M[r] * pow(int(M[r, column]), -1, q) % q
        below = r + 1 + np.flatnonzero(M[r + 1 :, column])
        M[below] = (M[below] - M[below, column, None] * M[r]) % q
        r += 1
    return r


def _numbers(n: int) -> Int[np.ndarray, " n"]:
    check_int("n", n, low=0, high=11)
    return np.arange(1 << n)


def _fooling_sets(same: np.ndarray, chosen: list, cells: list) -> Iterator[list]:
    """Ever larger fooling sets. Cells of one row never go together, nor do cells of one column."""
    stack, record = [(chosen, cells)], -1
    while stack:
        chosen, cells = stack.pop()
        if len(chosen) > record:
            record = len(chosen)
            yield chosen
        room = min(len({x for x, _ in cells}), len({y for _, y in cells}))
        if len(chosen) + room <= record:
            continue
        x, y = cells[0]
        fits = [(u, v) for u, v in cells if not (same[x, v] and same[u, y])]
        stack += [(chosen, cells[1:]), ([*chosen, (x, y)], fits)]


Matrix = tuple[tuple[int, ...], ...]


def _distinct(M: Matrix) -> Matrix:
    """Each row and column once, in order, transposed: D does not change."""
    return tuple(sorted(set(zip(*sorted(set(M)), strict=True))))


@lru_cache(maxsize=1 << 16)
def _solvable(M: Matrix, c: int) -> bool:
    """Whether c bits are enough, for a matrix whose rows and columns are distinct."""
    if len(M) == len(M[0]) == 1:
        return True
    ones = np.array(M)
    leaves = _rank_modulo(ones, _PRIME) + _rank_modulo(1 - ones, _PRIME)
    if c == 0 or leaves > 1 << c:
        return False
    return any(
        all(_solvable(_distinct(part), c - 1) for part in parts)
        for side in (M, tuple(zip(*M, strict=True)))
        for parts in _halves(side)
    )


def _halves(rows: Matrix) -> Iterator[tuple[Matrix, Matrix]]:
    """All ways to divide the rows in two non-empty parts, up to which is first."""
    for mask in range(1, 1 << (len(rows) - 1)):
        part = [mask >> i & 1 for i in range(len(rows))]
        yield tuple(
            tuple(row for row, bit in zip(rows, part, strict=True) if bit == b) for b in (0, 1)
        )
