"""Theorem 12: the bound, the layer that meets it, and fingerprints that escape it."""

import itertools

import numpy as np
import pytest
import torch

from companion.theory.bounds import least_width, needed_bits
from companion.theory.fixed_point import FixedPoint, Floating
from companion.theory.one_layer_equality import (
    OneLayerEquality,
    fingerprint_layer,
    miss_probability,
    paper_one_layer_width,
)
from companion.theory.transformer import LAST


def one_layer_width(N, p, H=1):
    return least_width(needed_bits("equality", N), N, p, H)


def all_bits(N):
    return np.array(list(itertools.product((0, 1), repeat=N)))


def equal(x):
    return (x[:, : x.shape[1] // 2] == x[:, x.shape[1] // 2 :]).all(1).astype(int)


@pytest.mark.claim("Theorem 12", "the layer that meets it on all inputs, N = {N}")
@pytest.mark.parametrize("N", [2, 4, 6, 8, 10, 12, 14, 16])
def test_powers_of_two_are_exact_on_every_input(N):
    x = all_bits(N)
    model = OneLayerEquality.exact(N)
    assert (model.many(x) == equal(x)).all() and model.layer.heads[0].W_V.shape == (1, 1)


@pytest.mark.claim("Theorem 12")
@pytest.mark.parametrize("N", [4, 8, 12])
def test_it_takes_about_half_n_bits_in_fixed_point(N):
    f = 1 + (N - 1).bit_length()
    grid = FixedPoint(f=f, R=1 << N // 2)
    x = all_bits(N)
    assert (OneLayerEquality.exact(N, grid).many(x) == equal(x)).all()
    assert grid.p == N // 2 + f + 2  # m = H = 1: mpH = N / 2 + log N + O(1)
    with pytest.raises(ValueError, match="error of inf"):
        OneLayerEquality.exact(N, FixedPoint(f=f, R=(1 << N // 2) // 2))


@pytest.mark.claim("Theorem 12", "all inputs in {dtype}, N = {N}")
@pytest.mark.parametrize("N", [2, 4, 6, 8, 10, 12])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_sixteen_bit_floats_are_exact_on_every_input(dtype, N):
    """Sums of powers of two are formed in float32, and 0 is 0 whatever is rounded later."""
    x = all_bits(N)
    assert (OneLayerEquality.exact(N, Floating(dtype)).many(x) == equal(x)).all()


@pytest.mark.claim("Theorem 12")
@pytest.mark.parametrize(
    ("dtype", "N"), [(torch.bfloat16, 32), (torch.float16, 26), (torch.float64, 64)], ids=str
)
def test_one_bit_flipped_and_borrows_through_all_bits(dtype, N):
    """The hardest: numbers that differ by one, such as 1000 and 0111."""
    rng, half = np.random.default_rng(0), N // 2
    x = np.tile(rng.integers(0, 2, half), (N + 1, 2))
    x[np.arange(N), np.arange(N)] ^= 1
    borrow = np.zeros((half, N), int)
    for i in range(half):
        borrow[i, i], borrow[i, half : half + i] = 1, 1  # 2^i against 2^i - 1
    said = OneLayerEquality.exact(N, Floating(dtype)).many(np.vstack([x, borrow]))
    assert said.tolist() == [0] * N + [1] + [0] * half


@pytest.mark.claim("Theorem 12")
@pytest.mark.parametrize(
    ("dtype", "accepted", "really"),
    [
        (torch.bfloat16, 16, 28),
        (torch.float16, 13, 16),
        (torch.float32, 17, 25),
        (torch.float64, 45, 54),
    ],
    ids=str,
)
def test_floats_are_refused_before_they_fail(dtype, accepted, really):
    """Half-lengths. The layer itself is tried on strings that differ in the lowest bit alone."""
    a = Floating(dtype)

    def right(half):
        c = 2.0 ** np.arange(half)[:, None]
        x = np.ones((2, 2 * half))
        x[1, half] = -1
        try:
            out = fingerprint_layer(2 * half, 1)(x[..., None] * np.concatenate([c, -c]), a, LAST)
        except OverflowError:
            return False
        return ((out[:, 0, 0] > 0.5) == [True, False]).all()

    def built(half):
        try:
            return bool(OneLayerEquality.exact(2 * half, a))
        except ValueError:
            return False

    assert max(h for h in range(1, 60) if built(h)) == accepted
    assert all(right(h) for h in range(1, accepted + 1))
    assert not right(really + 3)


@pytest.mark.claim("Theorem 12", "layers of {r} channels that err, N = {N}")
@pytest.mark.parametrize("r", [1, 2, 4])
@pytest.mark.parametrize("N", [8, 64])
def test_fingerprints_err_on_one_side_and_as_often_as_computed(N, r):
    rng = np.random.default_rng(r)
    u = rng.integers(0, 2, N // 2)
    x = np.tile(np.concatenate([u, u]), (5, 1))
    for t in range(1, 5):
        x[t, :t] ^= 1
    draws = 60
    said = np.array([OneLayerEquality.random(N, r, rng=rng).many(x) for _ in range(draws)])
    assert said[:, 0].all()
    assert not said[:, 1].any() and not said[:, 3].any()  # an odd number of signs is never 0
    for t in (2, 4):
        p = miss_probability(t, r)
        assert abs(said[:, t].mean() - p) < 5 * np.sqrt(p * (1 - p) / draws) + 1e-12
        assert p <= 2.0**-r


@pytest.mark.claim("Theorem 12")
def test_fingerprints_in_low_precision():
    rng = np.random.default_rng(0)
    u = rng.integers(0, 2, 32)
    x = np.stack([np.concatenate([u, u]), np.concatenate([u, 1 - u])])
    x[1, 32] = u[0]  # 31 mismatches, an odd number
    for a in (Floating(torch.float32), FixedPoint(f=8, R=256)):
        assert OneLayerEquality.random(64, 4, a, rng=rng).many(x).tolist() == [1, 0]
    a = Floating(torch.bfloat16)
    assert OneLayerEquality.random(64, 4, a, rng=rng).many(x).tolist() == [1, 0]
    with pytest.raises(ValueError, match="sum 1 to be told from 0"):
        OneLayerEquality.random(5000, 4, Floating(torch.float16), rng=rng)


@pytest.mark.claim("Theorem 12")
def test_width_grows_with_n_over_p():
    for N in (1 << 10, 1 << 16, 1 << 20):
        p = 2 * N.bit_length()
        m = one_layer_width(N, p)
        bits = (2 * m + 4) * p + 2 * N.bit_length() + 2
        assert bits >= N / 2 + 1 > bits - 2 * p
        assert m > paper_one_layer_width(N, p)
        assert one_layer_width(N, p, H=4) < m / 3.9
    assert one_layer_width(2, 1) == 1 == paper_one_layer_width(2, 1)


@pytest.mark.claim("Theorem 12")
@pytest.mark.parametrize("N", [1 << 10, 1 << 16, 1 << 20])
def test_two_layers_are_narrower_than_any_one(N):
    n = N.bit_length() - 1
    assert (2 + 2 * n < one_layer_width(N, p=2 * n + 2)) == (N > 1 << 10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: OneLayerEquality.exact(3), "even N, got 3"),
        (lambda: OneLayerEquality.exact(122), "N <= 120, got 122"),
        (lambda: OneLayerEquality.random(4, 0, rng=np.random.default_rng(0)), "r >= 1, got 0"),
        (lambda: OneLayerEquality(np.zeros((0, 1), np.int64)), r"got \(0, 1\)"),
        (lambda: OneLayerEquality.exact(4)([0, 1]), "4 <= length <= 4, got 2"),
        (lambda: miss_probability(0, 1), "t >= 1, got 0"),
        (lambda: paper_one_layer_width(5, 1), "even N, got 5"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
