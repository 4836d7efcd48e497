from __future__ import annotations

import pytest

from companion.book import notebook as nb


def book_of(*cells: tuple[str, list[str]]) -> dict:
    code = [{"cell_type": "code", "source": s, "metadata": {"tags": t}} for s, t in cells]
    return {"cells": code, "metadata": {}}


@pytest.mark.parametrize(
    ("cells", "unread"),
    [
        pytest.param([("N = 1", ["parameters"]), ("N", [])], [], id="read"),
        pytest.param([("N = 1", ["parameters"])], ["N"], id="no-later-cell"),
        pytest.param([("N", []), ("N = 1", ["parameters"])], ["N"], id="read-before-only"),
        pytest.param([("N = 1", ["parameters"]), ("N = 2", [])], ["N"], id="overwritten-only"),
        pytest.param([("N = 1", ["parameters"]), ("f(n=N)", [])], [], id="read-in-a-call"),
        pytest.param([("N: int = 1", ["parameters"]), ("f'{N}'", [])], [], id="annotated"),
        pytest.param([("", ["parameters"])], [], id="none-declared"),
    ],
)
def test_unread_parameters(cells, unread):
    assert nb.unread_parameters(book_of(*cells)) == unread


@pytest.mark.parametrize("count", [0, 2])
def test_other_than_one_parameters_cell_is_refused(count):
    notebook = book_of(*[("N = 1", ["parameters"])] * count)
    with pytest.raises(ValueError, match=f"got {count} cells tagged 'parameters', expected 1"):
        nb.parameters(notebook)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": []}'])
def test_a_file_that_is_no_notebook_is_named(tmp_path, text):
    path = tmp_path / "broken.ipynb"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"got broken\.ipynb .*, expected a Jupyter notebook"):
        nb.load(path)
