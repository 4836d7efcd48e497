from __future__ import annotations

import sys

import pytest

from companion.book.steps import StepFailed, StepSkipped, run_logged, run_steps


def failing() -> str:
    raise StepFailed("the reason")


def skipping() -> str:
    raise StepSkipped("no tool")


def test_failing_step_names_itself_and_stops_the_rest(capsys):
    ran = []
    steps = [("one", lambda: "fine"), ("two", failing), ("three", lambda: ran.append(3))]
    assert run_steps("book", steps) == 1
    out = capsys.readouterr().out
    assert "book: one: fine (" in out
    assert "the reason\nbook: FAILED in step 'two' after" in out
    assert ran == []


def test_skipped_step_says_so_in_one_line(capsys):
    assert run_steps("test", [("browser", skipping)]) == 0
    assert "test: browser: SKIPPED: no tool (" in capsys.readouterr().out


def test_no_steps_is_success():
    assert run_steps("nothing", []) == 0


def test_failing_command_shows_its_end_and_its_log(tmp_path):
    log = tmp_path / "logs" / "x.log"
    command = [sys.executable, "-c", "import sys; print('last words'); sys.exit(3)"]
    with pytest.raises(StepFailed, match=r"last words\n.* exited 3; log: .*x\.log"):
        run_logged(command, log, tmp_path)
    assert log.read_text() == "last words\n"
