"""Formal languages read symbol by symbol: an answer is due after every one (Irie et al. 2023).

Strings of 2 to N symbols are for training, and for evaluation as Bin0; strings of N + 1 to 2N, as
Bin1, show whether a model has learned more than the lengths it has seen, and two more bins, up to
4N, how far that goes. There is an answer at
every position, and a string counts as right only if all of them are.

Every string is a member of its language, but for parity, where any string is drawn. All lengths
that a language has are equally likely, and so are its strings of one length. A shorter string is
followed by padding, where nothing is asked. Here are the three regular languages that no
star-free expression describes; `counter_languages` has the others.

| language           | symbols | answer after each prefix          |
|--------------------|---------|-----------------------------------|
| parity             | 0 1     | 1 if it holds an even number of 1s |
| aa-star, (aa)*     | a       | 1 if it is a member               |
| abab-star, (abab)* | a b     | 1 if it is a member               |

Token i is symbol i of the language, and the one after the last symbol is the padding.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import cache
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from companion.experiments.task import NOTHING, TASKS, Batch, answered

SHORTEST = 2  # symbols of a string
LONGEST = 4  # models are made for strings of up to 4N symbols, so that lengths can be extrapolated


class Language(ABC):
    """Strings of one language with an answer after each symbol.

    `N`: the longest string of training, in the paper 50. `alphabet`: how many symbols the language
    has; no other number is accepted. `bin`: 0 for up to N symbols, 1 for N + 1 to 2N, up to 3.

    Raises ValueError for another alphabet, for an N below the shortest string, and for another bin.
    """

    name: ClassVar[str]
    symbols: ClassVar[str]
    classes: ClassVar[int]
    period: ClassVar[int] = 1  # lengths are multiples of it

    def __init__(self, N: int, alphabet: int | None = None, bin: int = 0) -> None:
        size = len(self.symbols)
        if alphabet not in (None, size):
            raise ValueError(f"got alphabet={alphabet} for {self.name}, expected {size}")
        shortest = max(SHORTEST, self.period)
        if N < shortest:
            raise ValueError(f"got N={N} for {self.name}, expected at least {shortest}")
        if bin not in range(LONGEST):
            raise ValueError(f"got bin={bin}, expected 0 to {LONGEST - 1}")
        self.N, self.alphabet, self.pad, self.vocab = N, size, size, size + 1
        self.max_len = LONGEST * N
        self.span = (bin * N + 1, (bin + 1) * N) if bin else (SHORTEST, N)  # lengths from, to

    def exams(self) -> dict[str, Language]:
        """Bin1, bin2, …: the same language, strings longer than any in training."""
        return {f"bin{i}": type(self)(self.N, bin=i) for i in range(1, LONGEST)}

    @property
    def chance(self) -> float:
        """Share of the most frequent answer among those of 4,096 strings: an estimate."""
        return _most_frequent(type(self), self.N, self.span)

    def sample(self, batch: int, *, rng: torch.Generator, exact: bool = False) -> Batch:
        """`batch` strings of this bin; see `companion.experiments.task.Task`.

        `exact` makes no difference: evaluation has all lengths of a bin too.
        """
        return self.draw(batch, *self.span, rng=rng)

    def draw(self, batch: int, shortest: int, longest: int, *, rng: torch.Generator) -> Batch:
        """`batch` strings of `shortest` to `longest` symbols.

        Raises ValueError where the language has no string.
        """
        lengths = self.lengths(shortest, longest)
        options = {"generator": rng, "device": rng.device}
        units = (lengths[0] // self.period, lengths[-1] // self.period + 1)
        n = self.period * torch.randint(*units, (batch, 1), **options)
        place = torch.arange(longest, device=rng.device)
        words = self._words(n, longest, rng)
        targets = self._answers(words).masked_fill(place >= n, NOTHING)
        return Batch(words.masked_fill(place >= n, self.pad), place.repeat(batch, 1), targets)

    def lengths(self, shortest: int, longest: int) -> range:
        """The lengths of strings in this range.

        >>> list(AbabStar(50).lengths(2, 12))
        [4, 8, 12]

        Raises ValueError where the language has no string.
        """
        first = max(-(-shortest // self.period), 1) * self.period
        if first > longest:
            raise ValueError(f"got lengths {shortest} to {longest}, expected one of {self.name}")
        return range(first, longest + 1, self.period)

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        """The answer after each prefix, from the definition of the language."""
        answers = []
        for row in tokens.tolist():
            word = "".join(self.symbols[token] for token in row if token != self.pad)
            found = [self.answer(word[: t + 1]) for t in range(len(word))]
            answers.append(found + [NOTHING] * (len(row) - len(word)))
        return torch.tensor(answers, dtype=torch.int64).view(tokens.shape)

    @abstractmethod
    def answer(self, prefix: str) -> int:
        """The right answer after `prefix`."""

    @abstractmethod
    def _words(self, n: Tensor, most: int, rng: torch.Generator) -> Tensor:
        """Tokens (B, most), of which the first n (B, 1) count."""

    @abstractmethod
    def _answers(self, words: Tensor) -> Tensor:
        """The answers (B, T) at all positions at once."""

    def _counts(self, words: Tensor) -> list[Tensor]:
        """How often each symbol has come so far, (B, T) for each."""
        return [(words == c).cumsum(1) for c in range(self.alphabet)]


@cache
def _most_frequent(language: type[Language], N: int, span: tuple[int, int]) -> float:
    rng = torch.Generator().manual_seed(0)
    targets = language(N).draw(4096, *span, rng=rng).targets
    counts = torch.bincount(targets[answered(targets)])
    return float(counts.max() / counts.sum())


class Parity(Language):
    """Strings of 0 and 1: is the number of 1s so far even?

    >>> task = Parity(50)
    >>> task.label(torch.tensor([[0, 1, 0, 1, task.pad]])).tolist()
    [[1, 0, 0, 1, -100]]
    """

    name, symbols, classes = "parity", "01", 2

    def answer(self, prefix: str) -> int:
        """1 after an even number of 1s."""
        return int(prefix.count("1") % 2 == 0)

    def _words(self, n: Tensor, most: int, rng: torch.Generator) -> Tensor:
        return torch.randint(2, (len(n), most), generator=rng, device=rng.device)

    def _answers(self, words: Tensor) -> Tensor:
        return 1 - self._counts(words)[1] % 2


class Star(Language):
    """Repetitions of one word: is the prefix made of whole ones? Each length has one string."""

    word: ClassVar[str]

    def answer(self, prefix: str) -> int:
        """1 after a member."""
        return int(re.fullmatch(f"({self.word})*", prefix) is not None)

    def _words(self, n: Tensor, most: int, rng: torch.Generator) -> Tensor:
        return (torch.arange(most, device=rng.device) % self.alphabet).repeat(len(n), 1)

    def _answers(self, words: Tensor) -> Tensor:
        place = torch.arange(words.shape[1], device=words.device)
        right = (words == place % self.alphabet).long().cumprod(1)
        return right * ((place + 1) % self.period == 0)


class AaStar(Star):
    """(aa)*: parity of the length.

    >>> AaStar(50).label(torch.tensor([[0, 0, 0, 0]])).tolist()
    [[0, 1, 0, 1]]
    """

    name, symbols, classes, word, period = "aa-star", "a", 2, "aa", 2


class AbabStar(Star):
    """(abab)*: the parity of how often "ab" has come.

    >>> AbabStar(50).label(torch.tensor([[0, 1, 0, 1, 0]])).tolist()
    [[0, 0, 0, 1, 0]]
    """

    name, symbols, classes, word, period = "abab-star", "ab", 2, "abab", 4


for task in (Parity, AaStar, AbabStar):
    TASKS[task.name] = task
