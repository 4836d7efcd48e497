"""DSS against SciPy's linear systems and the softmax that gave it its second form."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import torch

from companion.models import ModelConfig, State, build
from companion.models.dss import hippo_modes

CONFIG = ModelConfig(vocab=5, classes=3, width=4, heads=1, max_len=30, state_size=6)


def make(name, config=CONFIG, seed=0):
    return build(name, config, rng=torch.Generator().manual_seed(seed)).double()


def parameters(mix):
    """λ, the two step sizes of each coordinate, and W, as complex arrays."""
    if hasattr(mix, "rate"):
        rates = torch.view_as_complex(mix.rate)
    else:
        rates = torch.complex(-mix.log_decay.exp(), mix.frequency)
    parts = (rates, mix.log_dt.exp(), torch.view_as_complex(mix.W))
    return [x.detach().numpy() for x in parts]


def answers(mix, y, u):
    """The rest of the layer, after the modes' output y."""
    y = torch.from_numpy(y) + mix.D * u
    return mix.output(torch.nn.functional.gelu(y))


def test_exponential_form_is_a_sampled_linear_system():
    """x' = λ x + u with u held constant for one step, as SciPy samples it."""
    mix = make("dss").blocks[0].mix
    u = torch.randn(25, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rates, dt, W = parameters(mix)
    y = np.zeros((25, 4))
    for c in range(4):
        A = scipy.linalg.block_diag(*([[r.real, -r.imag], [r.imag, r.real]] for r in rates))
        B = np.kron(np.ones((6, 1)), [[1], [0]])
        C = np.stack([W[c].real, -W[c].imag], axis=-1).reshape(1, 12)
        system = scipy.signal.cont2discrete((A, B, C, np.zeros((1, 1))), dt[c, 0], method="zoh")
        _, out, _ = scipy.signal.dlsim(system, np.append(u[:, c].numpy(), 0.0))
        y[:, c] = out[1:, 0]  # SciPy's output is of the state before the symbol
    ours, _ = mix(u[None], State(0, ()), None)
    torch.testing.assert_close(ours[0], answers(mix, y, u), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("real", [-0.5, 0.0, 0.3, 40.0], ids=lambda x: f"Re={x}")
def test_softmax_form_is_a_softmax(real):
    """Also for modes that grow, where e^{z L} alone would overflow."""
    mix = make("dss_softmax").blocks[0].mix
    with torch.no_grad():
        mix.rate[::2, 0] = real
        mix.log_dt += 1.0
    u = torch.randn(30, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rates, dt, W = parameters(mix)
    z = dt[:, :1] * rates.real + 1j * dt[:, 1:] * rates.imag
    exponent = z[..., None] * np.arange(30)
    power = np.exp(exponent - exponent.real.max(-1, keepdims=True))
    kernel = (W[..., None] / rates[:, None] * power / power.sum(-1, keepdims=True)).sum(1).real
    y = np.stack([np.convolve(u[:, c], kernel[c])[:30] for c in range(4)], axis=-1)
    ours, (s,) = mix(u[None], State(0, ()), None)
    torch.testing.assert_close(ours[0], answers(mix, y, u), rtol=1e-4, atol=1e-4)
    assert s.isfinite().all()


@pytest.mark.parametrize("real", [-40.0, 40.0], ids=lambda x: f"Re={x}")
def test_halves_in_single_precision_where_powers_leave_its_range(real):
    model = make("dss_softmax").float()
    with torch.no_grad():
        model.blocks[0].mix.rate[::2, 0] = real
        model.blocks[0].mix.log_dt += 1.0  # |z| up to 11, and e^88 is the largest float32
    tokens = torch.randint(5, (2, 30), generator=torch.Generator().manual_seed(1))
    whole, _ = model(tokens)
    for cut in (1, 15, 29):
        first, state = model(tokens[:, :cut])
        second, _ = model(tokens[:, cut:], state)
        torch.testing.assert_close(torch.cat([first, second], dim=1), whole, rtol=1e-4, atol=1e-5)


def test_modes_are_those_of_the_hippo_matrix():
    modes = hippo_modes(64)
    assert torch.allclose(modes.real, torch.tensor(-0.5, dtype=torch.float64))
    assert abs(modes.imag[0] - 5215) < 1 and abs(modes.imag[-1] - 0.235) < 1e-3
    i, j = np.indices((6, 6))
    skew = np.sqrt((2 * i + 1) * (2 * j + 1)) / 2 * np.sign(i - j)
    assert np.allclose(hippo_modes(3).imag, np.sort(np.linalg.eigvals(skew).imag)[::-1][:3])


def test_softmax_form_refuses_more_symbols_than_it_was_made_for():
    model = make("dss_softmax", replace(CONFIG, max_len=10))
    tokens = torch.zeros(1, 11, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"11 symbols \(0 read before\), expected max_len=10"):
        model(tokens)
    _, state = model(tokens[:, :8])
    with pytest.raises(ValueError, match=r"11 symbols \(8 read before\), expected max_len=10"):
        model(tokens[:, :3], state)
    assert make("dss", replace(CONFIG, max_len=10))(tokens)[0].shape == (1, 11, 3)


@pytest.mark.parametrize("name", ["dss", "dss_softmax"])
def test_few_rows_and_many_take_different_ways_to_the_same_answers(name):
    model, tokens = make(name), torch.randint(5, (2, 30), generator=torch.Generator())
    whole, _ = model(tokens)
    for count in (1, 4, 5, 30):
        read = torch.randint(30, (2, count), generator=torch.Generator().manual_seed(count))
        some, _ = model(tokens, read=read)
        torch.testing.assert_close(some, whole.gather(1, read[..., None].expand(-1, -1, 3)))
