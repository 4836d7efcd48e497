"""What the papers say in words of their experiments, held against the stored results.

Each claim is a function that returns a verdict: the cases it rests on and the outcome. Nothing is
written by hand, so a verdict changes when better results are stored.

| outcome                | meaning                                                           |
|------------------------|-------------------------------------------------------------------|
| reproduced             | every stored result agrees                                        |
| partly                 | some do                                                           |
| not at this scale      | none does, with the budget that the results name                  |
| no results             | nothing is stored that could tell                                 |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from statistics import median
from typing import NamedTuple

from companion.experiments.result import Result
from companion.experiments.studies import reported

NEAR_PERFECT = 0.99  # our reading of "near-perfect accuracy"
STRUGGLES = 0.90  # our reading of "struggle" and "degrade": below this

Groups = Mapping[tuple[str, int], list[Result]]  # by name of the model and length


class Verdict(NamedTuple):
    """A claim of the paper in our words, and for each case that could tell whether it agrees.

    >>> Verdict("2", "all swans are white", {"one": True, "two": False}).outcome
    'partly'
    """

    figure: str
    claim: str
    cases: Mapping[str, bool]

    @property
    def outcome(self) -> str:
        """What became of the claim; see the table above."""
        good = sum(self.cases.values())
        if not self.cases:
            return "no results"
        if good == len(self.cases):
            return "reproduced"
        return "partly" if good else "not at this scale"


def model_name(result: Result) -> str:
    """Architecture, layers and width, as the paper writes them.

    >>> from companion.experiments import Run, Score
    >>> run = Run(task="index-lookup", length=20, model="transformer", tied=True)
    >>> model_name(Result(run, "finished", 1, [], Score(1, 1), Score(1, 1), 1, 1.0, 1.0))
    'transformer-(1, 64), tied'
    """
    run = result.run
    name = run.model.replace("_", " ")
    name = f"{name}-({run.depth}, {run.width})" + (", tied" if run.tied else "")
    return name + (", one head" if run.heads == 1 else "")


def grouped(results: Iterable[Result]) -> Groups:
    """The seeds of each model and length, lengths in order."""
    groups: dict[tuple[str, int], list[Result]] = {}
    for result in sorted(results, key=lambda r: (r.run.length, r.run.model, r.run.depth)):
        groups.setdefault((model_name(result), result.run.length), []).append(result)
    return groups


def accuracy(results: Iterable[Result], exam: str | None = None) -> float:
    """Median over seeds, with the best weights of each; on another exam of the task if named.

    A diverged run counts with what its best weights do.
    """
    return median((r.best if exam is None else r.more[exam]).accuracy for r in results)


def attention_looks_up() -> Verdict:
    """Figure 2, left: the one-layer Transformer."""
    cases = {}
    for (name, N), runs in grouped(reported("figure-2-index")).items():
        if name == "transformer-(1, 64)":
            steps = max(r.steps for r in runs)
            cases[f"N = {N}: {accuracy(runs):.1%} in {steps:,} steps"] = (
                accuracy(runs) >= NEAR_PERFECT
            )
    claim = "A one-layer Transformer of width 64 gets near-perfect within a few thousand steps"
    return Verdict("2, left", claim, cases)


def rivals_do_not() -> Verdict:
    """Figure 2, left and middle: recurrent models on more than 50 symbols."""
    groups = grouped(reported("figure-2-index"))
    cases = {
        f"{name} at N = {N}: {accuracy(runs):.1%}": accuracy(runs) < STRUGGLES
        for (name, N), runs in groups.items()
        if N >= 100 and not name.startswith("transformer")
    }
    return Verdict("2, left", "Recurrent models degrade at lengths of 100 and more", cases)


def even_with_more_steps() -> Verdict:
    """Figure 2, middle: the budget of the rivals, in units of the Transformer's."""
    groups = grouped(reported("figure-2-index"))
    cases = {}
    for (name, N), runs in groups.items():
        first = fastest_success(groups, N)
        if first is None or N < 50 or name.startswith("transformer"):
            continue
        times = min(r.steps for r in runs) / first
        case = f"{name} at N = {N}: {accuracy(runs):.1%} with {times:.1f} times the steps"
        cases[case] = accuracy(runs) < STRUGGLES and times >= 3
    claim = "They fail even with many times the Transformer's steps (here: at least three)"
    return Verdict("2, middle", claim, cases)


def fastest_success(groups: Groups, N: int) -> float | None:
    """Steps, median over seeds, after which the fastest of the Transformers is near-perfect at N:
    for the first time on the validation examples."""
    steps = [
        float(median(first_success(r) for r in runs))
        for (name, n), runs in groups.items()
        if n == N and name.startswith("transformer") and accuracy(runs) >= NEAR_PERFECT
    ]
    return min(steps, default=None)


def first_success(result: Result) -> int:
    """The first check of a run that was near-perfect, or all its steps if none was."""
    good = (check.step for check in result.curve if check.accuracy >= NEAR_PERFECT)
    return next(good, result.steps)


def lstm_learns_brackets() -> Verdict:
    """Figure 2, right: LSTMs."""
    return _dyck("lstm", "LSTMs of width 64 get near-perfect at every length", lambda N, x: x)


def one_layer_struggles() -> Verdict:
    """Figure 2, right: one layer of attention."""
    claim = "A one-layer Transformer gets near-perfect up to length 100 and struggles beyond"
    return _dyck("transformer-(1,", claim, lambda N, good: good == (N <= 100))


def two_layers_learn_brackets() -> Verdict:
    """Figure 2, right: two layers of attention."""
    claim = "A two-layer Transformer gets near-perfect at every length"
    return _dyck("transformer-(2,", claim, lambda N, good: good)


def _dyck(prefix: str, claim: str, holds: Callable[[int, bool], bool]) -> Verdict:
    """Near-perfect must mean on hard non-members too: counting alone gets the others right."""
    cases = {}
    for (name, N), runs in grouped(reported("figure-2-dyck")).items():
        if name.startswith(prefix):
            hard = accuracy(runs, "dyck-hard")
            text = f"N = {N}: {accuracy(runs):.1%}, on hard ones {hard:.1%}"
            cases[text] = holds(N, hard >= NEAR_PERFECT)
    return Verdict("2, right", claim, cases)


def wider_mamba_is_better() -> Verdict:
    """Figure 3."""
    by_length: dict[int, list[tuple[int, float]]] = {}
    for (_, N), runs in grouped(reported("figure-3")).items():
        for width in sorted({r.run.width for r in runs}):
            same = [r for r in runs if r.run.width == width]
            by_length.setdefault(N, []).append((width, accuracy(same)))
    cases = {}
    for N, points in by_length.items():
        values = [value for _, value in sorted(points)]
        text = ", ".join(f"{value:.1%} at width {width}" for width, value in sorted(points))
        cases[f"N = {N}: {text}"] = len(values) > 1 and values == sorted(values)
    return Verdict("3", "Mamba's accuracy rises with its width", cases)


def attention_compares() -> Verdict:
    """Figure 4, left: the two tasks of classification."""
    return _equality(
        ("eq-random", "eq-one"),
        "transformer",
        "Transformers get near-perfect on Eq-random and Eq-one",
        lambda x: x >= NEAR_PERFECT,
    )


def attention_copies() -> Verdict:
    """Figure 4, right: the next symbol."""
    return _equality(
        ("eq-ncp",),
        "transformer",
        "Transformers get near-perfect where the second half must be produced",
        lambda x: x >= NEAR_PERFECT,
    )


def small_states_do_not_copy() -> Verdict:
    """Figure 4, right: rivals of width 64."""
    return _equality(
        ("eq-ncp",),
        "",
        "Recurrent models of width 64 struggle there",
        lambda x: x < STRUGGLES,
    )


def _equality(
    tasks: tuple[str, ...], prefix: str, claim: str, holds: Callable[[float], bool]
) -> Verdict:
    """With the usual steps and, where tried, with many more."""
    cases = {}
    for task, study in product(tasks, ("figure-4", "further")):
        results = [r for r in reported(study) if r.run.task == task]
        for (name, N), runs in grouped(results).items():
            rival = not name.startswith("transformer")
            if name.startswith(prefix) if prefix else rival:
                steps = max(r.run.steps for r in runs)
                text = f"{name} on {task} at N = {N}: {accuracy(runs):.1%} in {steps:,} steps"
                cases[text] = holds(accuracy(runs))
    return Verdict("4", claim, cases)


def recurrent_programmers_generalise() -> Verdict:
    """Irie et al., abstract: Recurrent Delta and SRWM."""
    claim = "Recurrent and self-referential fast weights generalise on parity to longer strings"
    return _parity(("recurrent delta", "srwm"), claim, lambda x: x >= NEAR_PERFECT)


def linear_ones_do_not() -> Verdict:
    """Irie et al., abstract: the models that those overcome."""
    names = ("linear transformer", "linear unnormalised", "deltanet-")
    return _parity(names, "Linear Transformers do not", lambda x: x < STRUGGLES)


def _parity(names: tuple[str, ...], claim: str, holds: Callable[[float], bool]) -> Verdict:
    """Whole strings of Bin1, longer than any in training."""
    parity = [r for r in reported("languages") if r.run.task == "parity"]
    cases = {}
    for (name, N), runs in grouped(parity).items():
        if name.startswith(names):
            value = accuracy(runs, "bin1 examples")
            cases[f"{name}: {value:.1%} of strings with {N + 1} to {2 * N} symbols"] = holds(value)
    return Verdict("Irie et al.", claim, cases)


VERDICTS: tuple[Callable[[], Verdict], ...] = (
    attention_looks_up,
    rivals_do_not,
    even_with_more_steps,
    lstm_learns_brackets,
    one_layer_struggles,
    two_layers_learn_brackets,
    wider_mamba_is_better,
    attention_compares,
    attention_copies,
    small_states_do_not_copy,
    recurrent_programmers_generalise,
    linear_ones_do_not,
)
