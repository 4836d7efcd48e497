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
from companion.models.scan import causal_conv, choose_scan
from companion.models.stack import Mixer, Stack, linear, take_rows

STATE = 16  # N unless told otherwise
EXPAND = 2  # channels per coordinate: E = 2 D
WINDOW = 4  # symbols that the convolution sees
DT_MIN, DT_MAX = 1e-3, 1e-1  # step sizes before training, evenly spread in the logarithm


class SelectiveScan(Mixer):
    """State: h (B, N, E), and what the convolution saw of the last three symbols, (B, 3, E).

    Inside, time comes before the batch: a step is one piece of memory. In a population P comes
    before both, as linear layers want it, and the scan gets a view with time first.
    """

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
        W_u, W_z = self.in_proj.weight.chunk(2, dim=-2)
        x = _swap(x)  # (T, B, D)
        seen = torch.cat([_swap(past), linear(x, W_u)], dim=-3)
        u = F.silu(self._convolve(seen))
        dt, B, C = self.x_proj(u).split((self.rank, self.n, self.n), dim=-1)
        y, h = self._scan(F.softplus(self.dt_proj(dt)), u, B, C, h)
        if rows is not None:
            x, u, y = (_swap(take_rows(_swap(part), rows)) for part in (x, u, y))
        y = torch.addcmul(y, self.D[..., None, None, :], u)
        out = self.out_proj(y * F.silu(linear(x, W_z)))
        return _swap(out), (h, _swap(seen[..., 1 - WINDOW :, :, :]))

    def _convolve(self, seen: Tensor) -> Tensor:
        """From (…, 3 + T, B, E) to (…, T, B, E)."""
        weight = self.conv1d.weight[..., 0, :].movedim(-1, 0)  # (4, E) or (4, P, E)
        bias = self.conv1d.bias
        y = causal_conv(seen.movedim(-3, 0), weight[..., None, :], bias[..., None, :])
        return y.movedim(0, -3)

    def _scan(
        self, dt: Tensor, u: Tensor, B: Tensor, C: Tensor, h: Tensor
    ) -> tuple[Tensor, Tensor]:
        A = -self.A_log.exp().mT[..., None, :, :]  # (1, N, E) or (P, 1, N, E)
        dt, u, B, C = (x.movedim(-3, 0) for x in (dt, u, B, C))
        y, h = choose_scan(dt.device).run(dt, u, A, B, C, h)
        return y.movedim(0, -3), h


def _swap(x: Tensor) -> Tensor:
    """(…, B, T, D) to (…, T, B, D), and back."""
    return x.transpose(-3, -2)


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
