"""Reading notebooks: code cells, their syntax trees, and the parameters cell."""

from __future__ import annotations

import ast
import json
from pathlib import Path


def load(path: Path) -> dict:
    """A notebook as plain JSON; ValueError naming the file if it is not one."""
    try:
        notebook = json.loads(path.read_text(encoding="utf8"))
        notebook["cells"], notebook["metadata"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"got {path.name} ({error!r}), expected a Jupyter notebook") from error
    return notebook


def source(cell: dict) -> str:
    """A cell's text, whichever of the two JSON forms it is stored in.

    >>> source({"source": ["a = 1\\n", "b = 2"]})
    'a = 1\\nb = 2'
    """
    text = cell["source"]
    return text if isinstance(text, str) else "".join(text)


def code_cells(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def tags(cell: dict) -> list[str]:
    return cell["metadata"].get("tags", [])


def tree(cell: dict) -> ast.Module:
    """The syntax tree of a code cell, with IPython's ``%`` and ``!`` lines taken as ``pass``.

    >>> ast.unparse(tree({"source": "if x:\\n    %pip list"}))
    'if x:\\n    pass'
    """
    lines = []
    for line in source(cell).splitlines():
        bare = line.lstrip()
        magic = bare.startswith(("%", "!"))
        lines.append(line[: len(line) - len(bare)] + "pass" if magic else line)
    return ast.parse("\n".join(lines))


def assigned(cell: dict) -> list[str]:
    """Names that a cell's top level assigns, in order.

    >>> assigned({"source": "N: int = 4\\nseed, k = 0, 2"})
    ['N', 'seed', 'k']
    """
    names = []
    for statement in tree(cell).body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        else:
            targets = [statement.target] if isinstance(statement, ast.AnnAssign) else []
        stored = (node for target in targets for node in ast.walk(target))
        names += [node.id for node in stored if isinstance(node, ast.Name)]
    return names


def parameters(notebook: dict) -> list[str]:
    """Names of a notebook's parameters; ValueError unless exactly one cell declares some."""
    found = [cell for cell in code_cells(notebook) if "parameters" in tags(cell)]
    if len(found) != 1:
        raise ValueError(f"got {len(found)} cells tagged 'parameters', expected 1")
    return assigned(found[0])


def unread_parameters(notebook: dict) -> list[str]:
    """Parameters that no later cell reads: setting one would change nothing."""
    names, cells = parameters(notebook), code_cells(notebook)
    after = next(i for i, cell in enumerate(cells) if "parameters" in tags(cell)) + 1
    nodes = (node for cell in cells[after:] for node in ast.walk(tree(cell)))
    read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return [name for name in names if name not in read]
