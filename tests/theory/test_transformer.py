"""The layer against PyTorch's attention; streaming against the whole row."""

import numpy as np
import pytest
import torch

from companion.theory import transformer
from companion.theory.fixed_point import EXACT, FixedPoint, Floating
from companion.theory.transformer import LAST, FeedForward, Head, Layer, Stack, stream_attention


def random_layer(rng, *, m=3, d=4, v=2, heads=2, **options):
    draw = rng.normal
    return Layer(
        [Head(draw(size=(m, d)), draw(size=(m, d)), draw(size=(v, d))) for _ in range(heads)],
        W_O=draw(size=(d, v * heads)),
        ffn=FeedForward(draw(size=(5, d)), draw(size=5), draw(size=(2, 5)), draw(size=2)),
        **options,
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("N", [1, 2, 7])
def test_layer_equals_pytorch(N, causal):
    rng = np.random.default_rng(N)
    layer, X = random_layer(rng, causal=causal, residual=True), rng.normal(size=(3, N, 4))
    x, parts = torch.tensor(X), []
    for head in layer.heads:
        q, k, v = (x @ torch.tensor(W).T for W in (head.W_Q, head.W_K, head.W_V))
        parts.append(
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=1.0)
        )
    z = torch.cat(parts, -1) @ torch.tensor(layer.W_O).T + x
    psi = layer.ffn
    hidden = (z @ torch.tensor(psi.W_1).T + torch.tensor(psi.b_1)).relu()
    want = hidden @ torch.tensor(psi.W_2).T + torch.tensor(psi.b_2)
    np.testing.assert_allclose(layer(X), want.numpy(), atol=1e-12)
    np.testing.assert_allclose(layer(X, rows=LAST), want.numpy()[:, -1:], atol=1e-12)


def test_causal_output_does_not_see_later_positions():
    rng = np.random.default_rng(0)
    layer, X = random_layer(rng, causal=True), rng.normal(size=(6, 4))
    changed = X.copy()
    changed[4] += 1
    same = (layer(X) == layer(changed)).all(-1)
    assert same[:4].all() and not same[4:].any()


@pytest.mark.parametrize(
    ("arithmetic", "tolerance"),
    [(Floating(torch.float32), 1e-4), (FixedPoint(f=16, R=1 << 10), 2e-2)],
    ids=["float32", "fixed"],
)
def test_other_arithmetics_are_near(arithmetic, tolerance):
    rng = np.random.default_rng(1)
    layer, X = random_layer(rng), rng.normal(size=(5, 4))
    np.testing.assert_allclose(layer(X, arithmetic), layer(X, EXACT), atol=tolerance)


def test_attention_shown_is_attention_used():
    rng = np.random.default_rng(2)
    head = Head(rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.normal(size=(2, 4)))
    layer, X = Layer([head], causal=True), rng.normal(size=(5, 4))
    np.testing.assert_allclose(layer.attention(X)[0] @ (X @ head.W_V.T), layer(X), atol=1e-12)


@pytest.mark.parametrize("block", [1, 2, 3, 10, 64])
def test_streaming_equals_the_whole_row(block):
    rng = np.random.default_rng(3)
    logits, values = 30 * rng.normal(size=64), rng.normal(size=(64, 2))
    e = np.exp(logits - logits.max())
    cuts = range(0, 64, block)
    parts = [(logits[i : i + block], values[i : i + block]) for i in cuts]
    np.testing.assert_allclose(stream_attention(parts), e @ values / e.sum(), atol=1e-12)


def test_streaming_no_key_is_refused():
    with pytest.raises(ValueError, match="at least one key"):
        stream_attention([])


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="W_Q and W_K of one shape"):
        Head(np.eye(2), np.eye(3), np.eye(2))
    with pytest.raises(ValueError, match="d = 2 in W_V, got 3"):
        Head(np.eye(2), np.eye(2), np.eye(3))


@pytest.mark.parametrize("N", [1, 2, 7])
def test_a_stack_is_its_layers_one_after_another_in_blocks_of_any_size(N, monkeypatch):
    rng = np.random.default_rng(N)
    first, second = random_layer(rng, causal=True), random_layer(rng, d=2, causal=True)
    stack, X = Stack([first, second]), rng.normal(size=(3, N, 4))
    want = second(first(X), rows=LAST)
    for block in (1, 3 * N, 1 << 20):
        monkeypatch.setattr(transformer, "_LARGEST_BLOCK", block)
        np.testing.assert_allclose(stack(X, rows=LAST), want, atol=1e-12)


def test_sizes_are_those_of_the_matrices():
    layer = random_layer(np.random.default_rng(0), m=3, d=4, v=2, heads=2)
    wide = Layer([Head(np.zeros((5, 2)), np.zeros((5, 2)), np.zeros((1, 2)))])
    stack = Stack([layer, wide])
    assert (stack.width, stack.heads) == (5, 2)
    assert stack.parameters == 2 * (12 + 12 + 8) + 16 + (20 + 5 + 10 + 2) + (10 + 10 + 2)
    assert stack.bits(FixedPoint(f=4, R=8)) == 9 * stack.parameters
    assert stack.bits(Floating(torch.bfloat16)) == 16 * stack.parameters
    with pytest.raises(ValueError, match="at least one layer, got none"):
        Stack([])
