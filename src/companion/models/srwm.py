"""The self-referential weight matrix: one matrix that maps its input and rewrites itself.

    [y | q̃ | k̃ | b̃] = x W_{t-1},   q = softmax(q̃),   k = softmax(k̃),   β = σ(b̃) ∈ R⁴
    W_t = W_{t-1} + kᵀ (β · ((q - k) W_{t-1}))

(Irie, Schlag, Csordás, Schmidhuber 2022). All parts of W, those that make keys, queries and rates
included, are fast; each of the four has a rate of its own. W_0 is learned. The state is what has
been written since, W_t - W_0, so that it starts from zero as in every other model: 3D²/H + 4D
numbers per layer.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from companion.models.base import ModelConfig, State, register
from companion.models.stack import Mixer, Stack, merge_heads, split_heads, take_rows


class SelfReferential(Mixer):
    """One W of d rows and 3d + 4 columns in each head; state: W - W_0 (B, H, d, 3d + 4)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, d = config.heads, config.width // config.heads
        self.size = d
        self.parts = (d, d, d, 4)  # columns that make y, q, k, β
        initial = torch.empty(self.heads, d, sum(self.parts)).normal_(std=d**-0.5)
        initial[..., d : 2 * d] *= 0.01  # queries start nearly uniform,
        initial[..., 3 * d :] -= 1  # and rates low, as in the authors' code
        self.initial = nn.Parameter(initial)
        self.output = nn.Linear(config.width, config.width)
        spread = torch.eye(4).repeat_interleave(torch.tensor(self.parts), dim=-1)
        self.register_buffer("spread", spread, persistent=False)  # β to the columns of its part

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return ((self.heads, self.size, sum(self.parts)),)

    def forward(
        self, x: Tensor, state: State, rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        W = self.initial[..., None, :, :, :] + state.tensors[0]  # (B, H, d, 3d + 4)
        outputs = []
        for row in split_heads(x, self.heads).unbind(-2):  # (B, H, d)
            y, W = self.step(row, W)
            outputs.append(y)
        o = torch.stack(outputs, dim=-2)  # (B, H, T, d)
        change = W - self.initial[..., None, :, :, :]
        return self.output(take_rows(merge_heads(o), rows)), (change,)

    def step(
        self, row: Float[Tensor, "*B H d"], W: Float[Tensor, "*B H d e"]
    ) -> tuple[Float[Tensor, "*B H d"], Float[Tensor, "*B H d e"]]:
        """The output for one more symbol, and W after it."""
        y, q, k, b = (row[..., None, :] @ W).squeeze(-2).split(self.parts, -1)
        q, k = q.softmax(-1), k.softmax(-1)
        change = (b.sigmoid() @ self.spread) * ((q - k)[..., None, :] @ W).squeeze(-2)
        return y, W + k[..., None] * change[..., None, :]


@register("srwm")
class SRWM(Stack):
    """`depth` layers of the self-referential weight matrix and GELU MLP.

    >>> from companion.models import ModelConfig
    >>> model = SRWM(ModelConfig(vocab=85, classes=64))
    >>> _, state = model(torch.zeros(1, 10, dtype=torch.int64))
    >>> model.state_bits(state) == (3 * 64 * 64 // 4 + 4 * 64) * 32
    True
    """

    mixer = SelfReferential
