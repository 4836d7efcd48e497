"""The linear Transformer: attention whose exponential is replaced by an inner product of features.

    o_r = Σ_{j ≤ r} ⟨φ(q_r), φ(k_j)⟩ v_j / Σ_{j ≤ r} ⟨φ(q_r), φ(k_j)⟩,   φ(x) = elu(x) + 1

(Katharopoulos et al. 2020). Both sums factor: S = Σ φ(k_j) v_jᵀ and z = Σ φ(k_j) are all that is
left of the past, D²/H + D numbers per layer whatever the length. So this Transformer is a recurrent
model, and Theorem 3 binds it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.models.base import register
from companion.models.stack import MultiHead, Stack, merge_heads, visible

CHUNK = 64  # rows compared pairwise at a time; between chunks only S and z are passed on
EPSILON = 1e-6  # keeps the quotient finite; φ > 0, so the denominator is positive without it


class LinearAttention(MultiHead):
    """Attention with features φ; state: S (B, H, d, d) and z (B, H, d)."""

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return (self.heads, self.size, self.size), (self.heads, self.size)

    def forward(
        self, x: Tensor, state: tuple[Tensor, ...], rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        q, k, v = self.project(x, rows)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        if rows is not None:
            o = attend(q, k, v, state, visible(rows, x.shape[-2], 0, x.device))
            return self.output(merge_heads(o)), remember(k, v, state)
        outputs = []
        for chunk in zip(*(part.split(CHUNK, dim=-2) for part in (q, k, v)), strict=True):
            q, k, v = chunk  # (B, H, at most CHUNK, d)
            outputs.append(attend(q, k, v, state, visible(None, q.shape[-2], 0, x.device)))
            state = remember(k, v, state)
        return self.output(merge_heads(torch.cat(outputs, dim=-2))), state


def attend(q: Tensor, k: Tensor, v: Tensor, state: tuple[Tensor, ...], mask: Tensor) -> Tensor:
    """Outputs of the rows q: symbols of this chunk pair by pair, earlier ones through S and z."""
    S, z = state
    weight = (q @ k.mT).masked_fill(~mask, 0.0)  # (B, H, R, T)
    total = weight.sum(-1, keepdim=True) + q @ z[..., None]
    return (weight @ v + q @ S) / (total + EPSILON)


def remember(k: Tensor, v: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """S and z after the keys and values of a chunk."""
    S, z = state
    return S + k.mT @ v, z + k.sum(-2)


@register("linear_transformer")
class LinearTransformer(Stack):
    """`depth` layers of causal linear attention and GELU MLP.

    >>> from companion.models import ModelConfig
    >>> model = LinearTransformer(ModelConfig(vocab=85, classes=64))
    >>> _, state = model(torch.zeros(1, 10, dtype=torch.int64))
    >>> model.state_bits(state) == (64 * 64 // 4 + 64) * 32
    True
    """

    mixer = LinearAttention
