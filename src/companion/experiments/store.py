"""Stored results: one JSON file per run, in a folder per figure."""

from __future__ import annotations

import os
from pathlib import Path

import companion
from companion.experiments.provenance import checkout
from companion.experiments.result import Result
from companion.experiments.run import Run


def results_dir() -> Path:
    """The folder of stored results: the repository's when imported from a checkout, else the copy
    that was installed with the package."""
    root = checkout()
    return (
        Path(companion.__file__).resolve().parent / "results" if root is None else root / "results"
    )


def save(result: Result, folder: str | Path) -> Path:
    """Write `result` to `folder`, whole or not at all, and return its path.

    A process killed in between leaves the folder without this result, or with the earlier one.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.run.name}.json"
    draft = folder / f".{path.name}.{os.getpid()}.tmp"
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        file.write(result.to_json())
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    return path


def checkpoint_path(run: Run, folder: str | Path) -> Path:
    """Where a run is kept while it is not finished, beside the results of `folder`."""
    return Path(folder) / ".running" / f"{run.name}.safetensors"


def load_file(path: str | Path) -> Result:
    """The result in one file.

    Raises ValueError, naming the file, if it holds no result, a changed one, or another run's.
    """
    path = Path(path)
    try:
        result = Result.from_json(path.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error
    if path.stem != result.run.name:
        raise ValueError(f"{path}: got the result of {result.run.name}, expected {path.stem}")
    return result


def load(folder: str | Path) -> list[Result]:
    """All results of a folder, in the order of their names.

    Raises FileNotFoundError for a folder that does not exist, and ValueError as `load_file`.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: got no such folder, expected stored results")
    return [load_file(path) for path in sorted(folder.glob("*.json"))]
