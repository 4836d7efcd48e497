"""Checkpoints: an interrupted training ends exactly as one that was left alone."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from companion.experiments import Run, choose_device, sweep, train
from companion.experiments.checkpoint import read, write
from companion.experiments.store import checkpoint_path, load
from companion.experiments.training import Training
from companion.models import MODELS

RUN = Run(task="index-lookup", length=5, model="lstm", alphabet=4, width=16, steps=30,
          check_every=10, validate=50, evaluate=100, learning_rate=1e-2, stop_at=2.0)  # fmt: skip


class Stopped(Exception):
    pass


def interrupt(run, path, monkeypatch, checks=2):
    """Train `run` up to and including check number `checks`, as if it were killed then."""
    module = sys.modules["companion.experiments.training"]
    monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
    save = Training.save

    def save_and_stop(self, path):
        save(self, path)
        if len(self.members[0].curve) == checks:
            raise Stopped

    monkeypatch.setattr(Training, "save", save_and_stop)
    with pytest.raises(Stopped):
        train(run, progress=False, checkpoint=path)
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("model", "schedule"), [*((name, "constant") for name in sorted(MODELS)), ("lstm", "cosine")]
)
def test_resumed_run_equals_an_uninterrupted_one(model, schedule, tmp_path, monkeypatch):
    run, path = RUN.replace(model=model, schedule=schedule), tmp_path / "run.safetensors"
    whole = train(run, progress=False)
    interrupt(run, path, monkeypatch)
    torch.rand(5)
    resumed = train(run, progress=False, checkpoint=path)
    assert resumed.result.curve == whole.result.curve
    assert (resumed.result.final, resumed.result.best) == (whole.result.final, whole.result.best)
    weights = zip(whole.model.parameters(), resumed.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in weights)


def test_time_before_the_interruption_counts(tmp_path):
    training = Training([RUN], choose_device())
    training.advance(1)
    training.members[0].curve.append((1, 0.5, 0.5))
    time.sleep(0.05)
    training.save(tmp_path / "a.safetensors")
    later = Training([RUN], choose_device(), tmp_path / "a.safetensors")
    assert later.clock.wall >= 0.05


def test_best_weights_are_kept_beside_the_last(tmp_path, monkeypatch):
    path = tmp_path / "run.safetensors"
    interrupt(RUN, path, monkeypatch)
    names = set(read(path)[0])
    assert {"model.head.weight", "best 0.head.weight", "rng.0"} <= names


@pytest.mark.parametrize("other", [{"seed": 1}, {"learning_rate": 2e-2}])
def test_checkpoint_of_another_run_is_refused(other, tmp_path, monkeypatch):
    path = tmp_path / "run.safetensors"
    interrupt(RUN, path, monkeypatch)
    with pytest.raises(ValueError, match=r"got a checkpoint of run .* remove it to begin anew"):
        train(RUN.replace(**other), progress=False, checkpoint=path)


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=f"{path.name}: got no whole safetensors file"):
        read(path)
    from safetensors.torch import save_file

    save_file({"w": torch.ones(1)}, path)
    with pytest.raises(ValueError, match="got format None, expected 'companion-checkpoint-2'"):
        read(path)


def test_write_leaves_no_draft_and_replaces_the_old_file(tmp_path):
    path = tmp_path / "deep" / "a.safetensors"
    for step in (1, 2):
        write(path, {"w": torch.ones(1)}, {"step": step})
    assert read(path)[1] == {"step": 2}
    assert list(path.parent.iterdir()) == [path]


SCRIPT = """
import sys
from companion.experiments import Run, sweep
module = sys.modules["companion.experiments.training"]
module.SAVE_EVERY = 0.0
sweep([Run.from_dict(eval(sys.argv[1]))], sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_run_goes_on_from_its_last_checkpoint(tmp_path, monkeypatch):
    run = RUN.replace(steps=400)
    path = checkpoint_path(run, tmp_path)
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(run.to_dict()), str(tmp_path)],
                               stdout=subprocess.DEVNULL)  # fmt: skip
    deadline = time.monotonic() + 120
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = len(read(path)[1]["curves"][0])
    advanced = []
    advance = Training.advance
    monkeypatch.setattr(Training, "advance", lambda self, n: advanced.append(n) or advance(self, n))
    monkeypatch.setattr(
        sys.modules["companion.experiments.sweep"], "expectation", lambda runs, workers: ""
    )
    (resumed,) = sweep([run], tmp_path, report=lambda line: None)
    monkeypatch.undo()
    assert before >= 1 and sum(advanced) == run.steps - before * run.check_every
    assert resumed.curve == train(run, progress=False).result.curve
    assert not path.exists() and load(tmp_path) == [resumed]
