"""The claims ledger: which tests check which claim of the papers, and how they ended.

`make book` runs the tests that carry a claim whenever the theory or they themselves have changed,
and keeps the outcome in book/claims.json. The directive ``{ledger}`` shows it beside the list of
claims, with links to the source of each test; a claim without a passing test is a warning, and so
fails the build.
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
from companion.book.tested import link_to
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
    text = json.dumps({"key": key(root), "claims": found}, indent=1, ensure_ascii=False)
    path_of(root).write_text(text + "\n", encoding="utf8")
    return output.strip().splitlines()[-1].strip("= ")


class Ledger(SphinxDirective):
    """All claims, one row each."""

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        self.env.note_dependency(str(path_of(root)))
        found = read(root)["claims"]
        header = ["Claim", "in our words", "shown in", "checked on", "outcome"]
        rows = [self._row(claim, found.get(claim.name, {})) for claim in CLAIMS]
        return [make_table(header, rows, widths=(14, 26, 11, 36, 13), name="ledger")]

    def _row(self, claim: Claim, tests: dict) -> list[list[nodes.Node]]:
        passed = sum(test["passed"] for test in tests.values())
        failed = sum(test["failed"] for test in tests.values())
        if failed or not passed:
            text = (
                f"{claim.name}: {passed} tests passed and {failed} failed, expected some and none"
            )
            log.warning(text, location=self.env.docname, type="companion")
        return [
            [nodes.paragraph("", claim.name)],
            [nodes.paragraph("", claim.says)],
            [nodes.paragraph("", "", chapter_link(self.env, claim.chapter))],
            self._checked(tests),
            [nodes.paragraph("", f"{passed} of {passed + failed} passed")],
        ]

    def _checked(self, tests: dict) -> list[nodes.Node]:
        """A line for each test that says on what it was run, and the others by number."""
        lines, others = [], nodes.line("", "")
        for key, test in tests.items():
            name = key.split("/")[-1]  # file.py::name
            if "checked" in test:
                said = nodes.inline("", test["checked"])
                lines.append(nodes.line("", "", link_to(self.env, name, said)))
            else:
                others += nodes.Text(" · " if len(others) else "")
                number = nodes.inline("", str(1 + len(others) // 2))
                others += link_to(self.env, name, number)
        if lines and len(others):
            others.insert(0, nodes.Text("more: "))
        if len(others):
            lines.append(others)
        return [nodes.line_block("", *lines)]
