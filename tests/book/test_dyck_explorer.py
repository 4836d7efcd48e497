"""The Dyck explorer: what the page reads, swaps and says is what the theory says."""

import itertools
import json

import ipywidgets.embed
import numpy as np
import pytest
import traitlets
from matplotlib.figure import Figure

from companion.book.dyck_explorer import LONGEST, DyckExplorer, N
from companion.book.explorer import source
from companion.theory.dyck import Dyck, fooling_set, join

from .test_explorers import run_node
from .test_explorers_in_browser import (  # noqa: F401
    FAINT,
    browser,
    in_every_look,
    offline_page,
    status,
)

DYCK = Dyck(2, 2)
WORDS = ["".join(w) for n in range(7) for w in itertools.product("()[]", repeat=n)]


def lost_at(word):
    """The first prefix that no member begins with, by its length."""
    for at in range(1, len(word) + 1):
        prefix = word[:at]
        endings = ("", ")", "]", "))", ")]", "])", "]]")
        if not any(prefix + ending in DYCK for ending in endings):
            return at
    return None if word in DYCK else len(word) + 1


# What Python computes


def test_members_are_the_fooling_set():
    words = join(*fooling_set(N))
    assert sorted(DyckExplorer().members) == sorted(map(DYCK.decode, words))


def test_breaks_where_no_member_begins_like_that():
    explorer = DyckExplorer()
    assert [explorer.breaks(word) for word in WORDS] == [lost_at(word) for word in WORDS]


@pytest.mark.claim("Lemma 1")
def test_swapping_different_members_always_leaves_the_language():
    """Both crossed words, which is more than a fooling set asks."""
    explorer = DyckExplorer()
    for i, j in itertools.product(range(0, 128, 5), range(128)):
        explorer.first, explorer.second = i, j
        a, b = explorer.pair
        crossed = explorer.swapped
        assert (crossed[0][0::2], crossed[0][1::2]) == (a[0::2], b[1::2])
        assert [word in DYCK for word in crossed] == [i == j] * 2


@pytest.mark.parametrize(
    "choice",
    [{"word": "(x"}, {"word": "(" * (LONGEST + 1)}, {"first": -1}, {"second": 128}],
    ids=["no-bracket", "too-long", "before", "after"],
)
def test_bad_choice_is_refused(choice):
    with pytest.raises((ValueError, traitlets.TraitError)):
        DyckExplorer(**choice)


@pytest.mark.parametrize("word", ["", "(", "([])[]", "([)]", ")", "((("])
def test_figure_and_tables_say_what_is_shown(word):
    explorer = DyckExplorer(word=word, first=3, second=100)
    assert explorer.figure(Figure().subplots()).texts
    table = explorer.table()
    assert table.caption.endswith("is accepted.") == (word in DYCK)
    assert "".join(row[1] for row in table.rows) == word
    assert [row[3] for row in table.rows] == [state or "ε" for state in explorer.trail[1:]]
    swap = explorer.swap_table().rows
    assert [row[2] for row in swap] == [True, True, False, False]
    assert [row[3] for row in swap] == [None, None, *map(lost_at, explorer.swapped)]


def test_state_survives_being_saved():
    explorer = DyckExplorer(word="[(")
    saved = ipywidgets.embed.dependency_state([explorer], drop_defaults=False)
    saved = saved[explorer.model_id]["state"]
    for trait in ("word", "first", "second", "moves", "places", "members", "symbols", "longest"):
        assert saved[trait] == getattr(explorer, trait)
    assert len(json.dumps(saved)) < 40_000


# What the shipped JavaScript makes of it

EVERY_WORD = """
import fs from "fs";
import { breaks, cross, read, reason } from "./module.mjs";
const { moves, words, symbols, members } = JSON.parse(fs.readFileSync("data.json"));
console.log(JSON.stringify({
  read: words.map((w) => read(moves, w)),
  breaks: words.map((w) => breaks(moves, w)),
  reason: words.map((w) => reason(moves, symbols, w)),
  cross: members.map((a) => members.map((b) => cross(a, b))),
}));
"""


def why(word):
    """In words, by a stack."""
    stack = []
    for c in word:
        if c in "([":
            if len(stack) == 2:
                return f"{c} would be the third one open"
            stack.append(c)
        elif not stack:
            return f"{c} closes, but nothing is open"
        else:
            due = ")]"["([".index(stack[-1])]
            if stack.pop() + c not in ("()", "[]"):
                return f"{c} closes, but {due} is due"
    return f"at its end {''.join(stack)} is still open" if stack else ""


def test_page_reads_and_swaps_as_the_theory_does(tmp_path):
    explorer = DyckExplorer()
    members = explorer.members[::7]
    data = {"moves": explorer.moves, "words": WORDS, "symbols": "()[]", "members": members}
    (tmp_path / "module.mjs").write_text(source("base.js", "dyck.js"))
    found = run_node(tmp_path, EVERY_WORD, data)
    assert found["breaks"] == [lost_at(word) for word in WORDS]
    assert found["reason"] == [why(word) for word in WORDS]
    for word, trail in zip(WORDS, found["read"], strict=True):
        assert trail == DyckExplorer(word=word).trail if len(word) < 3 else len(trail) > 3
        assert (trail[-1] == "") == (word in DYCK)
    x, y = (np.array([list(m[i::2]) for m in members]) for i in (0, 1))
    for i, j in np.ndindex(len(members), len(members)):
        assert found["cross"][i][j] == "".join(itertools.chain(*zip(x[i], y[j], strict=True)))


def test_script_is_one_module_that_loads_and_is_small(tmp_path):
    text = source("base.js", "dyck.js")
    assert "https:" not in text and len(text) < 16_000
    (tmp_path / "module.mjs").write_text(text)
    ask = 'import it from "./module.mjs"; console.log(JSON.stringify(Object.keys(it)));'
    assert run_node(tmp_path, ask, {}) == ["render"]


# In a browser, from a file, by keyboard


@pytest.fixture
def opened(request, browser, tmp_path):  # noqa: F811
    """The explorer opened from disk; at the end the page has not complained or asked for more."""
    with offline_page(browser, tmp_path, DyckExplorer(), *getattr(request, "param", ())) as page:
        yield page


@pytest.mark.browser
@in_every_look
def test_explorer_is_legible_and_fits(opened):
    assert opened.get_by_role("group").first.get_attribute("aria-label")
    for word in ("", "([](", "([)]", "()" * (LONGEST // 2)):
        opened.evaluate(f"model.set('word', '{word}')")
        assert opened.evaluate(FAINT) == []
        width = opened.viewport_size["width"]
        assert opened.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_word_by_keyboard(opened):
    word = opened.get_by_label("Type or click brackets")
    word.fill("")
    assert status(opened) == "0 brackets, in state ε: accepted."
    assert opened.get_by_role("button", name="Clear").is_disabled()
    word.press_sequentially("([x)")
    assert word.input_value() == opened.evaluate("traits.word") == "([)"
    assert status(opened) == (
        "3 brackets, lost at position 3: not accepted, ) closes, but ] is due."
    )
    assert opened.locator(".ex-lit").inner_text() == "dead"
    opened.get_by_role("button", name="delete").press("Enter")
    assert opened.locator(".ex-lit").inner_text() == "(["
    assert opened.locator(".ex-stack li").all_inner_texts() == ["(", "["]
    for name in ("close square", "close round", "open square", "close square"):
        opened.get_by_role("button", name=name).press("Space")
    assert status(opened) == "6 brackets, in state ε: accepted."
    assert opened.locator(".ex-lit").inner_text() == "ε"
    word.fill("(" * 40)
    assert len(word.input_value()) == LONGEST
    assert opened.get_by_role("button", name="open round").is_disabled()
    opened.get_by_role("button", name="Clear").press("Enter")
    assert opened.evaluate("traits.word") == ""
    assert opened.evaluate("document.activeElement.textContent") == "Clear"


@pytest.mark.browser
def test_pair_by_keyboard(opened):
    first, second = (opened.get_by_role("slider", name=name) for name in ("First", "Second"))
    first.press("Home")
    second.press("End")
    explorer = DyckExplorer(first=0, second=127)
    rows = [
        text.replace("\n", "") for text in opened.locator(".ex-swap .ex-tape").all_inner_texts()
    ]
    shown = ["".join(c for c in row if c in "()[]") for row in rows]
    assert shown == [*explorer.pair, *explorer.swapped]
    outcome = opened.locator(".ex-swap .ex-answer")
    assert outcome.inner_text() == "Both of the crossed words leave the language."
    at = explorer.breaks(explorer.swapped[0])
    assert f"breaks at position {at}: " in opened.locator(".ex-swap p").nth(2).inner_text()
    second.press("Home")
    assert outcome.inner_text() == "The same member twice: nothing changes."
    opened.evaluate("leave()")
    assert opened.evaluate("listeners.size") == 0
