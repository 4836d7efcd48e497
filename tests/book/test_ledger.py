"""The ledger: what tests are run on is written down by the run, and leads to their source."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from sphinx.environment import BuildEnvironment

from companion.book import ledger, ranges, tested
from companion.theory.claims import CLAIMS
from companion.theory.ranges import CONSTRUCTIONS, EVERY, FORMATS

ROOT = Path(__file__).parents[2]
TESTS = """\
import pytest


@pytest.mark.claim("Fact 1", "all words, N = {N}")
@pytest.mark.claim("Fact 2")
@pytest.mark.parametrize("N", range(1, 7))
def test_words(N):
    assert N < 6


@pytest.mark.claim("Fact 2", "the lot")
def test_lot():
    pass


def test_of_no_claim():
    pass
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "two workers"])
def test_a_run_writes_down_what_passed_and_on_what(tmp_path, workers):
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = claim: of a paper\n")
    (tmp_path / "test_it.py").write_text(TESTS)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "--claims", "out.json", *workers]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    words = {"passed": 5, "failed": 1}
    assert json.loads((tmp_path / "out.json").read_text("utf8")) == {
        "Fact 1": {"test_it.py::test_words": {**words, "checked": "all words, N = 1, 2, …, 5"}},
        "Fact 2": {
            "test_it.py::test_lot": {"passed": 1, "failed": 0, "checked": "the lot"},
            "test_it.py::test_words": words,
        },
    }


@pytest.fixture
def warnings(monkeypatch):
    found = []
    for module in (ledger, tested):
        log = SimpleNamespace(warning=lambda text, **_: found.append(text))
        monkeypatch.setattr(module, "log", log)
    return found


class Environment(BuildEnvironment):
    """As much of Sphinx's as the directives look at."""

    srcdir, docname, found_docs = str(ROOT), "book/claims", {"notebooks/04_two_way"}
    app = SimpleNamespace(
        builder=SimpleNamespace(get_relative_uri=lambda page, to: Path(to).name + ".html")
    )

    def __init__(self):
        pass

    def note_dependency(self, filename, docname=None):
        pass


@pytest.fixture
def directive():
    """A directive on the page book/claims of this repository, without Sphinx around it."""
    env = Environment()
    document = SimpleNamespace(
        settings=SimpleNamespace(env=env), note_implicit_target=lambda *_: None
    )
    state, machine = SimpleNamespace(document=document), SimpleNamespace(reporter=None)
    return lambda kind: kind("", [], {}, [], 1, 0, "", state, machine)


def links(cells):
    found = [link for cell in cells for node in cell for link in node.findall(nodes.reference)]
    return {link.astext(): link["refuri"] for link in found}


def test_a_row_says_on_what_and_leads_to_each_test(directive, warnings):
    one = {"passed": 2, "failed": 0}
    row = directive(ledger.Ledger)._row(
        CLAIMS[0],
        {
            "tests/theory/test_dyck.py::test_count_by_enumeration": {**one, "checked": "N = 1, 2"},
            "tests/theory/test_dyck.py::test_exact_complexity_by_search": one,
            "tests/theory/test_dyck.py::test_exact_complexity_by_leaves": one,
        },
    )
    page = "tests.html#test-dyck-test-"
    assert links(row) == {
        "N = 1, 2": page + "count-by-enumeration",
        "1": page + "exact-complexity-by-search",
        "2": page + "exact-complexity-by-leaves",
    }
    assert [line.astext() for line in row[3][0]] == ["N = 1, 2", "more: 1 · 2"]
    assert row[4][0].astext() == "6 of 6 passed" and warnings == []


@pytest.mark.parametrize(
    ("tests", "warning"),
    [
        ({}, "Definition 1: 0 tests passed and 0 failed, expected some and none"),
        ({"t.py::test_x": {"passed": 1, "failed": 1}}, "1 tests passed and 1 failed"),
        ({"t.py::test_x": {"passed": 1, "failed": 0}}, "t.py::test_x: got 0 such tests"),
    ],
    ids=["none", "failed", "gone"],
)
def test_a_claim_without_passing_tests_or_with_lost_ones_is_a_warning(
    directive, warnings, tests, warning
):
    directive(ledger.Ledger)._row(CLAIMS[0], tests)
    assert any(warning in text for text in warnings)


def test_the_page_of_tests_has_each_anchor_once(directive):
    sections = directive(tested.Sources).run()
    code = [block for section in sections for block in section.findall(nodes.literal_block)]
    anchors = [at["ids"][0] for s in sections for at in s.findall(nodes.container)]
    assert len(code) == len(anchors) == len(set(anchors)) == len(tested.shown(ROOT))
    assert sections[0][0].astext().startswith("test_") and sections[0][1].astext()


def test_the_table_of_ranges_has_a_cell_for_each_format_and_the_refusals_a_line(
    directive, monkeypatch
):
    """Two quick rows of it; `tests/theory` tries them all."""
    quick = [c for c in CONSTRUCTIONS if c.name.startswith(("Dyck-(2,2), R", "Equality, one"))]
    monkeypatch.setattr(ranges, "CONSTRUCTIONS", quick)
    (table,) = directive(ranges.RangeTable).run()
    rows = [[cell.astext() for cell in row] for row in table.findall(nodes.row)]
    assert rows[0] == ["construction", *FORMATS] and len(rows) == 1 + len(quick)
    assert rows[-1][1:] == ["every"] * 7 + ["–"] * 2 and quick[-1].sizes == (EVERY,)
    (refusals,) = directive(ranges.RefusalList).run()
    lines = [line.astext() for line in refusals.findall(nodes.list_item)]
    assert any(line.startswith("float16 at 32: expected the sum 1") for line in lines)
    assert not any("FixedPoint" in line or "every length" in line for line in lines)
