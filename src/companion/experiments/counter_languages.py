"""Formal languages that take counters: brackets, shuffled brackets, and blocks of equal length.

Strings, lengths and bins are those of `languages`. The answer after each prefix says which symbols
may follow, as far as that is not always the same.

| language     | symbols | answer after each prefix                                               |
|--------------|---------|------------------------------------------------------------------------|
| dyck-1       | ( )     | 1 if a bracket is open, so that ")" may follow                         |
| reset-dyck-1 | ( ) 1   | 1 if a bracket is open that was opened after the last "1"              |
| shuffle-2    | ( ) [ ] | 1 if "(" is open, and 2 more if "[" is; kinds ignore each other        |
| counter-2    | a b     | aⁿbⁿ: 0 if a or b, 1 if only b, 2 if nothing may follow                |
| counter-3    | a b c   | aⁿbⁿcⁿ: 0 if a or b, 1 if only b, 2 if only c, 3 if nothing may follow |

The older work drew brackets from a grammar that was stopped at a largest size. Here all strings of
one length are equally likely instead, without a loop: of the rotations of a sequence of m + 1 steps
up and m down exactly one stays above zero (the *cycle lemma* of Dvoretzky and Motzkin), and without
its first step that is a uniform bracket word. In reset-dyck-1 the "1" stands at any place with as
much chance; before it comes a beginning of a bracket word, after it a whole one.

| m | pairs of brackets, half the length of a bracket word |
|---|------------------------------------------------------|
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from companion.experiments.languages import Language
from companion.experiments.shuffle import choose
from companion.experiments.task import TASKS


def bracket_words(
    m: Int[Tensor, "B 1"], most: int, *, rng: torch.Generator
) -> Bool[Tensor, "B two_most"]:
    """Where uniform bracket words of 2m symbols open, m ≤ `most`; what follows them means nothing.

    >>> opens = bracket_words(torch.tensor([[1], [3]]), 3, rng=torch.Generator().manual_seed(0))
    >>> opens[0, :2].tolist(), int(opens[1].sum())
    ([True, False], 3)
    """
    place, cycle = torch.arange(2 * most + 1, device=rng.device), 2 * m + 1
    up = choose(m + 1, cycle, 2 * most + 1, rng=rng)
    height = (2 * up.long() - 1).cumsum(1)
    lowest = (height * len(place) - place).masked_fill(place >= cycle, len(place) ** 2)
    start = lowest.argmin(1, keepdim=True) + 2  # after the last lowest point and one step up
    return up.gather(1, (start + place[: 2 * most]) % cycle)


def bracket_prefixes(
    n: Int[Tensor, "B 1"], most: int, *, rng: torch.Generator
) -> Bool[Tensor, "B most"]:
    """Where uniform beginnings of bracket words open, n ≤ `most` symbols that may leave some open.

    Half of the steps go up, at random; then each step down to a new lowest point is turned up. This
    makes any of the walks that stay above -1 from exactly one sequence.

    >>> opens = bracket_prefixes(torch.tensor([[1], [3]]), 3, rng=torch.Generator().manual_seed(0))
    >>> opens[:, 0].tolist()
    [True, True]
    """
    up = choose((n + 1) // 2, n, most, rng=rng)
    height = (2 * up.long() - 1).cumsum(1)
    lowest = F.pad(height.cummin(1).values, (1, 0)).clamp(max=0)
    return up | (height < lowest[:, :-1])


class DyckOne(Language):
    """Brackets of one kind, of any depth: is one open?

    >>> DyckOne(50).label(torch.tensor([[0, 0, 1, 1, 0, 1]])).tolist()
    [[1, 1, 1, 0, 1, 0]]
    """

    name, symbols, classes, period = "dyck-1", "()", 2, 2

    def answer(self, prefix: str) -> int:
        """1 where more open than close."""
        return int(prefix.count("(") > prefix.count(")"))

    def _words(self, n: Tensor, most: int, rng: torch.Generator) -> Tensor:
        closes = ~bracket_words(n // 2, -(-most // 2), rng=rng)
        return closes[:, :most].long()

    def _answers(self, words: Tensor) -> Tensor:
        opened, closed = self._counts(words)
        return (opened > closed).long()


class ResetDyckOne(Language):
    """Brackets of one kind, of which "1" makes all forgotten: is one open?

    >>> ResetDyckOne(50).label(torch.tensor([[0, 0, 2, 0, 1]])).tolist()
    [[1, 1, 0, 1, 0]]
    """

    name, symbols, classes = "reset-dyck-1", "()1", 2
    reset = 2

    def answer(self, prefix: str) -> int:
        """1 where more open than close, from the last reset on."""
        recent = prefix.rpartition("1")[2]
        return int(recent.count("(") > recent.count(")"))

    def _words(self, n: Tensor, most: int, rng: torch.Generator) -> Tensor:
        place = torch.arange(most, device=rng.device)
        any_number = torch.randint(2**62, n.shape, generator=rng, device=rng.device)
        m = any_number % ((n + 1) // 2)  # pairs after the reset; the bias is below n / 2^62
        at = n - 1 - 2 * m
        before = ~bracket_prefixes(at, most, rng=rng)
        after = (~bracket_words(m, -(-most // 2), rng=rng)).gather(
            1, (place - at - 1).clamp(0, most - 1)
        )
        return torch.where(place < at, before, after).long().masked_fill(place == at, self.reset)

    def _answers(self, words: Tensor) -> Tensor:
        place = torch.arange(words.shape[1], device=words.device)
        last = torch.where(words == self.reset, place, -1).cummax(1).values
        depth = ((words == 0).long() - (words == 1).long()).cumsum(1)
        forgotten = torch.where(last >= 0, depth.gather(1, last.clamp(min=0)), 0)
        return (depth > forgotten).long()


class ShuffleTwo(Language):
    """Two bracket words with their symbols shuffled: which of the kinds is open?

    >>> ShuffleTwo(50).label(torch.tensor([[0, 2, 1, 3]])).tolist()  # ([)]
    [[1, 3, 2, 0]]
    """

    name, symbols, classes, period = "shuffle-2", "()[]", 4, 2

    def answer(self, prefix: str) -> int:
        """1 for "(", plus 2 for "["."""
        first = prefix.count("(") > prefix.count(")")
        second = prefix.count("[") > prefix.count("]")
        return int(first) + 2 * int(second)

    def _words(self, n: Tensor, most: int, rng: torch.Generator) -> Tensor:
        m, pairs = n // 2, -(-most // 2)
        first = self._pairs(m, pairs, rng)
        square = ~choose(2 * first, n, most, rng=rng)
        closes = torch.zeros_like(square)
        for kind, size in ((~square, first), (square, m - first)):
            at = (kind.cumsum(1) - 1).clamp(0, 2 * pairs - 1)
            closes |= kind & ~bracket_words(size, pairs, rng=rng).gather(1, at)
        return 2 * square.long() + closes.long()

    @staticmethod
    def _pairs(m: Tensor, most: int, rng: torch.Generator) -> Tensor:
        """How many of the m pairs are round: i, weighed by how many strings have i of them.

        C(2m, 2i) orders of Catalan(i) · Catalan(m - i) words; with what depends on m left out,
        1 / (i! (i + 1)! (m - i)! (m - i + 1)!). The largest of log weight + Gumbel noise is drawn
        with the right chances, and no GPU waits for it.
        """
        i = torch.arange(most + 1, device=rng.device)
        rest = (m - i).clamp(min=0)
        log_factorial = torch.lgamma(torch.arange(1.0, most + 3, device=rng.device).double())
        weight = -sum(log_factorial[k] for k in (i, i + 1, rest, rest + 1))
        weight = weight.masked_fill(i > m, -torch.inf)
        noise = torch.empty_like(weight).exponential_(generator=rng)
        return (weight - noise.log()).argmax(1, keepdim=True)

    def _answers(self, words: Tensor) -> Tensor:
        round_open, round_closed, square_open, square_closed = self._counts(words)
        return (round_open > round_closed).long() + 2 * (square_open > square_closed).long()


class CounterTwo(Language):
    """aⁿbⁿ: which symbols may follow? Each length has one string.

    >>> CounterTwo(50).label(torch.tensor([[0, 0, 1, 1]])).tolist()
    [[0, 0, 1, 2]]
    """

    name, symbols, classes, period = "counter-2", "ab", 3, 2

    def answer(self, prefix: str) -> int:
        """The block that must be filled next, 0 while the first may still grow."""
        counts = [prefix.count(symbol) for symbol in self.symbols]
        if counts[1] == 0:
            return 0
        return next((i for i, count in enumerate(counts) if count < counts[0]), len(counts))

    def _words(self, n: Tensor, most: int, rng: torch.Generator) -> Tensor:
        block = n // self.period
        return (torch.arange(most, device=rng.device) // block).clamp(max=self.alphabet - 1)

    def _answers(self, words: Tensor) -> Tensor:
        first, *others = self._counts(words)
        full = sum((count == first).long() for count in others)
        return torch.where(others[0] == 0, 0, 1 + full)


class CounterThree(CounterTwo):
    """aⁿbⁿcⁿ: which symbols may follow?

    >>> CounterThree(50).label(torch.tensor([[0, 0, 1, 1, 2, 2]])).tolist()
    [[0, 0, 1, 2, 2, 3]]
    """

    name, symbols, classes, period = "counter-3", "abc", 4, 3


for task in (DyckOne, ResetDyckOne, ShuffleTwo, CounterTwo, CounterThree):
    TASKS[task.name] = task
