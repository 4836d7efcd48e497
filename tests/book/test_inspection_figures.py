"""Figures of what was learned: what they draw is what they were given."""

import numpy as np
import pytest

from companion.book.inspection_figures import (
    accepted_after,
    accuracy_by_place,
    cosine_distribution,
    errors_and_prediction,
    pointing_map,
    right_by_questions,
    weight_on_target,
)
from companion.theory.dimensions import welch


def test_weights_on_the_target_are_drawn_by_position(ax):
    rows = {"transformer, N = 3": [0.9, 0.4, 0.7], "Theorem 1": [0.8, 0.8]}
    weight_on_target(ax, rows)
    drawn = {line.get_label(): list(line.get_ydata()) for line in ax.lines}
    assert all(drawn[name] == row for name, row in rows.items())
    assert len({(line.get_linestyle(), line.get_marker()) for line in ax.lines[:2]}) == 2
    assert ax.get_ylim() == (0, 1.05)


def test_places_are_drawn_at_the_times_they_were_asked_for(ax):
    right_by_questions(ax, [90.0, 5.0], [1.0, 0.1], enough=60.0)
    points, line = ax.lines
    np.testing.assert_array_equal(points.get_xydata(), [(90, 1.0), (5, 0.1)])
    assert list(line.get_xdata()) == [60, 60] and ax.texts[0].get_text().strip() == "60 times"


def test_mistakes_are_drawn_beside_their_prediction(ax):
    curve = [(100, 2.0, 0.25), (200, 1.0, 0.75), (300, 0.0, 1.0)]
    errors_and_prediction(ax, {"rate 0.001": [curve]}, [(100, 0.6), (200, 0.2), (300, 0.0)])
    run, prediction = (line.get_xydata() for line in ax.lines)
    np.testing.assert_array_equal(run, [(100, 0.75), (200, 0.25), (300, np.nan)])
    np.testing.assert_array_equal(prediction, [(100, 0.6), (200, 0.2), (300, np.nan)])


def test_accuracy_is_drawn_by_place(ax):
    accuracy_by_place(ax, {"lstm": [0.1, 0.5], "window": [0.0, 1.0]}, chance=0.25)
    drawn = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert drawn["lstm"] == [[1, 0.1], [2, 0.5]] and drawn["window"] == [[1, 0.0], [2, 1.0]]
    assert list(ax.lines[2].get_ydata()) == [0.25, 0.25]


def test_pointing_map_draws_its_weights(ax):
    weights = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1]])
    pointing_map(ax, weights)
    (image,) = ax.get_images()
    np.testing.assert_array_equal(image.get_array(), weights)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("weight on position", "asked for p")


def test_distribution_is_the_share_of_pairs_above(ax):
    cosine_distribution(ax, {"learned": [0.5, -0.1, 0.3, -0.2]}, N=20, k=8)
    step = ax.lines[0].get_xydata()
    np.testing.assert_allclose(step, [(0.1, 0.75), (0.2, 0.5), (0.3, 0.25), (0.5, 0.0)])
    marks = {line.get_label(): line.get_xdata()[0] for line in ax.lines[1:]}
    assert marks["Welch's bound"] == welch(20, 8)
    assert marks["√(4 ln N / k)"] == pytest.approx(np.sqrt(4 * np.log(20) / 8))


def test_a_bound_of_nothing_is_not_drawn(ax):
    cosine_distribution(ax, {"learned": [0.5]}, N=20, k=64)
    assert len(ax.lines) == 2


def test_accepted_suffixes_have_a_row_for_each_stack(ax):
    accepted_after(ax, {"": [1, 0, 0.5], "([": [0, 0, 1]}, ["", ")", "])"])
    (image,) = ax.get_images()
    np.testing.assert_array_equal(image.get_array(), [[1, 0, 0.5], [0, 0, 1]])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["ε", "(["]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["ε", ")", "])"]
