"""Theorem 1: exhaustively where that is possible, at the worst input where it is not."""

import math
import tracemalloc

import numpy as np
import pytest
import torch

from companion.theory.fixed_point import EXACT, FixedPoint, Floating
from companion.theory.index_lookup import (
    IndexLookup,
    needed_eta,
    paper_eta,
    snap_to_bits,
    sufficient_eta,
    try_every_input,
    weakest_weight,
)
from companion.theory.vectors import binary, linear_hash, nearly_orthogonal, random, trace_code

ARITHMETICS = {"float64": EXACT} | {
    f"K_c={K_c}, {softmax}": FixedPoint.paper(8, K_c, softmax=softmax)
    for K_c in (1, 2, 3)
    for softmax in ("late", "early")
}
FAMILIES = {"binary": binary(8), "trace": nearly_orthogonal(8), "hash": linear_hash(8, 24)}


def worst_string(lookup, p):
    """All other symbols are the complement of s_p, which is 0...0."""
    string = np.full(lookup.N, lookup.alphabet - 1)
    string[p] = 0
    return string


@pytest.mark.claim(
    "Theorem 1",
    "all strings to length {longest} over {alphabet} symbols, all positions",
)
@pytest.mark.parametrize("family", ["binary", "trace"])
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize(("alphabet", "longest"), [(2, 8), (4, 5)])
def test_every_string_every_position_every_length(family, arithmetic, alphabet, longest):
    lookup = IndexLookup.build(
        longest, alphabet, FAMILIES[family], arithmetic=ARITHMETICS[arithmetic]
    )
    everything = sum(n * alphabet**n for n in range(1, longest + 1))
    assert try_every_input(lookup) == (everything, 0)


def test_exhaustive_check_counts_mistakes():
    """The check itself can fail: blunt the attention behind the back of the constructor."""
    lookup = IndexLookup.build(4, 2, binary(4))
    object.__setattr__(lookup, "eta", 0.01)
    assert try_every_input(lookup).wrong > 0


@pytest.mark.claim("Theorem 1")
@pytest.mark.parametrize("K_c", [2, 3])
def test_linear_hash_needs_a_larger_range(K_c):
    """Its logits reach 9, beyond R = N^K_c = 8 at K_c = 1: refused there, right from K_c = 2."""
    with pytest.raises(OverflowError, match="R = 8, got 9"):
        IndexLookup.build(8, 2, FAMILIES["hash"], arithmetic=FixedPoint.paper(8, 1))
    lookup = IndexLookup.build(8, 2, FAMILIES["hash"], arithmetic=FixedPoint.paper(8, K_c))
    assert try_every_input(lookup).wrong == 0


def test_parameters_are_those_of_the_matrices():
    lookup = IndexLookup.build(1 << 16, 64, binary(1 << 16))
    assert lookup.width == 38 and lookup.parameters == 38 * 38 + 4 * 36 + 3 * 6
    assert 16 * lookup.parameters < 30_000 < 6 * 65_536  # bits: the whole model, an RNN's state


@pytest.mark.parametrize("T", [binary(32), linear_hash(32, 24, seed=1), random(32, 256)])
def test_weight_is_that_of_the_worst_string_and_no_string_is_worse(T):
    lookup = IndexLookup.build(32, 64, T)
    rng = np.random.default_rng(0)
    right = [lookup.attention(worst_string(lookup, p), p)[p] for p in range(32)]
    assert min(right) == pytest.approx(lookup.weight, abs=1e-12)
    for p in range(32):
        string = rng.integers(0, 64, 32)
        assert lookup.attention(string, p)[p] >= lookup.weight - 1e-12
        assert 1 - lookup.worst_error(p) == pytest.approx(right[p], abs=1e-12)


@pytest.mark.claim("Theorem 1", "the worst string of 2^20 symbols")
def test_worst_case_at_a_million_symbols_in_constant_memory():
    lookup = IndexLookup.build(1 << 20, 64, trace_code(1 << 20, 7, 3))
    assert lookup.margin > 0.24  # loads the spectrum, before memory is watched
    tracemalloc.start()
    error = lookup.worst_error(123_456)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert error == pytest.approx(1 - lookup.weight, rel=1e-6)
    assert peak < 64 << 20  # the table alone would be 128 MB


@pytest.mark.claim("Theorem 1", "bytes that the layer takes, N = 2^n, n = {n}")
@pytest.mark.parametrize("n", [12, 14, 16])
def test_memory_grows_with_n_times_k(n):
    """Counted in bytes: a dozen arrays of N rows and 2k + b columns, under a gigabyte at 2^16."""
    N, grid = 1 << n, FixedPoint(f=14, R=256)
    lookup = IndexLookup.build(N, 64, binary(N), arithmetic=grid)
    string = np.random.default_rng(0).integers(0, 64, N)
    assert lookup.margin > 0  # loads the spectrum, before memory is watched
    tracemalloc.start()
    assert lookup(string, N - 2) == string[N - 2]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * 8 * N * lookup.width < 1 << 30


@pytest.mark.claim("Theorem 1")
@pytest.mark.parametrize("N", [1, 2, 3, 10, 1 << 10, 1 << 20])
def test_sufficient_eta_suffices_and_so_does_the_papers(N):
    T = nearly_orthogonal(N)
    gamma = T.coherence().highest
    assert weakest_weight(T, N, sufficient_eta(N, gamma)) >= 0.75 - 1e-12
    assert weakest_weight(T, N, paper_eta(N)) > 0.75
    assert IndexLookup.build(N, 2, T).margin > 0


@pytest.mark.claim("Theorem 1")
@pytest.mark.parametrize(
    ("T", "eta"),
    [(trace_code(1 << 10, 5), 9.32), (binary(1 << 10), 17.67), (trace_code(1 << 12, 6), 10.27)],
)
def test_eta_needed_is_about_half_the_papers_for_trace_codes(T, eta):
    found = needed_eta(T, T.N)
    assert found == pytest.approx(eta, abs=0.005)
    assert weakest_weight(T, T.N, found) >= 0.75 > weakest_weight(T, T.N, 0.999 * found)
    if T.k > T.n:
        assert math.log(3 * T.N) < found < 0.6 * paper_eta(T.N)


def test_binary_code_has_a_closed_form():
    """q = (1 + e^(-2 eta / n))^-n, up to the index token itself."""
    n, eta = 12, 30.0
    q = (1 + math.exp(-2 * eta / n)) ** -n
    assert weakest_weight(binary(1 << n), 1 << n, eta) == pytest.approx(q, abs=1e-12)


@pytest.mark.claim("Theorem 1")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("T", [binary(1 << 10), trace_code(1 << 10, 5)], ids=["binary", "trace"])
def test_sixteen_bit_floats_look_up_correctly(dtype, T):
    lookup = IndexLookup.build(T.N, 64, T, arithmetic=Floating(dtype))
    for p in (0, 1, 517, T.N - 1):
        string = worst_string(lookup, p)
        assert lookup(string, p) == 0
        assert lookup.attention(string, p)[p] == pytest.approx(lookup.weight, abs=0.01)


@pytest.mark.claim("Theorem 1", "the worst of all strings of 2^n symbols, n = {n}: {dtype}")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("n", range(10, 21, 2))
def test_worst_case_of_every_float_up_to_a_million(dtype, n):
    for T in (binary(1 << n), trace_code(1 << n, 7, 3)):
        assert IndexLookup.build(T.N, 64, T, arithmetic=Floating(dtype)).margin > 0.2


@pytest.mark.claim("Theorem 1")
def test_seven_bits_are_enough_for_a_million_symbols_with_early_rounding():
    seven = FixedPoint(f=1, R=20, softmax="early")
    assert seven.p == 7
    T = binary(1 << 20)
    assert IndexLookup.build(T.N, 64, T, eta=20.0, arithmetic=seven).weight == 1.0
    with pytest.raises(ValueError, match=r"got 0\.0000"):
        late = FixedPoint(f=1, R=20, softmax="late")
        IndexLookup.build(T.N, 64, T, eta=20.0, arithmetic=late)


@pytest.mark.parametrize("K_c", [1, 2])
def test_fixed_point_at_the_worst_string_of_a_thousand(K_c):
    T = trace_code(1 << 10, 5)
    lookup = IndexLookup.build(T.N, 64, T, arithmetic=FixedPoint.paper(T.N, K_c))
    for p in (0, 511, T.N - 1):
        assert lookup(worst_string(lookup, p), p) == 0


@pytest.mark.claim("Multi-Index Lookup", "random strings, {q} indices")
@pytest.mark.parametrize("q", [1, 2, 25, 50])
def test_many_indices_one_layer(q):
    """The other index tokens have key and value 0: a little dilution, no error."""
    rng = np.random.default_rng(q)
    lookup = IndexLookup.build(50, 64)
    strings, asked = rng.integers(0, 64, (20, 50)), rng.integers(0, 50, (20, q))
    assert (lookup.many(strings, asked) == np.take_along_axis(strings, asked, -1)).all()


@pytest.mark.claim("Multi-Index Lookup")
@pytest.mark.parametrize(("N", "q"), [(1, 10), (4, 100), (50, 20_000)])
def test_more_questions_than_the_margin_carries_are_refused(N, q):
    lookup = IndexLookup.build(N, 4)
    with pytest.raises(ValueError, match=f"with {q} indices asked at once: raise eta"):
        lookup.many(np.zeros((1, N), int), np.zeros((1, q), int))
    sharper = IndexLookup.build(N, 4, eta=lookup.eta + math.log(q))
    strings = np.arange(N)[None] % 4
    assert (sharper.many(strings, np.full((1, min(q, 100)), N - 1)) == strings[0, -1]).all()


@pytest.mark.parametrize("softmax", ["late", "early"])
@pytest.mark.parametrize("f", [4, 5, 6])
def test_rounding_to_nearest_is_right_on_every_input_or_refused(f, softmax):
    a, built = FixedPoint(f=f, R=16, rounding="nearest", softmax=softmax), 0
    for eta in np.arange(2.0, 12.0, 0.5):
        try:
            lookup = IndexLookup.build(6, 2, binary(6), float(eta), a)
        except ValueError:
            continue
        built += 1
        assert try_every_input(lookup).wrong == 0
    assert built > 0


def test_network_is_exact_outside_a_quarter_to_three_quarters():
    z = np.array([0.0, 0.1, 0.25, 0.75, 0.9, 1.0])[:, None]
    assert EXACT.decode(snap_to_bits(1)(EXACT.encode(z), EXACT))[:, 0].tolist() == [
        0,
        0,
        0,
        1,
        1,
        1,
    ]


LOOKUP = IndexLookup.build(8, 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: IndexLookup.build(0, 2), ValueError, "N >= 1, got 0"),
        (lambda: IndexLookup.build(8, 1), ValueError, "alphabet >= 2, got 1"),
        (lambda: IndexLookup.build(9, 2, binary(8)), ValueError, "N = 9 vectors, got 8"),
        (lambda: IndexLookup.build(8, 2, linear_hash(8, 2)), ValueError, "two equal ones with k"),
        (
            lambda: IndexLookup.build(1 << 20, 2, binary(1 << 20), eta=30.0),
            ValueError,
            "got 0.3784",
        ),
        (lambda: IndexLookup.build(8, 2, eta=-1.0), ValueError, "eta < infinity, got -1.0"),
        (lambda: LOOKUP([0] * 9, 0), ValueError, "1 <= length <= 8, got 9"),
        (lambda: LOOKUP([], 0), ValueError, "1 <= length <= 8, got 0"),
        (lambda: LOOKUP([0, 1], 2), ValueError, "0 <= p <= 1, got 2"),
        (lambda: LOOKUP([0, 1], -1), ValueError, "0 <= p <= 1, got -1"),
        (lambda: LOOKUP([0, 4], 1), ValueError, "0 <= symbol <= 3, got 4"),
        (lambda: LOOKUP([0.0, 1.0], 1), TypeError, "whole numbers for symbol, got float64"),
        (lambda: LOOKUP.worst_error(8), ValueError, "0 <= p <= 7, got 8"),
        (lambda: sufficient_eta(8, 1.0), ValueError, r"\[-1, 1\), got 1.0"),
        (lambda: needed_eta(binary(8), 8, weight=1.0), ValueError, "got 1.0"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
