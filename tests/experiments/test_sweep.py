"""Sweeps skip what is stored, survive a kill, and refuse foreign files before they start."""

import argparse
import os
import signal
import subprocess
import sys
import time

import pytest

from companion.experiments import Run, load, sweep, table
from companion.experiments.cli import add_sweep_command

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
    assert lines[1].startswith("[1/1,") and RUNS[2].name in lines[1]


@pytest.mark.slow
def test_workers_give_the_same_results(tmp_path):
    here, _ = run_sweep(RUNS, tmp_path / "here")
    there, lines = run_sweep(RUNS, tmp_path / "there", workers=2)
    for a, b in zip(here, there, strict=True):
        assert (a.run, a.curve, a.final, a.best) == (b.run, b.curve, b.final, b.best)
    assert len(lines) == 5


def test_failed_run_is_reported_and_the_others_are_stored(tmp_path, monkeypatch):
    module = sys.modules["companion.experiments.sweep"]
    real = module.train

    def train(run, **options):
        if run.seed == 1:
            raise MemoryError("no room")
        return real(run, **options)

    monkeypatch.setattr(module, "train", train)
    lines = []
    with pytest.raises(RuntimeError, match=f"1 of 3 runs failed: {RUNS[1].name}"):
        sweep(RUNS, tmp_path, report=lines.append)
    assert "FAILED, MemoryError: no room" in lines[2]
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
    assert rows[0].split()[:5] == ["index-lookup", "2", "lstm-(1,4)", "1e-03", "3"]


def test_impossible_number_of_workers_is_refused(tmp_path):
    with pytest.raises(ValueError, match="workers=0, expected at least 1"):
        run_sweep(RUNS, tmp_path, workers=0)


def command(*words):
    parser = argparse.ArgumentParser()
    add_sweep_command(parser.add_subparsers())
    arguments = parser.parse_args(["sweep", *words])
    return arguments.run(arguments)


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules["companion.experiments.cli"].PRESETS, "tiny", lambda _: RUNS)
    assert command("tiny", "--folder", str(tmp_path)) == 0
    assert len(load(tmp_path)) == 3
    assert "3 runs: 0 stored" in capsys.readouterr().out


def test_command_line_refuses_unknown_names(tmp_path):
    with pytest.raises(ValueError, match="'figure-9', expected one of: figure-2-index"):
        command("figure-9", "--folder", str(tmp_path))
    with pytest.raises(ValueError, match="'huge', expected one of: smoke, laptop, paper"):
        command("figure-2-index", "--preset", "huge", "--folder", str(tmp_path))
