"""The explorer of fast weights: the page's arithmetic is that of the models, on every word."""

import itertools
import json

import ipywidgets.embed
import numpy as np
import pytest
import torch
import traitlets
from matplotlib.figure import Figure

from companion.book.explorer import source
from companion.book.fast_weights_explorer import (
    LONGEST,
    MODELS,
    FastWeightsExplorer,
    fast,
    page_data,
    written_and_forgotten,
)

from .test_explorers import run_node
from .test_explorers_in_browser import (  # noqa: F401
    FAINT,
    browser,
    in_every_look,
    offline_page,
    status,
)


def words(name, longest=3, count=20):
    """All short words, and some long ones."""
    symbols, rng = len(MODELS[name][1]["symbols"]), np.random.default_rng(0)
    lengths, every = range(longest + 1), range(symbols)
    short = [list(w) for n in lengths for w in itertools.product(every, repeat=n)]
    return short + rng.integers(0, symbols, (count, LONGEST)).tolist()


# What Python computes


@pytest.mark.parametrize("name", MODELS)
def test_what_is_left_out_of_the_picture_never_changes(name):
    model, shown = MODELS[name]
    R, C = len(shown["rows"]), len(shown["columns"])
    start = fast(model, model.initial_state(1))
    for word in words(name, longest=1):
        after = fast(model, model.steps(torch.tensor([word], dtype=torch.int64))[1])
        assert torch.equal(after[R:], start[R:]) and torch.equal(after[:, C:], start[:, C:])


@pytest.mark.parametrize("name", MODELS)
def test_after_is_before_less_forgotten_and_written(name):
    model, _ = MODELS[name]
    state = model.initial_state(1)
    for c in words(name)[-1]:
        before = fast(model, state)
        written, forgotten = written_and_forgotten(model, c, state)
        state = model(torch.tensor([[c]]), state)[1]
        torch.testing.assert_close(before - forgotten + written, fast(model, state))
        if "linear Transformer" in name:
            assert not forgotten.any()


@pytest.mark.parametrize("name", MODELS)
def test_figure_and_table_say_what_is_shown(name):
    explorer = FastWeightsExplorer(model=name)
    word = MODELS[name][1]["example"]
    assert (explorer.word, explorer.step) == (word, len(word))
    picture = explorer.figure(Figure().subplots()).get_images()[0].get_array()
    x = explorer.trail[-1].after
    np.testing.assert_allclose(np.asarray(picture), x / (1 + np.abs(x)))
    rows = explorer.table().rows
    assert [row[1] for row in rows] == [MODELS[name][1]["symbols"][c] for c in word]
    assert [row[4] for row in rows] == [step.answer for step in explorer.trail]
    explorer.step = 0
    assert explorer.figure(Figure().subplots()).get_images()[0].get_array().shape == x.shape


def test_parity_is_said():
    for name in (n for n in MODELS if "parity" in n):
        explorer = FastWeightsExplorer(model=name, word=[1, 0, 1, 1, 0, 0, 1])
        assert [s.answer for s in explorer.trail] == ["odd", "odd", "even", "odd"] + ["odd"] * 2 + [
            "even"
        ]


@pytest.mark.parametrize(
    "choice",
    [{"word": [9]}, {"word": [0] * (LONGEST + 1)}, {"model": "none"}, {"step": -1}],
    ids=["no-symbol", "too-long", "no-model", "before"],
)
def test_bad_choice_is_refused(choice):
    with pytest.raises((ValueError, traitlets.TraitError)):
        FastWeightsExplorer(**choice)


def test_state_survives_being_saved():
    explorer = FastWeightsExplorer(word=[0, 3])
    saved = ipywidgets.embed.dependency_state([explorer], drop_defaults=False)
    saved = saved[explorer.model_id]["state"]
    for trait in ("model", "word", "step", "longest", "models"):
        assert saved[trait] == getattr(explorer, trait)
    assert len(json.dumps(saved)) < 60_000


# What the shipped JavaScript makes of it

EVERY_WORD = """
import fs from "fs";
import { read } from "./module.mjs";
const { model, words } = JSON.parse(fs.readFileSync("data.json"));
const keep = ({ S, forgotten, written, answer }) => ({ S, forgotten, written, answer });
console.log(JSON.stringify(words.map((w) => read(model, w).map(keep))));
"""


@pytest.mark.parametrize("name", MODELS)
def test_page_computes_what_the_model_does(name, tmp_path):
    longest = {2: 4, 4: 3}.get(len(MODELS[name][1]["symbols"]), 2)
    tried = words(name, longest, count=3)
    (tmp_path / "module.mjs").write_text(source("base.js", "fast_weights.js"))
    found = run_node(tmp_path, EVERY_WORD, {"model": page_data(name), "words": tried})
    explorer = FastWeightsExplorer(model=name)
    for word, steps in zip(tried, found, strict=True):
        explorer.word = word
        for said, step in zip(steps, explorer.trail, strict=True):
            for mine, theirs in (("S", "after"), ("forgotten",) * 2, ("written",) * 2):
                np.testing.assert_allclose(said[mine], getattr(step, theirs), atol=1e-9)
            assert said["answer"] == step.answer


def test_script_is_one_module_that_loads_and_is_small(tmp_path):
    text = source("base.js", "fast_weights.js")
    assert "https:" not in text and len(text) < 16_000
    (tmp_path / "module.mjs").write_text(text)
    ask = 'import it from "./module.mjs"; console.log(JSON.stringify(Object.keys(it)));'
    assert run_node(tmp_path, ask, {}) == ["render"]


# In a browser, from a file, by keyboard


@pytest.fixture
def opened(request, browser, tmp_path):  # noqa: F811
    """The explorer opened from disk; at the end the page has not complained or asked for more."""
    with offline_page(
        browser, tmp_path, FastWeightsExplorer(), *getattr(request, "param", ())
    ) as page:
        yield page


@pytest.mark.browser
@in_every_look
def test_explorer_is_legible_and_fits(opened):
    assert opened.get_by_role("group").first.get_attribute("aria-label")
    for name in MODELS:
        opened.get_by_label("Model").select_option(name)
        assert opened.evaluate(FAINT) == []
        width = opened.viewport_size["width"]
        assert opened.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_word_by_keyboard(opened):
    opened.get_by_label("Model").select_option("Recurrent Delta, parity")
    assert opened.evaluate("traits.word") == [1, 0, 1, 1]
    opened.get_by_role("button", name="Clear").press("Enter")
    assert status(opened) == "Recurrent Delta, parity: nothing has been read yet."
    assert opened.get_by_role("button", name="Forward").is_disabled()
    for _ in range(2):
        opened.get_by_role("button", name="feed 1").press("Space")
    assert status(opened) == (
        "Recurrent Delta, parity: after 2 symbols, 1 forgets; it says “even”."
    )
    opened.get_by_role("button", name="Back").press("Enter")
    assert status(opened).endswith("after 1 symbol, 1 writes; it says “odd”.")
    assert opened.locator(".ex-grids td").last.inner_text() == "64"
    for _ in range(LONGEST):
        opened.get_by_role("button", name="feed 0").press("Enter")
    assert len(opened.evaluate("traits.word")) == LONGEST
    assert opened.get_by_role("button", name="feed 0").is_disabled()
    opened.evaluate("leave()")
    assert opened.evaluate("listeners.size") == 0


@pytest.mark.browser
def test_sum_keeps_both_and_delta_the_last(opened):
    said = {}
    for name in ("linear Transformer, a memory", "DeltaNet, a memory"):
        opened.get_by_label("Model").select_option(name)
        cells = opened.locator(".ex-grids table").last.locator("td").all_inner_texts()
        said[name] = cells[:2]
    assert list(said.values()) == [["2", "1"], ["0", "1"]]
