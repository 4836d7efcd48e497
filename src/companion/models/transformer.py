"""The Transformer: softmax attention over everything read so far.

    o_r = Σ_{j ≤ r} exp(⟨q_r, k_j⟩ / √d) v_j / Σ_{j ≤ r} exp(⟨q_r, k_j⟩ / √d)

The exponential of an inner product is no inner product of finitely many features, so nothing
shorter than the list of all keys and values can stand in for it: 2·D numbers per layer and symbol.
This is the one model here whose state grows, so Theorem 3 does not bind it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.models.base import register
from companion.models.stack import MultiHead, Stack, merge_heads, visible


class Attention(MultiHead):
    """Softmax attention; state: k and v, each (B, H, t, d)."""

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return (self.heads, t, self.size), (self.heads, t, self.size)

    def forward(
        self, x: Tensor, state: tuple[Tensor, ...], rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        q, k, v = self.project(x, rows)
        past = state[0].shape[-2]
        if past:
            k, v = (torch.cat(pair, dim=-2) for pair in zip(state, (k, v), strict=True))
        mask = visible(rows, x.shape[-2], past, x.device)
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (B, H, R, d)
        return self.output(merge_heads(o)), (k, v)


@register("transformer")
class Transformer(Stack):
    """`depth` layers of causal softmax attention and GELU MLP.

    >>> from companion.models import ModelConfig
    >>> model = Transformer(ModelConfig(vocab=85, classes=64))
    >>> _, state = model(torch.zeros(1, 10, dtype=torch.int64))
    >>> model.state_bits(state) == 2 * 64 * 10 * 32
    True
    """

    mixer = Attention
