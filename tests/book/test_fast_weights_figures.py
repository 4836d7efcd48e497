"""Figures of fast weights and of languages draw what they are given, and can be read."""

import numpy as np
import pytest

from companion.book import fast_weights_figures as drawn
from companion.book import language_figures
from companion.experiments import Result, Run, Score

from .conftest import check_figure

S = np.array([[1.0, -3.0], [0.0, 9.0]])
SHARES = {"lstm": {2: 1.0, 20: 0.9, 40: 0.5}, "deltanet": {2: 1.0, 20: 0.1, 40: 0.0}}
FORMS = {"sum": [(8, 1.0), (2, 1.0)], "average": [(2, 0.5), (8, 0.125)]}


def result(model="srwm", task="parity", seed=0, bin0=1.0, bin1=0.5, steps=300):
    """A result as training leaves it, with these shares of whole strings."""
    alphabet = {"parity": 2, "aa-star": 1}[task]
    run = Run(task=task, length=50, alphabet=alphabet, model=model, positions="none", seed=seed)
    names = {"examples": bin0, "bin1": 0.9, "bin1 examples": bin1}
    more = {name: Score(round(100 * share), 100) for name, share in names.items()}
    return Result(run, "reached", steps, [], Score(9, 9), Score(9, 9), steps, 1.0, 1.0, {}, more)


RESULTS = [
    result(bin1=0.2), result(seed=1, bin1=0.9, steps=500), result(seed=2, bin1=0.4),
    result("lstm", "aa-star"), result("linear_transformer", bin0=0.3, bin1=0.0),
]  # fmt: skip
DRAWINGS = {
    "matrix": lambda ax: drawn.matrix(ax, S, ["a", "b"], ["1", "2"]),
    "orbit": lambda ax: drawn.orbit(ax, {"deltanet": [0, 0.5], "retnet": [0, 0.25]}),
    "merging": lambda ax: drawn.merging(ax, {"mamba": [(8, 20), (4, 9)]}),
    "steps": lambda ax: drawn.lost_steps(ax, FORMS, {"bfloat16": 2.0**-8}),
    "beyond": lambda ax: drawn.beyond_training(ax, SHARES, 20),
    "bins": lambda ax: language_figures.bins(ax, RESULTS),
    "lengths": lambda ax: language_figures.by_length(ax, RESULTS),
}


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_figure_is_the_same_at_every_run_and_legible(name):
    check_figure(DRAWINGS[name])


def test_matrix_shows_small_numbers_beside_large_ones(ax):
    drawn.matrix(ax, S, ["a", "b"], ["1", "2"])
    shade = np.asarray(ax.get_images()[0].get_array())
    np.testing.assert_allclose(shade, [[0.5, -0.75], [0.0, 0.9]])
    assert [text.get_text() for text in ax.texts] == ["1", "−3", "0", "9"]


def test_wide_matrix_is_not_written_out(ax):
    drawn.matrix(ax, np.ones((1, 5)), ["a"], list("12345"))
    assert not ax.texts and [t.get_text() for t in ax.get_xticklabels()] == list("12345")


@pytest.mark.parametrize("name", ["merging", "steps"])
def test_points_are_sorted(ax, name):
    DRAWINGS[name](ax)
    for line in ax.lines:
        x = line.get_xdata()
        assert list(x) == sorted(x)


def test_orbit_starts_before_the_first_symbol(ax):
    drawn.orbit(ax, {"deltanet": [0, 0.5, 0.75]})
    assert ax.lines[0].get_xydata().tolist() == [[0, 0], [1, 0.5], [2, 0.75]]


def test_beyond_training_marks_the_longest_trained_length(ax):
    drawn.beyond_training(ax, SHARES, 20)
    np.testing.assert_allclose(ax.get_images()[0].get_array(), [[1, 0.9, 0.5], [1, 0.1, 0]])
    assert ax.lines[0].get_xdata()[0] == 1.5  # between the columns of 20 and 40
    assert [text.get_text() for text in ax.texts] == ["50%", "0%"]
    with pytest.raises(ValueError, match=r"lengths \[2, 20, 40\] for each model"):
        drawn.beyond_training(ax, SHARES | {"srwm": {2: 1.0}}, 20)


def test_bins_are_medians_over_seeds(ax):
    language_figures.bins(ax, RESULTS)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["lstm", "linear transformer", "srwm"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["parity", "aa-star"]
    assert sorted(text.get_text() for text in ax.texts) == ["100\n40", "100\n50", "30\n0"]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_whatever_is_stored_is_drawn(ax, count):
    language_figures.bins(ax, RESULTS[:count])
    assert len(ax.texts) == min(count, 1) == len(language_figures.rows(RESULTS[:count]))


def test_rows_tell_medians_and_ranges():
    rows = language_figures.rows(RESULTS)
    assert len(rows[0]) == len(language_figures.HEADER)
    assert rows[0] == ("parity", "linear transformer", 1, 300, "30.0%", "0.0% (0.0–0.0)")
    assert rows[1] == ("parity", "srwm", 3, 300, "100.0%", "40.0% (20.0–90.0)")
    assert [row[0] for row in rows] == ["parity", "parity", "aa-star"]


def test_lengths_are_those_of_the_bins(ax):
    language_figures.by_length(ax, RESULTS)
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines["srwm"].get_xdata()) == [50, 100]
    assert list(lines["srwm"].get_ydata()) == pytest.approx([1.0, 0.4])


def test_results_of_other_tasks_are_refused():
    run = Run(task="index-lookup", length=20, model="lstm")
    other = Result(run, "finished", 1, [], Score(1, 2), Score(1, 2), 1, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"got the scores \[\], expected those of a language"):
        language_figures.whole_strings(other)
