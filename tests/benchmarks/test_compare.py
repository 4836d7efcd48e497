"""The program, run as a reader runs it, without published peers: at least half of what is claimed.

In a process of its own, since the checks of shapes and types that the tests switch on take longer
than the steps that are timed here.
"""

import json
import subprocess
import sys

import compare
import pytest

from companion.book.performance_figures import failures, pairs

from .conftest import BENCHMARKS

CLAIMED = {  # times the fastest peer's steps that one answer takes, halved
    "transformer": 1.5,
    "lstm": 0.5,
    "mamba": 2.0,
    "deltanet": 1.5,
}


def run(tmp_path, *options):
    path = tmp_path / "report.json"
    program = [sys.executable, "-B", str(BENCHMARKS / "compare.py"), "--out", str(path)]
    offline = ["--offline", "--peers", str(tmp_path)]
    subprocess.run([*program, *offline, *options], check=True, capture_output=True, text=True)
    return json.loads(path.read_text(encoding="utf8"))


@pytest.mark.slow
def test_ours_is_as_fast_as_half_of_what_is_claimed(tmp_path):
    sizes = ["--lengths", "48", "--batch", "16", "--rounds", "2", "--parts", "comparison"]
    content = run(tmp_path, *sizes, "--only", *CLAIMED)
    rows = content["comparison"]
    found = {name: pair.times for (name, _, _), pair in pairs(rows, "last").items()}
    assert found.keys() == CLAIMED.keys()
    assert {name: times for name, times in found.items() if times < CLAIMED[name]} == {}
    assert min(pair.times for pair in pairs(rows, "all").values()) > 0.5
    missing = {who for _, who, _, why in failures(rows) if "module" in why or "package" in why}
    assert {"Hugging Face GPT-2", "fla, naive loop"} <= missing


def test_every_addition_is_written_and_what_there_is_no_time_for_is_said(tmp_path):
    path = tmp_path / "new" / "report.json"
    report = compare.Report(path, {"device": "cpu"}, seconds=0.0)
    for i in (1, 2):
        report.add("growth", [{"length": i}])
        stored = json.loads(path.read_text(encoding="utf8"))
        assert stored["growth"][-1] == {"length": i} and stored["device"] == "cpu"
    assert not report.goes_on("lstm, growth")
    assert json.loads(path.read_text(encoding="utf8"))["left_out"] == ["lstm, growth"]
    assert list(path.parent.iterdir()) == [path]
