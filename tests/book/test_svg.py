from __future__ import annotations

import re

import matplotlib
import pytest

from companion.book import svg

matplotlib.use("agg")
ALT = "Accuracy against length: one line stays at one, the other falls to chance."


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> str:
    """What matplotlib writes for a plot with the sentinel colours."""
    from matplotlib.figure import Figure

    figure = Figure(facecolor="white")
    axes = figure.add_subplot(facecolor=svg.PAPER)
    axes.plot([0, 1], [0, 1], color=svg.INK, marker="o", markerfacecolor=svg.PAPER)
    path = tmp_path_factory.mktemp("svg") / "plot.svg"
    figure.savefig(path)
    return path.read_text()


def test_no_sentinel_and_no_white_page_is_left(drawn):
    inlined = svg.inline_svg(drawn, "figure-1", ALT)
    assert svg.INK in drawn and svg.INK not in inlined and "currentColor" in inlined
    assert svg.PAPER not in inlined and "var(--pst-color-background, #fff)" in inlined
    assert 'id="patch_1"' in drawn and "patch_1" not in inlined


def test_ids_are_unique_and_references_follow(drawn):
    first, second = (svg.inline_svg(drawn, f"figure-{i}", ALT) for i in (1, 2))
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (first, second)]
    assert ids[0] and not ids[0] & ids[1]
    references = set(re.findall(r'(?:href="#|url\(#)([^")]+)', first))
    assert references and references <= ids[0]


def test_style_sheet_of_a_figure_stays_in_it(drawn):
    assert re.search(r"<style[^>]*>\s*\*\s*\{", drawn)
    inlined = svg.inline_svg(drawn, "figure-1", ALT)
    assert re.search(r"<style[^>]*>\s*#figure-1 \*\s*\{", inlined)


def test_label_is_escaped_and_size_is_responsive(drawn):
    inlined = svg.inline_svg(drawn, "figure-1", 'a "quoted" label & more')
    root = inlined[: inlined.index(">")]
    assert 'aria-label="a &quot;quoted&quot; label &amp; more"' in root
    assert "viewBox" in root and " width=" not in root and " height=" not in root


@pytest.mark.parametrize(
    ("box", "wide"),
    [
        pytest.param("0 0 500 200", False, id="500pt"),
        pytest.param("0 0 500.5 200", True, id="above-500pt"),
        pytest.param("", False, id="no-box"),
    ],
)
def test_wide_figure_scrolls_in_a_box_of_its_own(box, wide):
    text = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="600pt"/>'
    inlined = svg.inline_svg(text, "figure-1", ALT)
    assert inlined.startswith('<span class="companion-scroll"><svg') == wide
    assert ('class="companion-figure wide"' in inlined) == inlined.endswith("</span>") == wide


def test_images_are_replaced_in_order_and_others_left():
    body = f'<p><img alt="{ALT}" src="a.svg"/><img alt="{ALT}" src="b.png"/></p>'
    complaints = []
    text = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    result = svg.inline_figures(body, lambda src: text, complaints.append)
    assert result.startswith('<p><svg xmlns="http://www.w3.org/2000/svg" id="figure-1" role="img"')
    assert result.endswith(f'<img alt="{ALT}" src="b.png"/></p>')
    assert complaints == []


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param("", id="absent"),
        pytest.param('alt=""', id="empty"),
        pytest.param('alt="a plot"', id="short"),
        pytest.param('alt="../_images/1d3c0a7f6d3c5ab7b4e9.svg"', id="file-name"),
    ],
)
def test_figure_that_says_nothing_is_reported(attributes):
    complaints = []
    svg.inline_figures(f'<img {attributes} src="a.svg"/>', lambda src: None, complaints.append)
    assert complaints == ["a.svg"]
