"""The Performance page shows what was measured: the fastest peer, the exponent, every failure."""

import matplotlib.pyplot as plt
import pytest

from companion.book import performance_figures as drawn

from .conftest import check_figure

WHERE = {"architecture": "lstm", "depth": 1, "length": 100, "rows": "last"}


def row(contender, ms=None, **more):
    timed = {"failed": "no reason"} if ms is None else {
        "ms": ms, "ms_median": 1.1 * ms, "memory_mib": 10.0, "difference": 1e-7
    }  # fmt: skip
    return {**WHERE, "contender": contender, **timed, **more}


ROWS = [
    row(drawn.OURS, 10.0),
    row("slow", 90.0),
    row("fast", 20.0),
    row("broken"),
    row(drawn.OURS, 40.0, rows="all"),
    row("fast", 30.0, rows="all"),
    row(drawn.OURS, 80.0, length=400),
    row("fast", 60.0, length=400),
    row(drawn.OURS, 7.0, architecture="srwm"),
]
GROWTH = [
    {
        "architecture": name,
        "lengths": [64, 128],
        "times": {"64": {"ms": 1.0}, "128": {"ms": 2.0**power}},
    }
    for name, power in (("lstm", 1), ("transformer", 2))
]
COMPOSITION = [
    {
        "architecture": name, "length": 100, "operations": 5, "flops": 2e9, "bytes": 1e6,
        "split": {"data": 1.0, "forward": 3.0, "backward": 5.0, "optimiser": 1.0},
    }
    for name in ("lstm", "mamba")
]  # fmt: skip
DRAWINGS = {
    "speedups": lambda ax: drawn.speedups(ax, ROWS),
    "growth": lambda ax: drawn.growth(ax, GROWTH),
    "split": lambda ax: drawn.split(ax, COMPOSITION, 100),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_figure_is_the_same_at_every_run_and_legible(name):
    check_figure(DRAWINGS[name])


@pytest.fixture
def ax():
    fig, ax = plt.subplots()
    yield ax
    plt.close(fig)


def test_peer_is_the_fastest_that_ran_and_models_without_one_are_left_out():
    found = drawn.pairs(ROWS, "last")
    assert {key: (p.peer["contender"], p.times) for key, p in found.items()} == {
        ("lstm", 1, 100): ("fast", 2.0),
        ("lstm", 1, 400): ("fast", 0.75),
    }
    assert drawn.typical(found) == pytest.approx(1.375)


def test_every_pair_is_a_point(ax):
    drawn.speedups(ax, ROWS)
    points = sorted(x for line in ax.lines for x in line.get_xdata() if len(line.get_xdata()) == 1)
    assert points == pytest.approx([0.75, 0.75, 2.0])


def test_exponents_are_in_the_legend(ax):
    drawn.growth(ax, GROWTH)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["lstm: 1.00", "transformer: 2.00"]


def test_tables_hold_what_was_measured():
    assert drawn.speed_table(ROWS)[0] == ("lstm", 100, "100.0", "fast", "50.0", "2.00", "0.75")
    assert drawn.speed_table(ROWS)[1][-1] is None
    assert [r[1] for r in drawn.contest_table(ROWS, 100, "last")] == [
        drawn.OURS, "slow", "fast", drawn.OURS
    ]  # fmt: skip
    assert drawn.failures(ROWS) == [("lstm", "broken", "100", "no reason")]


def test_floor_is_the_longer_of_products_and_bytes():
    def floor(**peaks):
        content = {"peaks": [peaks], "composition": COMPOSITION[:1]}
        return drawn.floor_table(content)[0][-3:]

    assert floor(flops=1e12, bytes=1e9) == ("2.0", "10.0", "5.0")
    assert floor(flops=1e12, bytes=2e8) == ("5.0", "10.0", "2.0")


def test_population_that_failed_has_no_row():
    assert drawn.population_table([{"architecture": "lstm", "failed": "no reason"}]) == []


def test_stored_measurement_holds_every_part():
    cpu = drawn.measured("cpu")
    for part in ("comparison", "growth", "composition"):
        assert {r["architecture"] for r in cpu[part]} >= {"transformer", "lstm", "dss", "srwm"}
    with pytest.raises(FileNotFoundError, match="got no measurement"):
        drawn.measured("abacus")
