"""Explorers in Chromium, opened from a file and without a network, worked by keyboard alone."""

import base64
import json
import os
from contextlib import ExitStack, contextmanager

import pytest
import torch

from companion.book.build import chromium
from companion.book.explorer import Explorer, OneWayExplorer, VectorsExplorer
from companion.models import ModelConfig, build
from companion.theory import vectors
from companion.theory.recurrent import ShiftRegister

pytestmark = pytest.mark.browser

N, ALPHABET = 7, 4
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Explorer</title><link rel="icon" href="data:,">
<style>
html {{ --pst-color-background: #fff; --pst-color-text-base: #222832; color-scheme: light;
  --pst-color-text-muted: #48566b; --pst-color-border: #d1d5da; }}
html[data-theme="dark"] {{ --pst-color-background: #121212; --pst-color-text-base: #ced6dd;
  --pst-color-text-muted: #9ca4af; --pst-color-border: #48566b; color-scheme: dark; }}
body {{ margin: 16px; font: 16px system-ui, sans-serif; background: var(--pst-color-background); }}
{css}
</style>
<div id="here"></div>
<script type="module">
{esm}
const traits = {traits};
for (const [name, text] of Object.entries({binary}))
  traits[name] = new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const listeners = new Set();
const model = {{
  get: (name) => traits[name],
  set: (name, value) => {{
    if (traits[name] === value) return;
    traits[name] = value;
    listeners.forEach((call) => call());
  }},
  save_changes() {{}},
  on: (event, call) => listeners.add(call),
  off: (event, call) => listeners.delete(call),
}};
Object.assign(window, {{ traits, model, listeners }});
window.leave = render({{ model, el: document.querySelector("#here") }});
</script></html>"""
FOCUSED = "document.activeElement.textContent"
FAINT = """() => {
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const of = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (node) => {
    for (const layers = []; node; node = node.parentElement) {
      const [r, g, b, a = 1] = of(getComputedStyle(node).backgroundColor);
      layers.push([r, g, b, a]);
      if (a === 1) return layers.reverse().reduce((under, [r, g, b, a]) =>
        [r, g, b].map((v, i) => a * v + (1 - a) * under[i]), [0, 0, 0]);
    }
  };
  const skip = ".ex-unread, .ex-unread *, :disabled, [aria-disabled='true'], option";
  return [...document.querySelectorAll(".explorer *")].filter((node) => {
    const own = [...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
    if (!own || node.matches(skip)) return false;
    const [a, b] = [light(of(getComputedStyle(node).color)), light(behind(node))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
  }).map((node) => node.outerHTML.slice(0, 100));
}"""


def page_of(explorer) -> str:
    """A self-contained page that shows one explorer as a saved notebook would."""
    common = {*Explorer.class_trait_names(), *(k for k in explorer.keys if k.startswith("_"))}
    own = {k: v for k, v in explorer.get_state().items() if k not in common}
    binary = {k: bytes(v) for k, v in own.items() if isinstance(v, bytes | memoryview)}
    return PAGE.format(
        css=explorer._css,
        esm=explorer._esm,
        traits=json.dumps({k: v for k, v in own.items() if k not in binary}).replace(
            "<", "\\u003c"
        ),
        binary=json.dumps({k: base64.b64encode(v).decode() for k, v in binary.items()}),
    )


@pytest.fixture(scope="module")
def one_way():
    rng = torch.Generator().manual_seed(0)
    config = ModelConfig(vocab=ALPHABET + N, classes=ALPHABET, width=8, heads=2, max_len=N + 1)
    models = {name: build(name, config, rng=rng).eval() for name in ("lstm", "transformer")}
    models["shift register"] = ShiftRegister(N, ALPHABET)
    return OneWayExplorer.of(models, torch.randint(ALPHABET, (N,), generator=rng), ALPHABET)


@pytest.fixture(scope="module")
def both(one_way):
    return {"vectors": VectorsExplorer(), "one way": one_way}


@contextmanager
def offline_page(browser, folder, explorer, theme="light", width=820):
    """The explorer opened from disk; at the end the page has not complained or asked for more."""
    trouble, file = [], folder / "page.html"
    file.write_text(page_of(explorer), encoding="utf8")
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    page = context.new_page()
    page.set_default_timeout(5_000)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: trouble.append(message.text))
    page.on("requestfailed", lambda asked: trouble.append(asked.url))
    page.goto(file.as_uri())
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    yield page
    context.close()
    assert trouble == []


in_every_look = pytest.mark.parametrize(
    "opened",
    [("light", 820), ("light", 390), ("dark", 820), ("dark", 390)],
    indirect=True,
    ids=lambda it: f"{it[0]}-{it[1]}",
)


@pytest.fixture(scope="module")
def browser():
    program = chromium()
    if program is None and not os.environ.get("CI"):
        pytest.skip("no Chromium found; install chromium to test the explorers in a browser")
    assert program, "got no Chromium on PATH, expected one wherever CI is set"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield found
        found.close()


@pytest.fixture
def open_explorer(browser, both, tmp_path):
    """Opens an explorer from disk; at the end no page has complained or asked for anything."""
    with ExitStack() as pages:

        def opening(name, theme="light", width=820):
            page = offline_page(browser, tmp_path, both[name], theme, width)
            return pages.enter_context(page)

        yield opening


def status(page) -> str:
    return page.locator("[data-explorer-status][aria-live=polite]").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [820, 390])
@pytest.mark.parametrize("name", ["vectors", "one way"])
def test_explorer_is_legible_and_fits(open_explorer, name, theme, width):
    page = open_explorer(name, theme, width)
    assert page.get_by_role("group").get_attribute("aria-label")
    for _ in range(2):
        assert page.evaluate(FAINT) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate(f"model.set('step', {N + 1})")


def test_vectors_by_keyboard(open_explorer):
    page = open_explorer("vectors")
    page.get_by_label("Family").focus()
    page.keyboard.press("End")
    assert status(page).startswith("Binary code: 32 vectors in 5 dimensions, coherence 1.000")
    assert page.get_by_role("slider", name="Dimension").is_disabled()
    page.get_by_role("slider", name="Vectors").press("Home")
    assert status(page).startswith("Binary code: 4 vectors in 2 dimensions")
    page.get_by_label("Family").press("Home")
    page.get_by_role("slider", name="Dimension").press("End")
    assert status(page).startswith("Random signs: 4 vectors in 256 dimensions")
    page.get_by_label("Draw").press("End")
    assert page.evaluate("traits.seed") == 3
    found = vectors.random(4, 256, seed=3).coherence().absolute
    assert f"coherence {found:.3f}" in status(page)


def test_pairs_by_keyboard(open_explorer):
    page = open_explorer("vectors")
    canvas = page.get_by_role("application")
    reading, worst = page.locator(".ex-reading"), page.get_by_role("button", name="worst pair")
    first = reading.inner_text()
    assert worst.is_disabled()
    T = VectorsExplorer().chosen.table().astype(int)
    i, j = map(int, status(page).split("vectors ")[-1].rstrip(".").split(" and "))
    canvas.press("ArrowDown")
    assert f" = {T[i + 1] @ T[j]}, ".replace("-", "−") in reading.inner_text()
    canvas.press("Escape")
    assert reading.inner_text() == first
    canvas.press("ArrowLeft")
    worst.press("Enter")
    assert reading.inner_text() == first
    assert worst.is_disabled() and page.evaluate(FOCUSED) == "Show the worst pair"


def test_one_way_by_keyboard(open_explorer, one_way):
    page = open_explorer("one way")
    step, asked = (page.get_by_role("slider", name=name) for name in ("Step", "Asked"))
    assert "lstm: Alice has read 0 of 7 symbols" in status(page)
    page.get_by_role("button", name="Forward").press("Enter")
    step.press("ArrowRight")
    assert "Alice has read 2 of 7 symbols" in status(page)
    page.get_by_role("button", name="Back").press("Enter")
    assert "Alice has read 1 of 7 symbols" in status(page)
    page.get_by_role("button", name="Back").press("Enter")
    page.get_by_role("button", name="Back").press("Enter")  # off, and yet in focus
    assert "Alice has read 0 of 7 symbols" in status(page)
    assert page.evaluate(FOCUSED) == "← Back"
    page.get_by_role("button", name="Forward").press("Enter")
    assert asked.is_disabled() and "waits" in page.locator(".ex-answer").inner_text()
    step.press("End")
    for run in one_way.runs:
        right = sum(one_way.right()[run["name"]])
        page.get_by_label("Model").select_option(run["name"])
        assert f"{run['bits'][-1]:,} bits on the wire" in status(page)
        assert f"right on {right} of 7" in status(page)
        assert page.locator(".ex-right").count() == right
        asked.press("End")
        assert f"He says {run['answers'][-1]} " in page.locator(".ex-answer").inner_text()


def test_python_sets_a_choice_and_the_view_goes_away(open_explorer):
    page = open_explorer("vectors")
    page.evaluate("model.set('N', 16)")
    assert "16 vectors" in status(page)
    page.evaluate("leave()")
    assert page.evaluate("listeners.size") == 0
