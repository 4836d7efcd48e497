"""The pipeline on a tiny book: what it produces, and what makes it fail."""

from __future__ import annotations

import json
import re

import pytest
from bs4 import BeautifulSoup

from companion.book import build, check, execute
from companion.book.steps import StepFailed

from .conftest import ALT, code, edit_notebook, write_notebook


def page(workspace, name: str) -> BeautifulSoup:
    return BeautifulSoup((workspace.html / name).read_text(encoding="utf8"), "html.parser")


def buttons(soup: BeautifulSoup) -> str:
    return str(soup.find(class_="article-header-buttons"))


def test_pages_pass_the_page_check(built):
    assert check.site_problems(built.html, built.root) == []


def test_figure_is_inline_and_follows_the_theme(built):
    figure = page(built, "notebooks/first.html").find(id="fig-line")
    assert figure.svg["aria-label"] == ALT
    assert "currentcolor" in figure.svg.path["style"].lower()
    assert figure.img is None
    assert "A line." in figure.figcaption.get_text()


def test_widget_state_cannot_end_its_script(built):
    soup = page(built, "notebooks/second.html")
    state = soup.find("script", type="application/vnd.jupyter.widget-state+json")
    assert "</SCRIPT> <!-- <script>" in json.dumps(json.loads(state.string))


def test_mathjax_is_local(built):
    scripts = [s.get("src", "") for s in page(built, "book/index.html").find_all("script")]
    assert any("_static/offline/mathjax/es5/tex-svg-full.js" in src for src in scripts)
    assert not any("thebe" in src for src in scripts)


def test_no_remote_button_while_the_address_is_unknown(built):
    shown = buttons(page(built, "notebooks/first.html"))
    assert "colab" not in shown and "github" not in shown
    assert "first.ipynb" in shown


def test_known_address_brings_the_buttons(book):
    text = book.config.read_text()
    book.config.write_text(text.replace("OWNER/separations-companion", "ada/engine"))
    build.build_pages(book)
    shown = buttons(page(book, "notebooks/first.html"))
    url = "https://colab.research.google.com/github/ada/engine/blob/main/notebooks/first.ipynb"
    assert url in shown and "https://github.com/ada/engine" in shown
    assert check.site_problems(book.html, book.root) == []
    (book.root / "notebooks" / "first.ipynb").unlink()
    assert any(
        "opens notebooks/first.ipynb" in p for p in check.site_problems(book.html, book.root)
    )


def test_nothing_changed_means_nothing_done(built):
    assert execute.execute(built, execute.Options()) == "0 executed, 2 up to date"
    assert build.build_pages(built) == "unchanged since the last good build"


def test_twins_carry_outputs_and_times(built):
    twin = json.loads((built.executed / "notebooks" / "first.ipynb").read_text())
    assert any(
        "4\n" in "".join(o.get("text", "")) for c in twin["cells"] for o in c.get("outputs", ())
    )
    assert execute.read_times(built).keys() == {"first", "second"}


def test_edited_package_function_is_executed_again(book):
    toy = book.root / "src" / "toy.py"
    toy.write_text(toy.read_text().replace("old value", "new value"))
    with pytest.raises(StepFailed, match="stale"):
        build.build_pages(book)
    assert execute.execute(book, execute.Options()) == "2 executed, 0 up to date"
    assert "new value" in (book.executed / "notebooks" / "second.ipynb").read_text()


def test_stored_results_are_part_of_the_key(book):
    (book.root / "results").mkdir()
    (book.root / "results" / "run.json").write_text("{}")
    assert len(execute.plan(book, execute.Options())) == 2


def test_failing_and_noisy_cells_fail_by_name(book):
    folder = book.root / "notebooks"
    write_notebook(folder / "first.ipynb", [code("print(N)"), code("1 / 0")])
    write_notebook(folder / "second.ipynb", [code("import sys\n\nprint(N, file=sys.stderr)")])
    with pytest.raises(StepFailed) as failure:
        execute.execute(book, execute.Options(jobs=2))
    assert re.search(r"first: .*ZeroDivisionError", str(failure.value), re.S)
    assert "second: cell 3 wrote to standard error: 4" in str(failure.value)
    assert (book.executed / "failed" / "first.ipynb").exists()


def test_stale_and_missing_twins_and_dumb_figures_fail_each_time(book):
    edit_notebook(book.root / "notebooks" / "first.ipynb", "# first", "# First of all")
    (book.executed / "notebooks" / "second.ipynb").unlink()
    (book.root / "book" / "line.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    index = book.root / "book" / "index.md"
    index.write_text(index.read_text() + "\n![line](line.svg)\n")
    for _ in range(2):  # warnings of pages that did not change must come again
        with pytest.raises(StepFailed) as failure:
            build.build_pages(book)
        assert "executed copy is stale" in str(failure.value)
        assert "not executed yet" in str(failure.value)
        assert "no sentence of alternative text" in str(failure.value)


def test_dangling_reference_fails(book):
    index = book.root / "book" / "index.md"
    index.write_text(index.read_text() + "\nSee {eq}`eq-nowhere`.\n")
    with pytest.raises(StepFailed, match="eq-nowhere"):
        build.build_pages(book)


def test_remote_file_in_a_page_fails(book):
    path = book.html / "book" / "index.html"
    path.write_text(
        path.read_text().replace("</head>", '<script src="https://cdn.test/a.js"></script></head>')
    )
    with pytest.raises(StepFailed, match=r"book/index.html: loads https://cdn.test/a.js"):
        build.check_pages(book)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        pytest.param(
            [("M", 3)], r"\['M'\], expected names that a notebook declares", id="misspelt"
        ),
        pytest.param([("N", 3), ("n", 3)], r"got parameters \['n'\]", id="one-of-two-misspelt"),
    ],
)
def test_unknown_parameter_fails(built, parameters, message):
    with pytest.raises(StepFailed, match=message):
        execute.execute(built, execute.Options(parameters=tuple(parameters)))


def test_unread_parameter_fails(book):
    path = book.root / "notebooks" / "first.ipynb"
    write_notebook(path, [code("print(N)")], parameters="N = 4\nseed = 0")
    with pytest.raises(StepFailed, match=r"unread parameters \['seed'\]"):
        execute.execute(book, execute.Options())


def test_known_parameter_is_injected_and_remembered(book):
    options = execute.Options(parameters=(("N", 7),))
    assert execute.execute(book, options) == "2 executed, 0 up to date"
    assert execute.execute(book, options) == "0 executed, 2 up to date"
    twin = (book.executed / "notebooks" / "first.ipynb").read_text()
    assert '"7\\n"' in twin
    assert len(execute.plan(book, execute.Options())) == 2
