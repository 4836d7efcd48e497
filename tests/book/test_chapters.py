"""Every chapter runs with only the wheel installed, and twice in one kernel with equal results.

Times are no results: a number with a unit of time behind it may differ. Trainings are cut short
here, as the book itself runs them whole; exact parts run as they are.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from companion.book import execute, hygiene
from companion.book import notebook as nb
from companion.book.workspace import Workspace

from .conftest import REPOSITORY, code

pytestmark = pytest.mark.chapters

CHAPTERS = Workspace(REPOSITORY).notebooks()
VARYING = re.compile(
    r"[ -]{2,}"  # the widths of a table's columns
    r"|\d[\d.,]* ?(?:ns|µs|ms|seconds?|s|minutes?|min|h)\b"  # what a clock says
    r"|0x[0-9a-f]+|model_id=\S+"  # where an object lies
    r'|<dc:date>.*?</dc:date>|\bid="[^"]*"|(?:href="|url\()#[^")]*'  # how an SVG is labelled
)
BUDGET = re.compile(r"^(\w+_steps = )\d+", re.M)
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the built wheel's packages and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, check=True, cwd=REPOSITORY, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "packages")
    return folder / "packages"


def double(chapter: Path, path: Path) -> None:
    """Write a notebook that holds a chapter's cells twice and then says which package it used."""
    cells = [
        dict(cell, id=f"{i}-{cell['id']}") for i in (1, 2) for cell in nb.load(chapter)["cells"]
    ]
    for cell in cells:
        if "parameters" in nb.tags(cell):
            cell["source"] = BUDGET.sub(r"\g<1>20", nb.source(cell))
    for cell in cells[len(cells) // 2 :]:
        cell["metadata"] = {k: v for k, v in cell["metadata"].items() if k != "tags"}
    last = {**code("import companion\n\nprint(companion.__file__)"), "id": "last"}
    notebook = hygiene.canonical({"cells": [*cells, last], "metadata": {}}, "import sys")
    path.write_text(hygiene.dump(notebook), encoding="utf8")


def shown(cell: dict) -> list:
    """What a cell shows, apart from times, addresses and labels."""
    found = []
    for output in cell.get("outputs", ()):
        data = {k: v for k, v in output.get("data", {}).items() if k != WIDGET}
        text = json.dumps([output.get("text"), data], ensure_ascii=False).replace('\\"', '"')
        found.append(VARYING.sub("~", text))
    return found


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_chapter_runs_twice_from_the_wheel(chapter, installed, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(installed))
    doubled, twin = tmp_path / chapter.name, tmp_path / "executed" / chapter.name
    double(chapter, doubled)
    stamp = {"parameters": {}}
    job = execute.Job(doubled, twin, tmp_path / "failed.ipynb", tmp_path / "log", stamp, 600)
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=execute.prepare_worker) as pool:
        _, _, error = pool.submit(execute.run, job).result()
    assert error == ""
    *cells, last = nb.load(twin)["cells"]
    assert str(installed) in nb.source({"source": last["outputs"][0]["text"]})
    half = len(cells) // 2
    for first, second in zip(cells[:half], cells[half:], strict=True):
        assert shown(first) == shown(second), nb.source(first)
