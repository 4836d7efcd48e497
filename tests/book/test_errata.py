"""Errata, the page of tests and the README say what there is, and the picture is up to date."""

import re
from pathlib import Path

import pytest

from companion.book import picture, readme
from companion.book.tested import find, functions, named_in, shown

ROOT = Path(__file__).parents[2]
ERRATA = (ROOT / "book" / "errata.md").read_text("utf8")
SEVERITIES = {"gap", "constant", "minor", "slip", "remark"}
CERTAINTIES = {"very high", "high", "text only"}


def tables():
    """Rows of each table of the errata as dictionaries."""
    for block in re.findall(r"(?:^\|.*\n)+", ERRATA, re.M):
        head, _, *rows = (
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in block.splitlines()
        )
        yield [dict(zip(head, row, strict=True)) for row in rows]


def test_every_entry_has_a_severity_a_certainty_and_what_settles_it():
    found = list(tables())
    assert len(found[0]) >= 5 and sum(map(len, found)) >= 45
    for row in (row for rows in found for row in rows):
        judged = row.get("severity, how sure") or "slip; " + row["how sure"]
        severity, certainty = judged.split("; ")
        assert severity in SEVERITIES and certainty in CERTAINTIES, row
        tests, chapters = named_in(row["settled by"]), re.findall(r"\]\((.*?)\)", row["settled by"])
        assert tests or chapters or row["settled by"] == "–", row
        assert all((ROOT / "book" / path).exists() for path in chapters)
    assert all(row["settled by"] != "–" for row in found[0])


def test_every_test_that_the_errata_name_is_shown():
    named = named_in(ERRATA)
    assert len(named) > 35 and all(find(ROOT, name).name == name for name in named)
    assert not re.findall(r"(?<!\})`test_", ERRATA), "a test without a link"


def test_every_test_of_a_claim_is_shown_with_its_source():
    tests = shown(ROOT)
    test = find(ROOT, "test_equality.py::test_every_input_of_length_sixteen")
    assert test.claims == ("Theorem 6",) and test.code.startswith("@pytest.mark")
    source = (ROOT / "tests" / "theory" / test.file).read_text("utf8").splitlines()
    assert source[test.line - 1].startswith(f"def {test.name}") and source[test.line] in test.code
    assert len({test.anchor for test in tests}) == len(tests) > 150


def test_a_name_must_be_that_of_one_test(tmp_path):
    folder = tmp_path / "tests" / "theory"
    folder.mkdir(parents=True)
    code = 'import pytest\n\n\n@pytest.mark.claim("Fact 1", "all")\ndef test_a():\n    pass\n'
    for name in ("test_1.py", "test_2.py"):
        (folder / name).write_text(code)
    (found,) = functions(folder / "test_1.py")
    assert (found.claims, found.line) == (("Fact 1",), 5) and found.code.count("\n") == 2
    assert [test.file for test in shown(tmp_path)] == ["test_1.py", "test_2.py"]
    assert find(tmp_path, "test_2.py::test_a").file == "test_2.py"
    for name, count in (("test_a", 2), ("test_b", 0)):
        with pytest.raises(LookupError, match=f"{name}: got {count} such tests"):
            find(tmp_path, name)


def test_the_picture_is_drawn_from_the_results_that_are_stored():
    drawn = (ROOT / "book" / "picture.svg").read_text("utf8")
    assert drawn == picture.svg(), "run make tidy"


def test_the_readme_has_the_table_of_separations_as_it_is():
    text = (ROOT / "README.md").read_text("utf8")
    assert text == readme.with_table(text, ROOT), "run make tidy"
    for link in re.findall(r"\]\((notebooks/\S+?)\)", readme.table(ROOT)):
        assert (ROOT / link).is_file()
    with pytest.raises(ValueError, match="expected one"):
        readme.with_table(text.replace(readme.END, ""), ROOT)
