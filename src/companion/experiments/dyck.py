"""Bounded brackets, the task of Theorem 5: is a word of length N in Dyck-(n, k)?

Appendix H.1 gives half of the examples label 1. Members come from a stack: open when it is empty,
close when it is full, else one of the n opening brackets or the closing one, all equally likely.
The others are members with 1 to N / 10 brackets replaced: half of these change their kind, half
open in place of closing or close in place of opening. The paper repeats this for what is a member
all the same, a word in a hundred at N = 20, none at N = 200; here only one of its brackets stays
replaced, and no member is one bracket away from another. So a GPU is not made to wait for a test.

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
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from companion.experiments.shuffle import permutations
from companion.experiments.task import TASKS, Batch
from companion.theory import dyck

LARGEST = 2**60  # stacks of k brackets are whole numbers of 64 bits
AT_ONCE = 256  # words tried at a time where few are kept; more do not fit a CPU's cache
SHORTEST_HARD = 20  # below, only one bracket is replaced, and counting sees that


class Dyck:
    """Words of N brackets; after the last one, 1 for members of Dyck-(n, k) and 0 for others.

    >>> task = Dyck(N=6, alphabet=4)
    >>> task.label(torch.tensor([[0, 2, 3, 2, 3, 1], [0, 2, 1, 3, 0, 1]])).tolist()
    [[1], [0]]

    These are ([][]) and ([)]().

    `N`: length, even. `alphabet`: 2n, brackets that open and brackets that close; in the paper 4.
    `depth`: k, in the paper 2.

    Raises ValueError for N odd or below two, for an odd alphabet, for a depth below one and for one
    at which there are too many stacks to number.
    """

    name = "dyck"
    classes, chance = 2, 0.5

    def __init__(self, N: int, alphabet: int = 4, depth: int = 2) -> None:
        for name, value in (("N", N), ("alphabet", alphabet)):
            if value < 2 or value % 2:
                raise ValueError(f"got {name}={value}, expected an even number, at least 2")
        if depth < 1:
            raise ValueError(f"got depth={depth}, expected at least 1")
        if (alphabet // 2 + 1) ** depth > LARGEST:
            raise ValueError(
                f"got depth={depth} with alphabet={alphabet}, expected (n + 1)^k of at most 2^60"
            )
        self.N, self.alphabet, self.depth = N, alphabet, depth
        self.vocab, self.max_len = alphabet, N

    def exams(self) -> dict[str, Dyck]:
        """The same with non-members that counting cannot tell, where the generator makes any."""
        if self.N < SHORTEST_HARD:
            return {}
        return {HardDyck.name: HardDyck(self.N, self.alphabet, self.depth)}

    def sample(self, batch: int, *, rng: torch.Generator, exact: bool = False) -> Batch:
        """`batch` examples, all of length N; see `companion.experiments.task.Task`."""
        positive = torch.rand(batch, 1, generator=rng, device=rng.device) < 0.5
        words = self._spoil(self.members(batch, rng=rng), ~positive, rng)
        read = torch.full((batch, 1), self.N - 1, device=rng.device)
        return Batch(words, read, positive.long())

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B 1"]:
        """Membership by a stack."""
        language = dyck.Dyck(self.alphabet // 2, self.depth)
        return torch.as_tensor(language.many(tokens.cpu().numpy())).long()[:, None]

    def members(self, size: int, *, rng: torch.Generator) -> Int[Tensor, "size N"]:
        """Members, drawn as in Appendix H.1."""
        n = self.alphabet // 2
        place = torch.arange(1, self.N + 1, dtype=torch.int32, device=rng.device)
        depth = self._depths(size, rng).to(torch.int8)  # (B, N + 1)
        opens, level = depth[:, 1:] > depth[:, :-1], torch.minimum(depth[:, 1:], depth[:, :-1])
        opener = torch.zeros(size, self.N, dtype=torch.int32, device=rng.device)
        for i in range(self.depth):
            here = level == i
            opener += here * (place * (opens & here)).cummax(1).values
        kind = 2 * torch.randint(n, (size, self.N), generator=rng, device=rng.device)
        return kind.gather(1, opener.long() - 1) + (~opens).long()

    def corrupt(self, members: Int[Tensor, "B N"], *, rng: torch.Generator) -> Int[Tensor, "B N"]:
        """A non-member from each member, almost as in Appendix H.1: see above."""
        found, place, bracket = self._replace(members, rng)
        one = members.scatter(1, place, bracket)
        return torch.where(self.accepts(found)[:, None], one, found)

    def accepts(self, words: Int[Tensor, "B N"]) -> Bool[Tensor, " B"]:
        """Membership of B words at once, without a loop over positions.

        The open brackets are a number in base n + 1, the outermost its lowest digit: opening kind c
        at level l adds (c + 1) (n + 1)^l, closing subtracts it. At the first bracket that closes
        none, or another kind, what is left is negative or still has a digit at level l.
        """
        base = self.alphabet // 2 + 1
        small = words.shape[1] * base**self.depth < 2**15  # a quarter of the bytes to move
        words = words.to(torch.int16 if small else torch.int64)
        closes = words & 1
        sign = 1 - 2 * closes
        depth = sign.cumsum(1, dtype=words.dtype)
        level = (depth - 1 + closes).clamp(0, self.depth - 1)
        unit = base ** torch.arange(self.depth, device=words.device)
        unit = unit.to(words.dtype)[level.long()]  # (B, N)
        stack = (sign * ((words >> 1) + 1) * unit).cumsum(1, dtype=words.dtype)
        mistakes = stack | (unit - 1 - stack * closes) | (self.depth - depth)  # where negative
        least = F.pad(mistakes, (0, 1)).amin(1)  # padded, since N may be 0
        return (least == 0) & (stack[:, -1:] == 0).all(1)

    def balanced(self, words: Int[Tensor, "B N"]) -> Bool[Tensor, " B"]:
        """What counting can see: true for all members, and for some others."""
        right = (words[:, 0] % 2 == 0) & (words[:, -1] % 2 == 1)
        for c in range(0, self.alphabet, 2):
            opening, closing = words == c, words == c + 1
            for i in (0, 1):
                right &= opening[:, i::2].sum(1) == closing[:, 1 - i :: 2].sum(1)
        return right

    def _depths(self, size: int, rng: torch.Generator) -> Tensor:
        """Open brackets before the first and after each, (size, N + 1).

        A walk reflected at 0 and at k, or at what can still be closed, which matters for k > 3
        only; there the paper's own steps would not end at length N. For k ≤ 2 it is back at 0, or
        at 2, after every second step, each time anew.
        """
        options = {"generator": rng, "device": rng.device}
        n = self.alphabet // 2
        if self.depth <= 2:
            inner = torch.rand(size, self.N // 2 - 1, **options) * (n + 1) < n * (self.depth - 1)
            depth = torch.ones(size, self.N + 1, dtype=torch.int64, device=rng.device)
            depth[:, ::2] = 2 * F.pad(inner.long(), (1, 1))
            return depth
        wish = 1 - 2 * (torch.randint(n + 1, (self.N, size), **options) == 0).long()
        depths = [torch.zeros(size, dtype=torch.int64, device=rng.device)]
        for left, step in zip(range(self.N, 0, -1), wish, strict=True):
            most = min(self.depth, left)
            depths.append(most - (most - (depths[-1] + step).abs()).abs())
        return torch.stack(depths, dim=1)

    def _spoil(self, words: Tensor, chosen: Tensor, rng: torch.Generator) -> Tensor:
        """The words, but non-members where `chosen` (B, 1)."""
        return torch.where(chosen, self.corrupt(words, rng=rng), words)

    def _replace(self, words: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """1 to N / 10 brackets of each word replaced; place and new bracket of one of them."""
        options = {"generator": rng, "device": rng.device}
        most, n = max(1, self.N // 10), self.alphabet // 2
        places = permutations(len(words), self.N, rng=rng)[:, :most]
        many = torch.randint(1, most + 1, (len(words), 1), **options)
        old, at = words.gather(1, places), torch.arange(most, device=rng.device)
        other_kind = (old + 2 * torch.randint(1, max(2, n), old.shape, **options)) % self.alphabet
        turn = (torch.rand(old.shape, **options) < 0.5) | (n == 1)
        new = torch.where(turn, old ^ 1, other_kind)
        found = words.scatter(1, places, torch.where(at < many, new, old))
        return found, places[:, :1], new[:, :1]


class HardDyck(Dyck):
    """The same, but the non-members are those that counting cannot tell from members.

    >>> task = HardDyck(N=20)
    >>> tokens, _, targets = task.sample(100, rng=torch.Generator().manual_seed(0))
    >>> bool(task.balanced(tokens).all()), 0 < int(targets.sum()) < 100
    (True, True)

    Accuracy on it is the mean of that on members and that on hard non-members, so a constant answer
    gets 1/2. Words are drawn until enough pass, which makes a GPU wait: this is for evaluation more
    than for training. Raises ValueError for N below 20 too, where the generator makes no such word.
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
            words, *_ = self._replace(self.members(AT_ONCE, rng=rng), rng)
            words = words[self.balanced(words)]
            found = torch.cat([found, words[~self.accepts(words)]])
        return found[:size]

    def _spoil(self, words: Tensor, chosen: Tensor, rng: torch.Generator) -> Tensor:
        """The words, but non-members where `chosen` (B, 1); no more are made than needed."""
        words[chosen[:, 0]] = self.corrupt(words[chosen[:, 0]], rng=rng)
        return words


for task in (Dyck, HardDyck):
    TASKS[task.name] = task
