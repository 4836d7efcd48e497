"""The Quasi-LSTM: each cell sees the input and itself, but no other cell.

    z = tanh(W_z x + w_z · c + b_z),   f = σ(W_f x + w_f · c + b_f),   c ← f · c + (1 - f) · z,
    out = c · σ(W_o [x; c] + b_o)

The second paper's element-wise LSTM: a rival with a small state, D numbers per layer. It reads in
order and needs no positions: `heads`, `max_len`, `positions` and `tied_from` have no effect.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from companion.models.base import ModelConfig, SequenceModel, State, register
from companion.models.stack import take_rows

INIT_STD = 0.1  # of all weights but those of the symbols


class ElementwiseLSTM(nn.Module):
    """One layer; state: c (B, D)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.input = nn.Linear(width, 2 * width)  # to z and f
        self.own = nn.Parameter(torch.empty(2, width))  # w_z and w_f
        self.gate = nn.Linear(2 * width, width)
        for p in self.parameters():
            nn.init.normal_(p, std=INIT_STD)

    def forward(
        self, x: Float[Tensor, "*B T D"], c: Float[Tensor, "*B D"]
    ) -> tuple[Float[Tensor, "*B T D"], Float[Tensor, "*B D"]]:
        w_z, w_f = self.own[..., 0, None, :], self.own[..., 1, None, :]
        cells = []
        for z, f in zip(*(part.unbind(-2) for part in self.input(x).chunk(2, -1)), strict=True):
            z, f = torch.tanh(z + w_z * c), torch.sigmoid(f + w_f * c)
            c = z + f * (c - z)
            cells.append(c)
        all_c = torch.stack(cells, dim=-2)  # (B, T, D)
        return all_c * self.gate(torch.cat([x, all_c], -1)).sigmoid(), c


@register("quasi_lstm")
class QuasiLSTM(SequenceModel):
    """`depth` element-wise LSTM layers of `width` cells; state: c (B, depth, D).

    >>> model = QuasiLSTM(ModelConfig(vocab=85, classes=64, depth=2))
    >>> model.state_bits(model.initial_state(1)) == 2 * 64 * 32
    True
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab, config.width)
        self.layers = nn.ModuleList(ElementwiseLSTM(config.width) for _ in range(config.depth))
        self.head = nn.Linear(config.width, config.classes)

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return ((self.config.depth, self.config.width),)

    def advance(
        self, tokens: Tensor, state: State, read: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        x, cells = self.embedding(tokens), []
        for layer, c in zip(self.layers, state.tensors[0].unbind(-2), strict=True):
            x, c = layer(x, c)
            cells.append(c)
        return self.head(take_rows(x, read)), (torch.stack(cells, dim=-2),)
