"""Figures of the two-way protocol draw what they are given, and can be read on both pages."""

import numpy as np
import pytest

from companion.book import two_way_figures as drawn
from companion.book.appearance import INK, PAPER
from companion.theory.problems import Problem, disjointness, equality, index

from .conftest import check_figure

LITERAL = {"last position": 216, "maxima": 48, "denominators": 60, "sums": 768}
LEAN = {"last position": 4, "maxima": 48, "denominators": 44, "sums": 304, "answer": 2}
DRAWINGS = {
    "matrix": lambda ax: drawn.matrix(ax, equality(3)),
    "steps": lambda ax: drawn.step_bits(ax, {"literal": LITERAL, "lean": LEAN}, 720.0),
    "total": lambda ax: drawn.running_total(ax, {"literal": [5, 7], "lean": [3]}, 720.0),
    "length": lambda ax: drawn.against_length(ax, {"lstm": [(8, 4), (16, 8)]}, "bits"),
}


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_figure_is_the_same_at_every_run_and_legible(name):
    check_figure(DRAWINGS[name])


@pytest.mark.parametrize("problem", [index(1), index(3), equality(0), disjointness(2)], ids=str)
def test_matrix_shows_every_cell_and_the_fooling_set(ax, problem):
    drawn.matrix(ax, problem)
    np.testing.assert_array_equal(ax.get_images()[0].get_array(), problem.matrix)
    pairs = {(int(x), int(y)) for line in ax.lines for y, x in line.get_xydata()}
    assert pairs == set(problem.fooling)


def test_crosses_can_be_seen_on_what_they_mark(ax):
    drawn.matrix(ax, equality(2))
    assert ax.lines[0].get_color() == PAPER  # on ones
    drawn.matrix(ax, disjointness(2))
    assert ax.lines[1].get_color() == INK  # on zeros


def test_a_problem_without_a_fooling_set_has_no_cross(ax):
    drawn.matrix(ax, Problem("constant", np.zeros((2, 3), dtype=int)))
    assert len(ax.lines) == 0


def test_bars_are_stacked_step_by_step(ax):
    drawn.step_bits(ax, {"literal": LITERAL, "lean": LEAN}, 720.0)
    bars = [(b.get_y() + b.get_height() / 2, b.get_x(), b.get_width()) for b in ax.patches]
    for row, bits in enumerate((LITERAL, LEAN)):
        mine = [(left, width) for y, left, width in bars if round(y) == row]
        assert [width for _, width in mine] == list(bits.values())
        assert [left for left, _ in mine] == [0, *np.cumsum(list(bits.values()))[:-1]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(drawn.STEPS)
    assert ax.lines[0].get_xdata() == [720, 720]


def test_steps_differ_in_colour_and_hatching():
    for part in (0, 1):
        assert len({look[part] for look in drawn.STEPS.values()}) == len(drawn.STEPS)


def test_running_total_starts_at_zero_and_adds_up(ax):
    drawn.running_total(ax, {"literal": [5, 7], "lean": [3]}, 9.0)
    assert [line.get_ydata().tolist() for line in ax.lines[:2]] == [[0, 5, 12], [0, 3]]
    assert list(ax.lines[2].get_ydata()) == [9, 9]


def test_lengths_are_sorted(ax):
    drawn.against_length(ax, {"lstm": [(16, 8), (8, 4)]}, "bits")
    assert ax.lines[0].get_xydata().tolist() == [[8, 4], [16, 8]]
