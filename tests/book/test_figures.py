"""Figures and tables: what they draw is what they were given, and it can be read anywhere."""

import itertools
import math

import nbformat
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from nbclient import NotebookClient

from companion.book import figures
from companion.book.appearance import (
    DIVERGING,
    INK,
    NEGATIVE,
    OTHERS,
    PAPER,
    POSITIVE,
    SERIES,
    looks,
)
from companion.book.svg import INK as PAGE_INK
from companion.book.svg import PAPER as PAGE_PAPER
from companion.theory import bounds, dimensions, vectors

from .conftest import check_figure

BACKGROUNDS = ("#ffffff", "#121212", "#14181e")
MODELS = list(SERIES)[:10]
FAMILIES = ("random", "linear_hash", "trace", "binary")
ROWS = {
    "Transformer": [(20, 1.0, 0.99, 1.0), (50, 0.99, 0.98, 0.995)],
    "LSTM": [(50, 0.07, 0.06, 0.085), (20, 0.18, 0.16, 0.2)],
}
BITS = {"lstm": [(4, 4096), (64, 4096)], "shift register": [(64, 384), (4, 24)]}


def line(ax, label):
    """The points of the line with this label."""
    (found,) = (x for x in ax.lines if x.get_label() == label)
    return found.get_xydata().tolist()


def luminance(colour: str) -> float:
    """WCAG relative luminance."""
    rgb = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    return float(np.dot([0.2126, 0.7152, 0.0722], rgb))


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


# Looks


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("name", [*SERIES, "negative", "positive", *range(len(OTHERS))])
def test_series_is_legible_on_both_pages(name, background):
    named = {"negative": NEGATIVE, "positive": POSITIVE, **{i: x[0] for i, x in enumerate(OTHERS)}}
    colour = named.get(name) or SERIES[name][0]
    assert contrast(colour, background) >= 3


@pytest.mark.parametrize("group", [MODELS, FAMILIES], ids=["models", "families"])
def test_series_differ_in_colour_and_in_marker(group):
    for part in (0, 1):
        assert len({SERIES[name][part] for name in group}) == len(group)


def test_ink_and_paper_are_those_the_pages_replace():
    assert (INK, PAPER) == (PAGE_INK, PAGE_PAPER)


@pytest.mark.parametrize(
    ("names", "count"),
    [([], 0), (["LSTM"] * 1, 1), (["lstm", "LSTM 64", "LSTM 128", "LSTM 256"], 4)],
    ids=["none", "one", "four-of-a-kind"],
)
def test_looks_of_one_figure_are_all_different(names, count):
    found = [tuple(map(str, look.values())) for look in looks(names).values()]
    assert len(set(found)) == len(found) == count


def test_readers_own_models_look_the_same_in_every_figure():
    compared = ["transformer", "lstm", "linear transformer", "mamba", "dss", "retnet"]
    for own in (["mingru", "window"], ["window-(1, 64)", *compared, "mingru-(1, 64)"]):
        found = looks(own)
        assert [found[name]["marker"] for name in sorted(own) if name not in compared] == ["h", "X"]


@pytest.mark.parametrize(
    "names",
    [
        ["layer 2, as built", "layer 2, least", "layer 1, as built"],
        ["random signs", "2N", "Welch, 1/2", "Welch, 1/log N", "trace code", "binary code"],
        [f"network {i}" for i in range(6)],
    ],
    ids=["sharpness", "dimensions", "unknown"],
)
def test_colours_of_one_figure_are_far_apart(names):
    colours = [look["color"] for look in looks(names).values()]
    for a, b in itertools.combinations(map(to_rgb, colours), 2):
        assert math.dist(a, b) > 0.27


def test_zero_is_the_page_and_signs_differ():
    below, zero, above = DIVERGING([0.25, 0.5, 0.75])
    assert zero[3] == pytest.approx(0, abs=0.01)
    assert below[3] == pytest.approx(above[3], abs=0.01) and below[2] > below[0] < above[0]


# Figures


def drawings():
    family = vectors.random(5, 7)
    curve = [(0, 4.2, 0.02), (100, 0.1, 1.0)]
    return {
        "coherence": lambda ax: figures.coherence_against_k(ax, {"random": [(64, 0.4)]}, 64),
        "gram": lambda ax: figures.gram(ax, family),
        "eta": lambda ax: figures.eta_needed(ax, {"binary": [(16, 5.0), (64, 8.0)]}),
        "attention": lambda ax: figures.attention_row(ax, [0.1, 0.8, 0.1], 1),
        "accuracy": lambda ax: figures.accuracy_against_length(ax, ROWS, 1 / 64),
        "learning": lambda ax: figures.learning_curves(ax, {"transformer": curve}, 1 / 64),
        "state": lambda ax: figures.state_bits(ax, BITS, 64),
        "size": lambda ax: figures.model_size_bits(ax, BITS, 64),
        "ceiling": lambda ax: figures.ceiling(ax, [("lstm", 2.0, 0.1, 0.09, 0.11)], 64),
        "answers": lambda ax: figures.answers(ax, {"lstm": [True, False]}),
    }


@pytest.mark.parametrize("name", list(drawings()))
def test_figure_is_the_same_at_every_run_and_legible(name):
    check_figure(lambda ax: drawings()[name](ax))


def test_coherence_shows_points_curves_and_both_dimensions(ax):
    measured = {"trace code": [(256, 0.125), (32, 0.25)]}
    figures.coherence_against_k(ax, measured, 1024)
    assert line(ax, "trace code") == [[32, 0.25], [256, 0.125]]
    for factor, label in ((4, "√(4 ln N / k)"), (2, "√(2 ln N / k)")):
        for k, gamma in line(ax, label):
            assert gamma == pytest.approx(math.sqrt(factor * math.log(1024) / k))
    texts = " ".join(text.get_text() for text in ax.texts)
    assert f"{dimensions.paper_k(1024, 0.25):,}" in texts
    assert f"{dimensions.random_k(1024, 0.25):,}" in texts


@pytest.mark.parametrize("N", [1, 5])
def test_gram_of_a_family_and_of_its_matrix_agree(N):
    family = vectors.random(N, 7)
    T = family.table().astype(int)
    images = [
        figures.gram(Figure().subplots(), x).get_images()[0].get_array()
        for x in (family, T @ T.T / 7)
    ]
    np.testing.assert_array_equal(*images)
    np.testing.assert_allclose(np.diag(images[0]), 1)


def test_eta_is_set_against_both_logarithms(ax):
    figures.eta_needed(ax, {"binary": [(64, 8.0), (16, 5.0)]})
    assert line(ax, "binary") == [[16, 5], [64, 8]]
    expected = [[n, math.log(3 * n)] for n in (16, 64)]
    np.testing.assert_allclose(line(ax, "ln 3N"), expected)
    np.testing.assert_allclose(line(ax, "paper: 2 ln 3N"), np.multiply(expected, [1, 2]))


def test_attention_marks_the_position_asked_for(ax):
    figures.attention_row(ax, np.array([0.125, 0.75, 0.125]), 1)
    assert all(tick == round(tick) for tick in ax.get_xticks())
    assert any("p = 1, weight 0.750" in text.get_text() for text in ax.texts)


@pytest.mark.parametrize("p", [-1, 3])
def test_attention_refuses_a_position_outside_the_row(ax, p):
    with pytest.raises(ValueError, match=f"0 <= p < 3, got {p}"):
        figures.attention_row(ax, [0.1, 0.8, 0.1], p)


def test_accuracy_carries_its_intervals(ax):
    figures.accuracy_against_length(ax, ROWS, 1 / 64)
    for container, rows in zip(ax.containers, ROWS.values(), strict=True):
        points, _, (bars,) = container.lines
        assert points.get_xydata().tolist() == [[n, a] for n, a, _, _ in sorted(rows)]
        ends = [segment[:, 1] for segment in bars.get_segments()]
        np.testing.assert_allclose(ends, [row[2:] for row in sorted(rows)])


def test_learning_curve_is_accuracy_by_step(ax):
    figures.learning_curves(ax, {"transformer": [(0, 4.2, 0.02), (100, 0.1, 1.0)]}, 1 / 64)
    assert line(ax, "transformer") == [[0, 0.02], [100, 1.0]]


@pytest.mark.parametrize("draw", [figures.state_bits, figures.model_size_bits])
def test_bits_are_set_against_what_lookup_needs(ax, draw):
    draw(ax, BITS, 64)
    assert line(ax, "shift register") == [[4, 24], [64, 384]]
    assert ax.lines[0].get_xydata().tolist() == [[n, bounds.lookup_bits(n, 64)] for n in (4, 64)]


def test_trained_models_stand_under_the_ceiling(ax):
    figures.ceiling(ax, [("lstm", 2.0, 0.1, 0.09, 0.11)], 64)
    for R, accuracy in line(ax, "ceiling"):
        assert accuracy == pytest.approx(bounds.accuracy_ceiling(R, 64))


def test_answers_show_right_and_wrong(ax):
    right = {"lstm": [True, False, False], "shift register": [True, True, True]}
    figures.answers(ax, right)
    marks = [(m.get_marker(), m.get_xdata().tolist()) for m in ax.lines]
    assert marks == [("o", [0]), ("x", [1, 2]), ("o", [0, 1, 2]), ("x", [])]


@pytest.mark.slow
def test_style_makes_svg_in_a_notebook_the_same_twice():
    source = (
        "from companion.book import figures\nfigures.style()\n"
        "import matplotlib.pyplot as plt\n_, ax = plt.subplots()\n"
        "figures.eta_needed(ax, {'binary': [(16, 5.0), (64, 8.0)]});"
    )
    cells = [nbformat.v4.new_code_cell(source) for _ in range(2)]
    notebook = NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=120).execute()
    images = [o.data for cell in notebook.cells for o in cell.outputs if "data" in o]
    assert [set(image) for image in images] == [{"image/svg+xml", "text/plain"}] * 2
    assert images[0]["image/svg+xml"] == images[1]["image/svg+xml"]


# Tables


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1 << 20, "1,048,576"),
        (np.int64(5000), "5,000"),
        (2 / 3, "0.6667"),
        (np.float32(0.5), "0.5"),
        (True, "yes"),
        (np.bool_(False), "no"),
        (None, "–"),
        ("a<b", "a<b"),
    ],
    ids=str,
)
def test_cells_of_a_table_read_well(value, text):
    assert repr(figures.table([[value]], ["x"], "One.")).splitlines()[-1] == text


def test_table_is_accessible_and_escaped():
    page = figures.table([("a<b", 1)], ["name", "N & k"], "What <it> is.")._repr_html_()
    assert '<caption style="caption-side: top">What &lt;it&gt; is.</caption>' in page
    assert '<th scope="col">N &amp; k</th>' in page and "a&lt;b" in page
    assert page.count("<td") == 2


def test_table_without_rows_has_a_header():
    assert "name" in repr(figures.table([], ["name"], "Nothing."))


def test_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"expected 2 cells under \['a', 'b'\], got \[1\]"):
        figures.table([(1,)], ["a", "b"], "Wrong.")


def test_columns_line_up():
    text = repr(figures.table(itertools.product("ab", [1, 10]), ["letter", "n"], "Two."))
    assert len({row.index(row.split()[-1]) for row in text.splitlines()[4:]}) == 1
