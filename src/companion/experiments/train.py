"""Training: Adam, a fresh batch at every step, checks on fixed examples of length N."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import torch

from companion.experiments.device import Device, choose_device, cpu_settings
from companion.experiments.progress import Progress
from companion.experiments.result import Result, Score
from companion.experiments.run import Run
from companion.experiments.scoring import examine
from companion.experiments.task import Task
from companion.experiments.training import Training
from companion.models import SequenceModel


class Trained(NamedTuple):
    """A model with the weights of its best check, and the result of its run."""

    model: SequenceModel
    result: Result


def train(
    run: Run,
    *,
    progress: bool = True,
    device: Device | None = None,
    checkpoint: str | Path | None = None,
) -> Trained:
    """Train `run` and measure it on fresh examples of length exactly N.

    >>> run = Run(task="index-lookup", length=2, model="transformer", alphabet=2, steps=300)
    >>> model, result = train(run.replace(width=16, learning_rate=1e-2), progress=False)
    >>> result.status, result.best.accuracy > 0.99
    ('reached', True)

    `progress`: show a bar or line where there is a terminal or notebook. `device`: by default that
    of `choose_device`. The run ends early when two checks in a row reach `run.stop_at`, or when the
    loss is no longer a finite number (status "diverged"). On a CPU equal runs give equal results,
    whatever else draws random numbers meanwhile.

    `checkpoint`: a safetensors file in which the training is kept at its checks. If it exists, the
    training goes on from there, with the same result on a CPU as if it had never stopped. Raises
    ValueError for a file that is damaged, of another run, or from another kind of device.
    """
    place = choose_device() if device is None else device
    with cpu_settings() as threads, Progress(run.steps, label(run), show=progress) as bar:
        training = Training([run], place, checkpoint)
        (member,) = training.fit(bar)
        result = training.result(member, threads.count)
        bar.finish(summary(result))
    return Trained(training.alone, result)


def train_together(
    runs: Sequence[Run],
    *,
    progress: bool = True,
    device: Device | None = None,
    checkpoint: str | Path | None = None,
) -> Iterator[Result]:
    """Train runs that differ in nothing but learning rate and seed as one `Population`: the result
    of each as soon as it has ended, while the others go on without it.

    >>> run = Run(task="index-lookup", length=2, model="transformer", alphabet=2, steps=300)
    >>> runs = [run.replace(width=16, learning_rate=lr) for lr in (1e-6, 1e-2)]
    >>> [(r.run.learning_rate, r.status) for r in train_together(runs, progress=False)]
    [(0.01, 'reached'), (1e-06, 'finished')]

    The arguments are those of `train`. Each run sees the examples that it would see alone and
    starts from the same weights; numbers are added up in another order, so its result differs as
    between two machines. Seconds are those until a run ended, shared by all; the number of members
    is in the provenance. Raises ValueError if there are no runs, or they differ in more.
    """
    settings = {run.replace(learning_rate=1.0, seed=0) for run in runs}
    if len(settings) != 1 or len(set(runs)) != len(runs):
        raise ValueError(
            f"got {len(runs)} runs of {len(settings)} settings, expected different runs of 1 "
            "setting, which differ in learning rate and seed only"
        )
    place = choose_device() if device is None else device
    name = f"{len(runs)} × {label(runs[0])}"
    with cpu_settings() as threads, Progress(runs[0].steps, name, show=progress) as bar:
        training = Training(runs, place, checkpoint)
        for member in training.fit(bar):
            yield training.result(member, threads.count)
        bar.finish(f"all ended after {training.step:,} steps")


def evaluate(model: SequenceModel, task: Task, examples: int, *, rng: torch.Generator) -> Score:
    """The model's answers to fresh examples of length exactly N."""
    return examine(model, task.sample(examples, rng=rng, exact=True))[0]


def label(run: Run) -> str:
    """Model, task and length, and what of the model is not as it is by default.

    >>> label(Run(task="index-lookup", length=20, model="lstm", width=8))
    'lstm (width 8) on index-lookup, N = 20'
    """
    default = {field.name: field.default for field in fields(Run)}
    sizes = {
        "width": f"width {run.width}",
        "depth": f"{run.depth} layers",
        "heads": f"{run.heads} heads",
        "positions": f"{run.positions} positions".replace("none", "no"),
        "tied": "tied",
    }
    told = [text for name, text in sizes.items() if getattr(run, name) != default[name]]
    model = f"{run.model} ({', '.join(told)})" if told else run.model
    return f"{model} on {run.task}, N = {run.length}"


def summary(result: Result) -> str:
    """One line: how the run ended and how good it was."""
    ended = {"reached": "done", "finished": "all steps taken", "diverged": "DIVERGED"}
    text = f"{ended[result.status]} after {result.steps:,} steps, {result.seconds:.0f} s: "
    text += f"{result.final} of {result.final.total:,} right"
    best = next((check for check in result.curve if check.step == result.best_step), None)
    if best is not None and best.step != result.steps:
        text += f"; best on validation {100 * best.accuracy:.1f} % at step {best.step:,}"
    return text
