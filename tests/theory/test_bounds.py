"""The ceiling is the inverse of the rate, and no quantiser breaks it."""

import itertools
import math

import numpy as np
import pytest

from companion.theory.bounds import (
    accuracy_ceiling,
    index_first_bits,
    longest_lookup,
    lookup_bits,
    multi_index_bits,
    rate,
)


@pytest.mark.claim("Theorem 3")
@pytest.mark.parametrize("q", [2, 3, 64])
def test_ceiling_runs_from_chance_to_one_and_inverts_the_rate(q):
    assert accuracy_ceiling(0.0, q) == pytest.approx(1 / q)
    assert accuracy_ceiling(math.log2(q), q) == 1.0 == accuracy_ceiling(99.0, q)
    R = np.linspace(0, math.log2(q), 41)[1:-1]
    ceiling = [accuracy_ceiling(float(r), q) for r in R]
    assert (np.diff(ceiling) > 0).all()
    assert [rate(1 - a, q) for a in ceiling] == pytest.approx(R.tolist(), abs=1e-9)


@pytest.mark.claim("Theorem 3", "codes found by search, N = {N}")
@pytest.mark.parametrize(("N", "B"), [(3, 1), (5, 2), (7, 4)])
def test_no_code_found_beats_the_ceiling(N, B):
    """Lloyd's iteration: best reconstruction of each cell, then best cell of each string."""
    strings = np.array(list(itertools.product((0, 1), repeat=N)))
    best = 0.0
    for seed in range(40):
        centres = np.random.default_rng(seed).integers(0, 2, (1 << B, N))
        for _ in range(20):
            cell = (strings[:, None] == centres).sum(-1).argmax(-1)
            for c in set(cell):
                centres[c] = strings[cell == c].mean(0) > 0.5
        best = max(best, (strings == centres[cell]).mean())
    assert best <= accuracy_ceiling(B / N, 2)
    assert best > accuracy_ceiling(B / N, 2) - 0.08


def test_the_hamming_code_comes_within_four_percent():
    words = np.array(list(itertools.product((0, 1), repeat=7)))
    syndrome = np.bitwise_xor.reduce(words * np.arange(1, 8), axis=1)
    code = words[syndrome == 0]
    assert len(code) == 16
    accuracy = (words[:, None] == code).mean(-1).max(-1).mean()
    assert accuracy == 0.875 < accuracy_ceiling(4 / 7, 2) < 0.875 * 1.05


@pytest.mark.claim("Theorem 3")
def test_bits_of_lookup():
    assert lookup_bits(400, 64) == 2400 and lookup_bits(7) == 7
    assert longest_lookup(128 * 64) == 8192  # the paper's example
    assert all(
        longest_lookup(math.ceil(lookup_bits(N, q)), q) == N
        for N in (1, 7, 100)
        for q in (2, 3, 64)
    )
    assert multi_index_bits(5, 4) == 10
    assert [index_first_bits(N, 2) for N in (1, 2, 3, 4)] == [1, 2, 2, 3]
    assert [index_first_bits((1 << 49) + i, 2) for i in (-2, -1, 0)] == [49, 49, 50]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lookup_bits(0), "N >= 1, got 0"),
        (lambda: lookup_bits(1, 1), "q >= 2, got 1"),
        (lambda: accuracy_ceiling(-0.1, 2), "got -0.1"),
        (lambda: accuracy_ceiling(math.nan, 2), "got nan"),
        (lambda: rate(1.5, 2), "got 1.5"),
        (lambda: longest_lookup(-1), "got -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
