"""IP2 on average: exact where all sets and protocols can be tried, searched where they cannot."""

import itertools
import math

import numpy as np
import pytest

from companion.theory.average_case import (
    balanced,
    discrepancy,
    equality_matrix,
    every_protocol,
    inner_product,
    lindsey,
    one_layer_bits,
    one_way_accuracy,
    one_way_ceiling,
    parity_fingerprint,
    recurrent_bits,
    search_protocol,
    two_way_ceiling,
)


@pytest.mark.claim("IP2", "discrepancy over all sets of rows, n = {n}")
@pytest.mark.parametrize(
    ("n", "exact"), [(0, 1.0), (1, 0.5), (2, 0.3125), (3, 0.171875), (4, 0.109375)]
)
def test_discrepancy_by_all_sets_of_rows(n, exact):
    M = inner_product(n)
    assert discrepancy(M) == exact <= 2 ** (-n / 2)
    assert (M @ M.T == 2**n * np.eye(2**n)).all()  # Hadamard


@pytest.mark.claim("IP2", "Lindsey's lemma, n = {n}")
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_lindsey_on_every_set_of_rows(n):
    """For each size of B the columns with the largest sums are the worst."""
    M = inner_product(n)
    sets = np.arange(1 << 2**n)[:, None] >> np.arange(2**n) & 1
    sums = np.sort(sets @ M, axis=1)
    bound = np.sqrt(sets.sum(1)[:, None] * np.arange(1, 2**n + 1) * 2**n)
    assert (np.cumsum(sums[:, ::-1], axis=1) <= bound + 1e-9).all()
    assert (-np.cumsum(sums, axis=1) <= bound + 1e-9).all()
    assert lindsey(2**n, 1, n) == pytest.approx(bound[-1, 0])


@pytest.mark.claim("IP2", "all one-way protocols, n = {n}")
@pytest.mark.parametrize(
    ("n", "c", "advantage"), [(1, 1, 1.0), (2, 1, 0.625), (3, 1, 0.40625), (2, 2, 1.0)]
)
def test_best_of_all_one_way_protocols(n, c, advantage):
    found = every_protocol(inner_product(n), c)
    assert 2 * found.accuracy - 1 == advantage
    assert found.accuracy <= one_way_ceiling(c, n)
    searched = search_protocol(inner_product(n), c, rng=np.random.default_rng(0), starts=20)
    assert searched.accuracy == found.accuracy


@pytest.mark.claim("IP2", "one-way protocols of {c} bits found by search, n = 10")
@pytest.mark.parametrize("c", [0, 2, 4, 6, 8])
def test_no_protocol_found_beats_the_ceiling_and_it_is_tight_up_to_a_factor(c):
    n = 10
    found = search_protocol(inner_product(n), c, rng=np.random.default_rng(c), starts=2)
    reached, bound = 2 * found.accuracy - 1, 2 * one_way_ceiling(c, n) - 1
    assert 0.7 * bound < reached < bound or c == 0
    assert found.accuracy == one_way_accuracy(inner_product(n), found.message)
    assert len(set(found.message.tolist())) <= 2**c


@pytest.mark.claim("IP2", "all two-way protocols of two bits, n = 2")
def test_two_way_ceiling_on_every_protocol_of_two_bits():
    """Alice speaks, then Bob, who has heard her: four rectangles, and any answer in each."""
    n = 2
    M, best = inner_product(n), 0.0
    halves = np.array(list(itertools.product((0, 1), repeat=4)))
    for a in halves:
        part = 0
        for said in (0, 1):
            sums = M[a == said].sum(0)
            part += max(abs(sums[b == 0].sum()) + abs(sums[b == 1].sum()) for b in halves)
        best = max(best, part / M.size)
    assert 0.5 + best / 2 <= two_way_ceiling(2, n) == 1.0
    assert best == 0.625 < 4 * discrepancy(M)


@pytest.mark.claim("IP2")
def test_bits_needed_invert_the_ceilings():
    for N in (20, 400):
        for epsilon in (0.5, 0.25, 2.0**-4):
            c = recurrent_bits(N, epsilon)
            assert one_way_ceiling(c, N // 2) == pytest.approx(0.5 + epsilon)
            c = one_layer_bits(N, epsilon)
            assert two_way_ceiling(c, N // 2) == pytest.approx(0.5 + epsilon)
    assert recurrent_bits(20, 2.0**-30) == 0.0


@pytest.mark.claim("IP2")
@pytest.mark.parametrize("n", [1, 2, 6, 10])
def test_equality_is_easy_on_average(n):
    """A constant answer, uniformly; fingerprints of c bits when both answers are as frequent."""
    M = equality_matrix(n)
    nothing = np.zeros(2**n, np.int64)
    assert one_way_accuracy(M, nothing) == pytest.approx(1 - 2.0**-n)
    rng = np.random.default_rng(n)
    for c in (1, 2, 5):
        hits = [
            one_way_accuracy(M, parity_fingerprint(n, c, rng=rng), balanced(M)) for _ in range(40)
        ]
        assert np.mean(hits) > 1 - 2.0 ** -(c + 1) - 3 * np.std(hits) / 40**0.5 - 1e-9
        assert max(hits) <= 1 + 1e-12
    assert one_way_accuracy(M, np.arange(2**n)) == pytest.approx(1.0)


@pytest.mark.claim("IP2")
def test_the_same_five_bits_are_worth_little_on_inner_products():
    rng = np.random.default_rng(0)
    M = inner_product(10)
    assert one_way_accuracy(M, parity_fingerprint(10, 5, rng=rng)) <= one_way_ceiling(5, 10) < 0.6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inner_product(13), "n <= 12, got 13"),
        (lambda: discrepancy(inner_product(5)), "rows <= 16, got 32"),
        (lambda: lindsey(5, 1, 2), "rows <= 4, got 5"),
        (lambda: one_way_ceiling(-1.0, 4), "c >= 0 bits, got -1.0"),
        (lambda: two_way_ceiling(math.nan, 4), "got nan"),
        (lambda: every_protocol(inner_product(4), 2), "protocols <= 65536"),
        (lambda: recurrent_bits(3, 0.1), "even N, got 3"),
        (lambda: one_layer_bits(4, 0.6), "epsilon <= 1/2, got 0.6"),
        (
            lambda: one_way_accuracy(inner_product(1), np.array([0, 1]), np.ones((2, 2))),
            "a total of 4",
        ),
        (lambda: discrepancy(np.array([[0, 1]])), "entries 1 and -1, got 0"),
        (lambda: one_way_accuracy(np.array([[2, 1]]), np.array([0])), "entries 1 and -1, got 2"),
        (lambda: balanced(np.array([[0, 1]])), "entries 1 and -1, got 0"),
        (lambda: every_protocol(np.array([[0, 1]]), 1), "entries 1 and -1, got 0"),
        (
            lambda: search_protocol(np.array([[0, 1]]), 1, rng=np.random.default_rng(0)),
            "entries 1 and -1, got 0",
        ),
        (lambda: discrepancy(np.zeros((1, 0), int)), r"row and column, got \(1, 0\)"),
        (lambda: balanced(np.ones((2, 2), np.int64)), "both 1 and -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
