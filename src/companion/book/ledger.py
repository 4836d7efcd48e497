"""The claims ledger: which tests check which claim of the papers, and how they ended.

`make book` runs the tests that carry a claim whenever the theory or they themselves have changed,
and keeps the outcome in book/claims.json. The directive ``{ledger}`` shows it beside the list of
claims; a claim without a passing test is a warning, and so fails the build.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from companion.book.separations import chapter_link, make_table
from companion.book.steps import StepFailed, run_logged
from companion.book.workspace import Workspace, digest
from companion.theory.claims import CLAIMS, Claim

log = logging.getLogger(__name__)
SOURCES = ("src/companion/theory", "src/companion/models", "tests/theory")
LIBRARIES = ("torch", "numpy", "automata-lib")


def path_of(root: Path) -> Path:
    """Where the outcome is kept."""
    return root / "book" / "claims.json"


def key(root: Path) -> str:
    """Hash of all that the outcome depends on."""
    files = [p for folder in SOURCES for p in (root / folder).rglob("*.py")]
    versions = [f"{name} {version(name).split('+')[0]}" for name in LIBRARIES]
    files += (root / "tests").glob("conftest.py")
    return digest(root, files, *versions)


def read(root: Path) -> dict:
    """The stored outcome: its key, and tests by claim."""
    try:
        return json.loads(path_of(root).read_text(encoding="utf8"))
    except FileNotFoundError:
        return {"key": None, "claims": {}}


def update(workspace: Workspace) -> str:
    """Run the tests of all claims, unless that was done with the same sources."""
    root = workspace.root
    if read(root)["key"] == key(root):
        return "unchanged since their tests last passed"
    out = workspace.build / "claims.json"
    chosen = ["-q", "-n", "2", "-m", "claim", "tests/theory", "--claims", str(out)]
    output = run_logged(
        [sys.executable, "-m", "pytest", *chosen], workspace.logs / "claims.log", root
    )
    found = json.loads(out.read_text(encoding="utf8"))
    if unknown := sorted(set(found) - {claim.name for claim in CLAIMS}):
        raise StepFailed(f"tests name claims {unknown}, expected names of companion.theory.claims")
    text = json.dumps({"key": key(root), "claims": found}, indent=1)
    path_of(root).write_text(text + "\n", encoding="utf8")
    return output.strip().splitlines()[-1].strip("= ")


class Ledger(SphinxDirective):
    """All claims, one row each."""

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        self.env.note_dependency(str(path_of(root)))
        found = read(root)["claims"]
        header = ["Claim", "in our words", "shown in", "checked by", "outcome"]
        rows = [self._row(claim, found.get(claim.name, {})) for claim in CLAIMS]
        return [make_table(header, rows, widths=(15, 36, 12, 23, 14), name="ledger")]

    def _row(self, claim: Claim, tests: dict) -> list[list[nodes.Node]]:
        passed = sum(test["passed"] for test in tests.values())
        failed = sum(test["failed"] for test in tests.values())
        if failed or not passed:
            text = (
                f"{claim.name}: {passed} tests passed and {failed} failed, expected some and none"
            )
            log.warning(text, location=self.env.docname, type="companion")
        says = [nodes.paragraph("", claim.says), nodes.paragraph("", claim.checked)]
        names = [name.split("::") for name in tests]
        files = sorted({Path(file).name for file, _ in names})
        outcome = f"{passed} of {passed + failed} passed"
        return [
            [nodes.paragraph("", claim.name)],
            says,
            [nodes.paragraph("", "", chapter_link(self.env, claim.chapter))],
            [
                nodes.paragraph("", f"{len(tests)} test{'s' * (len(tests) != 1)} in"),
                *(nodes.paragraph("", "", nodes.literal("", file)) for file in files),
            ],
            [nodes.paragraph("", outcome)],
        ]
