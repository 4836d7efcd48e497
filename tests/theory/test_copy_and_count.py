"""Copy and count: the bounds are those of the layers themselves."""

import math

import numpy as np
import pytest
import torch

from companion.theory.copy_and_count import copy_eta, copying, count_error, count_layer
from companion.theory.fixed_point import EXACT, FixedPoint, Floating
from companion.theory.transformer import LAST, Head, Layer
from companion.theory.vectors import binary, linear_hash, random, trace_code


@pytest.mark.parametrize("L", [1, 2, 3, 7, 8, 600])
@pytest.mark.parametrize("T", [binary(600), random(600, 100), linear_hash(600, 64)], ids=repr)
def test_worst_copy_is_the_one_that_a_layer_makes(T, L):
    eta, k = 9.0, T.k
    rows = T.rows(np.arange(L)).astype(float)
    head = Head(W_Q=eta / k * np.eye(k), W_K=np.eye(k), W_V=np.zeros((1, k)))
    weights = Layer([head]).attention(rows)[0]
    found = copying(T, L, eta)
    assert found.right == pytest.approx(np.diag(weights).min(), rel=1e-9)
    assert found.elsewhere == pytest.approx(
        (weights.sum(1) - np.diag(weights)).max(), rel=1e-6, abs=1e-12
    )


@pytest.mark.parametrize("error", [0.5, 0.1, 1e-6])
@pytest.mark.parametrize("T", [binary(1 << 10), trace_code(1 << 12, 6), random(100, 300)], ids=repr)
def test_eta_keeps_copies_within_the_error(T, error):
    eta = copy_eta(T, T.N, error)
    assert copying(T, T.N, eta).error < error
    assert copying(T, T.N, eta / 1.5).error <= error
    assert copying(T, T.N, eta / 4).error > error


def test_spectrum_row_stands_for_every_query_and_bounds_shorter_inputs():
    T = binary(1 << 14)
    whole, part = copying(T, 1 << 14, 60.0, fewer=True), copying(T, (1 << 14) - 5, 60.0)
    assert part == whole and whole.right == copying(T, 1 << 14, 60.0).right
    q = (1 + math.exp(-2 * 60 / 14)) ** -14
    assert whole.right == pytest.approx(q, abs=1e-12)
    shorter, longer = (copying(binary(1 << 10), L, 60.0).error for L in (600, 1024))
    assert shorter <= longer * (1 + 1e-9)


@pytest.mark.parametrize("eta", [1.0, 2.5, 4.0, 8.0])
@pytest.mark.parametrize("rounding", ["floor", "nearest"])
@pytest.mark.parametrize("softmax", ["late", "early"])
@pytest.mark.parametrize("T", [binary(8), random(13, 20), linear_hash(12, 16)], ids=repr)
def test_the_bound_for_fewer_keys_holds_for_every_prefix(T, softmax, rounding, eta):
    """And without it the whole is not one: on a coarse grid shorter inputs are copied worse."""
    grid = FixedPoint(4, 64, rounding, softmax)
    bound = copying(T, T.N, eta, grid, fewer=True)
    parts = [copying(T, L, eta, grid) for L in range(1, T.N + 1)]
    assert bound.right == min(part.right for part in parts)
    assert bound.elsewhere >= max(part.elsewhere for part in parts)


def test_on_a_grid_fewer_keys_may_be_copied_worse():
    grid = FixedPoint(3, 64)
    errors = [copying(binary(8), L, 2.4, grid).error for L in (7, 8)]
    assert errors == [0.875, 0.5] and copying(binary(8), 8, 2.4, grid, fewer=True).error == 0.875


def sums_in_many_orders(terms, wide):
    """float sums of the same terms: as they are, sorted both ways, signs apart, and shuffled."""
    rng = np.random.default_rng(0)
    orders = [terms, np.sort(terms), -np.sort(-terms), terms[np.argsort(np.abs(terms))]]
    orders += [rng.permutation(terms) for _ in range(20)]
    return [float(np.add.accumulate(x.astype(wide), dtype=wide)[-1]) for x in orders]


@pytest.mark.parametrize("k", [32, 128, 1024])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_logits_may_be_summed_in_any_order(k, dtype):
    """All plus terms first is the worst: partial sums are large, and what is lost is not small."""
    a, wide = Floating(dtype), np.float64 if dtype == torch.float64 else np.float32
    unit = float(a.decode(a.encode(np.array([10 / 3 / k])))[0])
    off, worst = a.sum_error(k, unit), 0.0
    for plus in (k, k * 5 // 8, k // 2):
        signs = np.where(np.arange(k) < plus, 1, -1)
        product = float(a.decode(a.times(np.array([signs.sum()]), a.encode(np.array([unit]))))[0])
        for found in sums_in_many_orders(signs * unit, wide):
            rounded = float(a.decode(a.encode(np.array([found])))[0])
            worst = max(worst, abs(rounded - product))
            assert abs(rounded - product) <= off
    if a.p == 16:
        assert off == worst == 0  # partial sums are numbers of float32: logits are exact products
    else:
        assert worst > 2 * a.eps / 2 * unit, "one rounding is not all that happens"


@pytest.mark.parametrize("share", [2.0**-26, 1.01 * 2.0**-25, 3e-8, 1e-7])
@pytest.mark.parametrize("n", [1 << 10, 1 << 18])
def test_averages_may_be_summed_in_any_order(n, share):
    """Tiny weights after one large: each is lost, or counts double, when added one by one."""
    weights = np.full(n, share, np.float32)
    weights[0] = np.float32(1 - (n - 1) * share)
    exact = weights.astype(np.float64).sum()
    off = max(abs(found - exact) for found in sums_in_many_orders(weights, np.float32))
    rest = (n - 1) * share
    assert off <= Floating(torch.float32).average_error(n, rest) <= 2.1 * rest + 3e-7
    if share < 2.0**-25 and n > 1 << 10:
        assert off > 0.9 * rest  # the bound is not an idle one


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_bound_on_weights_holds_when_logits_are_summed_the_worst_way(dtype):
    a, T, eta = Floating(dtype), random(64, 1000), 20.0
    found = copying(T, 64, eta, a)
    rows = T.rows(np.arange(64)).astype(float)
    unit = float(a.decode(a.encode(np.array([eta / T.k])))[0])
    for own in range(0, 64, 7):
        terms = -np.sort(-rows * rows[own], axis=-1) * unit  # plus first
        logits = np.add.accumulate(terms.astype(np.float32), axis=-1, dtype=np.float32)[:, -1]
        w = a.decode(a.weights(a.encode(logits[None].astype(float))))[0]
        assert w[own] >= found.right and w.sum() - w[own] <= found.elsewhere


def test_a_multiple_is_rounded_once():
    """257 is no number of bfloat16, but the product is rounded, not the factor first."""
    a = Floating(torch.bfloat16)
    third = a.encode(np.array([1 / 3]))
    assert a.times(np.array([257]), third).item() == a.encode(257 * a.decode(third)).item()
    assert (a.encode(np.array([257.0])) * third).item() != a.times(np.array([257]), third).item()


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("L", [1, 2, 3, 8, 13])
def test_every_count_is_compared_with_every_threshold(L, negate):
    bits = (np.arange(L) < np.arange(L + 1)[:, None]).astype(float)[..., None]
    for b in range(L + 1):
        out = count_layer(L, b, negate=negate)(bits, rows=LAST)[:, 0, 0]
        np.testing.assert_allclose(out, (np.arange(L + 1) > b) != negate, atol=1e-12)
        assert count_error(L, b, L, EXACT, negate=negate) < 1e-12


def test_worst_count_is_found_on_a_coarse_grid():
    """1/9 on a grid of 1/64 is 7/64, so that a count c is read as 63c/64."""
    grid = FixedPoint(f=6, R=64)
    L, b = 9, 3
    every = (np.arange(L) < np.arange(L + 1)[:, None]).astype(float)[..., None]
    out = count_layer(L, b)(every, grid, rows=LAST)[:, 0, 0]
    assert np.abs(out - (np.arange(L + 1) > b)).max() == count_error(L, b, L, grid) == 4 / 64
    assert count_error(9, 7, 9, FixedPoint.paper(8, 1)) == math.inf  # W_1 = 9 > R = 8


@pytest.mark.parametrize(
    ("dtype", "first_wrong"), [(torch.bfloat16, 1 << 9), (torch.float16, 1 << 12)], ids=str
)
def test_sixteen_bit_averages_cannot_tell_all_from_all_but_one(dtype, first_wrong):
    a = Floating(dtype)
    wrong = [L for L in (1 << i for i in range(1, 16)) if count_error(L, L - 1, L, a) >= 0.5]
    assert wrong[0] == first_wrong
    assert all(count_error(L, 0, L, a) < 0.5 for L in (1 << i for i in range(1, 15)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("L", "b"), [(300, 0), (513, 0), (513, 200), (100, 99), (2049, 1024)])
def test_counts_are_no_worse_than_promised(L, b, dtype):
    """The layer itself, on every count, ones first, last and spread."""
    a, rng = Floating(dtype), np.random.default_rng(L)
    counts = np.unique(np.concatenate([[0, b, b + 1, L], rng.integers(0, L + 1, 60)]))
    first = (np.arange(L) < counts[:, None]).astype(float)
    for bits in (first, first[:, ::-1], rng.permuted(first, axis=-1)):
        out = count_layer(L, b)(bits[..., None], a, rows=LAST)[:, 0, 0]
        assert np.abs(out - (counts > b)).max() <= count_error(L, b, L, a)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: copying(binary(8), 9, 1.0), "1 <= L <= 8, got 9"),
        (lambda: copying(random(9000, 8), 9000, 1.0), "L <= 8192, got 9000"),
        (lambda: copy_eta(binary(8), 8, 2.0), "error < 2, got 2.0"),
        (lambda: copy_eta(linear_hash(8, 2), 8), "two equal ones with k = 2"),
        (lambda: count_layer(0), "L >= 1, got 0"),
        (lambda: count_layer(1, -1), "b >= 0, got -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
