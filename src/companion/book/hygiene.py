"""What must hold of the sources, and the part of it that can be put right automatically.

A notebook in git carries no trace of a run, starts with the bootstrap cell and the parameters cell,
holds only what Jupyter and Colab render too, and describes its figures.  Nothing draws from a
global random number generator.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from . import notebook as nb
from .address import address_problems, propagate, read_address
from .svg import is_sentence

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
BUILD_ONLY = {"myst_nb", "sphinx", "jupyter_book"}
DIRECTIVE = re.compile(r"^\s*(?:`{3,}|:{3,})\{", re.M)
NUMPY_OWN = {"default_rng", "Generator", "SeedSequence", "BitGenerator", "PCG64", "Philox"}
TORCH_DRAWS = {
    "bernoulli",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
}


def canonical(notebook: dict, bootstrap: str) -> dict:
    """The notebook as it should lie in git."""
    cells = [dict(cell, metadata=dict(cell["metadata"])) for cell in notebook["cells"]]
    for cell in nb.code_cells({"cells": cells}):
        cell.update(outputs=[], execution_count=None)
        for noise in ("execution", "papermill", "ExecuteTime", "collapsed"):
            cell["metadata"].pop(noise, None)
    first = nb.code_cells({"cells": cells})[:1]
    if first and "google.colab" in nb.source(first[0]):
        first[0]["source"] = bootstrap
        first[0]["metadata"]["tags"] = ["remove-cell"]
    for cell in cells:
        cell["source"] = nb.source(cell).splitlines(keepends=True)
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def dump(notebook: dict) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def notebook_problems(path: Path, bootstrap: str) -> Iterator[str]:
    """What is wrong with one notebook."""
    notebook = nb.load(path)
    want = canonical(notebook, bootstrap)
    lines = [dict(c, source=nb.source(c).splitlines(keepends=True)) for c in notebook["cells"]]
    if {**notebook, "cells": lines} != want:
        yield "carries traces of a run, or another kernel or bootstrap cell: make tidy"
    if not all(cell.get("id") for cell in notebook["cells"]):
        yield "has cells without an id"
    yield from opening_problems(notebook, bootstrap)
    yield from cell_problems(notebook)


def opening_problems(notebook: dict, bootstrap: str) -> Iterator[str]:
    """The first code cell installs on Colab, the second holds the parameters, all of them read."""
    cells = nb.code_cells(notebook)
    if not cells or nb.source(cells[0]) != bootstrap or nb.tags(cells[0]) != ["remove-cell"]:
        yield "its first code cell is not the bootstrap cell of CONTRIBUTING.md, tagged remove-cell"
    if len(cells) < 2 or "parameters" not in nb.tags(cells[1]):
        yield "its second code cell is not tagged parameters"
    try:
        unread = nb.unread_parameters(notebook)
    except ValueError as error:
        yield str(error)
    else:
        yield from (f"parameter {name} is read by no later cell" for name in unread)


def cell_problems(notebook: dict) -> Iterator[str]:
    """Imports, directives, figures and randomness, cell by cell."""
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "markdown" and DIRECTIVE.search(nb.source(cell)):
            yield f"cell {number} holds a directive, which Jupyter and Colab show as raw text"
        if cell["cell_type"] != "code":
            continue
        for imported in sorted(imports(nb.tree(cell)) & BUILD_ONLY):
            yield f"cell {number} imports {imported}, which readers do not have"
        for line, call in global_draws(nb.tree(cell)):
            yield f"cell {number}, line {line}: {call} uses a global random number generator"
        yield from (f"cell {number}: {text}" for text in figure_problems(cell))


def figure_problems(cell: dict) -> Iterator[str]:
    """A figure cell says its caption, its name, and in a sentence what is seen."""
    rendering = cell["metadata"].get("mystnb", {})
    if "figure" not in rendering:
        return
    for key in ("caption", "name"):
        if not rendering["figure"].get(key):
            yield f"its figure has no {key}"
    alt = rendering.get("image", {}).get("alt", "")
    if not is_sentence(alt):
        yield f"its figure's alt text is {alt!r}, expected a sentence"


def imports(tree: ast.Module) -> set[str]:
    """Top-level names of the packages that some code imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def global_draws(tree: ast.Module) -> list[tuple[int, str]]:
    """Calls that seed or draw from a global generator, as (line, call).

    ``torch.manual_seed`` is allowed inside ``with torch.random.fork_rng():``, which restores the
    global state.

    >>> global_draws(ast.parse("np.random.rand(3)\\nrng = np.random.default_rng(0)"))
    [(1, 'np.random.rand')]
    >>> global_draws(ast.parse("torch.rand(3)\\ntorch.rand(3, generator=rng)"))
    [(1, 'torch.rand')]
    """
    forked = {
        id(inner)
        for block in ast.walk(tree)
        if isinstance(block, ast.With)
        and any("fork_rng" in ast.unparse(item.context_expr) for item in block.items)
        for inner in ast.walk(block)
    }
    calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and id(n) not in forked)
    return [(call.lineno, ast.unparse(call.func)) for call in calls if _is_global(call)]


def _is_global(call: ast.Call) -> bool:
    owner, _, name = ast.unparse(call.func).rpartition(".")
    if owner in ("np.random", "numpy.random"):
        return name not in NUMPY_OWN
    if owner == "random":
        return name not in ("Random", "SystemRandom")
    if owner in ("torch", "torch.random", "torch.cuda"):
        seeds = name in ("manual_seed", "manual_seed_all", "seed")
        drawn = name in TORCH_DRAWS and not any(k.arg in ("generator", None) for k in call.keywords)
        return seeds or drawn
    return False


def source_problems(root: Path) -> Iterator[str]:
    """Global randomness in the package."""
    for path in sorted((root / "src").rglob("*.py")):
        for line, call in global_draws(ast.parse(path.read_text(encoding="utf8"))):
            where = f"{path.relative_to(root).as_posix()}:{line}"
            yield f"{where}: {call} uses a global random number generator"


def problems(root: Path) -> list[str]:
    """Everything wrong with the sources of the repository at ``root``, one line each."""
    bootstrap = read_address(root).bootstrap()
    found = [*address_problems(root), *source_problems(root)]
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        found += [f"notebooks/{path.name}: {text}" for text in notebook_problems(path, bootstrap)]
    return found


def tidy(root: Path) -> list[Path]:
    """Put right what can be; return the files that changed."""
    changed = propagate(root)
    bootstrap = read_address(root).bootstrap()
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        text = dump(canonical(nb.load(path), bootstrap))
        if text != path.read_text(encoding="utf8"):
            path.write_text(text, encoding="utf8")
            changed.append(path)
    return sorted(set(changed))
