"""How far a model trained on a language gets: its accuracy at each length, seen or not.

Strings that are drawn more than once count once. Some of the languages have one string of each
length; a hundred copies would tell no more about it, and yet make the interval narrow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch

from companion.experiments.languages import Language
from companion.experiments.result import Score
from companion.experiments.scoring import examine
from companion.experiments.task import Batch
from companion.models import SequenceModel


class Scores(NamedTuple):
    """How many answers are right, and in how many strings all of them."""

    symbols: Score
    strings: Score


class Splits(NamedTuple):
    """Different strings among those drawn for training, on Bin0 and on Bin1.

    With few strings of each length, a model has seen all of Bin0 before it is asked about it.
    """

    training: int
    bin0: int
    bin1: int
    shared: float  # of the different strings of Bin0, those in training; of Bin1 there are none


def accuracy_by_length(
    model: SequenceModel,
    task: Language,
    lengths: Iterable[int],
    examples: int = 100,
    *,
    rng: torch.Generator,
) -> dict[int, Scores]:
    """Scores at single lengths, such as `task.lengths(2, 4 * task.N)`.

    Raises ValueError for a length that the language does not have.
    """
    drawn = {n: different(task.draw(examples, n, n, rng=rng)) for n in lengths}
    return {n: Scores(*examine(model, batch)) for n, batch in drawn.items()}


def splits(
    task: Language, training: int = 10_000, examples: int = 2000, *, rng: torch.Generator
) -> Splits:
    """The overlap of `training` strings with `examples` fresh ones.

    >>> from companion.experiments.counter_languages import CounterTwo
    >>> splits(CounterTwo(50), rng=torch.Generator().manual_seed(0))
    Splits(training=25, bin0=25, bin1=25, shared=1.0)
    """
    longer = task.exams()["bin1"]
    seen, bin0, bin1 = (
        _strings(drawn.sample(size, rng=rng))
        for drawn, size in ((task, training), (task, examples), (longer, examples))
    )
    return Splits(len(seen), len(bin0), len(bin1), len(seen & bin0) / len(bin0))


def different(batch: Batch) -> Batch:
    """Each string of a batch once."""
    rows = list({row.tobytes(): i for i, row in enumerate(batch.tokens.cpu().numpy())}.values())
    return Batch(*(part[rows] for part in batch))


def _strings(batch: Batch) -> set[bytes]:
    return {row.tobytes() for row in batch.tokens.cpu().numpy()}
