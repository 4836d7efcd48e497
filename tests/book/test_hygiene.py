"""Sources of the tiny book, soiled in one way at a time."""

from __future__ import annotations

import ast
import json
import shutil

import pytest

from companion.book import address, hygiene

from .conftest import REPOSITORY, code, make_book, markdown, write_notebook

CITATION = 'repository-code: "https://github.com/OWNER/separations-companion"\n'
BADGE = "https://colab.research.google.com/github/{}/blob/main/notebooks/first.ipynb"


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "repo"
    make_book(root)
    (root / "CITATION.cff").write_text(CITATION)
    (root / "README.md").write_text(BADGE.format("OWNER/separations-companion"))
    return root


def change(path, edit) -> None:
    """Apply ``edit`` to a notebook's JSON."""
    notebook = json.loads(path.read_text())
    edit(notebook)
    path.write_text(hygiene.dump(notebook))


def put(key, value):
    return lambda notebook: notebook["cells"][-1].update({key: value})


STREAM = [{"output_type": "stream", "name": "stdout", "text": "4\n"}]
MENDABLE = {
    "outputs": put("outputs", STREAM),
    "count": put("execution_count", 3),
    "widgets": lambda n: n["metadata"].update(widgets={"state": {}}),
    "kernel": lambda n: n["metadata"].update(kernelspec={"name": "conda-env"}),
    "bootstrap": lambda n: n["cells"][1].update(source=["%pip install x  # google.colab"]),
}


def test_clean_sources_have_no_problem(root):
    assert hygiene.problems(root) == []
    assert hygiene.tidy(root) == []


@pytest.mark.parametrize("soil", MENDABLE.values(), ids=MENDABLE.keys())
def test_traces_of_a_run_are_found_and_tidied(root, soil):
    path = root / "notebooks" / "first.ipynb"
    clean = path.read_text()
    change(path, soil)
    assert any("make tidy" in problem for problem in hygiene.problems(root))
    assert hygiene.tidy(root) == [path]
    assert path.read_text() == clean


FIGURE = {"figure": {"caption": "C", "name": "fig-c"}, "image": {"alt": "A line " * 6}}


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        pytest.param(code("import myst_nb"), "imports myst_nb", id="book-only-import"),
        pytest.param(code("from sphinx.util import x"), "imports sphinx", id="sphinx"),
        pytest.param(markdown("```{note}\nx\n```"), "directive", id="backtick-directive"),
        pytest.param(markdown(":::{note}\nx\n:::"), "directive", id="colon-directive"),
        pytest.param(code("np.random.seed(0)"), "np.random.seed", id="numpy-seed"),
        pytest.param(code("torch.manual_seed(0)"), "torch.manual_seed", id="torch-seed"),
        pytest.param(code("x", mystnb={"figure": {"name": "f"}}), "no caption", id="caption"),
        pytest.param(code("x", mystnb={"figure": {"caption": "C"}}), "no name", id="name"),
        pytest.param(
            code("x", mystnb={**FIGURE, "image": {"alt": "A plot"}}), "'A plot'", id="short-alt"
        ),
    ],
)
def test_unfit_cells_are_found(root, cell, message):
    path = root / "notebooks" / "first.ipynb"
    write_notebook(path, [code("N"), code("1", mystnb=FIGURE)])
    clean = path.read_text()
    write_notebook(path, [code("N"), code("1", mystnb=FIGURE), cell])
    where = "notebooks/first.ipynb: cell 5"
    assert any(p.startswith(where) and message in p for p in hygiene.problems(root))
    path.write_text(clean)
    assert hygiene.problems(root) == []


def test_missing_bootstrap_and_parameters_are_found(root):
    change(
        root / "notebooks" / "first.ipynb",
        lambda notebook: notebook["cells"].__delitem__(slice(1, 3)),
    )
    found = "\n".join(hygiene.problems(root))
    assert "not the bootstrap cell" in found
    assert "second code cell is not tagged parameters" in found
    assert "got 0 cells tagged 'parameters'" in found


def test_global_randomness_in_the_package_is_found(root):
    (root / "src" / "toy.py").write_text("import torch\n\nx = torch.rand(2)\n")
    assert hygiene.problems(root) == [
        "src/toy.py:3: torch.rand uses a global random number generator"
    ]


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param("rng = np.random.default_rng(0)", 0, id="numpy-generator"),
        pytest.param("rng.random(3)", 0, id="own-generator"),
        pytest.param("torch.randn(3, generator=g)", 0, id="torch-generator"),
        pytest.param("torch.randn(3, **options)", 0, id="torch-generator-among-options"),
        pytest.param("g.manual_seed(0)", 0, id="seeding-a-generator"),
        pytest.param("with torch.random.fork_rng():\n    torch.manual_seed(0)", 0, id="forked"),
        pytest.param("random.shuffle(x)", 1, id="stdlib"),
        pytest.param("np.random.shuffle(x); torch.randint(2, (3,))", 2, id="both"),
    ],
)
def test_global_draws(source, count):
    assert len(hygiene.global_draws(ast.parse(source))) == count


def test_new_address_is_carried_everywhere(root):
    config = root / "_config.yml"
    config.write_text(config.read_text().replace("OWNER/separations-companion", "ada/engine"))
    assert any("CITATION.cff: got OWNER" in problem for problem in hygiene.problems(root))
    assert len(hygiene.tidy(root)) == 4
    assert hygiene.problems(root) == []
    assert (root / "README.md").read_text() == BADGE.format("ada/engine")
    first = (root / "notebooks" / "first.ipynb").read_text()
    assert "companion @ git+https://github.com/ada/engine@main" in first


def test_forgotten_placeholder_is_found(root):
    config = root / "_config.yml"
    config.write_text(config.read_text().replace("OWNER/separations-companion", "ada/engine"))
    hygiene.tidy(root)
    (root / "book" / "index.md").write_text(BADGE.format("OWNER/other"))
    assert hygiene.problems(root) == ["book/index.md: still says OWNER, expected ada/engine"]


@pytest.mark.parametrize(
    "url", ["", "github.com/a/b", "https://github.com/a", "https://example.org/a/b"]
)
def test_other_addresses_are_refused(url):
    with pytest.raises(ValueError, match=r"expected https://github\.com/owner/name"):
        address.Address(url)


def test_bootstrap_is_formatted_code(tmp_path):
    import subprocess
    import sys

    path = tmp_path / "bootstrap.ipynb"
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    bootstrap = address.Address("https://github.com/ada/engine").bootstrap()
    cell = {**code(bootstrap), "id": "first"}
    path.write_text(hygiene.dump(hygiene.canonical({"cells": [cell], "metadata": {}}, bootstrap)))
    command = [sys.executable, "-m", "ruff", "format", "--check", "--isolated", str(path)]
    assert subprocess.run(command, capture_output=True).returncode == 0


def test_this_repository_is_clean():
    assert hygiene.problems(REPOSITORY) == []
