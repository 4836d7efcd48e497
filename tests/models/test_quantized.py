"""A model with m·p bits of state, counted in the bytes it sends."""

import itertools
import math

import pytest
import torch

from companion.models import ModelConfig, Quantized, build
from companion.models.quantized import pack_levels

CONFIG = ModelConfig(vocab=4, classes=3, width=5, heads=1, max_len=20, state_size=3)
RECURRENT = ("lstm", "linear_transformer", "mamba", "dss", "retnet")


def make(name="lstm", bits=3, bound=1.0, config=CONFIG):
    return Quantized(build(name, config, rng=torch.Generator().manual_seed(0)), bits, bound)


@pytest.mark.parametrize("bits", [1, 2, 3, 7, 8, 16])
@pytest.mark.parametrize("name", RECURRENT)
def test_packed_state_has_exactly_m_p_bits_and_comes_back_bitwise(name, bits):
    model = make(name, bits, bound=1.5)
    m = sum(math.prod(shape) for shape in model.state_shapes(0))
    for length, batch in itertools.product((0, 1, 9), (1, 3)):
        _, state = model(torch.randint(4, (batch, length), generator=torch.Generator()))
        data = model.pack(state)
        assert model.state_bits(state) == m * bits
        assert len(data) == math.ceil(batch * m * bits / 8)
        back = model.unpack(data, t=length, batch=batch)
        assert all(torch.equal(a, b) for a, b in zip(state.tensors, back.tensors, strict=True))


@pytest.mark.parametrize("name", RECURRENT)
def test_run_resumed_from_bytes_is_bitwise_equal(name):
    model, tokens = make(name, bits=4), torch.tensor([[0, 3, 1, 1, 2, 0, 2]])
    whole, _ = model(tokens)
    _, state = model(tokens[:, :3])
    rest, _ = model(tokens[:, 3:], model.unpack(model.pack(state), t=3, batch=1))
    assert torch.equal(rest, whole[:, 3:])


@pytest.mark.parametrize("bits", [1, 2, 5])
def test_state_takes_the_midpoints_of_the_cells_and_no_other_value(bits):
    model = make(bits=bits, bound=0.5)
    tokens = torch.randint(4, (20, 6), generator=torch.Generator().manual_seed(1))
    _, state = model(tokens)
    values = torch.cat([x.flatten() for x in state.tensors])
    levels = (values / 0.5 + 1) * 2**bits / 2 - 0.5
    assert torch.equal(levels, levels.round())
    assert levels.min() >= 0 and levels.max() <= 2**bits - 1


def test_numbers_outside_the_bound_take_the_outermost_level():
    model = make(bits=2, bound=1.0)
    values = torch.tensor([-9.0, -1.0, -0.6, -0.1, 0.0, 0.1, 0.9, 1.0, 9.0])
    assert model._value(model._level(values)).tolist() == [
        -0.75, -0.75, -0.75, -0.25, 0.25, 0.25, 0.75, 0.75, 0.75,
    ]  # fmt: skip


def test_many_bits_approach_the_unrounded_model():
    tokens = torch.tensor([[0, 3, 1, 1, 2, 0, 2]])
    exact, _ = make().model(tokens)
    errors = [(make(bits=bits)(tokens)[0] - exact).abs().max() for bits in (2, 8, 16)]
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
    assert errors[2] < 1e-4


def test_state_too_small_collides():
    """Two state bits hold four states, so of the 2^3 strings two must end in the same one."""
    config = ModelConfig(vocab=2, classes=2, width=1, heads=1)
    model = make("lstm", bits=1, config=config)
    strings = torch.tensor(list(itertools.product(range(2), repeat=3)))
    _, state = model(strings)
    packed = {model.pack(type(state)(3, tuple(x[i : i + 1] for x in state.tensors)))
              for i in range(8)}  # fmt: skip
    assert model.state_bits(state) == 2
    assert len(packed) <= 4


def test_read_rows():
    model, tokens = make(), torch.tensor([[0, 3, 1], [2, 2, 1]])
    read = torch.tensor([[2], [0]])
    some, _ = model(tokens, read=read)
    full, _ = model(tokens)
    assert torch.equal(some[:, 0], torch.stack([full[0, 2], full[1, 0]]))


@pytest.mark.parametrize(
    ("levels", "error", "message"),
    [
        (torch.tensor([[0, 4]]), ValueError, "got level 4, expected 0 to 3"),
        (torch.tensor([[-1]]), ValueError, "got level -1, expected 0 to 3"),
        (torch.tensor([[1.5]]), TypeError, "float32, expected whole numbers|Type-check"),
    ],
    ids=["large", "negative", "float"],
)
def test_levels_that_do_not_fit_are_not_packed(levels, error, message):
    assert pack_levels(torch.zeros((0, 3), dtype=torch.int64), 2) == b""
    with pytest.raises(error, match=message):
        pack_levels(levels, 2)


def test_growing_state_is_refused():
    with pytest.raises(ValueError, match=r"state grows, from .* to .*; expected a fixed size"):
        make("transformer")


@pytest.mark.parametrize(("bits", "bound", "message"),
                         [(0, 1.0, "bits=0, expected 1 to 16"), (17, 1.0, "bits=17"),
                          (4, 0.0, "bound=0.0, expected a positive number")])  # fmt: skip
def test_impossible_grid_is_refused(bits, bound, message):
    with pytest.raises(ValueError, match=message):
        make(bits=bits, bound=bound)


def test_wrong_number_of_bytes_and_infinite_state_are_refused():
    model = make()
    with pytest.raises(ValueError, match="got 1 bytes, expected 4"):
        model.unpack(b"x", t=0, batch=1)
    state = model.initial_state(1)
    state.tensors[0].fill_(math.nan)
    with pytest.raises(ValueError, match="not finite"):
        model.pack(state)
