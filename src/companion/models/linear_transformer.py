"""The linear Transformer: attention whose exponential is replaced by an inner product of features.

    o_r = Σ_{j ≤ r} ⟨φ(q_r), φ(k_j)⟩ v_j / Σ_{j ≤ r} ⟨φ(q_r), φ(k_j)⟩,   φ(x) = elu(x) + 1

(Katharopoulos et al. 2020). Both sums factor: S = Σ φ(k_j) v_jᵀ and z = Σ φ(k_j) are all that is
left of the past, D²/H + D numbers per layer whatever the length. So this Transformer is a recurrent
model, and Theorem 3 binds it. Without the quotient S alone is left, and o grows with the length.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.models.base import State, register
from companion.models.stack import MultiHead, Stack, merge_heads, visible

CHUNK = 64  # rows compared pairwise at a time; between chunks only S and z are passed on
EPSILON = 1e-6  # keeps the quotient finite; φ > 0, so the denominator is positive without it


class LinearAttention(MultiHead):
    """Attention with features φ; state: S (B, H, d, d) and z (B, H, d)."""

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return (self.heads, self.size, self.size), (self.heads, self.size)

    def forward(
        self, x: Tensor, state: State, rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        memory = state.tensors
        q, k, v = self.project(x, rows)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        if rows is not None:
            o = attend(q, k, v, memory, visible(rows, x.shape[-2], 0, x.device))
            return self.output(merge_heads(o)), remember(k, v, memory)
        outputs = []
        for chunk in zip(*(part.split(CHUNK, dim=-2) for part in (q, k, v)), strict=True):
            q, k, v = chunk  # (B, H, at most CHUNK, d)
            outputs.append(attend(q, k, v, memory, visible(None, q.shape[-2], 0, x.device)))
            memory = remember(k, v, memory)
        return self.output(merge_heads(torch.cat(outputs, dim=-2))), memory


class LinearSum(LinearAttention):
    """The numerator alone; state: S (B, H, d, d)."""

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return super().state_shapes(t)[:1]


def attend(q: Tensor, k: Tensor, v: Tensor, memory: tuple[Tensor, ...], mask: Tensor) -> Tensor:
    """Outputs of the rows q: symbols of this chunk pair by pair, earlier ones through the memory,
    S and z or S alone."""
    S, *z = memory
    weight = (q @ k.mT).masked_fill(~mask, 0.0)  # (B, H, R, T)
    o = weight @ v + q @ S
    if not z:
        return o
    return o / (weight.sum(-1, keepdim=True) + q @ z[0][..., None] + EPSILON)


def remember(k: Tensor, v: Tensor, memory: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """S, and z if there is one, after the keys and values of a chunk."""
    S, *z = memory
    return S + k.mT @ v, *(x + k.sum(-2) for x in z)


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


@register("linear_unnormalised")
class LinearUnnormalised(Stack):
    """The same without the normaliser, as the second paper has it.

    >>> from companion.models import ModelConfig
    >>> LinearUnnormalised(ModelConfig(vocab=85, classes=64)).state_shapes(10)
    ((4, 16, 16),)
    """

    mixer = LinearSum
