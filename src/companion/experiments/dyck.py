"""Bounded brackets, the task of Theorem 5: is a word of length N in Dyck-(n, k)?

Appendix H.1 gives half of the examples label 1. Members come from a stack: open when it is empty,
close when it is full, else one of the n opening brackets or the closing one, all equally likely.
The others are members with 1 to N / 10 brackets replaced: half of these change their kind, half
open in place of closing or close in place of opening; what is a member all the same is done again.

Most of the others can be told by *counting*, with no regard to order. In every member, first and
last bracket open and close, and a bracket and its partner are an odd distance apart; so of each
kind as many open at even positions as close at odd ones, and the reverse. `HardDyck` keeps only
non-members that pass this.

| token        | meaning                      |
|--------------|------------------------------|
| 2c, 2c + 1   | opens kind c, closes kind c  |
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from companion.experiments.task import TASKS, Batch
from companion.theory import dyck

SHORTEST_HARD = 20  # below, only one bracket is replaced, and counting sees that


class Dyck:
    """Words of N brackets; after the last one, 1 for members of Dyck-(n, k) and 0 for others.

    >>> task = Dyck(N=6, alphabet=4)
    >>> task.label(torch.tensor([[0, 2, 3, 2, 3, 1], [0, 2, 1, 3, 0, 1]])).tolist()
    [[1], [0]]

    These are ([][]) and ([)]().

    `N`: length, even. `alphabet`: 2n, brackets that open and brackets that close; in the paper 4.
    `depth`: k, in the paper 2.

    Raises ValueError for N odd or below two, for an odd alphabet and for a depth below one.
    """

    name = "dyck"
    classes, chance = 2, 0.5

    def __init__(self, N: int, alphabet: int = 4, depth: int = 2) -> None:
        for name, value in (("N", N), ("alphabet", alphabet)):
            if value < 2 or value % 2:
                raise ValueError(f"got {name}={value}, expected an even number, at least 2")
        if depth < 1:
            raise ValueError(f"got depth={depth}, expected at least 1")
        self.N, self.alphabet, self.depth = N, alphabet, depth
        self.vocab, self.max_len = alphabet, N

    def sample(self, batch: int, *, rng: torch.Generator, exact: bool = False) -> Batch:
        """`batch` examples, all of length N; see `companion.experiments.task.Task`."""
        words = self.members(batch, rng=rng)
        positive = torch.rand(batch, generator=rng, device=rng.device) < 0.5
        words[~positive] = self.corrupt(words[~positive], rng=rng)
        read = torch.full((batch, 1), self.N - 1, device=rng.device)
        return Batch(words, read, positive.long()[:, None])

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B 1"]:
        """Membership by a stack."""
        language = dyck.Dyck(self.alphabet // 2, self.depth)
        return torch.as_tensor(language.many(tokens.cpu().numpy())).long()[:, None]

    def members(self, size: int, *, rng: torch.Generator) -> Int[Tensor, "size N"]:
        """Members, drawn as in Appendix H.1.

        The depth is a walk reflected at 0 and at k, or at what can still be closed, which matters
        for k > 3 only; there the paper's own steps would not end at length N.
        """
        options = {"generator": rng, "device": rng.device}
        n, at = self.alphabet // 2, torch.arange(self.N, device=rng.device)
        wish = 1 - 2 * (torch.randint(n + 1, (self.N, size), **options) == 0).long()
        depth = [torch.zeros(size, dtype=torch.int64, device=rng.device)]
        for left, step in zip(range(self.N, 0, -1), wish, strict=True):
            most = min(self.depth, left)
            depth.append(most - (most - (depth[-1] + step).abs()).abs())
        depth = torch.stack(depth, dim=1)  # (B, N + 1)
        opens = depth[:, 1:] > depth[:, :-1]
        kind = torch.randint(n, (size, self.N), **options)
        opener = torch.where(opens, at, self._openers(opens, depth))
        return 2 * kind.gather(1, opener) + (~opens).long()

    def corrupt(self, members: Int[Tensor, "B N"], *, rng: torch.Generator) -> Int[Tensor, "B N"]:
        """A non-member from each member, as in Appendix H.1."""
        found = self._replace(members, rng)
        while (again := self.accepts(found)).any():
            found[again] = self._replace(members[again], rng)
        return found

    def accepts(self, words: Int[Tensor, "B N"]) -> Bool[Tensor, " B"]:
        """Membership of B words at once, without a loop over positions."""
        opens = words % 2 == 0
        depth = torch.nn.functional.pad((2 * opens.long() - 1).cumsum(1), (1, 0))
        opener = self._openers(opens, depth)
        matched = opens | ((opener >= 0) & (words == words.gather(1, opener.clamp(min=0)) + 1))
        bounded = (depth >= 0) & (depth <= self.depth)
        return matched.all(1) & bounded.all(1) & (depth[:, -1] == 0)

    def balanced(self, words: Int[Tensor, "B N"]) -> Bool[Tensor, " B"]:
        """What counting can see: true for all members, and for some others."""
        right = (words[:, 0] % 2 == 0) & (words[:, -1] % 2 == 1)
        for c in range(0, self.alphabet, 2):
            opening, closing = words == c, words == c + 1
            for i in (0, 1):
                right &= opening[:, i::2].sum(1) == closing[:, 1 - i :: 2].sum(1)
        return right

    def _openers(self, opens: Tensor, depth: Tensor) -> Tensor:
        """For each closing bracket the last one before that opened its level; -1 if there is none.

        `opens` (B, N); `depth` (B, N + 1) before the first and after each bracket.
        """
        at = torch.arange(self.N, device=opens.device)
        found = torch.full_like(depth[:, 1:], -1)
        for level in range(self.depth):
            last = torch.where(opens & (depth[:, :-1] == level), at, -1).cummax(1).values
            found = torch.where(~opens & (depth[:, 1:] == level), last, found)
        return found

    def _replace(self, words: Tensor, rng: torch.Generator) -> Tensor:
        """1 to N / 10 brackets of each word replaced."""
        options = {"generator": rng, "device": rng.device}
        most, n = max(1, self.N // 10), self.alphabet // 2
        places = torch.rand(len(words), self.N, **options).topk(most).indices  # a random sequence
        many = torch.randint(1, most + 1, (len(words), 1), **options)
        old, at = words.gather(1, places), torch.arange(most, device=rng.device)
        other_kind = (old + 2 * torch.randint(1, max(2, n), old.shape, **options)) % self.alphabet
        turn = (torch.rand(old.shape, **options) < 0.5) | (n == 1)
        new = torch.where(turn, old ^ 1, other_kind)
        return words.scatter(1, places, torch.where(at < many, new, old))


class HardDyck(Dyck):
    """The same, but the non-members are those that counting cannot tell from members.

    >>> task = HardDyck(N=20)
    >>> tokens, _, targets = task.sample(100, rng=torch.Generator().manual_seed(0))
    >>> bool(task.balanced(tokens).all()), 0 < int(targets.sum()) < 100
    (True, True)

    Accuracy on it is the mean of that on members and that on hard non-members, so a constant answer
    gets 1/2. Raises ValueError for N below 20 too, where the generator makes no such word.
    """

    name = "dyck-hard"

    def __init__(self, N: int, alphabet: int = 4, depth: int = 2) -> None:
        super().__init__(N, alphabet, depth)
        if N < SHORTEST_HARD:
            raise ValueError(f"got N={N}, expected at least {SHORTEST_HARD}")

    def corrupt(self, members: Int[Tensor, "B N"], *, rng: torch.Generator) -> Int[Tensor, "B N"]:
        """As many non-members that pass `balanced`, made from other members: few do."""
        size, found = len(members), members[:0]
        while len(found) < size:
            fresh = self.members(max(1024, 32 * (size - len(found))), rng=rng)
            words = super().corrupt(fresh, rng=rng)
            found = torch.cat([found, words[self.balanced(words)]])
        return found[:size]


for task in (Dyck, HardDyck):
    TASKS[task.name] = task
