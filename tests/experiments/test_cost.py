"""Costs: operations and FLOPs are counted, and grow as the architecture says."""

import pytest

from companion.experiments import Run
from companion.experiments.cost import (
    LAUNCH,
    PEAK,
    UTILISED,
    cost,
    expected,
    gpu_hours,
    measure,
)
from companion.models import MODELS

RUN = Run(task="index-lookup", length=20, model="transformer", width=16)


def test_flops_grow_with_the_batch_and_operations_do_not():
    one, two = cost(RUN), cost(RUN.replace(batch=128))
    assert two.flops == 2 * one.flops
    assert two.operations == one.operations


def test_operations_do_not_depend_on_width():
    assert cost(RUN).operations == cost(RUN.replace(width=64)).operations
    assert cost(RUN.replace(width=64)).flops > 5 * cost(RUN).flops


def test_lstm_costs_a_kernel_a_symbol():
    short, long = (cost(RUN.replace(model="lstm", length=N)).operations for N in (20, 120))
    assert long - short == 6 * 100


def test_flops_of_attention_by_hand():
    """One layer of width D on T symbols, of which only the last row is computed after the keys."""
    D, T, classes = 16, 21, 64
    forward = 2 * (2 * T * D * D)  # keys and values
    forward += 2 * D * D * 2  # query and output of one row
    forward += 2 * 2 * T * D  # scores and sum
    forward += 2 * 2 * D * 4 * D + 2 * D * classes
    assert cost(RUN.replace(batch=1)).flops == pytest.approx(3 * forward, rel=0.1)


def test_gpu_hours_are_those_of_the_slower_part():
    operations, flops = cost(RUN)
    hours = gpu_hours([[RUN.replace(steps=1000)]], "T4")
    assert hours == pytest.approx(1000 * operations * LAUNCH / 3600)
    assert flops / (PEAK["T4"] * UTILISED) < operations * LAUNCH
    with pytest.raises(ValueError, match="'V100', expected one of: T4, A100, H100"):
        gpu_hours([[RUN]], "V100")


@pytest.mark.parametrize("model", sorted(set(MODELS) - {"lstm"}))
def test_population_starts_hardly_more_operations_than_one_model(model):
    one, many = cost(RUN.replace(model=model)), cost(RUN.replace(model=model), members=21)
    assert many.operations < 2 * one.operations
    assert many.flops == pytest.approx(21 * one.flops, rel=0.01)


def test_expected_time_counts_every_step_and_measures_each_setting_once(monkeypatch):
    measured = []
    monkeypatch.setattr(
        "companion.experiments.cost.measure", lambda runs: measured.append(runs) or 0.5
    )
    runs = [
        RUN.replace(seed=seed, steps=10, learning_rate=lr) for seed in (0, 1) for lr in (0.1, 0.2)
    ]
    groups = [*([run] for run in runs), [RUN.replace(model="lstm", steps=3)], runs]
    assert expected(groups) == 4 * 10 * 0.5 + 3 * 0.5 + 10 * 0.5
    assert [len(group) for group in measured] == [1, 1, 4]


def test_measured_step_takes_time():
    assert 0 < measure([RUN], seconds=0.01) < 5
