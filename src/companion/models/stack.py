"""The frame that Transformers share with their linear relatives (GPT-2: norms before each part).

    x ← x + mix(norm(x)),   x ← x + MLP(norm(x)),   logits = W·norm(x)

A model file supplies only `mix`, the one place where information moves between positions. All
layers address axes from the right, so a further leading axis would pass through.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.models.base import ModelConfig, SequenceModel, State
from companion.models.positions import Embedding


def take_rows(
    x: Float[Tensor, "*B T D"], rows: Int[Tensor, "*B R"] | None
) -> Float[Tensor, "*B R D"]:
    """Row `rows[…, r]` of each sequence; all rows if None.

    >>> take_rows(torch.tensor([[[5.0], [6.0], [7.0]]]), torch.tensor([[2, 0]])).tolist()
    [[[7.0], [5.0]]]
    """
    if rows is None:
        return x
    return x.gather(-2, rows[..., None].expand(*rows.shape, x.shape[-1]))


def split_heads(x: Float[Tensor, "*B T D"], heads: int) -> Float[Tensor, "*B {heads} T d"]:
    """Each head's D / H coordinates of every row."""
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def merge_heads(x: Float[Tensor, "*B H T d"]) -> Float[Tensor, "*B T D"]:
    """The inverse of `split_heads`."""
    return x.transpose(-3, -2).flatten(-2)


def visible(rows: Tensor | None, length: int, past: int, device: torch.device) -> Tensor:
    """`mask[…, r, j]` is True where row r may look at symbol j: those read before or at row r.

    Of the `past + length` symbols the chunk holds the last `length`. The result has axes
    (length, past + length), or (B, 1, R, past + length) if `rows` (B, R) are given.

    >>> visible(None, 2, 1, torch.device("cpu")).int().tolist()
    [[1, 1, 0], [1, 1, 1]]
    """
    symbols = torch.arange(past + length, device=device)
    if rows is None:
        return symbols <= past + torch.arange(length, device=device)[:, None]
    return symbols <= past + rows[..., None, :, None]


class Mixer(nn.Module, ABC):
    """The part of a layer in which a position sees the others."""

    @abstractmethod
    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        """Shapes, without the batch axis, of what the layer remembers of `t` symbols."""

    @abstractmethod
    def forward(
        self, x: Tensor, state: tuple[Tensor, ...], rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """From all rows of the chunk, x (B, T, D), the outputs of `rows`, (B, R, D), and the state
        after the chunk."""


class MultiHead(Mixer):
    """A mixer that compares queries with keys and passes on values, in H heads of d = D / H."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def project(self, x: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, R, d) of the wanted rows; keys and values (B, H, T, d) of all."""
        parts = self.query(take_rows(x, rows)), self.key(x), self.value(x)
        q, k, v = (split_heads(part, self.heads) for part in parts)
        return q, k, v


class Block(nn.Module):
    """One layer: mix positions, then transform each on its own."""

    def __init__(self, mixer: Mixer, width: int) -> None:
        super().__init__()
        self.norm_mix, self.mix = nn.LayerNorm(width), mixer
        self.norm_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(
        self, x: Tensor, state: tuple[Tensor, ...], rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        mixed, state = self.mix(self.norm_mix(x), state, rows)
        x = take_rows(x, rows) + mixed  # (B, R, D)
        return x + self.mlp(self.norm_mlp(x)), state


class Stack(SequenceModel):
    """Embedding, `depth` blocks around the class attribute `mixer`, norm and read-out."""

    mixer: ClassVar[type[Mixer]]

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        c = config
        self.embedding = Embedding(c.vocab, c.width, c.max_len, c.positions, c.tied_from)
        blocks = [Block(self.mixer(c.width, c.heads), c.width) for _ in range(c.depth)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(c.width)
        self.head = nn.Linear(c.width, c.classes)

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return tuple(shape for block in self.blocks for shape in block.mix.state_shapes(t))

    def advance(
        self, tokens: Tensor, state: State, read: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        x = self.embedding(tokens, state.t)
        per_layer = len(state.tensors) // len(self.blocks)
        tensors: list[Tensor] = []
        for i, block in enumerate(self.blocks):
            before = state.tensors[i * per_layer : (i + 1) * per_layer]
            last = i == len(self.blocks) - 1
            x, after = block(x, before, read if last else None)
            tensors.extend(after)
        return self.head(self.norm(x)), tuple(tensors)
