"""The frame that Transformers share with their linear relatives (GPT-2: norms before each part).

    x ← x + mix(norm(x)),   x ← x + MLP(norm(x)),   logits = W·norm(x)

A model file supplies only `mix`, the one place where information moves between positions. All
layers address axes from the right, so a further leading axis would pass through.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
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


def linear(
    x: Float[Tensor, "*B i"], weight: Float[Tensor, "*P o i"], bias: Tensor | None = None
) -> Float[Tensor, "*B o"]:
    """W x + b for each row; in a population, whose axis x and W share, each member with its own W.

    >>> two = torch.tensor([[[1.0]], [[10.0]]])  # the W of two members
    >>> linear(torch.ones(2, 3, 1), two).flatten().tolist()
    [1.0, 1.0, 1.0, 10.0, 10.0, 10.0]
    """
    if weight.ndim == 2:
        return F.linear(x, weight, bias)
    rows = x.flatten(1, -2)
    if bias is None:
        y = rows @ weight.mT
    else:
        y = torch.baddbmm(bias[:, None], rows, weight.mT)
    return y.unflatten(1, x.shape[1:-1])


def lookup(
    table: Float[Tensor, "*P rows D"], index: Int[Tensor, "*shape"]
) -> Float[Tensor, "*shape D"]:
    """Rows of a table; in a population, whose axis both share, each member's rows of its own.

    >>> lookup(torch.tensor([[[5.0], [6.0]], [[7.0], [8.0]]]), torch.tensor([[1], [0]])).flatten()
    tensor([6., 7.])
    """
    if table.ndim == 2:
        return F.embedding(index, table)
    first = torch.arange(0, table.shape[0] * table.shape[1], table.shape[1], device=index.device)
    return F.embedding(index + first.view(-1, *[1] * (index.ndim - 1)), table.flatten(0, 1))


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
        self, x: Tensor, state: State, rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """From all rows of the chunk, x (B, T, D), and this layer's state before it: the outputs of
        `rows`, (B, R, D), and the tensors of the state after it."""


class MultiHead(Mixer):
    """A mixer that compares queries with keys and passes on values, in H heads of d = D / H."""

    def __init__(self, config: ModelConfig, *, bias: bool = True) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.size = width // self.heads
        self.query = nn.Linear(width, width, bias)
        self.key = nn.Linear(width, width, bias)
        self.value = nn.Linear(width, width, bias)
        self.output = nn.Linear(width, width, bias)

    def project(self, x: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, R, d) of the wanted rows; keys and values (B, H, T, d) of all."""
        parts = self.query(take_rows(x, rows)), self.key(x), self.value(x)
        q, k, v = (split_heads(part, self.heads) for part in parts)
        return q, k, v


class Block(nn.Module):
    """One layer: mix positions, then transform each on its own."""

    norm: ClassVar[Callable[[int], nn.Module]] = nn.LayerNorm  # also before the read-out

    def __init__(self, mixer: Mixer, config: ModelConfig) -> None:
        super().__init__()
        width = config.width
        self.norm_mix, self.mix = self.norm(width), mixer
        self.norm_mlp = self.norm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(
        self, x: Tensor, state: State, rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        mixed, tensors = self.mix(self.norm_mix(x), state, rows)
        x = take_rows(x, rows) + mixed  # (B, R, D)
        return x + self.mlp(self.norm_mlp(x)), tensors


class Stack(SequenceModel):
    """Embedding, `depth` blocks around the class attribute `mixer`, norm and read-out.

    A mixer that is `ordered` knows by itself in which order it reads and gets no position vectors.
    """

    mixer: ClassVar[type[Mixer]]
    ordered: ClassVar[bool] = False
    block: ClassVar[type[Block]] = Block

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        c = config
        positions = "none" if self.ordered else c.positions
        self.embedding = Embedding(
            c.vocab, c.width, c.max_len, positions, c.tied_from, c.embedding_std
        )
        self.blocks = nn.ModuleList(self.block(self.mixer(c), c) for _ in range(c.depth))
        self.norm = self.block.norm(c.width)
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
            before = State(state.t, state.tensors[i * per_layer : (i + 1) * per_layer])
            last = i == len(self.blocks) - 1
            x, after = block(x, before, read if last else None)
            tensors.extend(after)
        return self.head(self.norm(x)), tuple(tensors)
