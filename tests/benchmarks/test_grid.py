"""The stored estimate is that of the present code."""

import json

import grid
import pytest

from companion.experiments import results_dir


def test_stored_hours_are_those_of_the_present_code():
    stored = json.loads((results_dir() / "performance" / "grid.json").read_text())
    assert stored["assumed"]["launch"] == grid.LAUNCH and stored["assumed"]["peak"] == grid.PEAK
    rows = {(row["study"], row["scale"]): row for row in stored["studies"]}
    assert len(rows) == len(grid.FIGURES) * len(grid.SCALES)
    found, expected = grid.estimate("figure-3", "gpu"), rows["figure-3", "gpu"]
    for way, hours in found["hours"].items():
        assert hours == pytest.approx(expected["hours"][way])
    assert found == expected | {"hours": found["hours"]}
