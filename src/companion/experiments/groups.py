"""Runs that are trained at once: all rates and seeds of a setting on a GPU, else one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import torch

from companion.experiments.result import Result
from companion.experiments.run import Run
from companion.experiments.store import checkpoint_path, save
from companion.experiments.train import train, train_together
from companion.experiments.training import generator
from companion.models import MODELS, Population, SequenceModel, build

CLOSE = 1e-9  # of answers in double precision: the order in which numbers are added, nothing else

Outcomes = Iterator[tuple[Run, Result | Exception]]


def grouped(runs: Iterable[Run], *, together: bool) -> list[list[Run]]:
    """`runs` as populations, those of equal setting and stackable models; or one by one.

    >>> run = Run(task="index-lookup", length=2, model="lstm", alphabet=2)
    >>> runs = [run, run.replace(length=3), run.replace(learning_rate=1e-2), run.replace(seed=1)]
    >>> [len(group) for group in grouped(runs, together=True)]
    [3, 1]
    >>> [len(group) for group in grouped(runs, together=False)]
    [1, 1, 1, 1]
    """
    groups: dict[Run, list[Run]] = {}
    for run in runs:
        same = together and is_stackable(run.model)
        groups.setdefault(setting(run) if same else run, []).append(run)
    return list(groups.values())


def setting(run: Run) -> Run:
    """What the members of a population have in common: all but learning rate and seed."""
    return run.replace(learning_rate=1.0, seed=0)


def is_stackable(model: str) -> bool:
    """Whether a population of this model computes what its members compute alone.

    So do all models of this package. One of a reader's own does if it addresses axes from the
    right; if not, it is trained run by run. Found out by trying, on two members.
    """
    return _is_stackable(model, MODELS[model])


@cache
def _is_stackable(model: str, _: type[SequenceModel]) -> bool:
    task = Run(task="index-lookup", length=4, model=model, alphabet=3, width=8)
    config = task.model_config()
    members = [build(model, config, rng=generator(seed, "model")).double() for seed in (0, 1)]
    tokens = torch.randint(3, (2, 3, 4), generator=generator(0, "data"))
    read = torch.tensor([3, 1]).expand(2, 3, 2)  # as in training, only some rows are asked for
    try:
        population = Population(members)
        together, _ = population(tokens, read=read)
        members[0].load_state_dict(population.weights(0))
    except (RuntimeError, ValueError, IndexError, TypeError):
        return False
    parts = zip(members, tokens, read, strict=True)
    alone = torch.stack([member(own, read=rows)[0] for member, own, rows in parts])
    return alone.shape == together.shape and bool((alone - together).abs().max() < CLOSE)


def checkpoint_of(group: list[Run], folder: Path) -> Path:
    """Where the unfinished training of a group is kept; the same after some of it have ended."""
    together = checkpoint_path(setting(group[0]), folder)
    together = together.with_stem(f"{together.stem}-together")
    return together if len(group) > 1 or together.exists() else checkpoint_path(group[0], folder)


def outcomes(group: list[Run], folder: Path) -> Outcomes:
    """Each run of a group with its result, stored, or the error that was raised before it ended."""
    left, path = list(group), checkpoint_of(group, folder)
    try:
        for result in _train(group, path, alone=path == checkpoint_path(group[0], folder)):
            save(result, folder)
            left.remove(result.run)
            yield result.run, result
        path.unlink(missing_ok=True)
    except Exception as error:
        yield from ((run, error) for run in left)


def _train(group: list[Run], path: Path, *, alone: bool) -> Iterator[Result]:
    if alone:
        yield train(group[0], progress=False, checkpoint=path).result
    else:
        yield from train_together(group, progress=False, checkpoint=path)
