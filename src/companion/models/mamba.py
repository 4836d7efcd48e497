"""Mamba: a state of N numbers per channel whose decay, input and output depend on the symbol.

    u, z = W_in x;   u ← silu(conv(u));   dt, B, C = W_x u;   dt ← softplus(W_dt dt + b)
    h_t = exp(dt_t A) ∘ h_{t-1} + B_t (dt_t u_t)ᵀ,   y_t = C_tᵀ h_t + D ∘ u_t
    out = W_out (y ∘ silu(z))

(Gu and Dao 2023; conv sees the last four symbols of its own channel.) Parameters have the names and
shapes of the package mamba-ssm, so that `model.blocks[0].mix` and its `Mamba` exchange weights.
"""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.models.base import ModelConfig, State, register
from companion.models.scan import causal_conv, seg_scan
from companion.models.stack import Mixer, Stack, take_rows

STATE = 16  # N unless told otherwise
EXPAND = 2  # channels per coordinate: E = 2 D
WINDOW = 4  # symbols that the convolution sees
DT_MIN, DT_MAX = 1e-3, 1e-1  # step sizes before training, evenly spread in the logarithm


class SelectiveScan(Mixer):
    """State: h (B, N, E), and what the convolution saw of the last three symbols, (B, 3, E)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, n = config.width, config.state_size or STATE
        channels, rank = EXPAND * width, -(-width // 16)
        self.n, self.channels, self.rank = n, channels, rank
        self.in_proj = nn.Linear(width, 2 * channels, bias=False)
        self.conv1d = nn.Conv1d(channels, channels, WINDOW, groups=channels)
        self.x_proj = nn.Linear(channels, rank + 2 * n, bias=False)
        self.dt_proj = nn.Linear(rank, channels)
        self.A_log = nn.Parameter(torch.arange(1.0, n + 1).log().repeat(channels, 1))
        self.D = nn.Parameter(torch.ones(channels))
        self.out_proj = nn.Linear(channels, width, bias=False)
        nn.init.uniform_(self.dt_proj.weight, -(rank**-0.5), rank**-0.5)
        dt = nn.init.uniform_(torch.empty(channels), math.log(DT_MIN), math.log(DT_MAX)).exp()
        self.dt_proj.bias.data = dt + torch.log(-torch.expm1(-dt))  # softplus of this is dt
        with torch.no_grad():
            self.out_proj.weight /= math.sqrt(config.depth)

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return (self.n, self.channels), (WINDOW - 1, self.channels)

    def forward(
        self, x: Tensor, state: State, rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        h, past = state.tensors
        W_u, W_z = self.in_proj.weight.chunk(2)
        x = x.movedim(-2, 0)  # (T, B, D), here time is first: a step is one piece of memory
        seen = torch.cat([past.movedim(-2, 0), F.linear(x, W_u)])
        u = F.silu(causal_conv(seen, self.conv1d.weight[:, 0].mT, self.conv1d.bias))
        dt, B, C = self.x_proj(u).split((self.rank, self.n, self.n), dim=-1)
        y, h = seg_scan(F.softplus(self.dt_proj(dt)), u, -self.A_log.exp().mT, B, C, h)
        if rows is not None:
            x, u, y = (take_rows(part.movedim(0, -2), rows).movedim(-2, 0) for part in (x, u, y))
        out = self.out_proj(torch.addcmul(y, self.D, u) * F.silu(F.linear(x, W_z)))
        return out.movedim(0, -2), (h, seen[-(WINDOW - 1) :].movedim(0, -2))


class MambaBlock(nn.Module):
    """One layer: x ← x + mix(norm(x))."""

    norm = partial(nn.RMSNorm, eps=1e-5)

    def __init__(self, mixer: Mixer, config: ModelConfig) -> None:
        super().__init__()
        self.norm_mix, self.mix = self.norm(config.width), mixer

    def forward(
        self, x: Tensor, state: State, rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        mixed, tensors = self.mix(self.norm_mix(x), state, rows)
        return take_rows(x, rows) + mixed, tensors


@register("mamba")
class Mamba(Stack):
    """`depth` layers of selective scan; `heads`, `positions` and `tied_from` have no effect.

    >>> from companion.models import ModelConfig
    >>> model = Mamba(ModelConfig(vocab=85, classes=64))
    >>> model.state_shapes(10)
    ((16, 128), (3, 128))
    """

    mixer, block, ordered = SelectiveScan, MambaBlock, True
