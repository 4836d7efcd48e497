"""Figures of stored results show every seed, the median, and the right units."""

import dataclasses
import itertools
from statistics import median

import matplotlib.pyplot as plt
import pytest

from companion.book import results_figures as drawn
from companion.book.appearance import TOP
from companion.experiments import Result, Run, Score
from companion.experiments.result import Check

from .conftest import check_figure

RUN = Run(task="index-lookup", length=20, model="transformer")


def result(run, accuracy, steps=1000):
    score = Score(round(1000 * accuracy), 1000)
    curve = [Check(steps // 2, 1.0, accuracy / 2), Check(steps, 0.5, accuracy)]
    return Result(run, "finished", steps, curve, score, score, steps, 1.0, 1.0)


RESULTS = [
    result(RUN.replace(model=model, length=N, seed=seed), accuracy - 0.01 * seed)
    for model, N, accuracy in (
        ("transformer", 20, 1.0), ("transformer", 50, 1.0), ("lstm", 20, 0.2), ("lstm", 50, 0.1),
    )
    for seed in range(3)
]  # fmt: skip


@pytest.fixture
def ax():
    fig, ax = plt.subplots()
    yield ax
    plt.close(fig)


def by_state(ax):
    return drawn.accuracy_by_state(ax, [r for r in RESULTS if r.run.model == "lstm"], 64)


def in_multiples(ax):
    return drawn.curves_in_multiples(ax, RESULTS, N=50, chance=1 / 64)


DRAWINGS = {
    "by length": lambda ax: drawn.accuracy_against(ax, RESULTS, "length", 1 / 64),
    "in multiples": in_multiples,
    "by width": lambda ax: drawn.accuracy_against(ax, RESULTS, "width", 1 / 64),
    "by state": by_state,
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_figure_is_the_same_at_every_run_and_legible(name):
    check_figure(DRAWINGS[name])


def lines(ax):
    """Labelled lines, by label."""
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def test_line_joins_the_medians(ax):
    drawn.accuracy_against(ax, RESULTS, "length", chance=1 / 64)
    found = lines(ax)
    assert set(found) == {"transformer-(1, 64)", "lstm-(1, 64)"}
    assert list(found["lstm-(1, 64)"].get_xdata()) == [20, 50]
    assert list(found["lstm-(1, 64)"].get_ydata()) == pytest.approx([0.19, 0.09])


def test_every_seed_is_a_point_with_its_interval(ax):
    drawn.accuracy_against(ax, RESULTS, "length", chance=1 / 64)
    bars = [c for c in ax.containers if len(c[0].get_xdata()) == 6]
    assert len(bars) == 2
    ((segments,),) = [c[2] for c in bars if max(c[0].get_ydata()) < 0.5]
    low, high = segments.get_segments()[0][:, 1]
    assert (low, high) == pytest.approx(Score(200, 1000).interval)


def test_another_score_may_be_drawn(ax):
    drawn.accuracy_against(ax, RESULTS, "length", 0.5, score=lambda r: Score(1, 4))
    assert set(lines(ax)["lstm-(1, 64)"].get_ydata()) == {0.25}


def test_close_to_one_each_nine_takes_as_much_room(ax):
    drawn.accuracy_against(ax, RESULTS, "length", chance=0.5, close=True)
    heights = [ax.transData.transform((1, y))[1] for y in (0.9, 0.99, 0.999, TOP)]
    steps = [b - a for a, b in itertools.pairwise(heights)]
    assert steps == pytest.approx([steps[0]] * 3, rel=0.05)


def test_who_makes_no_mistake_is_still_seen_there(ax):
    drawn.accuracy_against(ax, [result(RUN, 1.0)], "length", chance=0.5, close=True)
    assert list(lines(ax)["transformer-(1, 64)"].get_ydata()) == [TOP]
    assert TOP < ax.get_ylim()[1] < 1


def test_steps_are_multiples_of_the_transformers(ax):
    slow = [result(RUN.replace(model="lstm", length=100), 0.1, steps=6000)]
    fast = [result(RUN.replace(length=100, seed=s), 1.0, steps=2000) for s in range(3)]
    drawn.curves_in_multiples(ax, [*slow, *fast], N=100, chance=1 / 64)
    assert list(lines(ax)["lstm-(1, 64)"].get_xdata()) == [1.5, 3.0]
    assert list(lines(ax)["transformer-(1, 64)"].get_xdata()) == [0.5, 1.0]


def test_without_a_successful_transformer_there_is_no_unit(ax):
    with pytest.raises(ValueError, match="got no Transformer with 99% at N=100"):
        drawn.curves_in_multiples(ax, [result(RUN.replace(length=100), 0.5)], 100, 1 / 64)


def test_a_line_for_each_name_against_any_field(ax):
    mamba = [
        result(RUN.replace(model="mamba", depth=2, width=w, length=N), w / 100)
        for w in (16, 32) for N in (20, 50)
    ]  # fmt: skip
    drawn.accuracy_against(ax, mamba, "width", 1 / 64, name=lambda r: f"mamba, N = {r.run.length}")
    found = lines(ax)
    assert set(found) == {"mamba, N = 20", "mamba, N = 50"}
    assert list(found["mamba, N = 20"].get_ydata()) == pytest.approx([0.16, 0.32])


def test_other_fields_are_refused(ax):
    with pytest.raises(ValueError, match="'depth', expected one of: length, width, alphabet"):
        drawn.accuracy_against(ax, RESULTS, "depth", 1 / 64)


def test_tasks_stand_side_by_side_with_what_guessing_is_worth(ax):
    tasks = {"eq-one": 0.9, "eq-ncp": 0.3}
    results = [
        result(RUN.replace(task=task, model=model, alphabet=8, seed=seed), accuracy)
        for task, accuracy in tasks.items()
        for model in ("lstm", "transformer")
        for seed in range(2)
    ]
    drawn.accuracy_by_task(ax, results)
    assert [t.get_text() for t in ax.get_xticklabels()] == sorted(tasks)
    medians = [line for line in ax.lines if line.get_label() == "lstm-(1, 64)"]
    assert [list(line.get_ydata()) for line in medians] == [[0.3, 0.9]]
    guesses = [list(line.get_ydata()) for line in ax.lines[-2:]]
    assert guesses == [[1 / 8] * 2, [1 / 2] * 2]
    with pytest.raises(ValueError, match=r"lengths \[20, 50\], expected those of one"):
        drawn.accuracy_by_task(ax, [*results, *RESULTS])


def test_state_bits_a_symbol(ax):
    lstm = RESULTS[-1]
    assert drawn.state_rate(lstm) == 2 * 64 * 32 / 50
    drawn.accuracy_by_state(ax, [r for r in RESULTS if r.run.model == "lstm"], alphabet=64)
    assert sorted(lines(ax)["lstm"].get_xdata()) == [2 * 64 * 32 / 50, 2 * 64 * 32 / 20]
    ceiling = lines(ax)["ceiling"].get_ydata()
    assert max(ceiling) == pytest.approx(1) and min(ceiling) > 1 / 64


def test_table_has_a_row_for_each_model_and_length():
    rows = drawn.results_table(RESULTS)
    assert len(rows) == 4 and all(len(row) == len(drawn.RESULTS_HEADER) for row in rows)
    (row,) = (row for row in rows if row[:2] == ("lstm-(1, 64)", 20))
    assert row[4:] == ("3", f"{median((0.2, 0.19, 0.18)):.1%} (18.0–20.0)")
    failed = [dataclasses.replace(r, status="diverged") for r in RESULTS[:1]]
    assert drawn.results_table(failed)[0][4] == "1, 1 diverged"


def test_line_of_a_rule_ends_in_its_name(ax):
    drawn.rule_line(ax, {50: 0.98, 20: 0.97}, "counting")
    assert list(ax.lines[0].get_xdata()) == [20, 50]
    assert ax.texts[0].get_text() == "counting"
