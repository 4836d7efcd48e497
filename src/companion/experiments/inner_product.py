"""Inner product mod 2 (IP2): how often do two bit strings both have a 1, even or odd?

The paper trains nothing on it. The authors name it, in their responses to the reviewers, as a task
that is hard on *most* inputs: with m p bits of state no recurrent model is right on more than
1/2 + 2^(m p / 2 - N / 4) / 2 of them (`companion.theory.average_case`). So the inputs are uniform,
as there: half of the answers are 0, and 2^-(N/2) / 2 more.

Lengths, separator and padding are those of `equality`.

| token | meaning                          |
|-------|----------------------------------|
| 0, 1  | bits                             |
| 2     | separator between the two halves |
| 3     | padding                          |
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from companion.experiments.equality import Halves
from companion.experiments.task import TASKS, Batch


class InnerProduct(Halves):
    """x, a separator, y: the sum of x_i y_i mod 2.

    >>> task = InnerProduct(N=6)
    >>> task.label(torch.tensor([[1, 0, 1, 2, 1, 1, 1], [1, 0, 1, 2, 1, 1, 0]])).tolist()
    [[0], [1]]

    `N`: the largest number of bits, of both strings together. `alphabet`: 2.

    Raises ValueError for N odd or below two and for an alphabet other than 2.
    """

    name = "ip2"

    def __init__(self, N: int, alphabet: int = 2) -> None:
        if alphabet != 2:
            raise ValueError(f"got alphabet={alphabet}, expected 2")
        super().__init__(N, alphabet)
        self.chance = (1 + 2.0 ** (-N // 2)) / 2

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B 1"]:
        """The number of places with a 1 on both sides, mod 2."""
        halves = map(self._parts, tokens.tolist())
        odd = [[sum(a * b for a, b in zip(x, y, strict=True)) % 2] for x, y in halves]
        return torch.tensor(odd, dtype=torch.int64).view(len(odd), 1)

    def _examples(self, u: Tensor, h: Tensor, rng: torch.Generator) -> Batch:
        v = self._symbols(tuple(u.shape), rng)
        counts = torch.arange(u.shape[1], device=u.device) < h
        odd = (u & v & counts).sum(1, keepdim=True) % 2
        return Batch(self._join(u, v, h, 2 * h), 2 * h, odd)


TASKS[InnerProduct.name] = InnerProduct
