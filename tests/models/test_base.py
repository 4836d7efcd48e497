"""Configuration, registry, initialisation, and what a model refuses."""

import re

import pytest
import torch
from torch import nn

from companion.models import MODELS, ModelConfig, SequenceModel, State, build, register

CONFIG = ModelConfig(vocab=7, classes=5, width=8, heads=2, max_len=10)


def make(name, config=CONFIG, seed=0):
    return build(name, config, rng=torch.Generator().manual_seed(seed))


@pytest.fixture(params=sorted(MODELS))
def model(request):
    return make(request.param)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"width": 10, "heads": 4}, "width=10 and heads=4"),
        ({"depth": 0}, "depth=0, expected at least 1"),
        ({"vocab": -1}, "vocab=-1"),
        ({"positions": "rotten"}, "'rotten', expected one of: learned, none, one-hot"),
        ({"tied_from": 7}, "tied_from=7, expected a token of vocab=7"),
        ({"embedding_std": 0.0}, "embedding_std=0.0, expected a positive number"),
        ({"embedding_std": float("nan")}, "embedding_std=nan"),
        ({"state_size": 0}, "state_size=0, expected at least 1"),
        ({"tied_from": 3, "positions": "none"}, "positions='none', expected position vectors"),
        ({"tied_from": 3, "positions": "rotary"}, "positions='rotary', expected position vectors"),
        ({"tied_from": 3, "max_len": 3}, "4 tied tokens .* max_len=3"),
    ],
    ids=lambda x: "-".join(x) if isinstance(x, dict) else None,
)
def test_impossible_config_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        ModelConfig(**{"vocab": 7, "classes": 5, "width": 8, "heads": 2, **fields})


def test_unknown_model_is_refused_with_the_known_names():
    with pytest.raises(ValueError, match=r"'lstn', expected one of: .*lstm"):
        make("lstn")


def test_parameters_depend_on_the_seed_only(model):
    name = next(key for key, cls in MODELS.items() if type(model) is cls)
    torch.rand(3)  # noise in the global generator
    before = torch.get_rng_state()
    same, other = make(name), make(name, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    pairs = list(zip(model.parameters(), same.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert any(not torch.equal(a, c) for a, _, c in pairs)


def test_generator_moves_on_between_models():
    rng = torch.Generator().manual_seed(0)
    a, b = build("lstm", CONFIG, rng=rng), build("lstm", CONFIG, rng=rng)
    assert not torch.equal(a.head.weight, b.head.weight)


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        (torch.zeros(1, 3), TypeError, "torch.float32, expected torch.int64"),
        (torch.zeros(3, dtype=torch.int64), ValueError, "(3,), expected (B, T)"),
        (torch.tensor([[1, 7]]), ValueError, "token 7, expected 0 to 6 (vocab = 7)"),
        (torch.tensor([[1, -2]]), ValueError, "token -2, expected 0 to 6"),
    ],
    ids=["dtype", "rank", "above", "below"],
)
def test_impossible_tokens_are_refused(model, tokens, error, message):
    with pytest.raises(error, match=re.escape(message)):
        model.check(tokens)
    with pytest.raises((error, TypeError)):
        model(tokens)


def test_read_outside_the_chunk_is_refused(model):
    tokens = torch.zeros(1, 3, dtype=torch.int64)
    with pytest.raises(ValueError, match="read position 3, expected 0 to 2"):
        model(tokens, read=torch.tensor([[3]]))
    with pytest.raises(ValueError, match="read position 0"):
        model(tokens[:, :0], read=torch.tensor([[0]]))


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int64], ids=str
)
def test_keys_are_equal_exactly_where_the_numbers_are(dtype):
    rows = [[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    other = torch.tensor([[0], [0], [0], [1]], dtype=dtype)
    keys = State(1, (torch.tensor(rows, dtype=dtype), other)).keys()
    assert keys[0] == keys[1] and len(set(keys)) == 3


def test_state_of_another_batch_is_refused(model):
    tokens = torch.zeros(2, 3, dtype=torch.int64)
    _, state = model(tokens)
    with pytest.raises(ValueError, match="a state of 2 sequences and tokens of 1"):
        model(tokens[:1], state)


@pytest.mark.parametrize("name", ["transformer", "linear_transformer"])
def test_sequence_beyond_the_position_table_is_refused(name):
    model, tokens = make(name), torch.zeros(1, 11, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"11 symbols \(0 read before\), expected max_len=10"):
        model(tokens)
    _, state = model(tokens[:, :8])
    with pytest.raises(ValueError, match=r"11 symbols \(8 read before\), expected max_len=10"):
        model(tokens[:, :3], state)


def test_wrong_number_of_bytes_is_refused(model):
    data = model.pack(model.initial_state(1)) + b"x"
    with pytest.raises(ValueError, match=f"got {len(data)} bytes, expected {len(data) - 1}"):
        model.unpack(data, t=0, batch=1)


def test_readers_own_model_needs_two_methods():
    class Counter(SequenceModel):
        """The sum of the tokens read so far, through one weight."""

        def __init__(self, config):
            super().__init__(config)
            self.head = nn.Linear(1, config.classes)

        def state_shapes(self, t):
            return ((1,),)

        def advance(self, tokens, state, read):
            total = state.tensors[0][:, None] + tokens.cumsum(-1)[..., None]  # (B, T, 1)
            rows = total if read is None else total.gather(-2, read[..., None])
            return self.head(rows), (total[:, -1],)

    try:
        register("test-counter")(Counter)
        register("test-counter")(Counter)
        with pytest.raises(ValueError, match="'test-counter'"):
            register("test-counter")(MODELS["lstm"])
        model, again = make("test-counter"), make("test-counter")
        assert torch.equal(model.head.weight, again.head.weight)
        tokens = torch.tensor([[1, 2, 3, 4]])
        whole, _ = model(tokens)
        steps, state = model.steps(tokens)
        assert torch.allclose(whole, steps)
        assert state.tensors[0].item() == 10
        assert model.unpack(model.pack(state), t=4, batch=1).tensors[0].item() == 10
    finally:
        MODELS.pop("test-counter", None)
