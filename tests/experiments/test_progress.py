"""Progress in a terminal, in a notebook, and nowhere."""

import io
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from companion.experiments import Run, train
from companion.experiments.progress import Progress, in_notebook

TINY = Run(task="index-lookup", length=2, model="lstm", alphabet=2, width=4, steps=20,
           check_every=10, validate=10, evaluate=10)  # fmt: skip


class FakeTerminal(io.StringIO):
    def isatty(self):
        return True


def test_plain_script_is_silent(capfd):
    train(TINY)
    assert capfd.readouterr() == ("", "")


def test_terminal_gets_a_bar_and_one_line_at_the_end(monkeypatch, capsys):
    terminal = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    train(TINY)
    assert capsys.readouterr().out == ""
    written = terminal.getvalue()
    assert "lstm (width 4) on index-lookup, N = 2" in written
    assert "20/20" in written or "10/20" in written or "0/20" in written
    last = written.rsplit("\r", 1)[-1]
    assert "all steps taken after 20 steps" in last


def test_bar_can_be_switched_off(monkeypatch):
    terminal = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    train(TINY, progress=False)
    assert terminal.getvalue() == ""


def test_interrupted_bar_is_closed(monkeypatch):
    terminal = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(KeyboardInterrupt), Progress(10, "sums") as progress:
        progress.update(3)
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("sums: stopped by KeyboardInterrupt\n")


NOTEBOOK = """
from companion.experiments import Run, train
from companion.experiments import progress
progress.INTERVAL = 0.0
assert progress.in_notebook()
run = Run(task="index-lookup", length=2, model="lstm", alphabet=2, width=4, steps=200,
          check_every=10, validate=10, evaluate=10, stop_at=2.0)
trained = train(run)
"""


@pytest.mark.slow
def test_notebook_keeps_one_output_the_summary_line():
    assert not in_notebook()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK)])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "display_data"
    assert set(output.data) == {"text/plain", "text/html"}
    for text in output.data.values():
        assert "lstm (width 4) on index-lookup, N = 2: all steps taken after 200 steps" in text
        assert not {"\r", "\x1b"} & set(text)
    assert "<progress" not in output.data["text/html"]
