"""Fast weight programmers: what is written, in chunks of every size, and what each twin shares."""

import pytest
import torch

from companion.models import ModelConfig, build, deltanet
from companion.models.deltanet import delta_rule, features

FAST = ("deltanet", "deltanet_negative", "linear_unnormalised", "recurrent_delta", "srwm")


def inputs(T, d=3, e=4, largest=1.0, seed=0, dtype=torch.float64):
    """Random arguments of the delta rule, with a state that is not zero."""
    rng = torch.Generator().manual_seed(seed)
    raw = (torch.randn(2, T, d, generator=rng, dtype=dtype) for _ in range(2))
    q, k = (features(x, 2 if largest > 1 else 1) for x in raw)
    v = torch.randn(2, T, e, generator=rng, dtype=dtype)
    beta = largest * torch.rand(2, T, 1, generator=rng, dtype=dtype)
    S = torch.randn(2, d, e, generator=rng, dtype=dtype)
    return [x.requires_grad_() for x in (q, k, v, beta, S)]


def sequential(q, k, v, beta, S):
    """Row by row."""
    rows = []
    for t in range(k.shape[-2]):
        key, value = k[:, t, :, None], v[:, t, None]
        S = S + beta[:, t, :, None] * key * (value - (key * S).sum(-2, keepdim=True))
        rows.append((q[:, t, :, None] * S).sum(-2))
    return torch.stack(rows, dim=-2), S


def close(a, b, tolerance=1e-12):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("chunk", [1, 2, 5, 14, 64])
@pytest.mark.parametrize("T", [1, 2, 3, 13, 14, 15, 29, 50])
@pytest.mark.parametrize("largest", [1.0, 2.0])
def test_chunks_of_every_size_are_the_loop(monkeypatch, chunk, T, largest):
    monkeypatch.setattr(deltanet, "CHUNK", chunk)
    mine, twin = inputs(T, largest=largest), inputs(T, largest=largest)
    for found, wanted in zip(delta_rule(*mine), sequential(*twin), strict=True):
        close(found, wanted)
        (found * found).sum().backward(retain_graph=True)
        (wanted * wanted).sum().backward(retain_graph=True)
    for x, y in zip(mine, twin, strict=True):
        close(x.grad, y.grad)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 0.05),
                                                  (torch.float16, 0.005)], ids=str)  # fmt: skip
def test_chunks_in_narrow_floats(dtype, tolerance):
    arguments = [x.detach().to(dtype) for x in inputs(40)]
    found, wanted = delta_rule(*arguments), sequential(*(x.double() for x in arguments))
    for x, y in zip(found, wanted, strict=True):
        assert x.dtype == dtype
        close(x.double(), y, tolerance)


def test_a_further_leading_axis_passes_through():
    """Several models at once: all axes are addressed from the right."""
    both = [inputs(20, seed=seed) for seed in (0, 1)]
    o, S = delta_rule(*(torch.stack(pair) for pair in zip(*both, strict=True)))
    for i, arguments in enumerate(both):
        close((o[i], S[i]), delta_rule(*arguments))


@pytest.mark.parametrize("order", [1, 2])
def test_features_are_positive_of_size_one_and_never_divide_by_zero(order):
    x = torch.tensor([[0.3, -2.0, 5.0], [-200.0, -300.0, -400.0]], requires_grad=True)
    found = features(x, order)
    assert (found >= 0).all()
    close(found[0].norm(p=order), torch.tensor(1.0), 1e-6)
    found.sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize(("width", "heads", "depth"), [(8, 1, 1), (8, 8, 2), (12, 4, 3)])
def test_state_has_as_many_numbers_as_the_formula(name, width, heads, depth):
    config = ModelConfig(4, 2, width=width, heads=heads, depth=depth)
    model = build(name, config, rng=torch.Generator())
    square = width * width // heads
    numbers = {"recurrent_delta": square + width, "srwm": 3 * square + 4 * width}.get(name, square)
    assert model.state_bits(model.initial_state(1)) == 32 * depth * numbers


def test_at_rate_one_a_unit_key_is_overwritten_and_others_are_kept():
    one, zero, e = torch.ones(1, 2, 1), torch.zeros(1, 2, 2), torch.eye(2)[None]
    S = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    _, after = delta_rule(zero, e[:, [0, 0]], torch.tensor([[[9.0, 9.0], [5.0, 6.0]]]), one, S)
    assert after.tolist() == [[[5.0, 6.0], [3.0, 4.0]]]
    _, reflected = delta_rule(zero, e[:, [0, 1]], zero, 2 * one, S)
    assert torch.equal(reflected, -S)


def test_srwm_state_is_what_was_written():
    """W - W_0, from zero on: after one symbol an outer product, by the equations of one head."""
    config = ModelConfig(4, 2, width=4, heads=1)
    model = build("srwm", config, rng=torch.Generator().manual_seed(0)).double()
    model.requires_grad_(False)
    token = torch.tensor([[2]])
    x = model.blocks[0].norm_mix(model.embedding(token))[0, 0]
    W = model.blocks[0].mix.initial[0]
    _, q, k, b = (x @ W).split([4, 4, 4, 4])
    q, k = q.softmax(0), k.softmax(0)
    rates = b.sigmoid().repeat_interleave(4)
    close(model(token)[1].tensors[0][0, 0], torch.outer(k, rates * ((q - k) @ W)))


def test_quasi_lstm_cells_do_not_see_each_other():
    config = ModelConfig(4, 2, width=6, heads=1)
    model = build("quasi_lstm", config, rng=torch.Generator().manual_seed(0))
    tokens, state = torch.tensor([[1, 2, 0]]), model.initial_state(1)
    _, plain = model(tokens, state)
    state.tensors[0][..., 3] = 0.7
    _, moved = model(tokens, state)
    changed = (plain.tensors[0] != moved.tensors[0]).flatten().nonzero().flatten()
    assert changed.tolist() == [3]


def test_recurrent_delta_without_feedback_is_a_delta_rule():
    """Softmax features apart, feedback is all that is new: R = 0 leaves a chunkable layer."""
    config = ModelConfig(5, 3, width=8, heads=2)
    model = build("recurrent_delta", config, rng=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        model.blocks[0].mix.feedback.zero_()
    tokens = torch.randint(5, (2, 30), generator=torch.Generator().manual_seed(1))
    mix, x = model.blocks[0].mix, model.blocks[0].norm_mix(model.embedding(tokens))
    q, k, v = mix.project(x, None)
    beta = mix.rate(x).sigmoid().mT[..., None]
    S = torch.zeros(2, 2, 4, 4, dtype=torch.float64)
    _, wanted = delta_rule(q.softmax(-1), k.softmax(-1), v, beta, S)
    close(model(tokens)[1].tensors[0], wanted)
