"""String equality, the three tasks of Appendix H.2: does the second half repeat the first?

The paper draws the length k of each example uniformly from N/10, N/10 + 2, …, N, and evaluates at
k = N. Here N/10 is rounded up to an even number, and all examples of a batch have the same k, so
that there is no padding.

| token       | meaning                           |
|-------------|-----------------------------------|
| 0 … |Σ| - 1 | symbols                           |
| |Σ|         | separator between the two halves  |

In the first two, a model need not compare the strings. Random strings differ early, so a few
symbols are enough; and a string with one symbol changed has other *counts*. The third asks for the
second half itself, symbol by symbol, which leaves no way round remembering the first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Int
from torch import Tensor

from companion.experiments.task import TASKS, Batch


class Halves(ABC):
    """Two strings of k / 2 symbols with a separator between them.

    `N`: the largest k, even; in the paper up to 400. `alphabet`: |Σ|, without the separator.

    Raises ValueError for N odd or below two and for an alphabet below two.
    """

    def __init__(self, N: int, alphabet: int) -> None:
        if N < 2 or N % 2:
            raise ValueError(f"got N={N}, expected an even number, at least 2")
        if alphabet < 2:
            raise ValueError(f"got alphabet={alphabet}, expected at least 2")
        self.N, self.alphabet, self.separator = N, alphabet, alphabet
        self.shortest = max(2, 2 * -(-N // 20))  # N / 10, rounded up to an even number
        self.vocab, self.classes, self.max_len = alphabet + 1, 2, N + 1
        self.chance = 0.5

    def sample(self, batch: int, *, rng: torch.Generator, exact: bool = False) -> Batch:
        """`batch` examples of one length; see `companion.experiments.task.Task`."""
        lengths = range(self.N if exact else self.shortest, self.N + 1, 2)
        k = lengths[int(torch.randint(len(lengths), (), generator=rng, device=rng.device))]
        return self._examples(self._symbols((batch, k // 2), rng), rng)

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B 1"]:
        """1 where what follows the separator is what precedes it."""
        halves = ((row, row.index(self.separator)) for row in tokens.tolist())
        same = [[int(row[:i] == row[i + 1 :])] for row, i in halves]
        return torch.tensor(same, dtype=torch.int64).view(len(same), 1)

    @abstractmethod
    def _examples(self, u: Tensor, rng: torch.Generator) -> Batch:
        """An example from each first half."""

    def _symbols(self, shape: tuple[int, ...], rng: torch.Generator) -> Tensor:
        return torch.randint(self.alphabet, shape, generator=rng, device=rng.device)

    def _join(self, u: Tensor, v: Tensor) -> Tensor:
        """u, the separator, v."""
        return torch.cat([u, u.new_full((len(u), 1), self.separator), v], dim=1)

    def _classify(self, u: Tensor, v: Tensor) -> Batch:
        """Asks after the last token whether u = v."""
        read = u.new_full((len(u), 1), 2 * u.shape[1])
        return Batch(self._join(u, v), read, (u == v).all(1).long()[:, None])


class EqRandom(Halves):
    """Half of the second strings are copies, half are random; they may be equal all the same.

    >>> task = EqRandom(N=6)
    >>> task.label(torch.tensor([[0, 1, 1, 2, 0, 1, 1], [0, 1, 1, 2, 0, 0, 1]])).tolist()
    [[1], [0]]

    `alphabet`: in the paper 2.
    """

    name = "eq-random"

    def __init__(self, N: int, alphabet: int = 2) -> None:
        super().__init__(N, alphabet)
        self.chance = (1 + float(alphabet) ** (-N // 2)) / 2

    def _examples(self, u: Tensor, rng: torch.Generator) -> Batch:
        copied = torch.rand(len(u), 1, generator=rng, device=rng.device) < 0.5
        return self._classify(u, torch.where(copied, u, self._symbols(u.shape, rng)))


class EqOne(Halves):
    """Half of the second strings are copies, half are copies with one symbol changed.

    >>> tokens, _, targets = EqOne(N=4).sample(100, rng=torch.Generator().manual_seed(0))
    >>> differ = (tokens[:, : tokens.shape[1] // 2] != tokens[:, -(tokens.shape[1] // 2) :]).sum(1)
    >>> torch.equal(differ, 1 - targets[:, 0])
    True

    `alphabet`: in the paper 1024.
    """

    name = "eq-one"

    def __init__(self, N: int, alphabet: int = 1024) -> None:
        super().__init__(N, alphabet)

    def _examples(self, u: Tensor, rng: torch.Generator) -> Batch:
        options = {"generator": rng, "device": rng.device}
        batch, half = u.shape
        change = torch.randint(1, self.alphabet, (batch, 1), **options)
        change *= torch.rand(batch, 1, **options) < 0.5
        at = torch.randint(half, (batch, 1), **options)
        v = u.scatter(1, at, (u.gather(1, at) + change) % self.alphabet)
        return self._classify(u, v)


class EqNext(Halves):
    """Copying: after the separator, and after each symbol of the copy, the next symbol (Eq-ncp).

    In the first half every symbol may follow, so nothing is asked there. A string of N symbols is
    N tokens: the last symbol of the copy is only an answer.

    >>> task = EqNext(N=6, alphabet=4)
    >>> task.label(torch.tensor([[3, 0, 2, 4, 3, 0]])).tolist()
    [[3, 0, 2]]

    `alphabet`: in the paper 1024.
    """

    name = "eq-ncp"

    def __init__(self, N: int, alphabet: int = 1024) -> None:
        super().__init__(N, alphabet)
        self.classes, self.max_len, self.chance = alphabet, N, 1 / alphabet

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B R"]:
        """What precedes the separator."""
        halves = [row[: row.index(self.separator)] for row in tokens.tolist()]
        return torch.tensor(halves, dtype=torch.int64).view(len(halves), tokens.shape[1] // 2)

    def _examples(self, u: Tensor, rng: torch.Generator) -> Batch:
        batch, half = u.shape
        read = half + torch.arange(half, device=u.device)
        return Batch(self._join(u, u[:, :-1]), read.expand(batch, half), u)


for task in (EqRandom, EqOne, EqNext):
    TASKS[task.name] = task
