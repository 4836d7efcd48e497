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

from companion.models.base import ModelConfig, State, register
from companion.models.positions import rotate
from companion.models.stack import MultiHead, Stack, merge_heads, visible


class Attention(MultiHead):
    """Softmax attention; state: k and v, each (B, H, t, d).

    With rotary positions (Su et al. 2021) each q and k is turned by its place, so that ⟨q_r, k_j⟩
    knows r - j; k is remembered as turned.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.rotary = config.positions == "rotary"

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return (self.heads, t, self.size), (self.heads, t, self.size)

    def forward(
        self, x: Tensor, state: State, rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        q, k, v = self.project(x, rows)
        if self.rotary:
            place = state.t + torch.arange(x.shape[-2], device=x.device)
            q = self.turn(q, place if rows is None else state.t + rows[..., None, :])
            k = self.turn(k, place)
        if state.t:
            k, v = (torch.cat(pair, dim=-2) for pair in zip(state.tensors, (k, v), strict=True))
        whole = rows is None and not state.t  # then the mask is one that kernels know
        mask = None if whole else visible(rows, x.shape[-2], state.t, x.device)
        return self.output(merge_heads(attend(q, k, v, mask))), (k, v)

    def turn(self, x: Tensor, place: Tensor) -> Tensor:
        """The rows of x turned by their places, at geometric rates from 1 to almost 1/10000."""
        half = self.size // 2
        step = torch.arange(half, dtype=x.dtype, device=x.device) / max(half, 1)
        return rotate(x, place, 10000.0**-step)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax attention, (…, H, R, d), of row r to keys 0 … r without a mask. PyTorch's fast
    kernels take four axes, so the members of a population go as further sequences of the batch."""
    if q.ndim <= 4:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
    four = [x if x is None or x.ndim <= 4 else x.flatten(0, -4) for x in (q, k, v, mask)]
    o = F.scaled_dot_product_attention(*four, is_causal=mask is None)
    return o.unflatten(0, q.shape[:-3])


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
