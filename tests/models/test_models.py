"""Every model reads a sequence in pieces: whole = two halves = by symbols = its naive twin."""

import pytest
import torch

from companion.models import MODELS, ModelConfig, State, build, naive

CONFIGS = {
    "plain": ModelConfig(vocab=7, classes=5, width=8, depth=1, heads=2, max_len=128),
    "deep": ModelConfig(vocab=7, classes=5, width=12, depth=3, heads=4, max_len=130),
    "no-positions": ModelConfig(
        vocab=7, classes=5, width=8, depth=2, heads=1, max_len=1, positions="none"
    ),
    "tied": ModelConfig(vocab=7, classes=5, width=8, depth=2, heads=2, max_len=128, tied_from=4),
}
TWINS = ("transformer", "linear_transformer", "lstm")
LENGTHS = (0, 1, 2, 3, 63, 64, 65, 127)


def make(name, config, dtype=torch.float64, seed=0):
    """A model whose weights are large enough for every part to matter."""
    model = build(name, config, rng=torch.Generator().manual_seed(seed)).to(dtype)
    rng = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.3 * torch.randn(p.shape, generator=rng, dtype=dtype)
    return model


def draw(length, batch=2, vocab=7, seed=5):
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(vocab, (batch, length), generator=rng)


def gradients(model, logits):
    """Gradients of a fixed, generic function of the logits."""
    rng = torch.Generator().manual_seed(9)
    model.zero_grad()
    if logits.requires_grad:
        (logits * torch.randn(logits.shape, generator=rng, dtype=logits.dtype)).sum().backward()
    return [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]


def close(a, b, tolerance=1e-12):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=sorted(MODELS))
def name(request):
    return request.param


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS.keys())
def config(request):
    return request.param


def test_every_model_has_a_naive_twin():
    assert sorted(TWINS) == sorted(MODELS)


@pytest.mark.parametrize("length", LENGTHS)
def test_whole_equals_naive_twin(name, length):
    for key in ("plain", "tied") if length < 64 else ("plain",):
        model, tokens = make(name, CONFIGS[key]), draw(length, batch=1)
        logits, _ = model(tokens)
        twin = getattr(naive, name)(model, tokens)
        assert logits.shape == (1, length, 5)
        if length:
            close(logits, twin)
            close(gradients(model, logits), gradients(model, twin))


@pytest.mark.parametrize("length", LENGTHS)
def test_whole_equals_halves_equals_steps(name, config, length):
    model, tokens = make(name, config), draw(length)
    whole, end = model(tokens)
    first, state = model(tokens[:, : length // 2])
    second, end_halves = model(tokens[:, length // 2 :], state)
    halves = torch.cat([first, second], dim=1)
    steps, end_steps = model.steps(tokens)
    wanted = gradients(model, whole)
    for logits, state in ((halves, end_halves), (steps, end_steps)):
        close(logits, whole)
        close(state.tensors, end.tensors)
        close(gradients(model, logits), wanted)
        assert state.t == end.t == length


def test_state_has_the_shapes_it_announces(name, config):
    model = make(name, config)
    for length in (0, 1, 5):
        _, state = model(draw(length))
        assert [tuple(x.shape) for x in state.tensors] == [
            (2, *shape) for shape in model.state_shapes(length)
        ]


def test_no_symbol_changes_an_earlier_answer(name, config):
    model, length = make(name, config), 70
    tokens = draw(length)
    before, _ = model(tokens)
    for t in (0, 1, 63, 64, 69):
        changed = tokens.clone()
        changed[:, t] = (changed[:, t] + 1) % 7
        after, _ = model(changed)
        assert torch.equal(after[:, :t], before[:, :t])
        assert not torch.allclose(after[:, t], before[:, t])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_state_survives_bytes_bitwise(name, config, dtype):
    model = make(name, config, dtype)
    for length in (0, 1, 17):
        state = State(length, tuple(torch.randn_like(x) for x in model(draw(length))[1].tensors))
        data = model.pack(state)
        back = model.unpack(data, t=length, batch=2)
        assert 8 * len(data) == 2 * model.state_bits(state)
        assert back.t == length
        assert all(torch.equal(a, b) for a, b in zip(state.tensors, back.tensors, strict=True))


def test_packed_numbers_are_little_endian():
    model = make("lstm", CONFIGS["plain"], torch.float32)
    state = model.initial_state(1)
    state.tensors[0][0, 0, 0] = 1.0
    assert model.pack(state)[:4] == bytes([0, 0, 0x80, 0x3F])


@pytest.mark.parametrize("cut", [0, 1, 20, 64, 100])
def test_run_resumed_from_bytes_is_bitwise_equal(name, config, cut):
    model, tokens = make(name, config, torch.float32), draw(100, batch=1)
    whole, end = model.steps(tokens)
    _, state = model.steps(tokens[:, :cut])
    received = model.unpack(model.pack(state), t=cut, batch=1)
    rest, end_resumed = model.steps(tokens[:, cut:], received)
    assert torch.equal(rest, whole[:, cut:])
    assert model.pack(end_resumed) == model.pack(end)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-6)],
                         ids=["float64", "float32"])  # fmt: skip
def test_reading_some_rows_equals_all_rows_then_gather(name, config, dtype, tolerance):
    model = build(name, config, rng=torch.Generator().manual_seed(0)).to(dtype)
    tokens = draw(66)
    with torch.no_grad():
        _, state = model(tokens[:, :1])
    read = torch.tensor([[0, 64, 3, 3], [5, 1, 63, 64]])
    some, end_some = model(tokens[:, 1:], state, read)
    full, end_full = model(tokens[:, 1:], state)
    gathered = full.gather(1, read[..., None].expand(-1, -1, 5))
    close(some, gathered, tolerance)
    close(end_some.tensors, end_full.tensors, 10 * tolerance)
    close(gradients(model, some), gradients(model, gathered), 20 * tolerance)


def test_reading_no_row(name):
    model = make(name, CONFIGS["plain"])
    logits, state = model(draw(3), read=torch.zeros(2, 0, dtype=torch.int64))
    assert logits.shape == (2, 0, 5)
    close(state.tensors, model(draw(3))[1].tensors)


def test_state_of_a_recurrent_model_does_not_grow():
    sizes = {name: [make(name, CONFIGS["plain"]).state_shapes(t) for t in (1, 9)] for name in TWINS}
    assert sizes["lstm"][0] == sizes["lstm"][1]
    assert sizes["linear_transformer"][0] == sizes["linear_transformer"][1]
    assert sizes["transformer"] == [((2, 1, 4),) * 2, ((2, 9, 4),) * 2]


def test_models_run_on_the_device_of_their_weights(name):
    model = make(name, CONFIGS["tied"]).to("meta")
    logits, state = model(draw(3).to("meta"), read=torch.zeros(2, 1, dtype=torch.int64).to("meta"))
    assert logits.is_meta and all(x.is_meta for x in state.tensors)
