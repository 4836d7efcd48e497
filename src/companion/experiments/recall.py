"""Associative recall, the task of Theorem 8 and Proposition 9: which label came with this key?

N pairs of a key and a label come first, the keys all different. Then keys are asked for: all of
them in another order (MQAR), or one (Proposition 9). Appendix G has labels 0 and 1. Between two
queries stands the right label of the first, as in the nearest-neighbour task, and nothing can be
learned from it, since no key is asked for twice. The paper counts points, 2N of them in MQAR.

| token       | meaning                           |
|-------------|-----------------------------------|
| 0, 1        | labels                            |
| 2 … |Σ| + 1 | keys; the same tokens ask for them |
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from companion.experiments.task import TASKS, Batch

LABELS = 2


class MultiQueryRecall:
    """MQAR: N pairs, then the N keys again; after each, its label.

    >>> task = MultiQueryRecall(N=2, alphabet=4)
    >>> task.label(torch.tensor([[2, 1, 5, 0, 5, 0, 2]])).tolist()
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
        self.classes, self.chance = alphabet, 1 / alphabet
        self.vocab = self.classes + alphabet
        self.max_len = 2 * (N + self.queries) - 1

    def sample(self, batch: int, *, rng: torch.Generator, exact: bool = False) -> Batch:
        """`batch` examples, all of N pairs; see `companion.experiments.task.Task`."""
        options = {"generator": rng, "device": rng.device}
        keys = torch.rand(batch, self.alphabet, **options).argsort(1)[:, : self.N]
        labels = torch.randint(self.classes, (batch, self.N), **options)
        order = torch.rand(batch, self.N, **options).argsort(1)[:, : self.queries]
        pairs = torch.stack([self.classes + keys, labels], dim=-1)  # (B, N, 2)
        asked = pairs.gather(1, order[..., None].expand(batch, self.queries, 2))
        read = 2 * (self.N + torch.arange(self.queries, device=rng.device))
        tokens = torch.cat([pairs, asked], dim=1).flatten(1)[:, :-1]
        return Batch(tokens, read.expand(batch, self.queries).clone(), asked[..., 1].clone())

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B R"]:
        """The label that followed each key when it first came."""
        answers = []
        for row in tokens.tolist():
            paired = dict(zip(row[: 2 * self.N : 2], row[1 : 2 * self.N : 2], strict=True))
            answers.append([paired[key] for key in row[2 * self.N :: 2]])
        return torch.tensor(answers, dtype=torch.int64).view(len(answers), self.queries)

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
