"""Figures drawn from stored results alone: each seed with its interval, the median as a line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from statistics import median

import numpy as np
import torch
from matplotlib.axes import Axes

from companion.book.appearance import (
    DASHED,
    INK,
    TOP,
    chance_line,
    legend_above,
    log2_x,
    looks,
    nines,
    percent,
)
from companion.experiments import Result, Score, verdicts
from companion.experiments.verdicts import NEAR_PERFECT, fastest_success, grouped, model_name
from companion.models import MODELS, ModelConfig, SequenceModel, build
from companion.theory import bounds

AXES = {"length": "length N", "width": "width", "alphabet": "symbols |Σ|"}


def accuracy_against(
    ax: Axes,
    results: Iterable[Result],
    field: str,
    chance: float,
    *,
    name: Callable[[Result], str] = model_name,
    score: Callable[[Result], Score] = lambda result: result.best,
    close: bool = False,
) -> Axes:
    """Accuracy against one number of the runs, a line for each model.

    `field`: that of `Run`, one of length, width, alphabet. `name`: which line a result belongs to.
    `score`: which of its scores is drawn; by default that of its best weights. `close`: look close
    at one, where 90, 99 and 99.9 % are equally far apart.

    >>> from matplotlib.figure import Figure
    >>> from companion.experiments import reported
    >>> results = reported("figure-2-index")
    >>> accuracy_against(Figure().subplots(), results, "length", chance=1 / 64).get_xlabel()
    'length N'

    Raises ValueError for another field.
    """
    if field not in AXES:
        raise ValueError(f"got field {field!r}, expected one of: {', '.join(AXES)}")
    lines: dict[str, dict[int, list[Score]]] = {}
    for runs in grouped(results).values():
        for result in runs:
            line = lines.setdefault(name(result), {})
            line.setdefault(getattr(result.run, field), []).append(score(result))
    for label, mark in looks(lines).items():
        seeds_and_median(ax, lines[label], mark, label, top=TOP if close else 1.0)
    chance_line(ax, chance)
    log2_x(ax, sorted({x for line in lines.values() for x in line}))
    nines(ax, 0.9 * chance) if close else percent(ax)
    ax.set(xlabel=AXES[field])
    legend_above(ax, 2)
    return ax


def seeds_and_median(
    ax: Axes,
    scores: Mapping[float | int, Sequence[Score]],
    mark: dict,
    name: str,
    top: float = 1.0,
) -> None:
    """Every seed's score with Wilson's interval, and a line through the medians; what is above
    `top` is drawn there."""
    points = [(x, s) for x, seeds in scores.items() for s in seeds]
    x, y = np.array([(x, min(s.accuracy, top)) for x, s in points]).T
    low, high = np.array([s.interval for _, s in points]).clip(0, top).T
    bars = {**mark, "linestyle": "none", "markersize": 4}
    ax.errorbar(x, y, np.stack([y - low, high - y]).clip(0), **bars, capsize=2, elinewidth=1)
    middle = sorted((x, min(median(s.accuracy for s in ss), top)) for x, ss in scores.items())
    ax.plot(*zip(*middle, strict=True), **mark, label=name)


def curves_in_multiples(ax: Axes, results: Iterable[Result], N: int, chance: float) -> Axes:
    """Accuracy on validation at length N along training, all seeds, with the steps as multiples of
    those that the Transformer took until it was near-perfect.

    >>> from matplotlib.figure import Figure
    >>> from companion.experiments import reported
    >>> results = reported("figure-2-index")
    >>> ax = curves_in_multiples(Figure().subplots(), results, N=50, chance=1 / 64)
    >>> ax.get_xlabel()
    "training, in multiples of the Transformer's"

    Raises ValueError if no Transformer among the results got that far at N.
    """
    groups = grouped(results)
    first = fastest_success(groups, N)
    if first is None:
        raise ValueError(f"got no Transformer with {NEAR_PERFECT:.0%} at N={N}, expected one")
    mine = {name: runs for (name, n), runs in groups.items() if n == N}
    for name, mark in looks(mine).items():
        for i, result in enumerate(mine[name]):
            step, _, accuracy = zip(*result.curve, strict=True)
            every = max(1, len(step) // 6)
            label = name if i == 0 else None
            ax.plot(np.array(step) / first[0], accuracy, **mark, lw=1.2, ms=4, markevery=every,
                    label=label)  # fmt: skip
    for multiple in (1, 3):
        ax.axvline(multiple, color=INK, lw=0.8, ls=DASHED)
    chance_line(ax, chance)
    percent(ax)
    ax.set(xlabel="training, in multiples of the Transformer's")
    legend_above(ax, 2)
    return ax


def accuracy_by_task(ax: Axes, results: Iterable[Result]) -> Axes:
    """Accuracy of every model on several tasks of one length, side by side; a line says what
    guessing is worth.

    >>> from matplotlib.figure import Figure
    >>> from companion.experiments import reported
    >>> results = [r for r in reported("figure-4") if r.run.length == 20]
    >>> accuracy_by_task(Figure().subplots(), results).get_xlabel()
    'N = 20'

    Raises ValueError for results of several lengths.
    """
    results = list(results)
    lengths = {r.run.length for r in results}
    if len(lengths) != 1:
        raise ValueError(f"got results of lengths {sorted(lengths)}, expected those of one")
    tasks = sorted({r.run.task for r in results})
    marks = looks(dict.fromkeys(name for name, _ in grouped(results)))
    for i, (name, mark) in enumerate(marks.items()):
        beside = 0.6 * ((i + 0.5) / len(marks) - 0.5)
        mine = {
            tasks.index(task) + beside: [
                r.best for r in results if r.run.task == task and model_name(r) == name
            ]
            for task in tasks
        }
        mine = {x: scores for x, scores in mine.items() if scores}
        seeds_and_median(ax, mine, {**mark, "linestyle": "none"}, name)
    for i, task in enumerate(tasks):
        chance = next(r.run for r in results if r.run.task == task).build_task().chance
        ax.plot([i - 0.4, i + 0.4], [chance] * 2, color=INK, lw=1, ls=DASHED)
    ax.set_xticks(range(len(tasks)), tasks)
    ax.set_xlabel(f"N = {lengths.pop()}")
    percent(ax)
    legend_above(ax, 2)
    return ax


def accuracy_by_state(ax: Axes, results: Iterable[Result], alphabet: int) -> Axes:
    """Accuracy against state bits a symbol, under the best that so many bits allow.

    >>> from matplotlib.figure import Figure
    >>> from companion.experiments import reported
    >>> results = [r for r in reported("figure-2-index") if r.run.model == "lstm"]
    >>> accuracy_by_state(Figure().subplots(), results, alphabet=64).get_xlabel()
    'state bits a symbol'
    """
    by_model: dict[str, dict[float, list[Score]]] = {}
    for result in results:
        rates = by_model.setdefault(result.run.model.replace("_", " "), {})
        rates.setdefault(state_rate(result), []).append(result.best)
    rates = [rate for scores in by_model.values() for rate in scores] + [math.log2(alphabet)]
    R = np.geomspace(min(rates) / 2, max(rates) * 2, 300)
    ax.plot(R, [bounds.accuracy_ceiling(float(r), alphabet) for r in R], color=INK, label="ceiling")
    for name, mark in looks(by_model).items():
        seeds_and_median(ax, by_model[name], mark, name)
    chance_line(ax, 1 / alphabet)
    log2_x(ax)
    percent(ax)
    ax.set(xlabel="state bits a symbol", xlim=(R[0], R[-1]))
    legend_above(ax, 3)
    return ax


def state_rate(result: Result) -> float:
    """Bits of the trained model's state after N symbols, in float32, for each of them."""
    run = result.run
    return _state_bits(run.model, MODELS[run.model], run.model_config(), run.length) / run.length


@cache
def _state_bits(name: str, _: type[SequenceModel], config: ModelConfig, t: int) -> int:
    """Known until another class is registered by that name."""
    model = build(name, config, rng=torch.Generator())
    return 32 * sum(map(math.prod, model.state_shapes(t)))


def rule_line(ax: Axes, accuracy: Mapping[int, float], name: str) -> None:
    """What a simple rule gets right, at each length or other number that the axis shows.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> rule_line(ax, {20: 0.97, 50: 0.98}, "counting")
    >>> ax.texts[0].get_text()
    'counting'
    """
    x, y = zip(*sorted(accuracy.items()), strict=True)
    ax.plot(x, y, color=INK, lw=1, ls=DASHED)
    ax.text(x[-1] * 1.03, y[-1], name, va="center")


def results_table(results: Iterable[Result], exam: str | None = None) -> list[tuple]:
    """Rows for `figures.table`: one for each model and length, seeds together. With `exam`, the
    name of a further exam of the task, a last column with the median accuracy on that.

    >>> from companion.experiments import reported
    >>> results_table(r for r in reported("figure-2-index") if r.run.model == "lstm")[0][:3]
    ('lstm-(1, 64)', 20, '0.005')
    """
    rows = []
    for (name, N), runs in grouped(results).items():
        accuracy = sorted(r.best.accuracy for r in runs)
        least, most = (
            f"{100 * a:.1f}".replace("100.0", "100") for a in (accuracy[0], accuracy[-1])
        )
        diverged = sum(r.status == "diverged" for r in runs)
        rows.append(
            (
                name,
                N,
                f"{runs[0].run.learning_rate:g}",
                f"{median(r.steps for r in runs):,.0f}",
                f"{len(runs)}" + (f", {diverged} diverged" if diverged else ""),
                f"{median(accuracy):.1%} ({least}–{most})",
                *(() if exam is None else (f"{verdicts.accuracy(runs, exam):.1%}",)),
            )
        )
    return rows


RESULTS_HEADER = ["model", "N", "rate", "steps", "seeds", "median (range)"]
__all__ = [
    "RESULTS_HEADER",
    "accuracy_against",
    "accuracy_by_state",
    "accuracy_by_task",
    "curves_in_multiples",
    "model_name",
    "results_table",
    "rule_line",
    "seeds_and_median",
    "state_rate",
]
