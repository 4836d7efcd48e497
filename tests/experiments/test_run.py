"""A run is its content."""

from dataclasses import fields

import pytest

from companion.experiments import Run

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


@pytest.mark.parametrize("change", [{"steps": 10.0}, {"seed": True}, {"width": "64"}])
def test_what_is_no_whole_number_is_refused(change):
    ((name, value),) = change.items()
    run = RUN.replace()
    object.__setattr__(run, name, value)  # the tests' own type checks would refuse it earlier
    with pytest.raises(TypeError, match=f"{name}={value!r}, expected a whole number"):
        run.__post_init__()
