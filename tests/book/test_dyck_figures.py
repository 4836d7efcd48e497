"""Figures of bounded brackets: what they draw is what they were given."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from companion.book.appearance import POSITIVE
from companion.book.dyck_figures import attention_map, automaton, filled, layout, widths
from companion.theory.automata import live_states
from companion.theory.dyck import Dyck
from companion.theory.dyck_networks import Units

SIZES = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2), (2, 3)]


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_every_state_has_a_place_of_its_own(n, k):
    dyck = Dyck(n, k)
    places = layout(dyck)
    assert set(places) == set(dyck.automaton().states)
    assert len(set(places.values())) == len(places)
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in places.values())
    assert all(places[s][1] < places[s[:-1]][1] for s in places if s not in ("", "dead"))


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_automaton_has_an_arrow_for_each_live_move(ax, n, k):
    dyck = Dyck(n, k)
    automaton(ax, dyck)
    assert len(ax.patches) == len(Units.of(dyck.automaton(), dyck.symbols))
    boxes = [text for text in ax.texts if text.get_bbox_patch()]
    assert len(boxes) == live_states(dyck.automaton()) + 1
    arrows = [text.get_text() for text in ax.texts if text not in boxes]
    assert all(arrows.count(c) == len(ax.patches) / (2 * n) for c in dyck.symbols)


@pytest.mark.parametrize("lit", ["", "(", "[[", "dead"])
def test_one_state_is_lit(ax, lit):
    automaton(ax, Dyck(), lit)
    boxes = {t.get_text(): t.get_bbox_patch() for t in ax.texts if t.get_bbox_patch()}
    filled_in = [s for s, box in boxes.items() if box.get_facecolor()[:3] == to_rgb(POSITIVE)]
    assert filled_in == [lit or "ε"]


def test_unknown_state_is_refused(ax):
    with pytest.raises(ValueError, match=r"got '\(\(\('"):
        automaton(ax, Dyck(), "(((")


def test_matrix_and_its_names_are_drawn(ax):
    M = np.array([[0.0, 0.5, 1.0], [1.0, 0.0, 0.0]])
    filled(ax, M, ["a", "b"], ["x", "y", "z"])
    (image,) = ax.get_images()
    np.testing.assert_array_equal(image.get_array(), M)
    alpha = image.to_rgba(M)[..., 3]
    assert alpha[0, 0] == 0 and alpha[0, 2] == 1 and 0 < alpha[0, 1] < 1
    assert [t.get_text() for t in ax.get_xticklabels()] == ["x", "y", "z"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]


@pytest.mark.parametrize("names", [{"rows": ["a"]}, {"columns": ["x", "y", "z"]}], ids=list)
def test_wrong_number_of_names_is_refused(ax, names):
    with pytest.raises(ValueError, match="expected 2 names"):
        filled(ax, np.eye(2), **names)


def test_attention_map_marks_what_can_be_seen(ax):
    attention_map(ax, np.tri(4) / 4, "[()]")
    (edge,) = ax.lines
    for x, y in edge.get_xydata():
        assert x - y in (0, 1)  # right of the diagonal's cells
    assert [t.get_text() for t in ax.get_yticklabels()] == list("[()]")


def test_widths_draw_their_rows_and_shade_below_the_first_bound(ax):
    bound, paper = [(64, 4), (256, 16)], [(64, 2), (256, 8)]
    widths(ax, {"bound": bound, "paper": paper}, {"two layers": [(64, 19), (256, 23)]})
    drawn = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert drawn["bound"] == [list(row) for row in bound]
    assert drawn["two layers"] == [[64, 19], [256, 23]]
    (shade,) = ax.collections
    assert shade.get_paths()[0].vertices[:, 1].max() == 16
    looks = {(line.get_linestyle(), line.get_marker()) for line in ax.lines}
    assert len(looks) == 3
