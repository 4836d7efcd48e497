"""The population's Adam is PyTorch's, with a rate for each member."""

import math

import pytest
import torch
from torch import nn

from companion.experiments.adam import PopulationAdam

RATES = (1e-1, 1e-3, 3e-2)


def parameters(dtype=torch.float64):
    rng = torch.Generator().manual_seed(0)
    shapes = ((3, 4, 2), (3, 5), (3, 1))
    return [nn.Parameter(torch.randn(shape, generator=rng, dtype=dtype)) for shape in shapes]


def loss(ps, step):
    return sum(((p * (i + 1) - step).sin() * p).sum() for i, p in enumerate(ps))


def take(optimizer, ps, step):
    optimizer.zero_grad()
    loss(ps, step).backward()
    optimizer.step()


def alone(i, steps, schedule=lambda step: 1.0):
    """Member i under PyTorch's Adam."""
    ps = [nn.Parameter(p[i].detach().clone()) for p in parameters()]
    optimizer = torch.optim.Adam(ps)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = RATES[i] * schedule(step)
        take(optimizer, ps, step)
    return ps


@pytest.mark.parametrize("steps", [1, 2, 30])
def test_each_member_moves_as_under_pytorchs_adam(steps):
    ps = parameters()
    optimizer = PopulationAdam(ps, torch.tensor(RATES, dtype=torch.float64))
    for step in range(steps):
        take(optimizer, ps, step)
    for i in range(3):
        for p, own in zip(ps, alone(i, steps), strict=True):
            assert torch.allclose(p[i], own, rtol=1e-5, atol=1e-9)  # β^t is taken in float32


def test_schedule_is_a_function_of_the_steps_taken():
    ps = parameters()
    optimizer = PopulationAdam(
        ps, torch.tensor(RATES), lambda taken: (1 + torch.cos(math.pi * taken / 10)) / 2
    )
    for step in range(10):
        take(optimizer, ps, step)
    expected = alone(1, 10, lambda step: (1 + math.cos(math.pi * step / 10)) / 2)
    for p, own in zip(ps, expected, strict=True):
        assert torch.allclose(p[1], own, rtol=1e-5, atol=1e-7)


def test_those_who_stay_move_as_if_nobody_had_left():
    ps, kept = parameters(), (2, 0)
    optimizer = PopulationAdam(ps, torch.tensor(RATES))
    for step in range(5):
        take(optimizer, ps, step)
    left = [nn.Parameter(p.detach()[list(kept)]) for p in ps]
    optimizer.keep(kept, left)
    for step in range(5, 9):
        take(optimizer, left, step)
    for place, i in enumerate(kept):
        for p, own in zip(left, alone(i, 9), strict=True):
            assert torch.allclose(p[place], own, rtol=1e-5, atol=1e-7)


def test_single_model_has_a_rate_of_no_axis():
    p = nn.Parameter(torch.zeros(2, 3))
    optimizer = PopulationAdam([p], torch.tensor(0.1))
    p.sum().backward()
    optimizer.step()
    assert torch.allclose(p, torch.full((2, 3), -0.1))


def test_parameter_without_a_gradient_stays():
    used, unused = (nn.Parameter(torch.ones(1, 2)) for _ in range(2))
    optimizer = PopulationAdam([used, unused], torch.tensor([0.1]))
    used.sum().backward()
    optimizer.step()
    assert (unused == 1).all() and (used < 1).all()


def test_what_is_stored_goes_on_as_before():
    ps = parameters()
    optimizer = PopulationAdam(ps, torch.tensor(RATES))
    take(optimizer, ps, 0)
    again = [nn.Parameter(p.detach().clone()) for p in ps]
    other = PopulationAdam(again, torch.tensor(RATES))
    other.load({name: x.clone() for name, x in optimizer.tensors().items()})
    take(optimizer, ps, 1)
    take(other, again, 1)
    assert all(torch.equal(a, b) for a, b in zip(ps, again, strict=True))
