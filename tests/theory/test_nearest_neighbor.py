"""Theorem 7: pair, then match, at the hardest inputs of every margin; and the paper's way."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from companion.theory.copy_and_count import copying
from companion.theory.fixed_point import FixedPoint, Floating
from companion.theory.nearest_neighbor import NearestNeighbor, hardest, logit_error, margins
from companion.theory.vectors import binary, linear_hash


def batch(N, d, gamma, count, seed=0):
    rng = np.random.default_rng(seed)
    points, labels = (
        np.array(x)
        for x in zip(*[hardest(N, d, gamma, rng=rng) for _ in range(count)], strict=True)
    )
    best = (points[:, :-1] @ points[:, -1, :, None])[..., 0].argmax(-1)
    return points, labels, labels[np.arange(count), best]


@pytest.mark.claim("Theorem 7", "hardest inputs, margins {gamma}, N = {N}, d = {d}")
@pytest.mark.parametrize("gamma", ["1/2", "1/log N", "1/N", 1e-4, 1e-6], ids=str)
@pytest.mark.parametrize("d", [2, 16, 64])
@pytest.mark.parametrize("N", [2, 3, 16, 64])
def test_hardest_inputs(N, d, gamma):
    value = {"1/2": 0.5, "1/log N": 1 / np.log2(N), "1/N": 1 / N}.get(gamma, gamma)
    points, labels, wanted = batch(N, d, float(value), 20)
    model = NearestNeighbor.build(N, d, float(value) * (1 - 1e-7))
    assert model.margin > 0.5
    assert (model.many(points, labels) == wanted).all()


@pytest.mark.claim("Theorem 7", "hardest inputs, margin 10⁻⁶, N = 512")
def test_five_hundred_points_at_a_millionth():
    points, labels, wanted = batch(512, 16, 1e-6, 3)
    model = NearestNeighbor.build(512, 16, 0.99e-6, binary(1024))
    assert (model.many(points, labels) == wanted).all()
    assert model.stack.width == 2 * 16 + 3 + 2 * 10 and model.stack.heads == 1


@pytest.mark.claim("Theorem 7")
@pytest.mark.parametrize("gamma", [0.5, 0.01, 1e-4])
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
def test_weight_promised_is_a_bound_on_the_weight_there_is(gamma, causal):
    points, labels, _ = batch(16, 8, gamma, 10)
    model = NearestNeighbor.build(16, 8, gamma * 0.999, causal=causal)
    z = model.stack.before_last(model.embed(points, labels))
    weights = model.stack.layers[1].attention(z, rows=slice(-1, None))[0][:, 0]
    best = (points[:, :-1] @ points[:, -1, :, None])[..., 0].argmax(-1)
    right = weights[np.arange(10), 2 * best + 1]
    assert (right >= model.weight).all() and (weights.argmax(-1) == 2 * best + 1).all()


@pytest.mark.claim("Theorem 7")
def test_every_query_in_one_causal_pass():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3, 64, 16))
    points /= np.linalg.norm(points, axis=-1, keepdims=True)
    labels = rng.integers(0, 2, (3, 63))
    natural = float(margins(points)[:, 32:].min())
    assert 1e-6 < natural < 1e-2
    model = NearestNeighbor.build(64, 16, natural, causal=True)
    dots = np.where(np.tri(64, k=-1, dtype=bool), points @ points.transpose(0, 2, 1), -2)
    wanted = np.take_along_axis(labels, dots[:, 32:].argmax(-1), -1)
    assert (model.all_queries(points, labels, 32) == wanted).all()
    with pytest.raises(ValueError, match="expected a margin >= gamma"):
        NearestNeighbor.build(64, 16, 2 * natural, causal=True).all_queries(points, labels, 32)


@pytest.mark.claim("Theorem 7", "hardest inputs in fixed point, margins {gamma}")
@pytest.mark.parametrize("softmax", ["late", "early"])
@pytest.mark.parametrize("gamma", [0.5, 0.1, 0.01])
def test_fixed_point(gamma, softmax):
    """log2(16 d / gamma) fractional bits and two more."""
    f = int(np.ceil(np.log2(16 * 16 / gamma))) + 2
    grid = FixedPoint(f=f, R=1 << (15 if gamma < 0.1 else 10), softmax=softmax)
    points, labels, wanted = batch(16, 16, gamma, 10)
    model = NearestNeighbor.build(16, 16, gamma * 0.999, binary(32), arithmetic=grid)
    assert (model.many(points, labels) == wanted).all()


@pytest.mark.claim("Theorem 7", "hardest inputs: {dtype}")
@pytest.mark.parametrize(("N", "d"), [(2, 2), (16, 3), (16, 64), (128, 16)])
@pytest.mark.parametrize(
    ("dtype", "right", "refused"),
    [
        (torch.float64, 1e-8, None),
        (torch.float32, 2.0**-16, 2.0**-20),
        (torch.float16, 2.0**-6, 2.0**-8),
        (torch.bfloat16, 2.0**-4, 2.0**-5),
    ],
    ids=str,
)
def test_floats_answer_or_are_refused(dtype, right, refused, N, d):
    """A float resolves margins down to some four times its eps, sixteen bits at any N."""
    points, labels, wanted = batch(N, d, right, 40)
    model = NearestNeighbor.build(N, d, right * (1 - 1e-6), arithmetic=Floating(dtype))
    assert (model.many(points, labels) == wanted).all()
    if refused and N > 2:  # of one other point there is nothing to tell
        with pytest.raises(ValueError, match=r"expected a margin gamma that .* resolves"):
            NearestNeighbor.build(N, d, refused, arithmetic=Floating(dtype))


@pytest.mark.claim("Theorem 7")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("d", [2, 16, 64])
def test_rounding_of_a_logit_is_within_its_bound(dtype, d):
    """Points whose coordinates are rounded the same way are the worst; none leaves the bound."""
    a, eta, rng = Floating(dtype), 100.0, np.random.default_rng(d)
    x, y = rng.normal(size=(2, 4000, d))
    x[:2000] = np.abs(np.round(x[:2000] * 4) + 0.499 * a.eps)  # just below a tie
    x, y = (v / np.linalg.norm(v, axis=-1, keepdims=True) for v in (x, y))
    y[:1000] = x[:1000]
    q = a.matmul(a.encode(x), a.encode(eta * np.eye(d)))
    said = [a.matmul(q[i : i + 1], a.encode(y[i])[:, None]) for i in range(len(x))]
    off = np.abs(a.decode(torch.cat(said))[:, 0] - eta * (x * y).sum(-1)).max()
    assert off <= logit_error(eta, d, a) <= 10 * off


@pytest.mark.claim("Theorem 7")
def test_shorter_inputs_and_margins_of_the_input():
    model = NearestNeighbor.build(8, 2, 0.05)
    angle = np.array([0.0, 1.0, 2.0, 1.2])
    points = np.stack([np.cos(angle), np.sin(angle)], -1)
    assert margins(points[None])[0].tolist() == pytest.approx(
        [np.inf, np.inf, np.cos(1) - np.cos(2), np.cos(0.2) - np.cos(0.8)]
    )
    for n in (2, 3, 4):
        for labels in ([0, 1, 0], [1, 0, 1]):
            nearest = int((points[: n - 1] @ points[n - 1]).argmax())
            assert model(points[:n], labels[: n - 1]) == labels[nearest]


@pytest.mark.claim("Theorem 7")
@pytest.mark.parametrize("steps", [212, 232, 262, 308])
def test_copies_are_as_good_as_promised_in_shorter_inputs(steps):
    """On a grid, what 32 tokens round away is seen in fewer of them."""
    grid, T = FixedPoint(f=7, R=1 << 10), binary(32)
    sharp = NearestNeighbor.build(16, 2, 2.0, T, arithmetic=grid)
    model = replace(sharp, eta_1=T.k * steps / grid.S)
    errors = [copying(T, L, model.eta_1, grid).error for L in range(1, 33)]
    assert errors[-1] < max(errors) <= model.copy_error


MODEL = NearestNeighbor.build(4, 2, 0.1)
UNIT = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: NearestNeighbor.build(1, 2, 0.1), ValueError, "N >= 2, got 1"),
        (lambda: NearestNeighbor.build(4, 0, 0.1), ValueError, "d >= 1, got 0"),
        (lambda: NearestNeighbor.build(4, 2, 0.0), ValueError, "gamma <= 2, got 0.0"),
        (lambda: NearestNeighbor.build(4, 2, 0.1, binary(7)), ValueError, "2N = 8 vectors, got 7"),
        (lambda: NearestNeighbor.build(8, 2, 0.1, linear_hash(16, 3)), ValueError, "equal ones"),
        (
            lambda: NearestNeighbor.build(4, 2, 0.1, arithmetic=FixedPoint(f=12, R=64)),
            ValueError,
            "range R >= 343, got 64",
        ),
        (
            lambda: NearestNeighbor.build(4, 2, 0.1, arithmetic=FixedPoint(f=4, R=1024)),
            ValueError,
            "gamma that FixedPoint",
        ),
        (
            lambda: NearestNeighbor.build(2, 1, 1e-5, arithmetic=Floating(torch.float16)),
            ValueError,
            "range R >= 2772589, got 65504 in Floating",
        ),
        (lambda: replace(MODEL, eta_2=np.inf), ValueError, "eta_2 < infinity, got inf"),
        (
            lambda: replace(MODEL, arithmetic=FixedPoint(f=12, R=512), eta_2=55.45171),
            ValueError,
            "multiple of 1/4096, got 55.4517",
        ),
        (lambda: MODEL(UNIT[:1], []), ValueError, "2 <= points <= 4, got 1"),
        (lambda: MODEL(np.eye(3), [0, 1]), ValueError, "2 <= dimension <= 2, got 3"),
        (lambda: MODEL(UNIT, [0]), ValueError, "2 <= labels <= 2, got 1"),
        (lambda: MODEL(UNIT, [0, 2]), ValueError, "0 <= label <= 1, got 2"),
        (lambda: MODEL(UNIT, [0.0, 1.0]), TypeError, "whole numbers, got float64"),
        (lambda: MODEL(2 * UNIT, [0, 1]), ValueError, "a norm that is 1 off"),
        (lambda: MODEL(UNIT[[0, 0, 2]], [0, 1]), ValueError, "gamma = 0.1, got 0"),
        (
            lambda: MODEL.all_queries(UNIT[None], np.array([[0, 1]]), 1),
            ValueError,
            "causal=True for many queries, got causal=False",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
