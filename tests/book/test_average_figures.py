"""Figures of chapter 8 draw what they are given, and can be read on both pages."""

import numpy as np
import pytest

from companion.book import average_figures as drawn
from companion.theory.average_case import inner_product, one_way_ceiling, two_way_ceiling

from .conftest import check_figure

SIZES = {"binary code": [(1024, 484), (16, 100)], "trace code": [(256, 3000), (65536, 8000)]}
REACHED = {"best found": [(4, 0.55), (2, 0.52)], "first bits": [(2, 0.51), (4, 0.53)]}
DRAWINGS = {
    "signs": lambda ax: drawn.signs(ax, inner_product(3), "inner product"),
    "crossover": lambda ax: drawn.crossover(ax, SIZES),
    "ceilings": lambda ax: drawn.ceilings(ax, 8, REACHED),
}


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_figure_is_the_same_at_every_run_and_legible(name):
    check_figure(DRAWINGS[name])


@pytest.mark.parametrize("n", [0, 1, 4])
def test_signs_fill_the_minus_ones(ax, n):
    M = inner_product(n)
    drawn.signs(ax, M, "IP2")
    np.testing.assert_array_equal(np.asarray(ax.get_images()[0].get_array()), M == -1)


def test_crossover_has_every_model_and_half_the_length(ax):
    drawn.crossover(ax, SIZES)
    bound, *sizes = ax.lines
    assert all(y == x / 2 for x, y in bound.get_xydata())
    assert bound.get_xdata().tolist() == [16, 256, 1024, 65536]
    assert [line.get_xydata().tolist() for line in sizes] == [
        [[16, 100], [1024, 484]],
        [[256, 3000], [65536, 8000]],
    ]


def test_ceilings_are_those_of_the_theory_and_points_lie_where_they_are(ax):
    drawn.ceilings(ax, 8, REACHED)
    one, two, *points = ax.lines
    for line, ceiling in ((one, one_way_ceiling), (two, two_way_ceiling)):
        x, y = line.get_xydata().T
        np.testing.assert_allclose(y, [ceiling(float(c), 8) for c in x])
        assert (x[0], x[-1]) == (0, 8)
    assert points[0].get_xydata().tolist() == [[2, 0.52], [4, 0.55]]
    assert one.get_linestyle() != two.get_linestyle()
