"""A book of two notebooks and one page, with the repository's own configuration."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from companion.book import address, build, execute, figures, hygiene, vendor
from companion.book.appearance import INK, NEGATIVE, OTHERS, PAPER, POSITIVE, SERIES
from companion.book.workspace import Workspace

REPOSITORY = Path(__file__).parents[2]
ALT = "A slanted line that rises from the lower left corner to the upper right one."
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="90pt" viewBox="0 0 9 9">'
    '<path id="line" d="M0 9L9 0" style="stroke: #1b1b1f"/></svg>'
)
TOC = """\
format: jb-book
root: book/index
chapters:
  - file: notebooks/first
  - file: notebooks/second
"""
INDEX = """\
# Tiny

A formula $k \\ge 1$ and one with a number:

$$ a^2 + b^2 = c^2 $$ (eq-square)

See {eq}`eq-square` and {cite}`ada`.

```{bibliography}
```
"""
BIB = "@book{ada, author={Lovelace, Ada}, title={Notes}, publisher={Taylor}, year={1843}}\n"


def code(source: str, **metadata) -> dict:
    return {"cell_type": "code", "source": source, "metadata": metadata}


def markdown(source: str) -> dict:
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def write_notebook(path: Path, cells: list[dict], parameters: str = "N = 4") -> Path:
    """Write a notebook that opens as every notebook of the book does."""
    bootstrap = address.read_address(path.parents[1]).bootstrap()
    opening = [
        markdown(f"# {path.stem}"),
        code(bootstrap, tags=["remove-cell"]),
        code(parameters, tags=["parameters"]),
    ]
    numbered = [dict(cell, id=f"cell-{i}") for i, cell in enumerate([*opening, *cells])]
    notebook = hygiene.canonical({"cells": numbered, "metadata": {}}, bootstrap)
    path.write_text(hygiene.dump(notebook), encoding="utf8")
    return path


def make_book(root: Path) -> Workspace:
    """Write the sources of the tiny book."""
    vendor.fetch(REPOSITORY / "vendor")
    for folder in ("book", "notebooks", "src"):
        (root / folder).mkdir(parents=True)
    (root / "vendor").symlink_to(REPOSITORY / "vendor")
    shutil.copy(REPOSITORY / "_config.yml", root)
    (root / "_toc.yml").write_text(TOC)
    (root / "book" / "index.md").write_text(INDEX)
    (root / "book" / "references.bib").write_text(BIB)
    (root / "src" / "toy.py").write_text("def f():\n    return 'old value'\n")
    figure = {
        "figure": {"caption": "A line.", "name": "fig-line"},
        "image": {"alt": ALT},
    }
    draw = f"from IPython.display import SVG\n\nSVG({SVG!r})"
    write_notebook(
        root / "notebooks" / "first.ipynb", [code("print(N)"), code(draw, mystnb=figure)]
    )
    widget = (
        "import ipywidgets\n\nipywidgets.IntSlider(description='</SCRIPT> <!-- <script>', max=N)"
    )
    write_notebook(
        root / "notebooks" / "second.ipynb", [code("import toy\n\ntoy.f()"), code(widget)]
    )
    return Workspace.at(root)


def edit_notebook(path: Path, old: str, new: str) -> None:
    """Replace some text in a notebook's file."""
    text = path.read_text(encoding="utf8")
    old, new = json.dumps(old)[1:-1], json.dumps(new)[1:-1]
    assert old in text, f"{old!r} is not in {path.name}"
    path.write_text(text.replace(old, new), encoding="utf8")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Workspace:
    """The tiny book, executed and built; not to be changed."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("tiny") / "repo"
        patch.setenv("PYTHONPATH", str(root / "src"))
        workspace = make_book(root)
        execute.execute(workspace, execute.Options(jobs=2, timeout=120))
        build.build_pages(workspace)
    return workspace


@pytest.fixture
def book(built, tmp_path, monkeypatch) -> Workspace:
    """A copy of the built tiny book to change at will."""
    root = tmp_path / "repo"
    shutil.copytree(built.root, root, symlinks=True)
    monkeypatch.setenv("PYTHONPATH", str(root / "src"))
    return Workspace.at(root)


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def saved(draw) -> str:
    """What `draw` puts on an axis, as SVG in the book's style."""
    with plt.rc_context():
        figures.style()
        figure, ax = plt.subplots()
        assert draw(ax) is ax
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        plt.close(figure)
    return text.getvalue()


def check_figure(draw) -> None:
    """The same SVG at every run, in the book's colours, letters as paths and none of them small."""
    text = saved(draw)
    assert text == saved(draw)
    allowed = {INK, PAPER, NEGATIVE, POSITIVE, "#ffffff", "#80848c"}
    allowed |= {colour for colour, _, _ in (*SERIES.values(), *OTHERS)}
    assert set(re.findall(r"(?:fill|stroke): (#\w{6})", text)) <= allowed
    assert "<text" not in text  # no font is needed to read them
    with plt.rc_context():
        figures.style()
        ax = draw(Figure(layout="constrained").subplots())
        texts = [*ax.get_xticklabels(), *ax.get_yticklabels(), *ax.texts, ax.xaxis.label]
        texts += ax.get_legend().get_texts() if ax.get_legend() else []
        assert min(text.get_fontsize() for text in texts) >= 9
