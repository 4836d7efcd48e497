"""Recurrent Delta: a DeltaNet whose queries, keys, values and rates see its last output.

    s = tanh(o_{t-1}),   q = softmax(q̃ + s R_q),   k = softmax(k̃ + s R_k),
    v = ṽ + s R_v,   β = σ(b̃ + s r_β),   S_t = S_{t-1} + β k (v - S_{t-1}ᵀ k)ᵀ,   o_t = S_tᵀ q

(Irie, Schlag, Csordás, Schmidhuber 2021). What is written may now depend on what was read, so the
state is no longer a sum of, or a linear map in, what the symbols say one by one; and there is no
way around going symbol by symbol. State: S and o, D²/H + D numbers per layer.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from companion.models.base import ModelConfig, State, register
from companion.models.deltanet import DeltaRule
from companion.models.stack import Stack, merge_heads, take_rows


class RecurrentDeltaRule(DeltaRule):
    """The delta rule with feedback R = [R_q | R_k | R_v | r_β] in each head; state: S (B, H, d, d)
    and o (B, H, d)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        d = self.size
        self.feedback = nn.Parameter(torch.empty(self.heads, d, 3 * d + 1).normal_(std=d**-0.5))

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return *super().state_shapes(t), (self.heads, self.size)

    def forward(
        self, x: Tensor, state: State, rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        inputs = torch.cat([*self.project(x, None), self.rate(x).mT[..., None]], dim=-1)
        S, o = state.tensors
        outputs = []
        for row in inputs.unbind(-2):  # (B, H, 3d + 1)
            S, o = self.step(row, S, o)
            outputs.append(o)
        every = merge_heads(torch.stack(outputs, dim=-2))  # (B, T, D)
        return self.output(take_rows(every, rows)), (S, o)

    def step(
        self, row: Float[Tensor, "*B H e"], S: Float[Tensor, "*B H d d"], o: Float[Tensor, "*B H d"]
    ) -> tuple[Tensor, Tensor]:
        """S and o after one more symbol, whose own q̃, k̃, ṽ and b̃ are in `row`."""
        d = self.size
        row = row + torch.einsum("...bhd,...hde->...bhe", o.tanh(), self.feedback)
        q, k = row[..., : 2 * d].unflatten(-1, (2, d)).softmax(-1).unbind(-2)
        v, beta = row[..., 2 * d : 3 * d], row[..., 3 * d :].sigmoid()
        change = beta * (v - (k[..., None, :] @ S).squeeze(-2))
        S = S + k[..., None] * change[..., None, :]
        return S, (q[..., None, :] @ S).squeeze(-2)


@register("recurrent_delta")
class RecurrentDelta(Stack):
    """`depth` layers of the recurrent delta rule and GELU MLP.

    >>> from companion.models import ModelConfig
    >>> model = RecurrentDelta(ModelConfig(vocab=85, classes=64))
    >>> _, state = model(torch.zeros(1, 10, dtype=torch.int64))
    >>> model.state_bits(state) == (64 * 64 // 4 + 64) * 32
    True
    """

    mixer = RecurrentDeltaRule
