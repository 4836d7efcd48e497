"""Figures of equality draw what they are given, and can be read on both pages."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from companion.book import equality_figures as drawn
from companion.theory.one_layer_equality import miss_probability

from .conftest import check_figure

X = [0, 1, 1, 1]
LOOK = np.eye(4)[[0, 1, 0, 1]]
STATES = np.array([[0, 0], [0, 0], [1, 0], [1, 1], [0, 1]])
BOUNDS = {"lean": [(64, 4), (256, 40)], "paper": [(64, 8), (256, 20)]}
MODELS = {"two layers": [(64, 14), (256, 18)], "others": [(64, 130), (256, 130)]}
MISSED = {2: [(1, 0.5, 0.4, 0.6), (3, 0.1, 0.05, 0.2)], 4: [(1, 0.4, 0.3, 0.5)]}


def three(ax):
    axes = {"copy": ax, "compare": ax.inset_axes((0.6, 0.6, 0.4, 0.3))}
    axes["count"] = ax.inset_axes((0.6, 0.2, 0.4, 0.2))
    return drawn.copy_then_count(axes, X, LOOK, np.array([0, 0, 1, 0]), 0.0) and ax


DRAWINGS = {
    "register": lambda ax: drawn.register(ax, STATES, X),
    "profile": lambda ax: drawn.profile(ax, {"needed": [1, 2, 2], "has": [1, 2, 4]}),
    "copy, then count": three,
    "sizes": lambda ax: drawn.sizes(ax, BOUNDS, MODELS, "width"),
    "misses": lambda ax: drawn.misses(ax, MISSED),
}


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_figure_is_the_same_at_every_run_and_legible(name):
    check_figure(DRAWINGS[name])


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 2)], ids=str)
def test_cells_show_every_number(ax, shape):
    values = np.linspace(0, 1, shape[0] * shape[1]).reshape(shape)
    drawn.cells(ax, values)
    np.testing.assert_array_equal(ax.get_images()[0].get_array(), values)


@pytest.mark.parametrize("values", [np.array([[1.5]]), np.array([[-0.1]])], ids=["above", "below"])
def test_cells_refuse_what_is_no_shade(ax, values):
    with pytest.raises(ValueError, match=r"expected numbers in \[0, 1\], got"):
        drawn.cells(ax, values)


def test_register_has_a_row_for_each_symbol_and_one_before(ax):
    drawn.register(ax, STATES, X)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["–", "0", "1", "1", "1"]
    with pytest.raises(ValueError, match="expected 4 states for 3 symbols, got 5"):
        drawn.register(ax, STATES, X[:3])


def test_copied_bits_are_those_looked_at():
    axes = Figure(layout="constrained").subplot_mosaic([["copy", "compare"], ["copy", "count"]])
    drawn.copy_then_count(axes, X, LOOK, np.array([0, 0, 1, 0]), 0.0)
    shown = [axis.get_images()[0].get_array() for axis in axes.values()]
    np.testing.assert_array_equal(shown[0], LOOK)
    np.testing.assert_array_equal(shown[1], [X, [0, 1, 0, 1], [0, 0, 1, 0]])
    np.testing.assert_array_equal(shown[2], np.full((1, 4), 0.25))
    assert axes["count"].get_title() == "layer 2 counts: 1 of 4"
    assert axes["count"].get_xlabel() == "answer EQ(x) = 0"


def test_shade_ends_at_the_highest_bound(ax):
    drawn.sizes(ax, BOUNDS, MODELS, "width")
    (shade,) = ax.collections
    top = {x: max(y for u, y in shade.get_paths()[0].vertices if u == x) for x in (64, 256)}
    assert top == {64: 8, 256: 40}
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [*BOUNDS, *MODELS]


def test_profile_and_misses_keep_their_numbers(ax):
    drawn.profile(ax, {"needed": [1, 2, 2], "has": [1, 2, 4]})
    assert [line.get_ydata().tolist() for line in ax.lines] == [[1, 2, 2], [1, 2, 4]]
    other = drawn.misses(Figure(layout="constrained").subplots(), MISSED)
    exact = [line.get_ydata() for line in other.lines if line.get_linewidth() == 1]
    assert [list(y) for y in exact] == [[miss_probability(t, r) for r in (1, 2, 3)] for t in (2, 4)]
