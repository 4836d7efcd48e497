"""Associative recall, the task of Theorem 8 and Proposition 9: which label came with this key?

N pairs of a key and a label come first, the keys all different. Then keys are asked for: all of
them in another order (MQAR), or one (Proposition 9). Labels are 0 and 1 as in Appendix G; the paper
counts points, 2N of them in MQAR, and shows the right label after every query too. Here nothing
stands between queries: from the labels shown one could tell which are left, and be right more often
than by guessing without ever looking at a key. Models are found to stop there.

| token       | meaning                                |
|-------------|----------------------------------------|
| 0, 1        | labels                                 |
| 2 … |Σ| + 1 | keys, the same when they are asked for |
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from companion.experiments.shuffle import permutations
from companion.experiments.task import TASKS, Batch

LABELS = 2


class MultiQueryRecall:
    """MQAR: N pairs, then the N keys again; after each of these, its label.

    >>> task = MultiQueryRecall(N=2, alphabet=4)
    >>> task.label(torch.tensor([[2, 1, 5, 0, 5, 2]])).tolist()
    [[0, 1]]

    `N`: pairs, N / 2 in the paper's count of points. `alphabet`: |Σ|, how many keys there are.

    Raises ValueError for N below one and for an alphabet of fewer than N keys.
    """

    name = "mqar"
    classes, chance = LABELS, 1 / LABELS

    def __init__(self, N: int, alphabet: int = 64) -> None:
        if N < 1:
            raise ValueError(f"got N={N}, expected at least 1")
        if alphabet < N:
            raise ValueError(f"got alphabet={alphabet}, expected at least N={N} different keys")
        self.N, self.alphabet, self.queries = N, alphabet, self._queries(N)
        self.vocab, self.max_len = LABELS + alphabet, 2 * N + self.queries

    def sample(self, batch: int, *, rng: torch.Generator, exact: bool = False) -> Batch:
        """`batch` examples, all of N pairs; see `companion.experiments.task.Task`."""
        keys = permutations(batch, self.alphabet, rng=rng)[:, : self.N]
        labels = torch.randint(LABELS, (batch, self.N), generator=rng, device=rng.device)
        asked, place = self._ask(keys, rng)
        pairs = torch.stack([LABELS + keys, labels], dim=-1).flatten(1)  # (B, 2N)
        read = 2 * self.N + torch.arange(self.queries, device=rng.device)
        tokens = torch.cat([pairs, LABELS + asked], dim=1)
        return Batch(tokens, read.repeat(batch, 1), labels.gather(1, place))

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B R"]:
        """The label that followed each key when it first came."""
        answers = []
        for row in tokens.tolist():
            paired = dict(zip(row[: 2 * self.N : 2], row[1 : 2 * self.N : 2], strict=True))
            answers.append([paired[key] for key in row[2 * self.N :]])
        return torch.tensor(answers, dtype=torch.int64).view(len(answers), self.queries)

    def _ask(self, keys: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Keys (B, R) to ask for, counted from 0, and the pairs whose labels are the answers."""
        place = permutations(len(keys), self.N, rng=rng)[:, : self.queries]
        return keys.gather(1, place), place

    @staticmethod
    def _queries(N: int) -> int:
        return N


class AssociativeRecall(MultiQueryRecall):
    """N pairs, then one of the keys: its label, as in Proposition 9.

    >>> task = AssociativeRecall(N=3, alphabet=4)
    >>> task.label(torch.tensor([[2, 1, 5, 0, 3, 1, 5]])).tolist()
    [[0]]
    """

    name = "associative-recall"

    @staticmethod
    def _queries(N: int) -> int:
        return 1


for task in (MultiQueryRecall, AssociativeRecall):
    TASKS[task.name] = task
