"""The paper's construction: right with orthogonal addresses, wrong with nearly orthogonal ones."""

import numpy as np
import pytest
import torch

from companion.theory.dimensions import paper_k
from companion.theory.fixed_point import EXACT, FixedPoint, Floating
from companion.theory.nearest_neighbor import hardest
from companion.theory.paper_nearest_neighbor import (
    PaperNearestNeighbor,
    disturbed_margin,
    welch_k,
)
from companion.theory.vectors import linear_hash, random, trace_code


def wrong(model, count, seed=0):
    rng = np.random.default_rng(seed)
    errors = 0
    for _ in range(count):
        points, labels = hardest(model.N, model.d, model.gamma, rng=rng)
        errors += model(points, labels) != labels[(points[:-1] @ points[-1]).argmax()]
    return errors


@pytest.mark.claim("Theorem 7", "the paper's way with orthogonal addresses, N = {N}")
@pytest.mark.parametrize("gamma", [0.5, 0.1, 0.01])
@pytest.mark.parametrize(("N", "m"), [(2, 4), (8, 4), (16, 5), (64, 7)])
def test_right_with_orthogonal_addresses(N, m, gamma):
    model = PaperNearestNeighbor(N, 8, gamma, trace_code(2 * N, m, t=1))
    assert model.margin == gamma / 100 and model.stack.width == 3 * 2**m + 8 + 2
    assert wrong(model, 10) == 0


FORMATS = {
    "float64": (EXACT, 1e-9),
    "float32": (Floating(torch.float32), 2.0**-9),
    "float16": (Floating(torch.float16), 2.0**-3),
    "bfloat16": (Floating(torch.bfloat16), 1.0),
    "late": (FixedPoint(f=14, R=1 << 14), 2.0**-5),
    "early": (FixedPoint(f=14, R=1 << 14, softmax="early"), 2.0**-5),
    "nearest": (FixedPoint(f=14, R=1 << 14, rounding="nearest"), 2.0**-5),
}


@pytest.mark.claim("Theorem 7")
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("N", "d"), [(2, 2), (5, 16), (64, 16)])
def test_every_arithmetic_is_right_down_to_a_margin_and_refuses_below(N, d, name):
    """Ten times the address term is rounded with the logits, which costs bits that the margin
    could use: `NearestNeighbor` resolves sixteen times smaller ones in sixteen-bit floats."""
    a, gamma = FORMATS[name]
    T = trace_code(2 * N, max(4, (2 * N - 1).bit_length()), t=1)
    model = PaperNearestNeighbor(N, d, gamma * (1 - 1e-4), T, arithmetic=a)
    rng, wrong = np.random.default_rng(N), 0
    for _ in range(20):
        points, labels = hardest(N, d, gamma, rng=rng)
        wrong += model(points, labels) != labels[(points[:-1] @ points[-1]).argmax()]
    assert wrong == 0 and model.margin > 0
    if N == 64:
        with pytest.raises((ValueError, OverflowError), match=r"resolves|range R|61 bits"):
            PaperNearestNeighbor(N, d, gamma / 1e5, T, arithmetic=a)


@pytest.mark.claim("Theorem 7", "the paper's way, where it fails, k = {k}")
@pytest.mark.parametrize("k", [64, 256])
def test_wrong_on_most_hard_inputs_with_nearly_orthogonal_ones(k):
    T = linear_hash(128, k)
    with pytest.raises(ValueError, match=f"up to gamma / 100 = 0.005, got .* with k = {k}"):
        PaperNearestNeighbor(64, 16, 0.5, T)
    assert wrong(PaperNearestNeighbor(64, 16, 0.5, T, checked=False), 20) > 15


@pytest.mark.claim("Theorem 7")
def test_the_margin_is_gone_before_softmax_and_comes_back_only_far_beyond_2n():
    """gamma = 1/2, N = 64: with k = 256 = 4N layer 1 attends to a wrong point on most inputs."""
    rng = np.random.default_rng(1)
    inputs = [hardest(64, 16, 0.5, rng=rng)[0] for _ in range(30)]
    lost = {
        k: sum(disturbed_margin(x, random(128, k, seed=i)) < 0 for i, x in enumerate(inputs))
        for k in (64, 256, 1024, 16384)
    }
    assert min(lost[64], lost[256]) > 20 > lost[1024] > lost[16384] == 0, lost
    assert all(disturbed_margin(x, trace_code(128, 7, t=1)) > 0.499 for x in inputs)


@pytest.mark.claim("Theorem 7")
def test_dimensions_that_the_tolerance_asks_for():
    assert paper_k(128, 0.005) == pytest.approx(1.8e6, rel=0.02)  # for 128 vectors
    assert welch_k(2 << 20, 0.005) == 39252
    assert welch_k(2 << 20, 1 / 2000) == pytest.approx(1.4e6, rel=0.02)  # gamma = 1 / log N
    assert welch_k(2 << 20, 2.0**-5 / 100) == pytest.approx(1.74e6, rel=0.01)  # gamma = N^(-1/4)
    first = next(n for n in range(4, 40) if paper_k(2 << n, 0.005) < 2 << n)
    assert first == 22  # gamma = 1/2: below that, more dimensions than vectors
    assert welch_k(1, 0.5) == 1 and welch_k(10, 0.0) == 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PaperNearestNeighbor(1, 2, 0.1, trace_code(16, 4, 1)), "N >= 2, got 1"),
        (lambda: PaperNearestNeighbor(9, 2, 0.1, trace_code(16, 4, 1)), "2N = 18 vectors, got 16"),
        (lambda: PaperNearestNeighbor(2, 2, 3.0, trace_code(16, 4, 1)), "gamma <= 2, got 3.0"),
        (lambda: PaperNearestNeighbor(4, 2, 1e-13, trace_code(16, 4, 1)), "float64. resolves"),
        (
            lambda: PaperNearestNeighbor(4, 2, 0.1, trace_code(16, 4, 1))(
                np.eye(2)[[0, 0, 1]], [0, 1]
            ),
            "margin >= gamma = 0.1, got 0",
        ),
        (lambda: welch_k(0, 0.1), "M >= 1, got 0"),
        (lambda: welch_k(2, 1.1), "got 1.1"),
        (lambda: disturbed_margin(np.eye(3), random(4, 8)), "points <= 2, got 3"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
