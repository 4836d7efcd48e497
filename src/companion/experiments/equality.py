"""String equality, the three tasks of Appendix H.2: does the second half repeat the first?

The length k of an example is uniform on N/10, N/10 + 2, …, N, with N/10 rounded up to an even
number; evaluation is at k = N. A shorter example is followed by padding that no one reads.

| token       | meaning                           |
|-------------|-----------------------------------|
| 0 … |Σ| - 1 | symbols                           |
| |Σ|         | separator between the two halves  |
| |Σ| + 1     | padding                           |

In the first two, a model need not compare the strings. Random strings differ early, so a few
symbols are enough; and a string with one symbol changed has other *counts*. The third asks for the
second half itself, symbol by symbol, which leaves no way round remembering the first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from companion.experiments.task import TASKS, Batch


class Halves(ABC):
    """Two strings u, v of h = k / 2 symbols with a separator between them.

    `N`: the largest k, even; in the paper up to 400. `alphabet`: |Σ|, without the separator.

    Raises ValueError for N odd or below two and for an alphabet below two.
    """

    classes, chance = 2, 0.5

    def __init__(self, N: int, alphabet: int) -> None:
        if N < 2 or N % 2:
            raise ValueError(f"got N={N}, expected an even number, at least 2")
        if alphabet < 2:
            raise ValueError(f"got alphabet={alphabet}, expected at least 2")
        self.N, self.alphabet, self.separator, self.pad = N, alphabet, alphabet, alphabet + 1
        self.shortest = 2 * -(-N // 20)  # of the lengths k
        self.vocab, self.max_len = alphabet + 2, N + 1

    def sample(self, batch: int, *, rng: torch.Generator, exact: bool = False) -> Batch:
        """`batch` examples; see `companion.experiments.task.Task`."""
        least, most = (self.N if exact else self.shortest) // 2, self.N // 2
        h = torch.randint(least, most + 1, (batch, 1), generator=rng, device=rng.device)
        return self._examples(self._symbols((batch, most), rng), h, rng)

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B R"]:
        """1 where what follows the separator is what precedes it."""
        same = [[int(u == v)] for u, v in map(self._parts, tokens.tolist())]
        return torch.tensor(same, dtype=torch.int64).view(len(same), 1)

    @abstractmethod
    def _examples(self, u: Tensor, h: Tensor, rng: torch.Generator) -> Batch:
        """An example from each first string u (B, N / 2), of which h (B, 1) symbols count."""

    def _symbols(self, shape: tuple[int, ...], rng: torch.Generator) -> Tensor:
        return torch.randint(self.alphabet, shape, generator=rng, device=rng.device)

    def _join(self, u: Tensor, v: Tensor, h: Tensor, last: Tensor) -> Tensor:
        """u, the separator and v up to position `last` (B, 1), then padding."""
        place = torch.arange(self.max_len, device=u.device)
        most = u.shape[1]
        v = v.masked_fill(place[:most] >= last - h, self.pad)
        tail = F.pad(F.pad(v, (1, 0), value=self.separator), (0, 1), value=self.pad)
        tail = tail.gather(1, (place - h).clamp(0, most + 1))  # the separator at position h
        return torch.where(place < h, F.pad(u, (0, self.max_len - most)), tail)

    def _classify(self, u: Tensor, v: Tensor, h: Tensor) -> Batch:
        """Asks after the last symbol whether u = v."""
        beyond = torch.arange(u.shape[1], device=u.device) >= h
        same = ((u == v) | beyond).all(1).long()[:, None]
        return Batch(self._join(u, v, h, 2 * h), 2 * h, same)

    def _parts(self, row: list[int]) -> tuple[list[int], list[int]]:
        """What stands before and after the separator."""
        row = [token for token in row if token != self.pad]
        at = row.index(self.separator)
        return row[:at], row[at + 1 :]


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

    def _examples(self, u: Tensor, h: Tensor, rng: torch.Generator) -> Batch:
        copied = torch.rand(len(u), 1, generator=rng, device=rng.device) < 0.5
        return self._classify(u, torch.where(copied, u, self._symbols(tuple(u.shape), rng)), h)


class EqOne(Halves):
    """Half of the second strings are copies, half are copies with one symbol changed.

    >>> task, rng = EqOne(N=4), torch.Generator().manual_seed(0)
    >>> tokens, _, targets = task.sample(100, rng=rng, exact=True)
    >>> torch.equal((tokens[:, :2] != tokens[:, 3:]).sum(1), 1 - targets[:, 0])
    True

    `alphabet`: in the paper 1024.
    """

    name = "eq-one"

    def __init__(self, N: int, alphabet: int = 1024) -> None:
        super().__init__(N, alphabet)

    def _examples(self, u: Tensor, h: Tensor, rng: torch.Generator) -> Batch:
        options = {"generator": rng, "device": rng.device}
        at = torch.randint(2**62, h.shape, **options) % h  # the bias is below h / 2^62
        change = torch.randint(1, self.alphabet, h.shape, **options)
        change *= torch.rand(h.shape, **options) < 0.5
        v = u.scatter(1, at, (u.gather(1, at) + change) % self.alphabet)
        return self._classify(u, v, h)


class EqNext(Halves):
    """Copying: after the separator, and after each symbol of the copy, the next symbol (Eq-ncp).

    In the first half every symbol may follow, so nothing is asked there. The last symbol of the
    copy is only an answer, no token. N / 2 answers are due in every example: a shorter one is asked
    again from its start, so that all count alike.

    >>> task = EqNext(N=6, alphabet=4)
    >>> task.label(torch.tensor([[3, 0, 2, 4, 3, 0], [3, 0, 4, 3, 5, 5]])).tolist()
    [[3, 0, 2], [3, 0, 3]]

    `alphabet`: in the paper 1024.
    """

    name = "eq-ncp"

    def __init__(self, N: int, alphabet: int = 1024) -> None:
        super().__init__(N, alphabet)
        self.classes, self.max_len, self.chance = alphabet, N, 1 / alphabet

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B R"]:
        """What precedes the separator."""
        halves = [self._parts(row)[0] for row in tokens.tolist()]
        asked = [[u[r % len(u)] for r in range(self.N // 2)] for u in halves]
        return torch.tensor(asked, dtype=torch.int64).view(len(asked), self.N // 2)

    def _examples(self, u: Tensor, h: Tensor, rng: torch.Generator) -> Batch:
        r = torch.arange(u.shape[1], device=u.device) % h  # (B, N / 2)
        return Batch(self._join(u, u, h, 2 * h - 1), h + r, u.gather(1, r))


for task in (EqRandom, EqOne, EqNext):
    TASKS[task.name] = task
