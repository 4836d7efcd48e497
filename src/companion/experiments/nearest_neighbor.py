"""Nearest neighbour, the task of Theorem 7: the label of the nearest of N labelled points.

The paper's points are vectors. Here they are corners of a cube, and each is a *symbol*, key i of
`companion.theory.recall` with the binary code of i as its vector. A model reads names and has to
learn for itself, in its embedding, which are near; with those vectors as its embedding it is given
what Theorem 7 is given. So there is one token to a point, as in the theorem, and every model reads
this task as it reads the others. (Coordinates as tokens would make inputs d' times as long, and
ask for one more layer, to gather them.) Distances of corners are whole numbers, so a unique nearest
point is ahead by a margin of 2 / d' in the inner product, which no model can miss by rounding.

As in `recall`, N pairs of a point and a label come first, and then N queries with nothing between
them. Queries are different corners, all equally likely of those that have *one* nearest labelled
point. A labelled point is its own; with an alphabet of N there are no others, and the task is MQAR.
The larger the alphabet, the fewer exact matches: of the queries at N = 20, about 60 % are exact
with 64 points, 15 % with 256, 4 % with 1024.

| token       | meaning                                        |
|-------------|------------------------------------------------|
| 0, 1        | labels                                         |
| 2 … |Σ| + 1 | points; 2 + i is the corner with the bits of i |
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from companion.experiments.recall import LABELS, MultiQueryRecall
from companion.experiments.task import TASKS


class NearestNeighbor(MultiQueryRecall):
    """N labelled points, then N queries; after each of these, the label of the nearest point.

    >>> task = NearestNeighbor(N=2, alphabet=8)
    >>> task.label(torch.tensor([[2 + 0b000, 1, 2 + 0b111, 0, 2 + 0b101, 2 + 0b001]])).tolist()
    [[0, 1]]

    `N`: labelled points, N / 2 in the paper's count. `alphabet`: |Σ|, how many points there are.

    Raises ValueError for N below one and for an alphabet of fewer than N points.
    """

    name = "nearest-neighbor"

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B R"]:
        """The label of the point that differs from each query in the fewest bits."""
        answers = []
        for row in tokens.tolist():
            pairs = list(zip(row[: 2 * self.N : 2], row[1 : 2 * self.N : 2], strict=True))
            answers.append([self._nearest(query, pairs) for query in row[2 * self.N :]])
        return torch.tensor(answers, dtype=torch.int64).view(len(answers), self.queries)

    def _ask(self, keys: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Queries (B, N), counted from 0, and the places of the points nearest to them."""
        point = torch.arange(self.alphabet, device=rng.device)
        different = point[:, None] ^ point
        distance = sum(different >> i & 1 for i in range(max(1, (self.alphabet - 1).bit_length())))
        apart = distance.to(torch.int8)[keys]  # (B, N, |Σ|)
        least, place = apart.min(1)
        unique = (apart == least[:, None]).sum(1) == 1  # (B, |Σ|), true for at least N
        chance = torch.rand(unique.shape, generator=rng, device=rng.device)
        asked = chance.masked_fill(~unique, 2.0).argsort(1)[:, : self.N]
        return asked, place.gather(1, asked)

    @staticmethod
    def _nearest(query: int, pairs: list[tuple[int, int]]) -> int:
        return min(pairs, key=lambda pair: ((query - LABELS) ^ (pair[0] - LABELS)).bit_count())[1]


TASKS[NearestNeighbor.name] = NearestNeighbor
