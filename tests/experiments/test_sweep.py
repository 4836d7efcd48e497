"""Sweeps skip what is stored, survive a kill, and refuse foreign files before they start."""

import argparse
import os
import signal
import subprocess
import sys
import time

import pytest

from companion.experiments import STUDIES, Run, Study, load, sweep, table
from companion.experiments.cli import add_sweep_command, named

TINY = Run(task="index-lookup", length=2, model="lstm", alphabet=2, width=4, heads=1, steps=10,
           check_every=5, validate=10, evaluate=20)  # fmt: skip
RUNS = [TINY.replace(seed=seed) for seed in range(3)]


def run_sweep(runs, folder, **options):
    lines = []
    return sweep(runs, folder, report=lines.append, **options), lines


def test_no_runs(tmp_path):
    results, lines = run_sweep([], tmp_path)
    assert results == []
    assert lines[0].startswith("0 runs: 0 stored")


def test_stored_runs_are_skipped(tmp_path):
    first, lines = run_sweep(RUNS[:2], tmp_path)
    assert lines[0].startswith("2 runs: 0 stored") and "2 to train" in lines[0]
    again, lines = run_sweep([*RUNS, RUNS[0]], tmp_path)
    assert lines[0].startswith("3 runs: 2 stored") and "1 to train" in lines[0]
    assert again[:2] == first  # with their seconds: read, not trained again
    assert [r.run for r in again] == RUNS
    assert sorted(load(tmp_path), key=lambda r: r.run.seed) == again
    assert lines[1].startswith("expected: at most ")
    assert lines[2].startswith("[1/1,") and RUNS[2].name in lines[2]


@pytest.mark.slow
def test_workers_give_the_same_results(tmp_path):
    here, _ = run_sweep(RUNS, tmp_path / "here")
    there, lines = run_sweep(RUNS, tmp_path / "there", workers=2)
    for a, b in zip(here, there, strict=True):
        assert (a.run, a.curve, a.final, a.best) == (b.run, b.curve, b.final, b.best)
    assert len(lines) == 6


def test_failed_run_is_reported_and_the_others_are_stored(tmp_path, monkeypatch):
    module = sys.modules["companion.experiments.groups"]
    real = module.train

    def train(run, **options):
        if run.seed == 1:
            raise MemoryError("no room")
        return real(run, **options)

    monkeypatch.setattr(module, "train", train)
    lines = []
    with pytest.raises(RuntimeError, match=f"1 of 3 runs failed: {RUNS[1].name}"):
        sweep(RUNS, tmp_path, report=lines.append)
    assert "FAILED, MemoryError: no room" in lines[3]
    assert [r.run.seed for r in load(tmp_path)] == [0, 2]


def test_foreign_file_is_refused_before_anything_is_trained(tmp_path):
    path = tmp_path / f"{RUNS[2].name}.json"
    path.write_text("{}")
    with pytest.raises(ValueError, match=path.name):
        run_sweep(RUNS, tmp_path)
    assert list(tmp_path.iterdir()) == [path]


SCRIPT = """
import sys
from companion.experiments import Run, sweep
sweep([Run(task="index-lookup", length=5, model="lstm", steps=200, seed=seed, stop_at=2.0)
       for seed in range(4)], sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_sweep_keeps_what_was_finished(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)],
                               stdout=subprocess.DEVNULL)  # fmt: skip
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    stored = load(tmp_path)
    assert 1 <= len(stored) < 4
    runs = [stored[0].run.replace(seed=seed) for seed in range(4)]
    results, lines = run_sweep(runs, tmp_path)
    assert f"{len(stored)} stored" in lines[0]
    assert len(results) == 4


def test_table_has_one_line_per_setting(tmp_path):
    results, lines = run_sweep([*RUNS, TINY.replace(length=3)], tmp_path)
    text = table(results)
    assert lines[-1] == text
    _, *rows = text.splitlines()
    assert len(rows) == 2
    assert rows[0].split()[:5] == ["index-lookup", "2", "lstm-(1,4)", "0.001", "3"]


def test_impossible_number_of_workers_is_refused(tmp_path):
    with pytest.raises(ValueError, match="workers=0, expected at least 1"):
        run_sweep(RUNS, tmp_path, workers=0)


def test_plan_is_asked_again_until_nothing_it_wants_is_missing(tmp_path):
    def plan(results):
        return RUNS[: len(results) + 1]

    results, lines = run_sweep(plan, tmp_path)
    assert [r.run for r in results] == RUNS
    assert [line.split(" to train")[0][-1] for line in lines if "to train" in line] == list("111")
    again, lines = run_sweep(plan, tmp_path)
    assert again == results
    assert not any(line.startswith("[") for line in lines)


@pytest.mark.slow
def test_ray_gives_the_same_results_and_reports_what_failed(tmp_path):
    """In a process of its own: Ray leaves threads and sockets behind."""
    runs = [run.to_dict() for run in RUNS]
    script = f"""
from companion.experiments import Run, sweep
runs = [Run.from_dict(run) for run in {runs}]
sweep(runs[:1], {str(tmp_path / "ray")!r})
try:
    sweep([*runs, runs[0].replace(width=4096, batch=2**40)], {str(tmp_path / "ray")!r},
          workers=2, ray="local")
except RuntimeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "on Ray, local" in done.stdout
    assert "1 of 4 runs failed" in done.stdout
    assert "[1/3," in done.stdout  # the first was stored and is not trained again
    here, _ = run_sweep(RUNS, tmp_path / "here")
    there = {result.run: result for result in load(tmp_path / "ray")}
    for result in here:
        other = there[result.run]
        assert (result.curve, result.final, result.best) == (other.curve, other.final, other.best)


def command(*words):
    parser = argparse.ArgumentParser()
    add_sweep_command(parser.add_subparsers())
    arguments = parser.parse_args(["sweep", *words])
    return arguments.run(arguments)


@pytest.fixture
def tiny(monkeypatch):
    study = Study("tiny", "A tiny study", lambda scale: [(RUNS[0], 10)])
    monkeypatch.setitem(STUDIES, "tiny", study)


def test_command_line(tiny, tmp_path, capsys):
    assert command("tiny", "--folder", str(tmp_path)) == 0
    assert len(load(tmp_path)) == 3
    out = capsys.readouterr().out
    assert "A tiny study, laptop" in out and "1 runs: 0 stored" in out


def test_dry_run_says_the_price_and_trains_nothing(tiny, tmp_path, capsys):
    folder = tmp_path / "nothing"
    assert command("tiny", "--dry-run", "--folder", str(folder)) == 0
    out = capsys.readouterr().out
    assert "1 runs, 10 steps at most" in out and "A100" in out and "Estimated" in out
    assert not folder.exists()


def test_command_line_refuses_unknown_names(tmp_path):
    with pytest.raises(ValueError, match="'figure-9', expected one of: figure-2-index"):
        command("figure-9", "--folder", str(tmp_path))
    with pytest.raises(ValueError, match="'huge', expected one of: smoke, laptop, gpu, paper"):
        command("figure-2-index", "--preset", "huge", "--folder", str(tmp_path))


def test_names_may_mean_several_studies():
    assert [study.name for study in named("figure-2")] == ["figure-2-index", "figure-2-dyck"]
    assert named("all") == list(STUDIES.values())
