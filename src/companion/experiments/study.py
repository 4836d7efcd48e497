"""A study: the runs behind one figure, at four scales.

| scale  | for                                                                     |
|--------|-------------------------------------------------------------------------|
| smoke  | tests and live cells: seconds per run                                   |
| laptop | the stored results: minutes per run, three seeds                        |
| gpu    | one GPU and an hour or two: longer sequences, the rates of Appendix H   |
| paper  | the grid of Appendix H, for a cluster                                   |

A study first tries every learning rate with seed 0, the same rates for every architecture, and
then trains the best of each setting with all seeds. "Best" is decided by the validation examples,
on which nothing is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from companion.experiments.result import Result
from companion.experiments.run import Run

SEEDS = (0, 1, 2)
SCALES = ("smoke", "laptop", "gpu", "paper")
Trials = Callable[[str], Iterable[tuple[Run, int]]]


@dataclass(frozen=True)
class Study:
    """A named list of trials: runs of seed 0, each with the steps of a run that is reported.

    >>> run = Run(task="index-lookup", length=20, model="lstm", steps=100)
    >>> study = Study("rates", "Two rates", lambda scale: [(run.replace(learning_rate=lr), 100)
    ...                                                    for lr in (1e-2, 1e-3)])
    >>> [run.learning_rate for run in study.plan("laptop")([])]
    [0.01, 0.001]
    """

    name: str
    title: str
    trials: Trials  # of a scale: (run of seed 0, steps of the runs with all seeds)

    def plan(self, scale: str) -> Callable[[list[Result]], list[Run]]:
        """A function from the results so far to the runs wanted, for `sweep`.

        Raises ValueError for a scale that is none of smoke, laptop, gpu, paper.
        """
        if scale not in SCALES:
            raise ValueError(f"got preset {scale!r}, expected one of: {', '.join(SCALES)}")
        trials = list(self.trials(scale))
        seeds = SEEDS[:1] if scale == "smoke" else SEEDS

        def plan(results: list[Result]) -> list[Run]:
            return [run for run, _ in trials] + list(chosen(trials, results, seeds))

        return plan

    def reported(self, results: Iterable[Result], scale: str = "laptop") -> list[Result]:
        """Those of `results` that a figure shows: the runs at the best learning rates."""
        results = list(results)
        runs = set(chosen(list(self.trials(scale)), results, SEEDS))
        return [result for result in results if result.run in runs]


def chosen(
    trials: list[tuple[Run, int]], results: Iterable[Result], seeds: Iterable[int]
) -> Iterator[Run]:
    """For each setting whose trials are all among `results`, the best of them with all `seeds`.

    Settings differ in more than learning rate and steps of a trial. Seed by seed, so that a sweep
    cut short leaves whole figures of fewer seeds.
    """
    known = {result.run: result for result in results}
    settings: dict[tuple[Run, int], list[Run]] = {}
    for run, steps in trials:
        settings.setdefault((run.replace(learning_rate=1.0, steps=0), steps), []).append(run)
    for seed in seeds:
        for (_, steps), runs in settings.items():
            if all(run in known for run in runs):
                best = max((known[run] for run in runs), key=success)
                yield best.run.replace(seed=seed, steps=steps)


def success(result: Result) -> tuple[float, int]:
    """What makes one trial better than another: accuracy on validation, then fewer steps."""
    accuracy = max((check.accuracy for check in result.curve), default=0.0)
    return min(accuracy, result.run.stop_at), -result.steps
