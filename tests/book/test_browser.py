"""The built pages in Chromium, with every request to another host blocked and counted.

Each page is looked at in light and dark, on a desk and on a phone.
"""

from __future__ import annotations

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from companion.book.build import chromium

pytestmark = pytest.mark.browser

HTML = Path(__file__).parents[2] / "_build" / "html"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
WIDTHS = {"desk": 1280, "phone": 390}
THEMES = ("light", "dark")
EXPLORERS = {  # page: how many explorers it must have
    "book/index.html": 1,
    "notebooks/01_nearly_orthogonal.html": 1,
    "notebooks/03_one_way.html": 1,
    "notebooks/04_two_way.html": 1,
    "notebooks/05_dyck.html": 1,
}
CONTRAST = 4.5
SETTLED = """async () => {
  await window.MathJax.startup.promise;
  await document.fonts.ready;
  await new Promise((done) => setTimeout(done, 50));
}"""
# Text in figures against the page: WCAG relative luminance, computed by the browser's own colours.
FAINT_TEXT = """() => {
  const number = (c) => (c.match(/[\\d.]+/g) || [0, 0, 0]).slice(0, 3).map(Number);
  const light = (c) => {
    const [r, g, b] = number(c).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const faint = [];
  for (const text of document.querySelectorAll(".companion-figure text")) {
    const ink = light(getComputedStyle(text).fill);
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < CONTRAST) faint.push(`${text.textContent.trim()}: ${ratio.toFixed(1)}`);
  }
  return faint;
}""".replace("CONTRAST", str(CONTRAST))
WITHOUT_NAME = """(root) => [
    ...root.querySelectorAll("input, select, button, textarea, [tabindex='0']"),
  ].filter((control) => {
    const by = (control.getAttribute("aria-labelledby") || "").split(" ");
    const named = by.map((id) => document.getElementById(id)?.textContent || "").join("");
    const labels = [...(control.labels || [])].map((label) => label.textContent).join("");
    const own = control.matches("button, [tabindex='0']") ? control.textContent : "";
    const aria = control.getAttribute("aria-label") || control.getAttribute("title") || "";
    return !(aria + named + labels + own).trim();
  })
  .map((control) => control.outerHTML.slice(0, 120))"""
CONTROL = "input, select, button"


def pages() -> list[str]:
    """Addresses of the book's pages below the site's top, which only leads to the first of them."""
    found = {path.relative_to(HTML).as_posix() for path in HTML.rglob("*.html")}
    return sorted(name for name in found - {"index.html"} if not name.startswith("_"))


def pages_with_widgets() -> list[str]:
    marks = ("widget-view+json", 'id="separations-explorer"')
    texts = {name: (HTML / name).read_text("utf8") for name in pages()}
    return [name for name, text in texts.items() if any(mark in text for mark in marks)]


@dataclass
class Site:
    """A served book and a browser."""

    address: str
    browser: object


@dataclass
class Trouble:
    """What went wrong while a page was open."""

    blocked: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def watch(self, page, address: str) -> None:
        def route(route) -> None:
            if route.request.url.startswith((address, "data:", "blob:")):
                route.continue_()
            else:
                self.blocked.append(route.request.url)
                route.abort()

        page.route("**/*", route)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("response", lambda r: self.missing.append(r.url) if r.status >= 400 else None)

    def found(self) -> list[str]:
        return [
            *(f"asked for {url}" for url in self.blocked),
            *(f"console: {text}" for text in self.errors),
            *(f"missing: {urlsplit(url).path}" for url in self.missing),
        ]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """The built book on a local port, and Chromium."""
    program = chromium()
    if program is None and not os.environ.get("CI"):
        pytest.skip("no Chromium found; install chromium to test the pages in a browser")
    assert program, "got no Chromium on PATH, expected one wherever CI is set"
    assert (HTML / "index.html").exists(), f"got no {HTML}/index.html, expected a built book"
    from playwright.sync_api import sync_playwright

    handler = functools.partial(Quiet, directory=str(HTML))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
            yield Site(f"http://127.0.0.1:{server.server_port}/", browser)
            browser.close()
        server.shutdown()


def open_page(site: Site, name: str, trouble: Trouble):
    """Open a page and wait until its formulas are set."""
    page = site.browser.new_page()
    trouble.watch(page, site.address)
    page.goto(site.address + name, wait_until="load")
    page.wait_for_selector("#main-content", state="attached")
    page.evaluate(SETTLED)
    return page


@pytest.mark.parametrize("name", pages())
def test_page_is_quiet_and_legible(site, name):
    """No error, no request elsewhere, no broken formula, no faint label, no sideways scroll."""
    trouble = Trouble()
    page = open_page(site, name, trouble)
    assert page.locator("[data-mjx-error]").count() == 0
    if page.locator("article .math").count():
        assert page.locator("article mjx-container").count() > 0
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(f"document.documentElement.dataset.theme === '{theme}'")
        assert page.evaluate(FAINT_TEXT) == []
        for device, width in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{device}, {theme}: {wide} pixels wide on a screen of {width}"
    page.close()
    assert trouble.found() == []


@pytest.mark.parametrize("name", pages_with_widgets())
def test_explorers_work_without_kernel_and_network(site, name):
    """Each explorer is seen, named, and answers to the keyboard."""
    trouble = Trouble()
    page = open_page(site, name, trouble)
    if EXPLORERS.get(name):
        page.wait_for_selector(".explorer", timeout=20_000)
    explorers = page.locator(".explorer")
    assert explorers.count() >= EXPLORERS.get(name, 0)
    for explorer in explorers.all():
        assert explorer.is_visible()
        assert explorer.evaluate(WITHOUT_NAME) == []
        status = explorer.locator("[data-explorer-status]")
        assert status.get_attribute("aria-live")
        before = status.inner_text()
        controls = explorer.locator(CONTROL).all()
        assert any(answers(page, control, status, before) for control in controls)
    page.close()
    assert trouble.found() == []


def answers(page, control, status, before: str) -> bool:
    """Whether the status line changes when a control is used by keyboard alone."""
    if not control.is_enabled():
        return False
    operate(control)
    page.wait_for_timeout(150)
    return status.inner_text() != before


def operate(control) -> None:
    control.focus()
    if control.evaluate("e => e.tagName") == "BUTTON":
        return control.press("Enter")
    if control.evaluate("e => e.type") == "text":
        return control.press("(")
    before = control.evaluate("e => e.value")
    control.press("ArrowDown")
    if control.evaluate("e => e.value") == before:  # it was at its lower end
        control.press("ArrowUp")


@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_pages_with_explorers_exist(name):
    assert name in pages_with_widgets()


def test_front_page_leads_into_the_book(site):
    page = site.browser.new_page()
    page.goto(site.address)
    page.wait_for_url(site.address + "book/**")
    page.close()


def test_search_works_offline(site):
    trouble = Trouble()
    page = open_page(site, "search.html?q=transformer", trouble)
    page.wait_for_selector("#search-results li a", timeout=10_000)
    assert page.locator("#search-results li a").count() > 0
    page.close()
    assert trouble.found() == []
