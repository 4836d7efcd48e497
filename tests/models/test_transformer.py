"""Attention against PyTorch's own layer, and rotary positions against what they are for."""

import math

import pytest
import torch
from torch import nn

from companion.models import ModelConfig, State, build
from companion.models.positions import rotate


def test_attention_equals_that_of_torch():
    config = ModelConfig(vocab=3, classes=2, width=12, heads=3, max_len=9)
    ours = build("transformer", config, rng=torch.Generator().manual_seed(0)).double().blocks[0].mix
    torchs = nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        torchs.in_proj_weight.copy_(
            torch.cat([ours.query.weight, ours.key.weight, ours.value.weight])
        )
        torchs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
        torchs.out_proj.load_state_dict(ours.output.state_dict())
    x = torch.randn(2, 9, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    later = torch.ones(9, 9, dtype=torch.bool).triu(1)
    wanted, _ = torchs(x, x, x, attn_mask=later)
    found, _ = ours(x, State(0, ()), None)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_inner_products_of_turned_rows_depend_on_the_distance_only(size):
    rng = torch.Generator().manual_seed(size)
    q, k = torch.randn(2, 1, size, generator=rng, dtype=torch.float64)
    rate = torch.rand(size // 2, generator=rng, dtype=torch.float64)

    def product(r, j):
        turned = (rotate(x, torch.tensor([place]), rate) for x, place in ((q, r), (k, j)))
        a, b = turned
        return float((a * b).sum())

    assert math.isclose(product(7, 3), product(104, 100), rel_tol=1e-12)
    assert size == 1 or not math.isclose(product(7, 3), product(7, 4), rel_tol=1e-3)
    assert torch.allclose(rotate(q, torch.tensor([5]), rate).norm(), q.norm())


def test_rotary_attention_alone_does_not_see_where_the_sequence_starts():
    """Two heads of one layer: moved by the same number of places, all weights stay."""
    config = ModelConfig(vocab=3, classes=2, width=8, heads=2, positions="rotary")
    mix = build("transformer", config, rng=torch.Generator().manual_seed(0)).double().blocks[0].mix
    x = torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    q = torch.randn(1, 2, 6, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    near, far = (mix.turn(q, torch.arange(6) + start) for start in (0, 90))
    torch.testing.assert_close(near @ near.mT, far @ far.mT)
    out, (k, v) = mix(x, State(0, ()), None)
    assert out.shape == (1, 6, 8) and k.shape == v.shape == (1, 2, 6, 4)
