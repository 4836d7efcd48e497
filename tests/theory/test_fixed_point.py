"""Fixed point against exact rational arithmetic, and refusal in place of overflow."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from companion.theory.fixed_point import EXACT, FixedPoint, Floating

GRID = FixedPoint(f=6, R=32)


@pytest.mark.parametrize(("N", "K_c", "p"), [(2, 1, 4), (8, 1, 8), (256, 2, 34), (1 << 20, 1, 42)])
def test_paper_grid_has_two_bits_more_than_stated(N, K_c, p):
    grid = FixedPoint.paper(N, K_c)
    assert grid.p == p == 2 * K_c * np.log2(N) + 2
    assert (grid.S, grid.R) == (N**K_c, N**K_c)


@pytest.mark.parametrize("rounding", ["floor", "nearest"])
def test_matmul_rounds_the_exact_sum_once(rounding):
    grid = FixedPoint(f=6, R=512, rounding=rounding)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-300, 300, (5, 7)), rng.integers(-300, 300, (7, 3))
    half = Fraction(1, 2) if rounding == "nearest" else 0
    for (i, j), value in np.ndenumerate(grid.matmul(a, b)):
        exact = sum(Fraction(int(x) * int(y), grid.S) for x, y in zip(a[i], b[:, j], strict=True))
        assert value == (exact + half).__floor__()


def test_encoding_rounds_down_or_to_nearest():
    x = np.array([0.99, -0.99, 1 / 64, 0.0])
    assert GRID.encode(x).tolist() == [63, -64, 1, 0]
    assert FixedPoint(f=6, R=32, rounding="nearest").encode(x).tolist() == [63, -63, 1, 0]


@pytest.mark.parametrize("softmax", ["late", "early"])
@pytest.mark.parametrize("n", [1, 2, 33])
def test_weights_never_exceed_one_in_sum_when_rounded_down(softmax, n):
    grid = FixedPoint(f=8, R=32, softmax=softmax)
    A = np.random.default_rng(n).integers(-600, 600, (20, n))
    weights = grid.weights(A)
    assert (weights >= 0).all() and (weights.sum(-1) <= grid.S).all()
    exact = torch.softmax(torch.tensor(grid.decode(A)), -1).numpy()
    assert np.abs(grid.decode(weights) - exact).max() < (n + 2) / grid.S


def test_early_rounding_makes_attention_exactly_hard_however_many_keys():
    grid = FixedPoint(f=4, R=8, softmax="early")
    below = -int(np.ceil(np.log(grid.S) * grid.S)) - 1  # ln S below the largest, and a step more
    A = np.array([[0] + [below] * 100_000])
    weights = grid.weights(A)
    assert weights[0, 0] == grid.S and weights[0, 1:].sum() == 0
    late = FixedPoint(f=4, R=8).weights(A)
    assert late[0, 0] == 0  # the exact softmax drowns in 100,000 keys


def test_mask_is_query_by_key_and_a_fully_masked_row_is_refused():
    A = np.zeros((2, 2), dtype=np.int64)
    mask = np.tril(np.ones((2, 2), bool))
    for arithmetic, logits in ((GRID, A), (EXACT, EXACT.encode(A))):
        weights = arithmetic.decode(arithmetic.weights(logits, mask))
        assert weights.tolist() == [[1.0, 0.0], [0.5, 0.5]]
        with pytest.raises(ValueError, match="fully masked"):
            arithmetic.weights(logits, np.zeros((2, 2), bool))


def test_leaving_the_range_is_refused_or_clamped_never_silent():
    with pytest.raises(OverflowError, match="R = 32, got 33"):
        GRID.encode(np.array([33.0]))
    clamped = FixedPoint(f=6, R=32, saturate=True)
    assert clamped.decode(clamped.encode(np.array([33.0, -99.0]))).tolist() == [32, -32]
    with pytest.raises(OverflowError, match="at most 61 bits, got"):
        wide = FixedPoint(f=36, R=1 << 12)
        wide.matmul(np.full((1, 4), 1 << 40), np.full((4, 1), 1 << 40))
    with pytest.raises(OverflowError, match="f <= 30 for early rounding, got 32"):
        FixedPoint(f=32, R=4, softmax="early").weights(np.zeros((1, 2), dtype=np.int64))
    for huge in (1e30, -1e30, 1e300):
        with pytest.raises(OverflowError, match="R = 32, got"):
            GRID.encode(np.array([huge]))
        assert abs(clamped.decode(clamped.encode(np.array([huge])))[0]) == 32
    with pytest.raises(ValueError, match="at most 59 bits, got 82"):
        FixedPoint(f=40, R=1 << 40)
    nearest = FixedPoint(f=4, R=1 << 53, rounding="nearest")
    with pytest.raises(OverflowError, match="at most 61 bits, got 63"):
        nearest.matmul(np.array([[2**62 - 1]]), np.array([[1]]))
    with pytest.raises(ValueError, match="finite numbers, got inf"):
        GRID.encode(np.array([np.inf]))


def test_saturating_signed_sums_depend_on_their_order():
    """Why Appendix B.2 claims associativity for nonnegative numbers alone."""
    q = FixedPoint(f=0, R=7, saturate=True)
    seven = np.array([7])
    assert q.add(q.add(seven, seven), -seven) == 0
    assert q.add(seven, q.add(seven, -seven)) == 7


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: FixedPoint(f=-1, R=1), ValueError, "got -1"),
        (lambda: FixedPoint(f=1, R=0), ValueError, "R >= 1, got 0"),
        (lambda: FixedPoint.paper(12, 1), ValueError, "power of two, got 12"),
        (lambda: FixedPoint.paper(1, 1), ValueError, "N >= 2, got 1"),
        (lambda: Floating(torch.int64), TypeError, "floating dtype, got torch.int64"),
        (
            lambda: Floating(torch.float16).weights(torch.tensor([[1e6]]).half()),
            OverflowError,
            "finite logits in torch.float16, got inf",
        ),
    ],
    ids=["f", "R", "odd N", "N", "dtype", "overflow"],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
