"""Explorers: what Python computes, and what the shipped JavaScript makes of it."""

import base64
import json
import shutil
import subprocess

import ipywidgets.embed
import numpy as np
import pytest
import torch
import traitlets
from matplotlib.figure import Figure

from companion.book import explorer as module
from companion.book.explorer import Explorer, OneWayExplorer, VectorsExplorer, source
from companion.models import ModelConfig, Quantized, build
from companion.theory import dimensions, vectors
from companion.theory.communication import alice, bob, solve_index
from companion.theory.recurrent import ShiftRegister

N, ALPHABET = 7, 4
SCRIPTS = ("vectors.js", "one_way.js")
SIZES = (4, 5, 32, 33, 64)


def models():
    rng = torch.Generator().manual_seed(0)
    config = ModelConfig(vocab=ALPHABET + N, classes=ALPHABET, width=8, heads=2, max_len=N + 1)
    names = ("lstm", "linear_transformer", "transformer")
    found = {name: build(name, config, rng=rng).eval() for name in names}
    found["quantized LSTM"] = Quantized(found["lstm"], bits=3)
    found["shift register"] = ShiftRegister(N, ALPHABET)
    return found


def string():
    return torch.randint(ALPHABET, (N,), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def one_way():
    return OneWayExplorer.of(models(), string(), ALPHABET)


@pytest.fixture(scope="module")
def both(one_way):
    return {"vectors": VectorsExplorer(), "one way": one_way}


def run_node(tmp_path, script: str, data: dict) -> list:
    """What a script prints as JSON, with `data` in a file beside it."""
    node = shutil.which("node")
    assert node, "got no node on PATH, expected the one that also fetches the browser files"
    (tmp_path / "data.json").write_text(json.dumps(data))
    (tmp_path / "run.mjs").write_text(script)
    command = [node, "run.mjs"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Sources


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_is_one_module_that_loads_and_is_small(script, tmp_path):
    text = source("base.js", script)
    assert "https:" not in text and len(text) < 16_000
    (tmp_path / "module.mjs").write_text(text)
    ask = 'import it from "./module.mjs"; console.log(JSON.stringify(Object.keys(it)));'
    assert run_node(tmp_path, ask, {}) == ["render"]


@pytest.mark.parametrize("planted", ["x = '<!-- <script>'", "x = '</SCRIPT>'"])
def test_text_that_ends_a_page_is_refused(planted, tmp_path, monkeypatch):
    (tmp_path / "bad.js").write_text(planted)
    monkeypatch.setattr(module, "_SOURCE", tmp_path)
    with pytest.raises(ValueError, match=r"bad\.js"):
        source("bad.js")


def test_base_explorer_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Explorer()


# What Python computes


@pytest.mark.parametrize("name", ["vectors", "one way"])
def test_state_survives_being_saved(both, name):
    explorer = both[name]
    assert "application/vnd.jupyter.widget-view+json" in explorer._repr_mimebundle_()[0]
    saved = ipywidgets.embed.dependency_state([explorer])[explorer.model_id]
    for buffer in saved["buffers"]:
        (trait,) = buffer["path"]
        assert base64.b64decode(buffer["data"]) == getattr(explorer, trait)
    assert {b["path"][0] for b in saved["buffers"]} & {"signs", "picture"}
    assert len(json.dumps(saved)) < 150_000
    for trait in explorer.keys:
        if explorer.trait_metadata(trait, "read_only") and not isinstance(
            getattr(explorer, trait), bytes
        ):
            assert saved["state"][trait] == getattr(explorer, trait)


@pytest.mark.parametrize(
    "choice",
    [{"family": "rotten"}, {"N": 3}, {"N": 65}, {"k": 0}, {"k": 257}, {"seed": 4}],
    ids=str,
)
def test_choice_that_is_not_offered_is_refused(choice):
    with pytest.raises(traitlets.TraitError):
        VectorsExplorer(**choice)


@pytest.mark.parametrize("family", ["random", "linear hash", "trace", "binary"])
def test_figure_and_table_say_what_is_shown(family):
    explorer = VectorsExplorer(family=family, N=12, k=32)
    image = explorer.figure(Figure().subplots()).get_images()[0].get_array()
    T = explorer.chosen.table().astype(float)
    np.testing.assert_allclose(image, T @ T.T / explorer.chosen.k)
    shown = (explorer.chosen.k, explorer.chosen.coherence().absolute)
    assert shown in [row[1:3] for row in explorer.table().rows]


@pytest.mark.parametrize(
    ("names", "a", "message"),
    [((), string(), "got 0 and 7"), (("lstm",), torch.zeros(0, dtype=torch.int64), "got 1 and 0")],
    ids=["no-models", "no-symbols"],
)
def test_empty_protocol_is_refused(names, a, message):
    known = models()
    with pytest.raises(ValueError, match=message):
        OneWayExplorer.of({name: known[name] for name in names}, a, ALPHABET)


def test_symbol_outside_the_alphabet_is_refused():
    with pytest.raises(ValueError, match="symbols 0 to 3"):
        OneWayExplorer.of(models(), torch.tensor([0, 4]), ALPHABET)


@pytest.mark.parametrize("name", list(models()))
def test_transcript_is_the_protocol(one_way, name):
    model, a = models()[name], string()
    run = next(run for run in one_way.runs if run["name"] == name)
    data, bits = alice(model, a[None])
    played = solve_index(model, a, ALPHABET)
    assert bytes.fromhex(run["hex"]) == data[:64] and run["bytes"] == len(data)
    assert run["bits"] == [alice(model, a[None, :t])[1] for t in range(N + 1)]
    assert run["bits"][-1] == bits == played.channel.bits
    assert run["answers"] == played.answers.tolist()
    assert one_way.right()[name] == played.right.tolist()
    assert run["enough"] == (2**bits >= ALPHABET**N)
    if name != "shift register":
        for i, said in enumerate(run["answers"]):
            logits = bob(model, data, N, torch.tensor([[ALPHABET + i]]))[0, 0]
            assert logits.softmax(-1)[said].item() == pytest.approx(run["probability"][i], abs=1e-3)


@pytest.mark.parametrize("name", list(models()))
def test_picture_is_the_state_up_to_rounding(one_way, name):
    model, a = models()[name], string()
    run = next(run for run in one_way.runs if run["name"] == name)
    states = [torch.cat([x.flatten() for x in _state(model, a[:t])]) for t in range(N + 1)]
    assert run["counts"] == [len(x) for x in states]
    largest = max(float(x.abs().max()) if len(x) else 0.0 for x in states)
    for x, start in zip(states, run["starts"], strict=True):
        drawn = np.frombuffer(one_way.picture[start : start + len(x)], dtype=np.int8)
        np.testing.assert_allclose(drawn / 127 * largest, x, atol=0.51 * largest / 127)
    assert run["end"] == run["starts"][-1] + len(states[-1])


def _state(model, a):
    with torch.no_grad():
        return model.steps(a[None])[1].tensors


def test_one_way_figure_and_table(one_way):
    rows = {row[0]: row[1:] for row in one_way.table().rows}
    assert rows["shift register"] == (2 * N, True, N)
    assert rows["quantized LSTM"][0] == 2 * 8 * 3
    ax = one_way.figure(Figure().subplots())
    right = sum(len(line.get_xdata()) for line in ax.lines if line.get_marker() == "o")
    assert right == sum(map(sum, one_way.right().values()))


# What the shipped JavaScript makes of it

ALL_CHOICES = """
import fs from "fs";
import { gram, settle } from "./module.mjs";
const { signs, blocks, sizes } = JSON.parse(fs.readFileSync("data.json"));
const data = Uint8Array.from(Buffer.from(signs, "base64"));
const found = [];
for (const { family, seed } of blocks.filter((b, i, all) =>
    all.findIndex((o) => o.family === b.family && o.seed === b.seed) === i))
  for (const N of sizes) {
    const { ks } = settle(blocks, family, N, 64, seed);
    for (const want of ks) {
      const { block, k } = settle(blocks, family, N, want, seed);
      const { highest, lowest, magnitude, pair, G } = gram(data, block, N, k);
      const reached = G[pair[0]][pair[1]];
      found.push({ family, seed, N, want, k, highest, lowest, magnitude, pair, reached });
    }
  }
console.log(JSON.stringify(found));
"""


@pytest.mark.slow
def test_sums_in_the_page_equal_the_theory_for_every_family_k_and_draw(tmp_path):
    explorer = VectorsExplorer()
    data = {
        "signs": base64.b64encode(explorer.signs).decode(),
        "blocks": explorer.blocks,
        "sizes": SIZES,
    }
    (tmp_path / "module.mjs").write_text(source("base.js", "vectors.js"))
    found = run_node(tmp_path, ALL_CHOICES, data)
    assert len(found) == len(SIZES) * (2 * 4 * 64 + 4 + 1)
    for case in found:
        seed = case["seed"] or 0
        family = VectorsExplorer.family_of(case["family"], case["N"], case["want"], seed)
        assert case["k"] == family.k
        coherence = family.coherence()
        assert case["highest"] / family.k == coherence.highest, case
        assert case["lowest"] / family.k == coherence.lowest, case
        i, j = case["pair"]
        product = int(family.vector(i).astype(int) @ family.vector(j).astype(int))
        assert case["reached"] == product and abs(product) == case["magnitude"], case


def test_the_papers_dimension_is_sent_for_every_size():
    sent = VectorsExplorer().paper_k
    assert all(sent[n] == dimensions.paper_k(n, 0.25) for n in range(4, 65))


def test_nearest_trace_code_is_taken():
    found = [VectorsExplorer(family="trace", k=k).chosen.k for k in (1, 23, 25, 64, 100, 256)]
    assert found == [16, 16, 32, 64, 128, 128]
    assert isinstance(VectorsExplorer(family="trace").chosen, vectors.TraceCode)
