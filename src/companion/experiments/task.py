"""What a task is: random examples with exact answers."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

NOTHING = -100  # a target where nothing is asked; PyTorch's cross entropy passes over it


class Batch(NamedTuple):
    """B examples of T tokens, each asking R questions.

    The answer to question r of example b is due after token `read[b, r]` and is `targets[b, r]`;
    `NOTHING` where nothing is asked. What follows the last position read does not matter.
    """

    tokens: Int[Tensor, "B T"]
    read: Int[Tensor, "B R"]
    targets: Int[Tensor, "B R"]


def answered(targets: Int[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
    """Where an answer is due: only these count, in the loss and in every score.

    >>> answered(torch.tensor([[1, 0], [2, NOTHING]])).tolist()
    [[True, True], [True, False]]
    """
    return targets != NOTHING


@runtime_checkable
class Task(Protocol):
    """A distribution over examples of one length.

    A task is made as `task(N, alphabet)`, which raises ValueError for an N that it does not have.
    """

    name: str
    N: int  # its length in the sense of the paper, e.g. symbols before the query
    vocab: int  # different tokens
    classes: int  # different answers
    max_len: int  # tokens of the longest example
    chance: float  # accuracy of the best answer that ignores the input

    def sample(self, batch: int, *, rng: torch.Generator, exact: bool = False) -> Batch:
        """`batch` independent examples, made on the device of `rng`.

        Lengths vary as in training; with `exact` every example has length N, as in evaluation.
        """

    def label(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B R"]:
        """The targets, from the tokens alone: the oracle of the tests, written without `sample`."""


TASKS: dict[str, type] = {}


def exams(task: Task) -> dict[str, Task]:
    """Other tasks that a model trained on `task` is examined on too, by name.

    A task that has some says so by a method `exams`: harder or longer examples of the same kind.

    >>> list(exams(build_task("index-lookup", N=20, alphabet=64)))
    []
    """
    listed = getattr(task, "exams", None)
    return {} if listed is None else listed()


def build_task(name: str, N: int, alphabet: int) -> Task:
    """The task called `name` at length N over an alphabet of `alphabet` symbols.

    >>> build_task("index-lookup", N=20, alphabet=64).vocab
    85

    Raises ValueError for an unknown name.
    """
    if name not in TASKS:
        raise ValueError(f"got task {name!r}, expected one of: {', '.join(sorted(TASKS))}")
    return TASKS[name](N, alphabet)
