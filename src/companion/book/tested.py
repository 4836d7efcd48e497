"""The tests behind the claims, as a page: {tests} shows their source, {test}`name` links to one.

A test is shown if it carries a claim or if the errata name it. The address of the repository may
not be known, so the page is the place where a reader can see what was really checked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

log = logging.getLogger(__name__)
PAGE = "book/tests"
FOLDER = "tests/theory"
_NAMED = re.compile(r"\{test\}`(test_\w+)`")


class Source(NamedTuple):
    """A test function as it stands in its file."""

    file: str
    name: str
    line: int
    claims: tuple[str, ...]
    code: str

    @property
    def anchor(self) -> str:
        """Where it is on the page of tests."""
        return f"{self.file.removesuffix('.py')}-{self.name}".replace("_", "-").lower()


def named_in(text: str) -> set[str]:
    """Names of the tests that a page links to.

    >>> named_in("settled by {test}`test_every_input` and `test_other`")
    {'test_every_input'}
    """
    return set(_NAMED.findall(text))


def functions(path: Path) -> Iterable[Source]:
    """The tests of a file, with their decorators."""
    source = path.read_text(encoding="utf8")
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
            calls = [mark for mark in node.decorator_list if isinstance(mark, ast.Call)]
            claims = [c.args[0].value for c in calls if ast.unparse(c.func) == "pytest.mark.claim"]
            code = "\n".join(lines[first - 1 : node.end_lineno])
            yield Source(path.name, node.name, node.lineno, tuple(claims), code)


@lru_cache
def shown(root: Path) -> tuple[Source, ...]:
    """All tests of the page, file after file."""
    errata = root / "book" / "errata.md"
    named = named_in(errata.read_text(encoding="utf8")) if errata.exists() else set()
    files = sorted((root / FOLDER).glob("test_*.py"))
    tests = (test for path in files for test in functions(path))
    return tuple(test for test in tests if test.claims or test.name in named)


def find(root: Path, name: str) -> Source:
    """The test of a name, or of "file.py::name"; refuses a name that is not one test's."""
    found = [test for test in shown(root) if name in (test.name, f"{test.file}::{test.name}")]
    if len(found) != 1:
        raise LookupError(f"{name}: got {len(found)} such tests in {FOLDER}, expected one")
    return found[0]


def link_to(env: BuildEnvironment, name: str, child: nodes.Node) -> nodes.Node:
    """A link to the source of a test; a name without one is a warning, and so fails the build."""
    try:
        test = find(Path(env.srcdir), name)
    except LookupError as missing:
        log.warning(str(missing.args[0]), location=env.docname, type="companion")
        return child
    page = env.app.builder.get_relative_uri(env.docname, PAGE)
    title = f"{test.file}: {test.name}"
    link = nodes.reference("", "", internal=True, refuri=f"{page}#{test.anchor}", reftitle=title)
    link += child
    return link


class SourceRole(SphinxRole):
    """{test}`name`: the name as a link, in words, since that is what names of tests are."""

    def run(self):
        words = self.text.removeprefix("test_").replace("_", " ")
        return [link_to(self.env, self.text, nodes.inline("", words, classes=["test-name"]))], []


class Sources(SphinxDirective):
    """A section for each file of tests, a block of code for each test."""

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        shown.cache_clear()  # the files may have changed since the last build in this process
        by_file: dict[str, list[Source]] = {}
        for test in shown(root):
            by_file.setdefault(test.file, []).append(test)
        for file in by_file:
            self.env.note_dependency(str(root / FOLDER / file))
        return [self._section(root, file, tests) for file, tests in by_file.items()]

    def _section(self, root: Path, file: str, tests: list[Source]) -> nodes.Node:
        says = ast.get_docstring(ast.parse((root / FOLDER / file).read_text(encoding="utf8")))
        section = nodes.section("", nodes.title("", "", nodes.literal(file, file)), names=[file])
        self.state.document.note_implicit_target(section, section)
        section += nodes.paragraph("", (says or "").split("\n\n")[0].replace("\n", " "))
        for test in tests:
            about = ", ".join(test.claims) or "named in the errata"
            where = f" · {about} · {FOLDER}/{file}, line {test.line}"
            head = nodes.paragraph("", "", nodes.strong("", test.name), nodes.Text(where))
            code = nodes.literal_block(test.code, test.code, language="python")
            section += nodes.container("", head, code, ids=[test.anchor], classes=["test-source"])
        return section
