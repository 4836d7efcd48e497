"""Families of sign vectors: exact coherence, generation one at a time, refusals."""

import numpy as np
import pytest

from companion.theory._check import check_int
from companion.theory.dimensions import (
    first_k,
    johnson_lindenstrauss,
    linear_k,
    paper_k,
    random_k,
    welch,
)
from companion.theory.galois import gf_mul, gf_trace, splitmix64, splitmix64_array
from companion.theory.vectors import (
    Coherence,
    TraceCode,
    binary,
    linear_hash,
    nearly_orthogonal,
    random,
    trace_code,
    walsh_hadamard,
)

SMALL = [
    pytest.param(family, id=name)
    for name, family in {
        "one vector": binary(1),
        "two": binary(2),
        "binary, odd N": binary(37),
        "hash, odd k": linear_hash(64, 11),
        "hash, prime N": linear_hash(97, 64, seed=3),
        "trace": trace_code(256, 4),
        "trace, part of it": trace_code(100, 5),
        "random": random(33, 65, seed=2),
    }.items()
]


def gram(family):
    T = family.table().astype(int)
    return T @ T.T


@pytest.mark.parametrize("family", SMALL)
def test_coherence_is_that_of_all_pairs(family):
    G = gram(family)
    others = G[~np.eye(family.N, dtype=bool)]
    found = family.coherence()
    if family.N == 1:
        assert found == Coherence(0.0, 0.0, (0, 0))
        return
    assert (found.highest, found.lowest) == (others.max() / family.k, others.min() / family.k)
    i, j = found.pair
    assert i != j and G[i, j] == others.max()


@pytest.mark.parametrize("family", SMALL)
def test_one_vector_alone_is_the_row_of_the_table(family):
    T = family.table()
    assert T.shape == (family.N, family.k) and set(np.unique(T)) <= {-1, 1}
    for i in {0, family.N // 2, family.N - 1}:
        assert (family.vector(i) == T[i]).all()
    streamed = np.concatenate([rows for _, rows in family.blocks(7)])
    assert (streamed == T).all()


@pytest.mark.claim("Lemma 2", "all pairs of 2^(mt) trace codes, m = {m}, t = {t}")
@pytest.mark.parametrize(
    ("m", "t", "highest"),
    [(4, 2, 0.5), (5, 2, 0.25), (6, 2, 0.25), (7, 2, 0.125), (7, 3, 0.25), (8, 2, 0.125)],
)
def test_trace_codes_exactly_and_within_weil(m, t, highest):
    code = trace_code(1 << (m * t), m, t)
    assert code.coherence().highest == highest
    assert code.coherence().absolute <= code.guarantee


@pytest.mark.claim("Lemma 2", "all pairs of 2^20 vectors")
def test_a_million_vectors_with_coherence_a_quarter_in_far_fewer_dimensions_than_stated():
    family = trace_code(1 << 20, 7, 3)
    assert family.coherence().absolute == 0.25
    assert family.k == 128 < paper_k(1 << 20, 0.25) == 1864


@pytest.mark.parametrize("i", [0, 1, 200, 255])
def test_trace_code_is_the_trace_of_the_polynomial(i):
    a = [i & 15, i >> 4]
    cube = [gf_mul(gf_mul(x, x, 4), x, 4) for x in range(16)]
    trace = [gf_trace(gf_mul(a[0], x, 4) ^ gf_mul(a[1], cube[x], 4), 4) for x in range(16)]
    assert trace_code(256, 4).vector(i).tolist() == [1 - 2 * bit for bit in trace]


def test_trace_codes_beyond_weil_are_refused_and_are_bad_indeed():
    with pytest.raises(ValueError, match=r"2t - 2 < 2\^\(m/2\) = 4, got 2t - 2 = 4"):
        trace_code(1 << 12, 4, 3)
    assert TraceCode(1 << 12, 16, 4, 3).coherence().highest == 1.0


@pytest.mark.claim("Corollary 8.1", "all pairs, N = {N}")
@pytest.mark.parametrize("N", [1, 2, 3, 50, 1000, 1 << 12, 1 << 20])
def test_default_family_proves_a_quarter(N):
    family = nearly_orthogonal(N)
    assert family.guarantee <= 0.25 and family.coherence().absolute <= 0.25
    assert (family.vector(N - 1).astype(int) ** 2).sum() == family.k  # the diagonal is exactly 1


@pytest.mark.claim("Lemma 2")
@pytest.mark.parametrize("N", [16, 64, 256])
def test_paper_constant_is_enough_and_more_than_enough(N):
    k = paper_k(N, 0.25)
    assert random(N, k).coherence().absolute <= 0.25
    measured = sorted(first_k(N, 0.25, seed=seed) for seed in range(5))[2]
    assert measured < k / 1.8
    assert linear_k(N, 0.25) < random_k(N, 0.25) < k


def test_first_k_is_first():
    k = first_k(64, 0.25)
    assert random(64, k).coherence().absolute <= 0.25 < random(64, k - 4).coherence().absolute


@pytest.mark.claim("Lemma 3", "200 random vectors, k = 64, 256, 1024")
def test_random_projection_keeps_inner_products():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(200, 64))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    for k in (64, 256, 1024):
        projected = johnson_lindenstrauss(u, k, rng=rng)
        epsilon = np.abs(projected @ projected.T - u @ u.T).max()
        assert k < 8 * np.log(200) / epsilon**2  # c_2 below 8


def test_walsh_hadamard_is_its_own_inverse_and_needs_a_power_of_two():
    h = np.random.default_rng(0).integers(-9, 9, 64)
    assert (walsh_hadamard(walsh_hadamard(h)) == 64 * h).all()
    direct = [sum(x * (-1) ** (c & d).bit_count() for c, x in enumerate(h)) for d in range(64)]
    assert walsh_hadamard(h).tolist() == direct
    with pytest.raises(ValueError, match="power of two, got length 6"):
        walsh_hadamard(h[:6])


def test_hash_is_the_published_one_and_equal_in_both_forms():
    assert splitmix64(0) == 0xE220A8397B1DCDAF  # first output of the reference generator, seed 0
    x = np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert splitmix64_array(x).tolist() == [splitmix64(int(v)) for v in x]


def test_seeds_differ_and_repeat():
    assert (random(8, 70, seed=1).table() == random(8, 70, seed=1).table()).all()
    assert (random(8, 70, seed=1).table() != random(8, 70, seed=2).table()).any()
    assert linear_hash(64, 32, seed=1).column(0) != linear_hash(64, 32, seed=2).column(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: binary(0), "N >= 1, got 0"),
        (lambda: linear_hash(4, 0), "k >= 1, got 0"),
        (lambda: binary(8).rows(np.array([0, 8])), "0 <= index <= 7, got 8"),
        (lambda: random(8, 8).rows(np.array([-1])), "0 <= index <= 7, got -1"),
        (lambda: binary(8).vector(8), "0 <= i <= 7, got 8"),
        (lambda: trace_code(1 << 11, 5), "N <= 1024, got 2048"),
        (lambda: trace_code(4, 11), "got m = 11"),
        (lambda: nearly_orthogonal(8, 1.0), "0 < gamma < 1, got 1.0"),
        (lambda: nearly_orthogonal(1 << 20, 0.01), "proves coherence 0.01"),
        (lambda: paper_k(8, 0.0), "0 < gamma < 1, got 0.0"),
        (lambda: random(1 << 14, 8).coherence(), "got N = 16384"),
        (lambda: binary(1 << 25).coherence(), "got N = 33554432"),
        (lambda: first_k(1, 0.25), "got 1"),
    ],
)
def test_bad_input_is_refused_with_both_values(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("value", [2.0, True, "2", None])
def test_sizes_are_whole_numbers(value):
    with pytest.raises(TypeError, match=f"whole number, got {value!r}"):
        check_int("N", value, low=1)


@pytest.mark.parametrize(("N", "k"), [(2, 1), (4, 3), (64, 8), (65, 64), (300, 40)])
def test_no_unit_vectors_are_below_welchs_bound(N, k):
    vectors = np.random.default_rng(0).normal(size=(N, k))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    G = vectors @ vectors.T
    assert np.abs(G[~np.eye(N, dtype=bool)]).max() >= welch(N, k) - 1e-12


def test_welchs_bound_is_met():
    """By a simplex, k + 1 vectors at equal angles; and by orthogonal ones, where it is 0."""
    simplex = np.eye(5) - 1 / 5
    simplex /= np.linalg.norm(simplex, axis=1, keepdims=True)
    others = np.abs(simplex @ simplex.T)[~np.eye(5, dtype=bool)]
    assert others == pytest.approx(welch(5, 4)) and welch(5, 5) == welch(3, 9) == 0
