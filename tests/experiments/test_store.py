"""Stored results: what is written comes back, what was changed is refused."""

import json
import math
import os

import pytest

from companion.experiments import (
    Check,
    Result,
    Run,
    Score,
    load,
    load_file,
    results_dir,
    save,
    wilson,
)

RUN = Run(task="index-lookup", length=20, model="lstm")


def make(run=RUN, **changes):
    fields = {"status": "finished", "steps": 200, "final": Score(10, 50), "best": Score(12, 50),
              "curve": [Check(100, 4.25, 0.1), Check(200, 4.0, 0.25)], "best_step": 200,
              "seconds": 1.5, "cpu_seconds": 1.25, "provenance": {"torch": "2"}}  # fmt: skip
    return Result(run=run, **{**fields, **changes})


@pytest.mark.parametrize("curve", [[], [Check(1, 0.5, 1.0)]], ids=["empty", "one"])
def test_round_trip(tmp_path, curve):
    result = make(curve=curve)
    path = save(result, tmp_path / "new" / "folder")
    assert path.name == f"{RUN.name}.json"
    assert load_file(path) == result
    assert load(path.parent) == [result]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_diverged_run_has_no_number_for_its_loss(tmp_path):
    path = save(make(status="diverged", curve=[Check(100, math.nan, 0.0)]), tmp_path)
    assert "NaN" not in path.read_text()
    assert math.isnan(load_file(path).curve[0].loss)


def test_unknown_status_is_refused():
    with pytest.raises(ValueError, match="'done', expected one of: reached, finished, diverged"):
        make(status="done")


def test_failed_write_leaves_the_earlier_result(tmp_path, monkeypatch):
    path = save(make(), tmp_path)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        save(make(steps=999), tmp_path)
    assert load(tmp_path) == [load_file(path)] == [make()]


def tamper(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: p.write_text(p.read_text()[:40]), "not JSON"),
        (lambda p: p.write_text(""), "not JSON"),
        (lambda p: p.write_text("[1, 2]"), "format 'list', expected 'companion-result-1'"),
        (lambda p: p.write_text('{"a": 1}'), "format None"),
        (
            lambda p: tamper(p, final={"correct": 50, "total": 50}),
            "checksum .* expected the stored",
        ),
        (lambda p: tamper(p, run={**RUN.to_dict(), "seed": 5}), "checksum"),
    ],
    ids=["truncated", "empty", "list", "foreign", "better-score", "other-seed"],
)
def test_damaged_file_is_named_and_refused(tmp_path, damage, message):
    path = save(make(), tmp_path)
    damage(path)
    for read in (lambda: load_file(path), lambda: load(tmp_path)):
        with pytest.raises(ValueError, match=message) as caught:
            read()
        assert str(path) in str(caught.value)


def test_result_under_the_name_of_another_run_is_refused(tmp_path):
    path = save(make(), tmp_path)
    other = path.with_name(f"{RUN.replace(seed=1).name}.json")
    path.rename(other)
    with pytest.raises(ValueError, match=f"got the result of {RUN.name}, expected {other.stem}"):
        load_file(other)


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing-here"):
        load(tmp_path / "nothing-here")


def test_results_lie_in_the_checkout():
    assert results_dir().name == "results"
    assert (results_dir().parent / "pyproject.toml").is_file()


def test_results_of_an_installed_package_lie_inside_it(monkeypatch, tmp_path):
    import companion

    module = tmp_path / "lib" / "site-packages" / "companion" / "__init__.py"
    monkeypatch.setattr(companion, "__file__", str(module))
    assert results_dir() == module.parent / "results"


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 5000), (17, 50), (5000, 5000)])
def test_wilson_interval_solves_its_equation(successes, n):
    low, high = wilson(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    for p in (low, high):
        if 0 < p < 1:
            assert abs(successes / n - p) == pytest.approx(1.96 * math.sqrt(p * (1 - p) / n))


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_impossible_counts_are_refused(successes, n):
    with pytest.raises(ValueError, match=f"got {successes} successes of n={n}"):
        wilson(successes, n)
