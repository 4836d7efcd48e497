"""Index Lookup, the task of Theorems 1–3: given s_1 … s_k and p, answer s_p.

Appendix H.1 draws a length k uniformly between 10 and N, symbols uniformly from Σ, and p uniformly
between 1 and k; it evaluates at k = N. It leaves open whether an example then holds k or N symbols.
Here it holds k, followed by the query and by padding that no one reads.

| token             | meaning                                   |
|-------------------|-------------------------------------------|
| 0 … |Σ| - 1       | symbols                                   |
| |Σ| … |Σ| + N - 1 | indices; |Σ| + p asks for s_{p+1}         |
| |Σ| + N           | padding                                   |
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.experiments.task import TASKS, Batch

SHORTEST = 10  # of the lengths k in training (Appendix H.1)


class MultiIndexLookup:
    """s_1 … s_k, p_1 … p_q: after each index, the symbol there.

    >>> task = MultiIndexLookup(N=3, alphabet=4, queries=2)
    >>> task.label(torch.tensor([[3, 1, 2, 4 + 2, 4 + 0]])).tolist()
    [[2, 3]]

    `N`: the largest number of symbols. `alphabet`: |Σ|, in the paper 64. `queries`: q.

    Raises ValueError for N, alphabet or queries below one.
    """

    name = "multi-index-lookup"

    def __init__(self, N: int, alphabet: int = 64, queries: int = 4) -> None:
        for name, value in (("N", N), ("alphabet", alphabet), ("queries", queries)):
            if value < 1:
                raise ValueError(f"got {name}={value}, expected at least 1")
        self.N, self.alphabet, self.queries = N, alphabet, queries
        self.pad = alphabet + N
        self.vocab, self.classes = alphabet + N + 1, alphabet
        self.max_len = N + queries
        self.chance = 1 / alphabet

    def sample(self, batch: int, *, rng: torch.Generator, exact: bool = False) -> Batch:
        """`batch` examples; see `companion.experiments.task.Task`."""
        symbols, k = self._symbols(batch, rng, exact)
        p = self._indices(k, self.queries, rng)
        targets = symbols.gather(1, p)
        read = k + torch.arange(self.queries, device=rng.device)  # (B, q)
        place = torch.arange(self.max_len, device=rng.device)
        blank = torch.full((batch, self.queries), self.pad, device=rng.device)
        tokens = torch.cat([symbols, blank], dim=1).masked_fill(place >= k, self.pad)
        return Batch(tokens.scatter(1, read, self.alphabet + p), read, targets)

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B q"]:
        """The symbol that each index token of each sequence points to."""
        answers = []
        for row in tokens.tolist():
            symbols = [s for s in row if s < self.alphabet]
            indices = [s - self.alphabet for s in row if self.alphabet <= s < self.pad]
            answers.append([symbols[p] for p in indices])
        return torch.tensor(answers, dtype=torch.int64).view(len(answers), self.queries)

    def _symbols(self, batch: int, rng: torch.Generator, exact: bool) -> tuple[Tensor, Tensor]:
        """Symbols (B, N), of which the first k count, and k (B, 1)."""
        options = {"generator": rng, "device": rng.device}
        symbols = torch.randint(self.alphabet, (batch, self.N), **options)
        shortest = self.N if exact else min(SHORTEST, self.N)
        return symbols, torch.randint(shortest, self.N + 1, (batch, 1), **options)

    @staticmethod
    def _indices(k: Tensor, queries: int, rng: torch.Generator) -> Tensor:
        """Uniform integers below k, (B, q). The bias of the remainder is below k / 2^62."""
        shape = (k.shape[0], queries)
        return torch.randint(2**62, shape, generator=rng, device=rng.device) % k


class IndexLookup(MultiIndexLookup):
    """s_1 … s_k, p: answer s_p.

    >>> task = IndexLookup(N=20)
    >>> batch = task.sample(2, rng=torch.Generator().manual_seed(0), exact=True)
    >>> batch.tokens.shape, batch.read.tolist()
    (torch.Size([2, 21]), [[20], [20]])
    >>> torch.equal(task.label(batch.tokens), batch.targets)
    True

    `N`: the largest number of symbols, in the paper 20 to 400. `alphabet`: |Σ|, in the paper 64.

    Raises ValueError for N or alphabet below one.
    """

    name = "index-lookup"

    def __init__(self, N: int, alphabet: int = 64) -> None:
        super().__init__(N, alphabet, queries=1)

    def asked(self) -> Float[np.ndarray, " N"]:
        """How likely a training example asks for each place: Σ_k 1 / k over the lengths k that
        reach it, divided by the number of lengths. The last place is asked for least often.

        >>> IndexLookup(N=11).asked().round(3)[[0, 9, 10]].tolist()
        [0.095, 0.095, 0.045]
        """
        k = np.arange(min(SHORTEST, self.N), self.N + 1)
        place = np.arange(1, self.N + 1)
        return ((place[:, None] <= k) / k).mean(1)


class IndexFirst(IndexLookup):
    """p, s_1 … s_k: the same question asked before the symbols, answered after the last one.

    A recurrent model needs only about log N bits of state for it: count down, then keep one symbol.

    >>> IndexFirst(N=3, alphabet=4).label(torch.tensor([[4 + 1, 0, 3, 2]])).tolist()
    [[3]]
    """

    name = "index-first"

    def sample(self, batch: int, *, rng: torch.Generator, exact: bool = False) -> Batch:
        """`batch` examples; see `companion.experiments.task.Task`."""
        symbols, k = self._symbols(batch, rng, exact)
        p = self._indices(k, 1, rng)
        place = torch.arange(self.N, device=rng.device)
        tokens = torch.cat([self.alphabet + p, symbols.masked_fill(place >= k, self.pad)], dim=1)
        return Batch(tokens, k, symbols.gather(1, p))


for task in (IndexLookup, MultiIndexLookup, IndexFirst):
    TASKS[task.name] = task
