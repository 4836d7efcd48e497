"""Problems by their matrices: fooling sets, ranks and costs against their definitions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from companion.theory import problems
from companion.theory.problems import (
    Problem,
    disjointness,
    equality,
    index,
    inner_product,
    rank,
    split,
)

ALL_3X3 = [np.array(bits).reshape(3, 3) for bits in itertools.product((0, 1), repeat=9)]


def random_matrices(count, shape, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 2, shape) for _ in range(count)]


def fooling_by_definition(M, S, b):
    return all(M[x, y] == b for x, y in S) and all(
        M[x1, y2] != b or M[x2, y1] != b for (x1, y1), (x2, y2) in itertools.combinations(S, 2)
    )


def complexity_by_definition(M):
    """Every protocol, as a recursion over all ways to divide rows or columns; nothing clever."""
    known = {}

    def cost(rows, columns):
        part = M[np.ix_(rows, columns)]
        if part.min() == part.max():
            return 0
        key = rows, columns
        if key not in known:
            by_rows = (max(cost(a, columns), cost(b, columns)) for a, b in halves(rows))
            by_columns = (max(cost(rows, a), cost(rows, b)) for a, b in halves(columns))
            known[key] = 1 + min(itertools.chain(by_rows, by_columns))
        return known[key]

    return cost(tuple(range(M.shape[0])), tuple(range(M.shape[1])))


def halves(indices):
    for mask in range(1, 1 << len(indices) >> 1):
        first = tuple(x for i, x in enumerate(indices) if mask >> i & 1)
        yield first, tuple(x for x in indices if x not in first)


def dyck(s):
    """Dyck-(2,2) with symbols ( ) [ ] = 0 1 2 3."""
    stack = []
    for c in s:
        if c % 2 == 0:
            stack.append(c)
        elif not stack or stack.pop() != c - 1:
            return False
        if len(stack) > 2:
            return False
    return not stack


# Degenerate sizes


@pytest.mark.parametrize("value", [0, 1])
def test_a_constant_costs_nothing(value):
    for shape in ((1, 1), (1, 5), (3, 1), (3, 2)):
        problem = Problem("constant", np.full(shape, value))
        assert problem.complexity() == problem.lower_bound == problem.one_way("Alice") == 0
        assert (problem.rank(value), problem.rank(1 - value)) == (1, 0)


def test_zero_bits():
    assert equality(0).matrix.tolist() == [[1]] and disjointness(0).matrix.tolist() == [[0]]
    assert inner_product(0).matrix.tolist() == [[0]]
    assert split(lambda s: 1, N=0, alice=[]).matrix.tolist() == [[1]]


# Fooling sets


@pytest.mark.claim("Definition 1", "random sets in random 4×4 matrices")
def test_fooling_sets_are_those_of_the_definition():
    for seed, M in enumerate(random_matrices(60, (4, 4))):
        problem = Problem("random", M)
        cells = list(itertools.product(range(4), repeat=2))
        rng = np.random.default_rng(seed)
        for size in (1, 2, 2, 2, 3, 3, 3, 4):
            S = [cells[i] for i in rng.choice(16, size, replace=False)]
            assert problem.is_fooling(S) == fooling_by_definition(M, S, M[S[0]])
    assert problem.is_fooling([])


@pytest.mark.claim("Definition 1", "all 3×3 matrices, value {b}")
@pytest.mark.parametrize("b", [0, 1])
def test_the_largest_fooling_set_is_the_largest(b):
    for M in ALL_3X3 + random_matrices(10, (3, 4)):
        cells = [(int(x), int(y)) for x, y in np.argwhere(b == M)]
        found = Problem("small", M).largest_fooling(b)
        assert fooling_by_definition(M, found, b)
        larger = itertools.combinations(cells, len(found) + 1)
        assert not any(fooling_by_definition(M, S, b) for S in larger)


@pytest.mark.claim("Fact 4", "all 3×3 matrices and 150 of 4×4, against the exact cost")
@pytest.mark.parametrize(
    "matrices", [ALL_3X3, random_matrices(150, (4, 4))], ids=["all-3x3", "random-4x4"]
)
def test_fooling_sets_of_both_values_bound_the_exact_cost(matrices):
    for M in matrices:
        problem = Problem("small", M)
        D = problem.complexity()
        sizes = [len(problem.largest_fooling(b)) for b in (0, 1)]
        assert max(sizes) <= 2**D
        assert sum(sizes) <= 2**D  # sharper: no leaf has two values


@pytest.mark.parametrize(
    "matrices",
    [ALL_3X3, random_matrices(60, (4, 4)), random_matrices(4, (6, 5))],
    ids=["all-3x3", "random-4x4", "random-6x5"],
)
def test_exact_cost_is_that_of_the_plain_recursion(matrices):
    for M in matrices:
        problem = Problem("small", M)
        D = problem.complexity()
        assert D == complexity_by_definition(M)
        assert problem.lower_bound <= D <= problem.upper_bound


# The four problems


@pytest.mark.claim("Fact 1", "fooling set, rank and exact cost, N = {n}")
@pytest.mark.parametrize("n", range(1, 7))
def test_disjointness(n):
    problem = disjointness(n)
    for a, b in [(0, 0), (1, 1), (2**n - 1, 2 ** (n - 1))]:
        bits = zip(f"{a:0{n}b}", f"{b:0{n}b}", strict=True)
        assert problem.matrix[a, b] == max(int(x) * int(y) for x, y in bits)
    assert len(problem.fooling) == 2**n and problem.is_fooling(problem.fooling)
    assert problem.matrix[problem.fooling[0]] == 0
    assert (problem.rank(0), problem.rank(1)) == (2**n, 2**n - 1)
    assert problem.complexity() == n + 1 > n


@pytest.mark.claim("Fact 2", "fooling set, rank and exact cost, N = {n}")
@pytest.mark.parametrize("n", range(1, 7))
def test_equality(n):
    problem = equality(n)
    assert len(problem.fooling) == 2**n and problem.is_fooling(problem.fooling)
    assert problem.rank(1) == 2**n and problem.complexity() == n + 1 > n


@pytest.mark.claim("Fact 2")
@pytest.mark.parametrize("K", [2, 3, 5, 7, 12, 128])
def test_equality_of_any_number_of_things(K):
    assert Problem("EQ", np.eye(K)).complexity() == (K - 1).bit_length() + 1


@pytest.mark.claim("Fact 3", "both directions, N = {N}")
@pytest.mark.parametrize("N", range(1, 11))
def test_index_is_hard_in_one_direction_only(N):
    problem = index(N)
    assert problem.one_way("Alice") == N
    assert problem.one_way("Bob") == (N - 1).bit_length()
    assert problem.upper_bound <= (N - 1).bit_length() + 1
    for a in (0, 2**N - 1, 2**N // 3):
        assert problem.matrix[a].tolist() == [int(x) for x in reversed(f"{a:0{N}b}")]


@pytest.mark.claim("Fact 3", "all messages for all 3×3 matrices")
def test_one_way_cost_by_trying_all_messages():
    """The fewest messages such that Alice's message and y determine the value."""
    for M in ALL_3X3:
        fewest = min(
            len(set(message))
            for message in itertools.product(range(3), repeat=3)
            if all(
                (M[x] == M[u]).all()
                for x, u in itertools.combinations(range(3), 2)
                if message[x] == message[u]
            )
        )
        assert Problem("small", M).one_way("Alice") == math.ceil(math.log2(fewest))
        assert Problem("small", M.T).one_way("Bob") == math.ceil(math.log2(fewest))


def test_index_two_way_and_inner_product():
    assert [index(N).complexity() for N in (2, 3, 4)] == [2, 3, 3]
    for n in range(1, 7):
        problem = inner_product(n)
        assert (problem.rank(0), problem.rank(1)) == (2**n, 2**n - 1)
        assert problem.complexity() == n + 1


# Rank


def rank_by_fractions(M):
    rows, r = [[Fraction(int(x)) for x in row] for row in M], 0
    for column in range(M.shape[1]):
        pivot = next((i for i in range(r, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[r], rows[pivot] = rows[pivot], rows[r]
        for i in range(r + 1, len(rows)):
            factor = rows[i][column] / rows[r][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[r], strict=True)]
        r += 1
    return r


def test_rank_is_exact():
    for seed, shape in enumerate([(1, 1), (2, 3), (5, 5), (7, 4), (9, 9)]):
        for M in random_matrices(40, shape, seed):
            assert rank(M) == rank_by_fractions(M)
    low = (np.random.default_rng(0).integers(0, 2, (30, 3)) @ np.eye(3, 30, dtype=int)) % 2
    assert rank(np.hstack([low, low])) == rank_by_fractions(low) == 3


def test_rank_does_not_trust_a_single_prime(monkeypatch):
    """det = 2 * 1: singular modulo 2, so a prime that divides minors must not decide."""
    M = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    assert problems._rank_modulo(M, 2) == 2
    monkeypatch.setattr(problems, "_primes", lambda: iter([2, 3, 5, 7]))
    assert rank(M) == 3


def test_primes_are_prime():
    first = list(itertools.islice(problems._primes(), 3))
    assert first == [2147483647, 2147483629, 2147483587]
    assert all(pow(a, q - 1, q) == 1 for q in first for a in (2, 3, 5))


# Any finite function


def test_split_by_predicate_and_by_table_agree():
    values = np.random.default_rng(0).integers(0, 2, 3**4)
    weights = np.array([27, 9, 3, 1])
    for alice in ([], [2], [3, 0], [0, 1, 2, 3]):
        by_table = split(values, N=4, alice=alice, alphabet=3)
        by_predicate = split(lambda s: values[np.dot(s, weights)], N=4, alice=alice, alphabet=3)
        assert (by_table.matrix == by_predicate.matrix).all()
        assert by_table.matrix.shape == (3 ** len(alice), 3 ** (4 - len(alice)))
    matrix = split(values, N=4, alice=[1, 3], alphabet=3).matrix
    for s in itertools.product(range(3), repeat=4):
        assert matrix[3 * s[1] + s[3], 3 * s[0] + s[2]] == values[np.dot(s, weights)]


def test_split_of_a_known_function_is_the_known_problem():
    halves_equal = split(lambda s: s[:3] == s[3:], N=6, alice=[0, 1, 2])
    assert (halves_equal.matrix == equality(3).matrix).all()
    interleaved = split(lambda s: s[0::2] == s[1::2], N=6, alice=[0, 2, 4])
    assert (interleaved.matrix == equality(3).matrix).all()


@pytest.mark.claim("Lemma 1")
@pytest.mark.parametrize("N", [2, 4, 6])
def test_dyck_costs_n_plus_1_on_odd_and_even_positions(N):
    problem = split(dyck, N=N, alice=range(0, N, 2), alphabet=4)
    assert problem.matrix.sum() == 2 ** (N - 1) == problem.rank(1)
    assert problem.matrix.sum(0).max() == problem.matrix.sum(1).max() == 1
    assert problem.rank(0) == 2 ** (N - 1) + 1
    assert problem.complexity() == N + 1
    members = [(int(x), int(y)) for x, y in np.argwhere(problem.matrix == 1)]
    assert problem.is_fooling(members)


@pytest.mark.parametrize("N", [2, 4, 6])
def test_dyck_costs_at_most_3_bits_if_alice_has_a_prefix(N):
    """So a bound on the cost is one for the given partition, not for every one (B.1)."""
    prefix = [split(dyck, N=N, alice=range(K), alphabet=4) for K in range(N)]
    assert max(problem.one_way("Alice") for problem in prefix) <= 3


# Refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Problem("empty", np.zeros((0, 2))), r"at least one row and column, got \(0, 2\)"),
        (lambda: Problem("two", np.array([[0, 2]])), "0 and 1, got 2"),
        (lambda: Problem("no", np.ones((2, 2)), ((0, 0), (1, 1))), "fooling set, got 2 pairs"),
        (lambda: equality(2).is_fooling([(0, 0), (0, 0)]), "different pairs, got 2"),
        (lambda: equality(2).is_fooling([(0, 0), (-1, -1)]), "0 <= x <= 3, got -1"),
        (lambda: equality(2).is_fooling([(0, 4)]), "0 <= y <= 3, got 4"),
        (lambda: split(lambda s: 0.5, N=2, alice=[0]), "0 and 1, got 0.5"),
        (lambda: split(lambda s: sum(s), N=2, alice=[0]), "0 and 1, got 2"),
        (lambda: equality(-1), "0 <= n <= 11, got -1"),
        (lambda: index(0), "1 <= N <= 11, got 0"),
        (lambda: equality(4).largest_fooling(0), "at most 64 cells of value 0, got 240"),
        (lambda: equality(1).rank(2), "b <= 1, got 2"),
        (lambda: equality(1).one_way("Eve"), "Alice or Bob, got 'Eve'"),
        (lambda: split(lambda s: 0, N=2, alice=[2]), r"below N = 2, got \[2\]"),
        (lambda: split(lambda s: 0, N=2, alice=[0, 0]), r"different positions .* got \[0, 0\]"),
        (lambda: split([0, 1], N=2, alice=[0]), "= 4 values, got 2"),
        (lambda: split(lambda s: 0, N=40, alice=[0]), r"\|Σ\|\^N"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_search_too_large_is_refused_with_what_is_known():
    M = index(5).matrix
    both = np.block([[M, np.zeros((32, 32))], [np.zeros((5, 5)), M.T]])  # rank 10, 37 rows
    with pytest.raises(ValueError, match=r"at most 16 distinct .* got 37; 5 <= D <= 7"):
        Problem("both", both).complexity()
