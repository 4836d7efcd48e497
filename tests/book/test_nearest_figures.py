"""Figures of nearest neighbours draw what they are given, and can be read on both pages."""

import numpy as np
import pytest

from companion.book import nearest_figures as drawn
from companion.book.appearance import NEGATIVE, PAPER, POSITIVE

from .conftest import check_figure

POINTS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.6, 0.8]])
LABELS = np.array([0, 1, 1])
SHARES = {"γ = 1/2": [(256, 0.8), (64, 1.0)], "γ = 1/4": [(64, 1.0), (256, 0.9)]}
ETA = {"layer 1": [(0.5, 16.0), (1e-6, 42.0)], "layer 2": [(1e-6, 9e6), (0.5, 18.0)]}
WEIGHTS = np.eye(5), np.array([0, 0, 0, 1.0, 0])
NAMES = ["x0", "y0", "x1", "y1", "x2"]


def pair(ax):
    """Both panels in the figure of `ax`."""
    inset = ax.inset_axes((0, -0.2, 1, 0.1))
    assert drawn.two_layers([ax, inset], *WEIGHTS, NAMES).tolist() == [ax, inset]
    return ax


DRAWINGS = {
    "circle": lambda ax: drawn.circle(ax, POINTS, LABELS),
    "layers": pair,
    "misled": lambda ax: drawn.misled(ax, SHARES, 128),
    "margin": lambda ax: drawn.against_margin(ax, ETA, "sharpness"),
}


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_figure_is_the_same_at_every_run_and_legible(name):
    check_figure(DRAWINGS[name])


@pytest.mark.parametrize("nearest", [0, 1, 2])
def test_circle_joins_the_query_to_its_nearest_point(ax, nearest):
    angle = np.array([0.0, 2.0, 4.0])
    points = np.stack([np.cos(angle), np.sin(angle)], -1)
    query = points[nearest] + 0.1 * points[nearest - 1]
    points = np.vstack([points, query / np.linalg.norm(query)])
    drawn.circle(ax, points, LABELS)
    joined = next(line for line in ax.lines if line.get_color() == POSITIVE)
    np.testing.assert_allclose(joined.get_xydata(), points[[3, nearest]])
    assert [text.get_text() for text in ax.texts] == ["0", "1", "1", "?"]


def test_labels_differ_in_fill_and_the_query_in_shape(ax):
    drawn.circle(ax, POINTS, LABELS)
    marks = [(line.get_marker(), line.get_markerfacecolor()) for line in ax.lines[2:]]
    assert marks == [("o", PAPER), ("o", NEGATIVE), ("o", NEGATIVE), ("s", POSITIVE)]


def test_layers_show_the_weights_and_name_the_tokens(ax):
    inset = ax.inset_axes((0, -0.2, 1, 0.1))
    drawn.two_layers([ax, inset], *WEIGHTS, NAMES)
    np.testing.assert_array_equal(ax.get_images()[0].get_array(), WEIGHTS[0])
    np.testing.assert_array_equal(inset.get_images()[0].get_array()[0], WEIGHTS[1])
    assert [text.get_text() for text in ax.get_xticklabels()] == NAMES
    assert inset.get_yticklabels()[0].get_text() == "x2"


def test_misled_is_sorted_and_marks_what_orthogonality_takes(ax):
    drawn.misled(ax, SHARES, 128)
    assert [line.get_xydata().tolist() for line in ax.lines[:2]] == [
        [[64, 1.0], [256, 0.8]],
        [[64, 1.0], [256, 0.9]],
    ]
    assert list(ax.lines[2].get_xdata()) == [128, 128]
    assert len({line.get_marker() for line in ax.lines[:2]}) == 2 or (
        ax.lines[0].get_linestyle() != ax.lines[1].get_linestyle()
    )


def test_margins_shrink_to_the_right(ax):
    drawn.against_margin(ax, ETA, "sharpness")
    assert ax.get_xlim()[0] > ax.get_xlim()[1] and ax.get_ylabel() == "sharpness"
    assert ax.lines[1].get_xydata().tolist() == [[1e-6, 9e6], [0.5, 18.0]]


def test_of_many_tokens_the_pair_asked_for_is_named(ax):
    names = [f"{'xy'[i % 2]}{i // 2}" for i in range(36)]
    first, second = np.eye(36), np.zeros(36)
    first[13], second[13] = np.eye(36)[12], 1  # the last token reads y6, and y6 read x6
    inset = ax.inset_axes((0, -0.2, 1, 0.1))
    drawn.two_layers([ax, inset], first, second, names)
    columns, rows, below = (
        [text.get_text() for text in labels]
        for labels in (ax.get_xticklabels(), ax.get_yticklabels(), inset.get_xticklabels())
    )
    assert "x6" in columns and "y6" in rows and "y6" in below
    for ticks in (ax.get_xticks(), ax.get_yticks(), inset.get_xticks()):
        assert len(ticks) <= 12 and min(np.diff(ticks)) >= 4


def test_many_tokens_are_not_all_named(ax):
    names = [str(i) for i in range(100)]
    drawn.two_layers([ax, ax.inset_axes((0, -0.2, 1, 0.1))], np.eye(100), np.eye(100)[0], names)
    assert [text.get_text() for text in ax.get_xticklabels()] == names[::10]
    with pytest.raises(ValueError, match="expected 5 names, got 2"):
        drawn.two_layers([ax, ax], *WEIGHTS, ["x0", "y0"])
