"""The LSTM: h and c, 2·D numbers per layer, whatever the length.

PyTorch's own `nn.LSTM`, as in the paper, between an embedding and a linear read-out. It reads in
order and needs no positions: `heads`, `max_len`, `positions` and `tied_from` have no effect.
"""

from __future__ import annotations

from torch import Tensor, nn

from companion.models.base import ModelConfig, SequenceModel, State, register
from companion.models.stack import take_rows


@register("lstm")
class LSTM(SequenceModel):
    """`depth` LSTM layers of `width` cells; state: h, c, each (B, depth, D).

    >>> model = LSTM(ModelConfig(vocab=85, classes=64, depth=2))
    >>> model.state_bits(model.initial_state(1)) == 2 * 2 * 64 * 32
    True
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab, config.width)
        self.lstm = nn.LSTM(config.width, config.width, config.depth, batch_first=True)
        self.head = nn.Linear(config.width, config.classes)

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        shape = (self.config.depth, self.config.width)
        return shape, shape

    def advance(
        self, tokens: Tensor, state: State, read: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        before = tuple(s.movedim(-2, 0).contiguous() for s in state.tensors)  # (depth, B, D)
        x, after = self.lstm(self.embedding(tokens), before)
        return self.head(take_rows(x, read)), tuple(s.movedim(0, -2) for s in after)
