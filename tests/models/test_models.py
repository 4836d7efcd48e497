"""Every model reads a sequence in pieces: whole = two halves = by symbols = its naive twin."""

import itertools
from dataclasses import replace

import pytest
import torch

from companion.models import MODELS, ModelConfig, State, build, naive, naive_fast_weights

SIZES = {"vocab": 7, "classes": 5, "width": 8, "heads": 2, "max_len": 128, "state_size": 4}
CONFIGS = {
    "plain": ModelConfig(**SIZES),
    "deep": ModelConfig(**{**SIZES, "width": 12, "depth": 2, "heads": 4, "state_size": 3}),
    "no-positions": ModelConfig(
        **{**SIZES, "depth": 2, "heads": 1, "max_len": 1, "state_size": None}, positions="none"
    ),
    "tied": ModelConfig(**SIZES, depth=2, tied_from=4),
}
ROTARY = ModelConfig(**{**SIZES, "width": 12, "heads": 4, "depth": 2}, positions="rotary")
FOURIER = ("dss", "dss_softmax")  # its rounding errors reach every row, also earlier ones
TWINS = {
    name: getattr(module, name)
    for module in (naive, naive_fast_weights)
    for name in MODELS
    if hasattr(module, name)
}
LENGTHS = (0, 1, 2, 3, 63, 64, 65, 127)
SEQUENTIAL = ("quasi_lstm", "recurrent_delta", "srwm")  # no chunks, so nothing happens at 64
CASES = [
    (name, length)
    for name in sorted(MODELS)
    for length in ((0, 1, 2, 3, 17) if name in SEQUENTIAL else LENGTHS)
]


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
    """Equal up to `tolerance` of the largest number, or of 1, in each tensor."""
    if torch.is_tensor(a):
        a, b = [a], [b]
    for x, y in zip(a, b, strict=True):
        scale = max(1.0, float(y.detach().abs().max())) if y.numel() else 1.0
        torch.testing.assert_close(x, y, rtol=0.0, atol=tolerance * scale)


@pytest.fixture(params=sorted(MODELS))
def name(request):
    return request.param


def sizes(name, key):
    """Without position vectors only a sum over all symbols needs `max_len`."""
    return replace(CONFIGS[key], max_len=128) if name == "dss_softmax" else CONFIGS[key]


@pytest.fixture(params=CONFIGS)
def config(request, name):
    return sizes(name, request.param)


def test_every_model_has_a_naive_twin():
    assert sorted(TWINS) == sorted(MODELS)


@pytest.mark.parametrize(("name", "length"), [x for x in CASES if x[1] not in (63, 64, 127)])
def test_whole_equals_naive_twin(name, length):
    for key in ("plain", "tied") if length < 63 else ("plain",):
        model, tokens = make(name, CONFIGS[key]), draw(length, batch=1)
        logits, _ = model(tokens)
        twin = TWINS[name](model, tokens)
        assert logits.shape == (1, length, 5)
        if length:
            close(logits, twin)
            close(gradients(model, logits), gradients(model, twin))


@pytest.mark.parametrize(("name", "length"), CASES)
def test_whole_equals_halves_equals_steps(name, length):
    for key in CONFIGS if length < 63 else ("deep",):
        check_pieces(make(name, sizes(name, key)), length)


def read_in(model, tokens, piece):
    """Answers and last state if `piece` symbols are read at a time."""
    answers, state = [], None
    for part in tokens.split(piece, dim=-1):
        logits, state = model(part, state)
        answers.append(logits)
    return torch.cat(answers, dim=-2), state


def check_pieces(model, length):
    """Answers, gradients and last state do not depend on how many symbols are read at a time."""
    tokens = draw(length)
    whole, end = model(tokens)
    wanted = gradients(model, whole)
    for piece in {1, min(40, length), -(-length // 2)} - {0}:
        logits, state = model.steps(tokens) if piece == 1 else read_in(model, tokens, piece)
        close(logits, whole)
        close(state.tensors, end.tensors)
        close(gradients(model, logits), wanted)
        assert state.t == end.t == length


@pytest.mark.parametrize("length", LENGTHS)
def test_rotary_positions(length):
    model, tokens = make("transformer", ROTARY), draw(length)
    check_pieces(model, length)
    logits, _ = model(tokens)
    if length:
        last, _ = model(tokens, read=torch.full((2, 1), length - 1))
        close(last, logits[:, -1:])
    if 0 < length < 63:
        close(logits[:1], naive.transformer(model, tokens[:1]))


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
        close(after[:, :t], before[:, :t], 1e-12 if name in FOURIER else 0.0)
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


def test_run_resumed_from_bytes_is_bitwise_equal(name, config):
    model, tokens = make(name, config, torch.float32), draw(17, batch=1)
    whole, end = model.steps(tokens)
    state, cuts = None, (0, 1, 5, 17)
    for start, cut in itertools.pairwise(cuts):
        part, state = model.steps(tokens[:, start:cut], state)
        state = model.unpack(model.pack(state), t=cut, batch=1)
        assert torch.equal(part, whole[:, start:cut])
    assert model.pack(state) == model.pack(end)


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
    assert [name for name, (one, nine) in sizes.items() if one != nine] == ["transformer"]
    assert sizes["transformer"] == [((2, 1, 4),) * 2, ((2, 9, 4),) * 2]


def test_models_run_on_the_device_of_their_weights(name):
    model = make(name, CONFIGS["tied"]).to("meta")
    logits, state = model(draw(3).to("meta"), read=torch.zeros(2, 1, dtype=torch.int64).to("meta"))
    assert logits.is_meta and all(x.is_meta for x in state.tensors)
