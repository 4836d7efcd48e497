"""The repository's public address: ``repository.url`` in ``_config.yml`` and nowhere else.

Bootstrap cells, launch buttons, CITATION.cff and links in the prose derive from it or are checked
against it.  Until it is known its owner is the placeholder ``OWNER``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

PLACEHOLDER = "OWNER"
_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")
_CITED = re.compile(r'^repository-code: *"?(\S+?)"?$', re.M)
_BOOTSTRAP = """\
import sys

if "google.colab" in sys.modules:
    %pip install -q "companion @ git+{url}@{branch}"
    from google.colab import output

    output.enable_custom_widget_manager()"""


@dataclass(frozen=True)
class Address:
    """A GitHub repository and the branch that readers open.

    >>> Address("https://github.com/ada/engine").slug
    'ada/engine'
    >>> Address("https://github.com/OWNER/engine").known
    False
    """

    url: str
    branch: str = "main"

    def __post_init__(self) -> None:
        if not _GITHUB.fullmatch(self.url):
            raise ValueError(
                f"got repository.url {self.url!r}, expected https://github.com/owner/name"
            )

    @property
    def slug(self) -> str:
        return _GITHUB.fullmatch(self.url).group(1)

    @property
    def known(self) -> bool:
        return self.slug.split("/")[0] != PLACEHOLDER

    def bootstrap(self) -> str:
        """Source of the first code cell of every notebook: installs the package on Colab only."""
        return _BOOTSTRAP.format(url=f"https://github.com/{self.slug}", branch=self.branch)


def read_address(root: Path) -> Address:
    """The address in ``_config.yml`` of the repository at ``root``."""
    repository = yaml.safe_load((root / "_config.yml").read_text(encoding="utf8"))["repository"]
    return Address(repository["url"], repository.get("branch", "main"))


def cited_slug(root: Path) -> str:
    """The owner/name that CITATION.cff gives, which is also the one the prose uses."""
    cited = _CITED.search((root / "CITATION.cff").read_text(encoding="utf8"))
    if cited is None:
        raise ValueError("got a CITATION.cff without repository-code, expected one")
    return Address(cited.group(1)).slug


def prose(root: Path) -> list[Path]:
    """Files that may link to the repository."""
    named = (root / name for name in ("CITATION.cff", "README.md", "CONTRIBUTING.md"))
    pages = [*(root / "book").rglob("*.md"), *(root / "notebooks").glob("*.ipynb")]
    return [path for path in (*named, *pages) if path.is_file()]


def propagate(root: Path) -> list[Path]:
    """Replace the address cited so far by the configured one; return the files changed."""
    old, new = cited_slug(root), read_address(root).slug
    changed = []
    for path in prose(root) if old != new else []:
        text = path.read_text(encoding="utf8")
        if old in text:
            path.write_text(text.replace(old, new), encoding="utf8")
            changed.append(path)
    return changed


def address_problems(root: Path) -> list[str]:
    """Places that disagree with ``_config.yml``, one line each."""
    address = read_address(root)
    cited = cited_slug(root)
    if cited != address.slug:
        return [f"CITATION.cff: got {cited}, expected {address.slug} as in _config.yml: make tidy"]
    if not address.known:
        return []
    stale = [p for p in prose(root) if f"/{PLACEHOLDER}/" in p.read_text(encoding="utf8")]
    return [
        f"{p.relative_to(root)}: still says {PLACEHOLDER}, expected {address.slug}" for p in stale
    ]
