"""What the papers say in words of their experiments, held against the stored results.

Each claim is a function that returns a verdict: the cases it rests on and the outcome. Nothing is
written by hand, so a verdict changes when better results are stored.

| outcome                | meaning                                                           |
|------------------------|-------------------------------------------------------------------|
| reproduced             | every case agrees: the median seed of a model at a length         |
| partly                 | some do                                                           |
| not at this scale      | none does, with the budget that the results name                  |
| no results             | nothing is stored that could tell                                 |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import NamedTuple

from companion.experiments.result import Result
from companion.experiments.studies import reported

NEAR_PERFECT = 0.99  # our reading of "near-perfect accuracy"
STRUGGLES = 0.90  # our reading of "struggle" and "degrade": below this
A_FEW_THOUSAND = 10_000  # steps
ATTENTION, STATE_SPACE = ("transformer",), ("dss", "mamba")

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
    """Architecture, layers and width, as the paper writes them; "tied" as Theorem 1 embeds the
    query, and "Theorem 1" with its single head as well.

    >>> from companion.experiments import Run, Score
    >>> run = Run(task="index-lookup", length=20, model="transformer", tied=True)
    >>> model_name(Result(run, "finished", 1, [], Score(1, 1), Score(1, 1), 1, 1.0, 1.0))
    'transformer-(1, 64), tied'
    """
    run = result.run
    name = run.model.replace("_", " ")
    name = f"{name}-({run.depth}, {run.width})"
    if not run.tied:
        return name
    return f"{name}, tied" if run.heads > 1 else f"{name}, Theorem 1"


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
    """Figure 2, left: the one-layer Transformer, tried further where it fell short."""
    cases = {}
    for (name, N), runs in _best("figure-2-index", "index-lookup").items():
        if name == "transformer-(1, 64)":
            cases[f"N = {N}: {_told(runs)}"] = accuracy(runs) >= NEAR_PERFECT
    claim = "A one-layer Transformer of width 64 reaches near-perfect accuracy"
    return Verdict("2, left", claim, cases)


def attention_is_quick() -> Verdict:
    """Figure 2, middle: how many steps that takes."""
    cases = {}
    for (name, N), runs in _best("figure-2-index", "index-lookup").items():
        if name == "transformer-(1, 64)" and accuracy(runs) >= NEAR_PERFECT:
            steps = median(first_success(r) for r in runs)
            cases[f"N = {N}: {steps:,.0f} steps"] = steps <= A_FEW_THOUSAND
    claim = f"It does so within a few thousand steps (here: {A_FEW_THOUSAND:,})"
    return Verdict("2, middle", claim, cases)


def rivals_do_not() -> Verdict:
    """Figure 2, left and middle: recurrent models beyond 100 symbols, and on the fewest."""
    groups, cases = grouped(reported("figure-2-index")), {}
    for (name, N), runs in groups.items():
        short = min(n for other, n in groups if other == name)
        if N > 100 > short and not name.startswith("transformer"):
            here, before = accuracy(runs), accuracy(groups[name, short])
            case = f"{name} at N = {N}: {here:.1%}, at N = {short}: {before:.1%}"
            cases[case] = here < min(STRUGGLES, before)
    return Verdict("2, left", "Recurrent models degrade at lengths over 100", cases)


def even_with_more_steps() -> Verdict:
    """Figure 2, middle: the budget of the rivals, in units of the fastest Transformer's."""
    groups = grouped(reported("figure-2-index"))
    cases = {}
    for (name, N), runs in groups.items():
        first = fastest_success(groups, N)
        if first is None or N < 50 or name.startswith("transformer"):
            continue
        steps, unit = first
        times = min(r.steps for r in runs) / steps
        case = f"{name} at N = {N}: {accuracy(runs):.1%} with {times:.1f} times the steps of {unit}"
        cases[case] = accuracy(runs) < STRUGGLES and times >= 3
    claim = "They fail even with many times the Transformer's steps (here: at least three)"
    return Verdict("2, middle", claim, cases)


def fastest_success(groups: Groups, N: int) -> tuple[float, str] | None:
    """Steps, median over seeds, after which the fastest of the Transformers is near-perfect at N,
    for the first time on the validation examples, and its name."""
    steps = [
        (float(median(first_success(r) for r in runs)), name)
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
    claim = "LSTMs of width 64 are near-perfect at every length"
    return _dyck("lstm", claim, lambda N, good: good)


def one_layer_struggles() -> Verdict:
    """Figure 2, right: one layer of attention."""
    claim = "A one-layer Transformer is near-perfect up to length 100 and struggles beyond"
    return _dyck("transformer-(1,", claim, lambda N, good: good == (N <= 100))


def two_layers_learn_brackets() -> Verdict:
    """Figure 2, right: two layers of attention."""
    claim = "A two-layer Transformer is near-perfect at every length"
    return _dyck("transformer-(2,", claim, lambda N, good: good)


def _dyck(prefix: str, claim: str, holds: Callable[[int, bool], bool]) -> Verdict:
    """By the paper's own measure, which counting brackets nearly reaches."""
    cases, longest = {}, 0
    for (name, N), runs in grouped(reported("figure-2-dyck")).items():
        if name.startswith(prefix):
            good, longest = accuracy(runs) >= NEAR_PERFECT, max(N, longest)
            cases[f"{name} at N = {N}: {_told(runs)}"] = holds(N, good)
    return Verdict("2, right", f"{claim} (lengths here: to {longest})", cases)


def order_is_learned() -> Verdict:
    """Our addition: what is near-perfect, asked about non-members that counting cannot tell."""
    cases = {}
    for (name, N), runs in grouped(reported("figure-2-dyck")).items():
        if accuracy(runs) >= NEAR_PERFECT:
            hard = accuracy(runs, "dyck-hard")
            cases[f"{name} at N = {N}: {hard:.1%} on hard ones"] = hard >= NEAR_PERFECT
    claim = "What is near-perfect there is so on hard non-members as well (ours to ask)"
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
    claim = "Transformers are near-perfect on Eq-random and Eq-one"
    return _equality(("eq-random", "eq-one"), ATTENTION, claim, lambda x: x >= NEAR_PERFECT)


def state_spaces_compare() -> Verdict:
    """Figure 4, left: state-space models on the same."""
    claim = "DSS and Mamba are near-perfect on both as well"
    return _equality(("eq-random", "eq-one"), STATE_SPACE, claim, lambda x: x >= NEAR_PERFECT)


def long_random_strings_are_hard() -> Verdict:
    """Figure 4, left: other recurrent models beyond length 100."""
    claim = "LSTMs and linear Transformers struggle on Eq-random beyond length 100"
    names = ("lstm", "linear transformer")
    return _equality(("eq-random",), names, claim, lambda x: x < STRUGGLES, longer_than=100)


def all_count() -> Verdict:
    """Appendix H.2: Eq-one."""
    claim = "Every model is near-perfect on Eq-one"
    return _equality(("eq-one",), ("",), claim, lambda x: x >= NEAR_PERFECT)


def attention_copies() -> Verdict:
    """Figure 4, right: the next symbol."""
    claim = "Transformers are near-perfect where the second half must be produced"
    return _equality(("eq-ncp",), ATTENTION, claim, lambda x: x >= NEAR_PERFECT)


def small_states_do_not_copy() -> Verdict:
    """Figure 4, right: state-space models of width 64 on more than 400 symbols."""
    claim = "State-space models of width 64 struggle there beyond length 400"
    return _equality(("eq-ncp",), STATE_SPACE, claim, lambda x: x < STRUGGLES, longer_than=400)


def _equality(
    tasks: tuple[str, ...],
    prefixes: tuple[str, ...],
    claim: str,
    holds: Callable[[float], bool],
    longer_than: int = 0,
) -> Verdict:
    cases = {}
    for task in tasks:
        for (name, N), runs in _best("figure-4", task).items():
            if name.startswith(prefixes) and N > longer_than:
                cases[f"{name} on {task} at N = {N}: {_told(runs)}"] = holds(accuracy(runs))
    return Verdict("4", claim, cases)


def _best(study: str, task: str) -> Groups:
    """Runs of a study, or those of the same model that were tried further, whichever are better."""
    groups: dict[tuple[str, int], list[Result]] = {}
    for name in (study, "further"):
        found = grouped(r for r in reported(name) if r.run.task == task)
        for key, runs in found.items():
            if key not in groups or accuracy(runs) > accuracy(groups[key]):
                groups[key] = runs
    return groups


def _told(runs: Iterable[Result]) -> str:
    runs = list(runs)
    return f"{accuracy(runs):.1%} after {median(r.steps for r in runs):,.0f} steps"


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
    attention_is_quick,
    rivals_do_not,
    even_with_more_steps,
    lstm_learns_brackets,
    one_layer_struggles,
    two_layers_learn_brackets,
    order_is_learned,
    wider_mamba_is_better,
    attention_compares,
    state_spaces_compare,
    long_random_strings_are_hard,
    all_count,
    attention_copies,
    small_states_do_not_copy,
    recurrent_programmers_generalise,
    linear_ones_do_not,
)
