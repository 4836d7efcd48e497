"""Memories that fade: the n from which one more symbol makes no difference, found in each model."""

import math

import pytest
import torch

from companion.experiments import build_task
from companion.models import DeltaNet, ModelConfig, Quantized, build
from companion.theory._weights import SURE, sign_vectors, silent, use_one_key, write
from companion.theory.fast_weights import PARITY, feedback, reflection, self_copy
from companion.theory.merging import in_bits, merge, told_apart

ONE = PARITY.index("1")
FADING = ("deltanet", "mamba", "retnet_plain")
TASK = build_task("parity", 5000, 2)


def random_model(name, seed=0, depth=1, heads=2):
    config = ModelConfig(2, 2, width=8, depth=depth, heads=heads, positions="none")
    model = build(name, config, rng=torch.Generator().manual_seed(seed)).double()
    rng = torch.Generator().manual_seed(seed + 5)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.3 * torch.randn(p.shape, generator=rng, dtype=p.dtype)
    return model


def ones(n):
    return torch.full((1, n), ONE)


@pytest.mark.claim(
    "Fading memories cannot do parity", "the pair, found: {depth} layers, {p} bits: {name}"
)
@pytest.mark.parametrize(("depth", "p"), [(1, 4), (1, 8), (2, 6)])
@pytest.mark.parametrize("name", FADING)
def test_rounded_after_each_symbol(name, depth, p):
    """The pair is the proof object: equal states, hence equal answers, unequal labels."""
    model = in_bits(random_model(name, depth=depth), p, ONE)
    n = merge(model, ONE, limit=1000)
    first, second = (model.steps(ones(length))[1] for length in (n, n + 1))
    assert model.pack(first) == model.pack(second)
    assert torch.equal(*(model(ones(1), state)[0] for state in (first, second)))
    labels = [int(TASK.label(ones(length))[0, -1]) for length in (n + 1, n + 2)]
    assert labels[0] != labels[1]


@pytest.mark.claim("Fading memories cannot do parity", "rounded when sent: {name}")
@pytest.mark.parametrize("name", (*FADING, "retnet"))
def test_rounded_when_sent(name):
    """Factors that turn merge too; more bits take longer."""
    found = [merge(random_model(name), ONE, limit=600, sent=p) for p in (4, 8)]
    assert None not in found and found[0] < found[1]


@pytest.mark.claim("Fading memories cannot do parity")
@pytest.mark.parametrize("name", ["deltanet", "retnet_plain"])
def test_numbers_move_monotonically(name):
    """The step of the proof: each number of the first layer goes one way."""
    model, state, states = random_model(name), None, []
    for _ in range(60):
        _, state = model(ones(1), state)
        states.append(state.tensors[0].detach())
    steps = torch.stack(states).diff(dim=0)
    assert ((steps >= -1e-15).all(0) | (steps <= 1e-15).all(0)).all()
    assert float(steps[-1].abs().max()) < float(steps[0].abs().max())


@pytest.mark.claim("Parity by a reflection")
@pytest.mark.claim("Parity by recurrent fast weights")
@pytest.mark.parametrize("build_one", [reflection, feedback, self_copy])
def test_what_does_parity_does_not_merge(build_one):
    model = build_one()
    assert merge(model, ONE, limit=300) is None
    assert merge(model, PARITY.index("0"), limit=10) == 0
    quantized = in_bits(model, 8, ONE)
    assert isinstance(quantized, Quantized) and merge(quantized, ONE, limit=100) is None


@pytest.mark.parametrize("p", [3, 6, 10])
@pytest.mark.parametrize("rate", [0.05, 0.3, 0.9])
def test_a_single_number_rests_when_the_bound_says(rate, p):
    """DeltaNet with one key: S <- (1 - rate) S + rate, from 0 to 1."""
    symbols = sign_vectors(2)[1:]
    model = silent(DeltaNet, symbols, 2, torch.float64)
    use_one_key(model)
    mix = model.blocks[0].mix
    mix.value.bias[0] = 1.0
    mix.rate.bias[0] = math.log(rate / (1 - rate))
    n = told_apart(1 - rate, p)
    quantized = Quantized(model, p, bound=1.0)
    state, seen = model.initial_state(1), []
    for _ in range(n + 3):
        seen.append(quantized.pack(state))
        state = model(torch.zeros(1, 1, dtype=torch.int64), state)[1]
    assert seen[n] == seen[n + 1] == seen[n + 2]
    if rate < 0.5 and p > 3:
        assert seen[n // 2] != seen[n]
    assert merge(quantized, 0, limit=n + 1) is not None


def test_a_rate_of_one_merges_at_once_and_none_never_moves():
    model = silent(DeltaNet, sign_vectors(2)[1:], 2, torch.float64)
    use_one_key(model)
    mix = model.blocks[0].mix
    mix.value.bias[0] = 1.0
    for bias, n in ((SURE, 1), (-SURE, 0)):
        write(mix.rate.bias, bias)
        assert merge(model, 0) == n


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: merge(reflection(), 2), "0 <= token <= 1, got 2"),
        (lambda: merge(reflection(), 0, limit=-1), "limit >= 0, got -1"),
        (lambda: in_bits(reflection(), 8, 0, steps=0), "steps >= 1, got 0"),
        (lambda: told_apart(1.0, 8), "0 < a < 1, got 1.0"),
        (lambda: told_apart(0.5, 0), "p >= 1, got 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
