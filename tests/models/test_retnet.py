"""RetNet against its definition as one masked product of matrices, in complex numbers."""

import numpy as np
import pytest
import torch

from companion.models import ModelConfig, State, build
from companion.models.retnet import EPSILON, log_decay

CONFIG = ModelConfig(vocab=5, classes=3, width=24, heads=3)
LENGTH = 70


def quadratic(mix, x, *, rotates):
    """o = ((Q K*) ∘ D) V for each head, where Q and K are numbers on the complex plane that turn by
    θ at each symbol, and D_{rj} = γ^{r-j} for r ≥ j."""
    q, k, v = (part(x).detach().numpy() for part in (mix.query, mix.key, mix.value))
    place, d = np.arange(LENGTH), 8
    theta = 10000.0 ** -np.linspace(0, 1, d // 2) if rotates else np.zeros(d // 2)
    turn = np.exp(1j * place[:, None] * theta)
    heads = []
    for h in range(3):
        own = slice(h * d, (h + 1) * d)
        Q, K = ((m[:, own][:, : d // 2] + 1j * m[:, own][:, d // 2 :]) * turn for m in (q, k))
        gamma = 1 - 2.0 ** (-5 - h)
        D = np.tril(gamma ** np.maximum(place[:, None] - place, 0))
        heads.append((Q @ K.conj().T).real * D @ v[:, own])
    return heads


@pytest.fixture
def x():
    rng = torch.Generator().manual_seed(1)
    return torch.randn(LENGTH, 24, generator=rng, dtype=torch.float64)


def layer(name):
    return build(name, CONFIG, rng=torch.Generator().manual_seed(0)).double().blocks[0].mix


def run(mix, x):
    zero = torch.zeros(1, 3, 8, 8, dtype=torch.float64)
    return mix(x[None], State(0, (zero,)), None)[0][0]


def test_equals_the_definition(x):
    mix = layer("retnet")
    heads = [o / np.sqrt(8) for o in quadratic(mix, x, rotates=True)]
    normal = [o / np.sqrt((o**2).mean(-1, keepdims=True) + EPSILON) for o in heads]
    o = torch.from_numpy(np.concatenate(normal, axis=-1))
    wanted = mix.output(torch.nn.functional.silu(mix.gate(x)) * o)
    torch.testing.assert_close(run(mix, x), wanted, rtol=1e-10, atol=1e-10)


def test_plain_form_equals_its_definition(x):
    mix = layer("retnet_plain")
    o = torch.from_numpy(np.concatenate(quadratic(mix, x, rotates=False), axis=-1))
    wanted = mix.output(torch.nn.functional.silu(mix.gate(x)) * o)
    torch.testing.assert_close(run(mix, x), wanted, rtol=1e-10, atol=1e-10)


def test_decays_are_powers_that_no_length_makes_infinite():
    gamma = log_decay(4, torch.zeros((), dtype=torch.float64)).exp().flatten()
    assert torch.allclose(gamma, 1 - 2.0 ** -torch.arange(5, 9, dtype=torch.float64))
    config = ModelConfig(vocab=5, classes=3, width=24, heads=3)
    model = build("retnet", config, rng=torch.Generator().manual_seed(0))
    tokens = torch.randint(5, (1, 5000), generator=torch.Generator())
    logits, state = model(tokens, read=torch.tensor([[4999]]))  # γ^5000 is below all float32
    assert logits.isfinite().all() and state.tensors[0].isfinite().all()
