"""Where things are below the repository's top."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Workspace:
    """The folders of one book.

    >>> Workspace(Path("book-repo")).html.as_posix()
    'book-repo/_build/html'
    """

    root: Path

    @classmethod
    def at(cls, root: Path) -> Workspace:
        """The workspace at ``root``; ValueError where there is no ``_config.yml``."""
        if not (root / "_config.yml").is_file():
            raise ValueError(f"got {root}, expected a folder with _config.yml in it")
        return cls(root.resolve())

    @property
    def build(self) -> Path:
        return self.root / "_build"

    @property
    def executed(self) -> Path:
        """Executed twins of the notebooks."""
        return self.build / "executed"

    @property
    def html(self) -> Path:
        return self.build / "html"

    @property
    def logs(self) -> Path:
        return self.build / "logs"

    @property
    def vendor(self) -> Path:
        """Browser files fetched from the npm registry."""
        return self.root / "vendor"

    @property
    def config(self) -> Path:
        return self.root / "_config.yml"

    def notebooks(self) -> list[Path]:
        return sorted((self.root / "notebooks").glob("*.ipynb"))

    def twin(self, notebook: Path) -> Path:
        """Where the executed copy of a notebook lies."""
        return self.executed / notebook.relative_to(self.root)


def digest(root: Path, files: Iterable[Path], *more: str) -> str:
    """SHA-256 over names (relative to ``root``) and bytes of files, and over some text."""
    h = hashlib.sha256()
    for path in sorted(files):
        h.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for text in more:
        h.update(text.encode() + b"\0")
    return h.hexdigest()
