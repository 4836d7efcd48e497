"""How a model knows where it is: absolute position vectors, learned or fixed.

The rows of every fixed table have the length that a learned row has on average before training,
`std`·√D, so that only their directions differ. "random" rows are the nearly orthogonal vectors of
Lemma 2 (Johnson–Lindenstrauss), "binary" rows the shortest table with distinct rows, "one-hot" rows
exactly orthogonal. "rotary" positions are no vectors: attention turns queries and keys instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

INIT_STD = 0.02  # of token and learned position vectors unless told otherwise, as in GPT-2


def one_hot(rows: int, width: int) -> Float[Tensor, "rows width"]:
    """Row p is the basis vector e_p; needs as many coordinates as rows.

    >>> one_hot(2, 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    if width < rows:
        raise ValueError(f"got width={width} for one-hot positions, expected at least {rows} rows")
    return torch.eye(rows, width)


def binary(rows: int, width: int) -> Float[Tensor, "rows width"]:
    """Row p holds the bits of p as ±1, least significant first, and zeros.

    >>> binary(4, 3).int().tolist()
    [[-1, -1, 0], [1, -1, 0], [-1, 1, 0], [1, 1, 0]]
    """
    bits = max(1, (rows - 1).bit_length())
    if width < bits:
        raise ValueError(f"got width={width} for binary positions, expected at least {bits} bits")
    place = torch.arange(rows)[:, None] >> torch.arange(bits)
    return F.pad(2.0 * (place & 1) - 1.0, (0, width - bits))


def random(rows: int, width: int) -> Float[Tensor, "rows width"]:
    """Independent uniform signs (Lemma 2)."""
    return torch.where(nn.init.uniform_(torch.empty(rows, width)) < 0.5, -1.0, 1.0)


def sinusoidal(rows: int, width: int) -> Float[Tensor, "rows width"]:
    """Sines and cosines of p at geometric frequencies from 1 to about 1/10000.

    >>> [round(x, 3) for x in sinusoidal(2, 4)[1].tolist()]
    [0.841, 0.01, 0.54, 1.0]
    """
    rate = 10000.0 ** (-torch.arange(0, width, 2) / width)
    angle = torch.arange(rows)[:, None] * rate
    return torch.cat([angle.sin(), angle.cos()], dim=-1)[:, :width]


def rotate(
    x: Float[Tensor, "*B T d"], place: Int[Tensor, "*P"], rate: Float[Tensor, " half"]
) -> Float[Tensor, "*B T d"]:
    """Each row with its coordinates, in pairs (i, i + half), turned by the angles `place`·`rate`.

    Inner products of turned rows depend on the difference of their places only. The last of an odd
    number of coordinates stays as it is.

    >>> quarter = torch.tensor([math.pi / 2])
    >>> rotate(torch.tensor([[1.0, 0.0, 7.0]]), torch.tensor([1]), quarter).round().tolist()
    [[-0.0, 1.0, 7.0]]
    """
    half = x.shape[-1] // 2
    angle = place[..., None] * rate  # (…, T, half)
    sin, cos = angle.sin(), angle.cos()
    a, b, rest = x.split((half, half, x.shape[-1] - 2 * half), dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], dim=-1)


VECTORLESS = ("none", "rotary")
POSITIONS: dict[str, Callable[[int, int], Tensor] | None] = {
    "learned": None,
    "none": None,
    "one-hot": one_hot,
    "binary": binary,
    "random": random,
    "sinusoidal": sinusoidal,
    "rotary": None,
}


class Positions(nn.Module):
    """A table with one vector for each of `rows` positions, learned or fixed."""

    def __init__(self, kind: str, rows: int, width: int, std: float = INIT_STD) -> None:
        super().__init__()
        make = POSITIONS[kind]
        if make is None:
            self.table = nn.Parameter(torch.empty(rows, width).normal_(std=std))
        else:
            length = std * math.sqrt(width)
            self.register_buffer("table", length * F.normalize(make(rows, width), dim=-1))

    def forward(self, place: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape D"]:
        return F.embedding(place, self.table)


class Embedding(nn.Module):
    """Token vector plus position vector.

    With `tied_from`, a token s ≥ `tied_from` stands for position s - `tied_from`: it *is* that
    position's vector and adds none of its own. That is how Theorem 1 embeds the query of Index
    Lookup; Appendix H.1 trains without this.

    Raises ValueError for symbols beyond the last row of the position table.
    """

    def __init__(
        self,
        vocab: int,
        width: int,
        max_len: int,
        positions: str,
        tied_from: int | None = None,
        std: float = INIT_STD,
    ) -> None:
        super().__init__()
        self.max_len, self.tied_from = max_len, tied_from
        self.token = nn.Embedding(vocab, width)
        nn.init.normal_(self.token.weight, std=std)
        self.position = None
        if positions not in VECTORLESS:
            self.position = Positions(positions, max_len, width, std)

    def forward(self, tokens: Int[Tensor, "*B T"], t: int = 0) -> Float[Tensor, "*B T D"]:
        x = self.token(tokens)
        if self.position is None:
            return x
        end = t + tokens.shape[-1]
        if end > self.max_len:
            raise ValueError(
                f"got {end} symbols ({t} read before), expected max_len={self.max_len}"
            )
        x = x + self.position(torch.arange(t, end, device=tokens.device))
        if self.tied_from is None:
            return x
        index = tokens - self.tied_from
        return torch.where(index[..., None] >= 0, self.position(index.clamp(min=0)), x)
