from __future__ import annotations

import pytest

from companion.book import check

ALT = "Two lines cross once, near the middle of the range."
FIGURE = f'<figure><svg role="img" aria-label="{ALT}"></svg><figcaption>C</figcaption></figure>'
LINK = '<p>1.5 items <a href="https://example.org">link</a></p>'
GOOD = f'{LINK}<div class="cell_output">{FIGURE}</div>'
SVG = '<svg aria-hidden="true"></svg>'


def problems(tmp_path, body: str, head: str = "") -> list[str]:
    (tmp_path / "here.js").touch()
    path = tmp_path / "page.html"
    path.write_text(f"<head>{head}</head><body><article>{body}</article></body>", newline="")
    return check.page_problems(path, tmp_path)


@pytest.mark.parametrize(
    ("body", "head"),
    [
        pytest.param("", "", id="empty"),
        pytest.param(GOOD, '<script src="here.js?v=1"></script>', id="figure-and-link"),
        pytest.param(SVG, '<link rel="canonical" href="https://example.org"/>', id="decoration"),
        pytest.param(f'<img alt="{ALT}" src="data:image/png;base64,AA"/>', "", id="data-url"),
    ],
)
def test_good_page(tmp_path, body, head):
    assert problems(tmp_path, body, head) == []


@pytest.mark.parametrize(
    "element",
    [
        '<script src="https://cdn.test/a.js"></script>',
        '<link rel="stylesheet" href="//cdn.test/a.css"/>',
        '<link rel="preconnect" href="https://cdn.test"/>',
        f'<img alt="{ALT}" src="https://cdn.test/a.png"/>',
        f'<img alt="{ALT}" src="here.js" srcset="https://cdn.test/a.png 2x"/>',
        '<iframe src="https://cdn.test/"></iframe>',
        "<style>@import 'https://cdn.test/a.css';</style>",
        '<p style="background: url(https://cdn.test/a.png)"></p>',
        "<script>import('https://cdn.test/a.js')</script>",
        '<script type="application/json">{"_esm": "import d from \\"https://cdn.test/a.js\\""}</script>',
    ],
)
def test_remote_load_is_found(tmp_path, element):
    (problem,) = problems(tmp_path, element)
    assert "loads" in problem and "cdn.test" in problem


def test_missing_local_file_is_found(tmp_path):
    assert problems(tmp_path, "", '<script src="gone.js"></script>') == [
        "loads gone.js, which does not exist"
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param('<svg role="img"></svg>', "expected a sentence", id="no-label"),
        pytest.param('<img src="here.js" alt="here.js"/>', "expected a sentence", id="file-name"),
        pytest.param(
            f'<div class="cell_output"><svg aria-label="{ALT}"></svg></div>',
            "caption",
            id="caption",
        ),
        pytest.param('<div class="output stderr">x</div>', "standard error", id="stderr"),
        pytest.param('<div class="output traceback">x</div>', "shows an error", id="traceback"),
        pytest.param(
            '<div class="cell_output">9/9 [00:01, 8.2it/s]</div>', "progress", id="progress-bar"
        ),
        pytest.param('<div class="cell_output">1%\r2%</div>', "progress", id="carriage-return"),
    ],
)
def test_unfit_content_is_found(tmp_path, body, message):
    (problem,) = problems(tmp_path, body)
    assert message in problem


def test_remote_style_sheet_part_is_found(tmp_path):
    (tmp_path / "a.css").write_text("@font-face { src: url('https://cdn.test/f.woff2') }")
    assert check.site_problems(tmp_path, tmp_path) == ["a.css: loads https://cdn.test/f.woff2"]
