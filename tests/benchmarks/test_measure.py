"""Measurements are what they say, and one that does not come about says why."""

import json
import os
import subprocess
import sys
import time

import compare
import measure
import pytest
import torch
from measure import ALL, LAST, Failed, Sizes

from .conftest import BENCHMARKS

SIZES = Sizes(length=9, width=8, batch=2, heads=2)


def test_longer_work_takes_longer_and_all_have_their_turns():
    def work(n):
        return lambda: sum(range(n))

    found = measure.in_turns({"short": work(20_000), "long": work(400_000)}, "cpu", rounds=3)
    assert found["long"]["ms"] > 5 * found["short"]["ms"]
    for row in found.values():
        assert row["ms"] <= row["ms_median"] and row["steps"] >= 3


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda: {}["absent"], "KeyError: 'absent'"),
        (lambda: os._exit(3), "its process ended with 3"),
        (lambda: time.sleep(9), "did not end within 1 s"),
    ],
)
def test_failures_have_reasons(act, reason):
    with pytest.raises(Failed, match=reason):
        measure.alone(act, "cpu", patience=1.0)


def test_a_step_learns_whichever_rows_are_asked_for():
    for rows in (LAST, ALL):
        training = compare.trained("lstm", "nn.LSTM", SIZES, rows, "cpu")
        before = training.loss().item()
        for _ in range(20):
            training.step()
        assert training.loss().item() < before


def test_bytes_and_operations_are_those_of_a_sum_by_hand():
    x, y = torch.ones(100), torch.ones(1, 1).expand(10, 10)
    with measure.Traffic() as traffic:
        (x.view(10, 10) + y) + y
    assert traffic.operations == 2
    assert traffic.bytes == 4 * ((100 + 1 + 100) + (100 + 1 + 100))


def test_lstm_products_are_counted_though_they_are_one_operation():
    sizes = Sizes(length=9, width=8, batch=2)
    counted = measure.contents(compare.trained("lstm", "companion", sizes, LAST, "cpu"), sizes)
    lstm = 3 * 2 * (4 * 8 * 16) * sizes.batch * sizes.length
    head = 3 * 2 * 8 * 64 * sizes.batch
    assert counted["flops"] == pytest.approx(lstm + head, rel=0.01)


FAKE = """
import json, measure, torch
class Fake:
    module = torch.nn.Linear(2000, 2000)
    def __init__(self):
        self.kept = []
    def step(self):
        self.kept.append(torch.ones(4, 2000, 2000))
print(json.dumps(measure.memory(Fake, "cpu")))
"""


def test_memory_is_what_two_steps_add_to_a_process():
    """In a process of its own: this one may have memory left from earlier tests."""
    program = [sys.executable, "-B", "-c", FAKE]
    done = subprocess.run(program, cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["parameters"] == 2000 * 2001
    assert 2 * 61 <= found["memory_mib"] <= 2 * 61 + 40


def test_parts_of_a_step_make_up_the_step():
    found = measure.parts("transformer", SIZES, "cpu", steps=3)
    assert list(found) == ["data", "forward", "backward", "optimiser"]
    assert min(found.values()) > 0
