"""Mamba against the published package mamba-ssm: weights, answers, gradients, state."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from companion.models import ModelConfig, build

SCRIPT = Path(__file__).with_name("mamba_oracle.py")


@pytest.mark.skipif(
    importlib.util.find_spec("mamba_ssm") is None, reason="mamba-ssm could not be installed here"
)
def test_equals_mamba_ssm():
    """In a process of its own, as other packages would take its CUDA kernels to be there."""
    command = [sys.executable, "-W", "error", str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "64 16 weights answers gradients state scans",
        "40 5 weights answers gradients state scans",
    ]


def test_initial_weights_are_those_of_the_paper():
    config = ModelConfig(vocab=3, classes=2, width=32, depth=4, state_size=3)
    model = build("mamba", config, rng=torch.Generator().manual_seed(0))
    mix = model.blocks[0].mix
    assert torch.allclose(mix.A_log.exp(), torch.tensor([1.0, 2.0, 3.0]).expand(64, 3))
    dt = torch.nn.functional.softplus(mix.dt_proj.bias)
    assert 1e-3 <= dt.min() < 2e-3 and 0.05 < dt.max() <= 0.1
    assert mix.in_proj.weight.abs().max() > 0.9 * 32**-0.5  # uniform up to 1/√fan-in …
    assert mix.out_proj.weight.abs().max() < 64**-0.5 / 2  # … and out of each of 4 layers half


@pytest.mark.parametrize("n", [1, 4, 16])
def test_size_of_the_state_is_a_choice(n):
    config = ModelConfig(vocab=3, classes=2, width=8, depth=2, state_size=n)
    model = build("mamba", config, rng=torch.Generator().manual_seed(0))
    assert model.state_bits(model.initial_state(1)) == 2 * (16 * n + 3 * 16) * 32
