"""A run is its content."""

from dataclasses import fields

import pytest

from companion.experiments import Run, figure_2_index

RUN = Run(task="index-lookup", length=20, model="lstm")


def test_key_names_the_content():
    assert RUN.key == Run(task="index-lookup", length=20, model="lstm").key
    others = {RUN.replace(**change).key for change in (
        {"seed": 1}, {"length": 21}, {"model": "transformer"}, {"learning_rate": 2e-3},
        {"tied": True}, {"schedule": "cosine"})}  # fmt: skip
    assert len(others | {RUN.key}) == 7
    assert len(RUN.key) == 16 and int(RUN.key, 16) >= 0


def test_key_does_not_change_between_versions():
    """Stored results are found by it. If this fails, they are all orphaned."""
    assert RUN.key == Run.from_dict({"task": "index-lookup", "length": 20, "model": "lstm"}).key
    assert RUN.key == "0ca4364854dea402"


def test_dictionary_round_trip():
    run = RUN.replace(tied=True, seed=7, learning_rate=3e-4)
    assert Run.from_dict(run.to_dict()) == run
    assert set(run.to_dict()) == {f.name for f in fields(Run)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "lstn"}, r"'lstn', expected one of: .*lstm.*transformer"),
        ({"task": "index"}, r"'index', expected one of: .*index-lookup"),
        ({"schedule": "linear"}, "'linear', expected one of: constant, cosine"),
        ({"length": 0}, "N=0, expected at least 1"),
        ({"batch": 0}, "batch=0, expected at least 1"),
        ({"steps": -1}, "steps=-1"),
        ({"learning_rate": 0.0}, "learning_rate=0.0, expected a positive number"),
        ({"learning_rate": float("nan")}, "learning_rate=nan"),
        ({"width": 30}, "width=30 and heads=4"),
        ({"positions": "rotten"}, "'rotten', expected one of"),
    ],
    ids=lambda x: "-".join(x) if isinstance(x, dict) else None,
)
def test_impossible_run_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        RUN.replace(**change)


def test_unknown_and_missing_fields_are_named():
    with pytest.raises(ValueError, match=r"unknown field\(s\) \['lr', 'rate'\]"):
        Run.from_dict({**RUN.to_dict(), "rate": 1, "lr": 2})
    with pytest.raises(ValueError, match=r"got no \['length', 'model'\]"):
        Run.from_dict({"task": "index-lookup"})


def test_presets():
    smoke, laptop, paper = (figure_2_index(scale) for scale in ("smoke", "laptop", "paper"))
    for runs in (smoke, laptop, paper):
        assert len({run.name for run in runs}) == len(runs)
        assert all(Run.from_dict(run.to_dict()) == run for run in runs)
    assert {run.length for run in laptop} == {20, 50, 100, 200}
    assert {run.seed for run in laptop} == {0, 1, 2}
    assert {run.steps for run in paper} == {250_000}
    for runs in (smoke, laptop):
        budget = {(r.model, r.length): r.steps for r in runs}
        for (_, length), steps in budget.items():
            if ("lstm", length) in budget:
                assert steps <= budget["lstm", length]
    with pytest.raises(ValueError, match="'large', expected one of: smoke, laptop, paper"):
        figure_2_index("large")
