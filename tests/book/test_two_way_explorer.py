"""The two-way explorer: what the page adds up is what `two_way` sends, for every partition."""

import json

import ipywidgets.embed
import numpy as np
import pytest
import traitlets
from matplotlib.figure import Figure

from companion.book.explorer import source
from companion.book.two_way_explorer import TwoWayExplorer
from companion.theory.bounds import two_way_bits
from companion.theory.fixed_point import FixedPoint
from companion.theory.integer_transformer import IntegerTransformer
from companion.theory.two_way import VARIANTS, two_way

from .test_explorers import run_node
from .test_explorers_in_browser import (  # noqa: F401
    FAINT,
    browser,
    in_every_look,
    offline_page,
    status,
)

INPUTS = {"first": [0, 2, 1, 1, 2], "second": [2, 2, 0, 1, 0]}


def integer_model(N=5, q=3, f=6):
    """Two heads of dimension 3 that read two numbers each, with weights drawn once."""
    rng, grid = np.random.default_rng(0), FixedPoint(f=f, R=1 << 8, softmax="early")
    W = (grid.encode(rng.normal(size=(2, n, 4))) for n in (3, 3, 2))
    return IntegerTransformer(
        grid.encode(rng.normal(size=(q, N, 4))), *W, lambda x, o: int(o.argmax()), 4, grid
    )


@pytest.fixture(scope="module")
def explorer():
    return TwoWayExplorer.of(integer_model(), INPUTS, alice=[0, 2, 4])


# What Python computes


@pytest.mark.parametrize(
    ("N", "inputs", "alice", "message"),
    [
        (5, {}, [], "inputs"),
        (5, INPUTS, [5], "position"),
        (5, INPUTS, [-1], "position"),
        (5, {"short": [0, 1]}, [], "length"),
        (17, {"long": [0] * 17}, [], "N"),
    ],
    ids=["no-inputs", "position-after", "position-before", "wrong-length", "too-long"],
)
def test_bad_choice_is_refused(N, inputs, alice, message):
    with pytest.raises(ValueError, match=message):
        TwoWayExplorer.of(integer_model(N), inputs, alice=alice)


def test_unknown_variant_is_refused(explorer):
    with pytest.raises(traitlets.TraitError):
        explorer.variant = "thrifty"


@pytest.mark.parametrize("alice", [[], [0], range(5)], ids=["nobody", "one", "everything"])
def test_alice_is_a_set_of_bits(alice):
    made = TwoWayExplorer.of(integer_model(), INPUTS, alice=alice)
    assert made.alice == sum(2**i for i in alice)
    everything = two_way(integer_model(), INPUTS["first"], alice)
    assert made.played().channel.messages == everything.channel.messages


def test_a_single_position_can_be_shown():
    made = TwoWayExplorer.of(integer_model(1), {"one": [2]}, alice=[])
    assert made.played().answer == integer_model(1)([2])


def test_claim_is_the_theorems(explorer):
    p = integer_model().p
    assert explorer.claim == two_way_bits(3, p, 2, 5, protocol="paper")


@pytest.mark.parametrize("variant", VARIANTS)
def test_table_and_figure_are_the_transcript(explorer, variant):
    explorer.variant = variant
    sent = explorer.played().channel
    rows = explorer.table().rows
    assert [row[:2] for row in rows] == [(m.sender, m.meaning) for m in sent.messages]
    assert rows[-1][-1] == sent.bits == sum(row[3] for row in rows)
    ax = explorer.figure(Figure().subplots())
    totals = {line.get_label(): line.get_ydata()[-1] for line in ax.lines}
    assert totals[variant] == sent.bits
    explorer.variant = "lean"


def test_saved_state_is_small_and_complete(explorer):
    saved = ipywidgets.embed.dependency_state([explorer])[explorer.model_id]["state"]
    assert saved["protocol"] == json.loads(json.dumps(explorer.protocol))
    assert len(json.dumps(saved)) < 40_000


# What the shipped JavaScript makes of it

EVERY_PARTITION = """
import fs from "fs";
import { exchange } from "./module.mjs";
const { inputs, protocol } = JSON.parse(fs.readFileSync("data.json"));
const found = [];
inputs.forEach((input, n) => {
  for (const variant of Object.keys(protocol.forms))
    for (let mask = 0; mask < 2 ** input.symbols.length; mask++)
      found.push({ n, variant, mask, ...exchange(protocol, input, variant, mask) });
});
console.log(JSON.stringify(found));
"""


@pytest.mark.claim("Theorem 4")
@pytest.mark.parametrize("f", [2, 6, 16])
def test_page_sends_the_same_bytes_for_every_partition(tmp_path, f):
    model = integer_model(f=f)
    made = TwoWayExplorer.of(model, INPUTS, alice=[])
    (tmp_path / "module.mjs").write_text(source("base.js", "two_way.js"))
    found = run_node(tmp_path, EVERY_PARTITION, {"inputs": made.inputs, "protocol": made.protocol})
    assert len(found) == len(INPUTS) * len(VARIANTS) * 2**5
    for case in found:
        mine = [i for i in range(5) if case["mask"] >> i & 1]
        tokens = list(INPUTS.values())[case["n"]]
        wire = two_way(model, tokens, mine, case["variant"]).channel
        sent = [(m["sender"], m["step"], m["bits"], m["hex"]) for m in case["messages"]]
        assert sent == [(m.sender, m.meaning, m.bits, m.data.hex()) for m in wire.messages]
        assert case["equal"]


def test_page_notices_a_wrong_vector(tmp_path, explorer):
    (tmp_path / "module.mjs").write_text(source("base.js", "two_way.js"))
    wrong = [{**x, "attended": [x["attended"][0] + 1, *x["attended"][1:]]} for x in explorer.inputs]
    data = {"inputs": wrong, "protocol": explorer.protocol}
    assert not any(case["equal"] for case in run_node(tmp_path, EVERY_PARTITION, data))


def test_script_is_one_module_that_loads_and_is_small(tmp_path):
    text = source("base.js", "two_way.js")
    assert "https:" not in text and len(text) < 16_000
    (tmp_path / "module.mjs").write_text(text)
    ask = 'import it from "./module.mjs"; console.log(JSON.stringify(Object.keys(it)));'
    assert run_node(tmp_path, ask, {}) == ["render"]


# In a browser, from a file, by keyboard


@pytest.fixture
def opened(request, browser, explorer, tmp_path):  # noqa: F811
    """The explorer opened from disk; at the end the page has not complained or asked for more."""
    with offline_page(browser, tmp_path, explorer, *getattr(request, "param", ())) as page:
        yield page


@pytest.mark.browser
@in_every_look
def test_explorer_is_legible_and_fits(opened):
    assert opened.get_by_role("group").first.get_attribute("aria-label")
    for variant in VARIANTS:
        opened.evaluate(f"model.set('variant', '{variant}')")
        for sent in (0, 4, 7):
            opened.evaluate(f"model.set('step', {sent})")
            assert opened.evaluate(FAINT) == []
            width = opened.viewport_size["width"]
            assert opened.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_two_way_by_keyboard(opened, explorer):
    model, lean = integer_model(), explorer.played("lean").channel
    assert status(opened) == "lean: 0 of 7 messages, 0 bits so far."
    opened.get_by_role("button", name="Forward").press("Enter")
    first = lean.messages[0].bits
    assert status(opened) == f"lean: 1 of 7 messages, {first} bits so far."
    opened.get_by_role("slider").press("End")
    side = "above" if lean.bits > explorer.claim else "below"
    assert f"{lean.bits} bits, {side} the {explorer.claim:.0f} allowed" in status(opened)
    assert "equals the undivided model's, bit for bit" in status(opened)
    assert f"Answer {model(INPUTS['first'])};" in status(opened)
    seat = opened.get_by_role("button", name="position 4")
    assert seat.get_attribute("aria-pressed") == "true"
    seat.press("Space")
    assert seat.get_attribute("aria-pressed") == "false"
    assert opened.evaluate("traits.alice") == 0b00101
    assert opened.evaluate("document.activeElement.getAttribute('aria-label')").endswith("Bob's")
    assert opened.locator(".ex-talk li").first.inner_text().startswith("Bob → Alice")
    opened.get_by_role("button", name="swap").press("Enter")
    assert opened.evaluate("traits.alice") == 0b11010
    opened.get_by_role("button", name="halves").press("Enter")
    assert opened.evaluate("traits.alice") == 0b00111
    opened.get_by_label("Protocol").select_option("literal")
    mine = [0, 1, 2]
    literal = two_way(model, INPUTS["first"], mine, "literal").channel
    assert f"{literal.bits} bits" in status(opened)
    shown = opened.locator(".ex-hex").inner_text()
    assert shown == literal.messages[-1].data.hex(" ")
    opened.get_by_role("button", name="Back").press("Enter")
    assert "6 of 7 messages" in status(opened)
    opened.evaluate("leave()")
    assert opened.evaluate("listeners.size") == 0
