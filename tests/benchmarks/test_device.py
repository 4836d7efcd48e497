"""The device script's parts, on a CPU: the same code, with tiny sizes."""

import json
import subprocess
import sys

import device
import pytest
import torch

from companion.experiments import load

from .conftest import BENCHMARKS

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def out(tmp_path, monkeypatch):
    monkeypatch.setenv("OUT", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["lstm", "mamba", "transformer"])
def test_model_and_population_agree_with_double_precision(name):
    found = device.agreement_of_model(name, CPU)
    assert set(found) == {"model", "population"}
    assert all(0 < x < 1e-4 for x in found.values())


def test_scans_and_steps_that_run_here_agree():
    assert 0 < device.agreement_of_scans(CPU)["segments"] < 1e-4
    assert device.agreement_of_steps("lstm") == {"eager against eager": 0.0}


def test_trained_populations_are_written_as_they_come_and_can_be_unpacked(out, monkeypatch):
    device.training(60.0, quick=True)
    lines = (out / "results.jsonl").read_text().splitlines()
    runs = [json.loads(line)["run"] for line in lines]
    assert {run["seed"] for run in runs} == {0, 1, 2}
    assert {run["model"] for run in runs} == {"transformer", "lstm", "linear_transformer"}
    monkeypatch.setattr(device, "results_dir", lambda: out)
    device.unpack(out / "results.jsonl")
    stored = load(out / device.STUDY)
    assert len(stored) == len(runs) and all(r.provenance["members"] == 3 for r in stored)


def test_nothing_is_trained_for_which_there_is_no_time(out, capsys):
    device.training(0.0, quick=True)
    assert "3 members" in capsys.readouterr().out
    assert not (out / "results.jsonl").exists()


def test_without_a_gpu_it_says_so(out):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    program = [sys.executable, "-B", str(BENCHMARKS / "device.py")]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 1 and "got no CUDA GPU, expected one; --quick" in done.stderr
