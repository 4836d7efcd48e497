"""Training: deterministic, honest about divergence, and it finds the separation."""

import dataclasses
import math

import pytest
import torch

from companion.experiments import NOTHING, Batch, Result, Run, Score, choose_device, train
from companion.experiments.result import Check
from companion.experiments.scoring import examine
from companion.experiments.train import label, summary
from companion.experiments.training import Training, generator, learning_rate
from companion.models import MODELS, ModelConfig, build

TINY = Run(task="index-lookup", length=3, model="transformer", alphabet=4, width=16, steps=60,
           check_every=20, validate=300, evaluate=300, learning_rate=1e-2)  # fmt: skip


BINS = {f"bin{i}{what}" for i in (1, 2, 3) for what in ("", " examples")}


def quietly(run: Run):
    return train(run, progress=False)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_equal_runs_give_equal_results_whatever_the_global_generator_does(model):
    first = quietly(TINY.replace(model=model))
    torch.rand(17)
    again = quietly(TINY.replace(model=model))
    other = quietly(TINY.replace(model=model, seed=1))
    assert first.result.curve == again.result.curve
    assert first.result.final == again.result.final
    assert first.result.curve != other.result.curve
    pairs = zip(first.model.parameters(), again.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_training_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    quietly(TINY)
    assert torch.equal(torch.get_rng_state(), before)


def test_curve_has_one_check_per_interval_and_one_at_the_end():
    result = quietly(TINY.replace(steps=50, stop_at=2.0)).result
    assert [c.step for c in result.curve] == [20, 40, 50]
    assert (result.status, result.steps) == ("finished", 50)


def test_no_steps_measures_the_untrained_model():
    result = quietly(TINY.replace(steps=0)).result
    assert (result.status, result.steps, result.curve) == ("finished", 0, [])
    assert result.final == result.best
    assert result.final.accuracy < 0.6


def test_two_good_checks_in_a_row_end_the_run():
    result = quietly(TINY.replace(steps=5000, stop_at=0.95)).result
    assert result.status == "reached"
    assert result.steps < 5000
    assert [c.accuracy >= 0.95 for c in result.curve[-2:]] == [True, True]
    assert result.final.accuracy > 0.9


def test_divergence_is_reported_and_is_no_success():
    result = quietly(TINY.replace(learning_rate=1e30, steps=5000, stop_at=0.0)).result
    assert result.status == "diverged"
    assert not math.isfinite(result.curve[-1].loss)
    assert result.final == Score(0, 300)
    assert result.steps < 5000


def test_best_weights_are_returned_and_measured():
    run = TINY.replace(steps=100, check_every=10, stop_at=2.0)
    training = Training([run], choose_device())
    trained = quietly(run)
    best = max(c.accuracy for c in trained.result.curve)
    assert examine(trained.model, training.validation)[0].accuracy == best
    assert trained.result.best_step in [c.step for c in trained.result.curve if c.accuracy == best]


def test_every_task_and_model_train_together():
    for task in ("multi-index-lookup", "index-first"):
        for model in MODELS:
            result = quietly(TINY.replace(task=task, model=model, steps=2)).result
            assert math.isfinite(result.curve[-1].loss)


@pytest.mark.parametrize(
    ("task", "alphabet", "length", "scores"),
    [
        ("index-lookup", 4, 3, set()),
        ("dyck", 4, 20, {"dyck-hard"}),
        ("dyck", 4, 8, set()),  # too short for non-members that counting misses
        ("eq-ncp", 4, 4, {"examples"}),
        ("parity", 2, 6, {"examples", *BINS}),
    ],
)
def test_more_is_measured_where_the_task_has_more(task, alphabet, length, scores):
    run = TINY.replace(task=task, alphabet=alphabet, length=length, steps=1)
    more = quietly(run).result.more
    assert set(more) == scores
    assert all(more[name].total == 300 for name in scores if name.endswith("examples"))
    assert Result.from_json(quietly(run).result.to_json()).more == more


def test_an_example_counts_as_right_if_all_its_answers_are():
    model = build("lstm", ModelConfig(vocab=2, classes=2, width=4), rng=torch.Generator())
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.copy_(torch.tensor([0.0, 1.0]))  # the answer is always 1
    targets = torch.tensor([[1, 1], [1, 0], [0, NOTHING], [1, NOTHING]])
    batch = Batch(targets.clamp(min=0), torch.zeros_like(targets), targets)
    answers, examples = examine(model, batch)
    assert answers == Score(4, 6)
    assert examples == Score(2, 4)


def test_what_a_model_does_in_training_only_is_left_out_of_its_scores():
    model = build("lstm", ModelConfig(vocab=2, classes=2, width=4), rng=torch.Generator())
    model.embedding = torch.nn.Sequential(model.embedding, torch.nn.Dropout(1.0))  # all is zero
    tokens = torch.tensor([[0, 1, 1, 0]])
    with torch.no_grad():
        model.eval()
        model.head.bias -= model(tokens)[0].mean((0, 1))  # so that answers depend on tokens
        answers = model(tokens)[0].argmax(-1)
        model.train()
        assert (model(tokens)[0].argmax(-1) != answers).any()
    batch = Batch(tokens, torch.arange(4)[None], answers)
    assert examine(model, batch)[0] == Score(4, 4)
    assert model.training and model.embedding.training


def test_provenance_says_where_the_numbers_come_from():
    provenance = quietly(TINY.replace(steps=1)).result.provenance
    assert provenance["torch"] == torch.__version__
    assert {"companion", "commit", "python", "device", "dtype", "threads", "date"} <= set(
        provenance
    )


def test_schedules():
    constant, cosine = TINY, TINY.replace(schedule="cosine", steps=100)
    assert learning_rate(constant, 59) == 1e-2
    rates = [learning_rate(cosine, step) for step in (0, 50, 99)]
    assert rates[0] == 1e-2 and rates[1] == pytest.approx(5e-3) and 0 < rates[2] < 1e-5
    result = quietly(cosine.replace(stop_at=2.0)).result
    assert result.curve != quietly(cosine.replace(schedule="constant", stop_at=2.0)).result.curve


def test_streams_of_a_seed_differ_by_purpose():
    draws = {
        torch.rand(1, generator=generator(seed, purpose)).item()
        for seed in (0, 1)
        for purpose in ("data", "model", "validation", "evaluation")
    }
    assert len(draws) == 8


@pytest.mark.slow
def test_figure_2_at_length_20_attention_finds_it_and_the_lstm_does_not():
    lookup = Run(task="index-lookup", length=20, model="transformer", steps=600)
    attention = quietly(lookup).result
    recurrent = quietly(lookup.replace(model="lstm", learning_rate=5e-3, steps=1000)).result
    assert attention.final.accuracy >= 0.995
    assert recurrent.final.accuracy < 0.20
    assert recurrent.steps >= attention.steps


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"tied": True}, {"positions": "random"}], ids=["tied", "JL"])
def test_attention_finds_it_with_other_positions(change):
    run = Run(task="index-lookup", length=20, model="transformer", steps=1000)
    assert quietly(run.replace(**change)).result.status == "reached"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        pytest.param({}, "transformer on index-lookup, N = 3", id="defaults"),
        pytest.param(
            {"positions": "none"}, "transformer (no positions) on index-lookup, N = 3", id="none"
        ),
        pytest.param({"width": 8}, "transformer (width 8) on index-lookup, N = 3", id="width"),
        pytest.param(
            {"depth": 2, "positions": "binary"},
            "transformer (2 layers, binary positions) on index-lookup, N = 3",
            id="depth-and-positions",
        ),
    ],
)
def test_label_tells_runs_apart(changes, text):
    assert label(Run(task="index-lookup", length=3, model="transformer", **changes)) == text


def test_summary_names_the_best_check_only_if_it_is_not_the_last():
    result = quietly(TINY.replace(stop_at=2.0)).result
    earlier = dataclasses.replace(
        result, curve=[Check(20, 1.0, 0.1024), Check(60, 1.0, 0.1)], best_step=20
    )
    assert summary(earlier).endswith("300 right; best on validation 10.2 % at step 20")
    assert "best" not in summary(dataclasses.replace(earlier, best_step=60))
    assert "best" not in summary(dataclasses.replace(earlier, best_step=0))  # diverged at once
