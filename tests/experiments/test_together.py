"""Runs trained together end as they end alone, up to rounding, and survive interruptions."""

import sys

import pytest
import torch

from companion.experiments import Device, Run, load, sweep, train, train_together
from companion.experiments.groups import checkpoint_of, grouped, is_stackable
from companion.experiments.training import Training
from companion.models import MODELS, ModelConfig, SequenceModel, register
from companion.models.stack import lookup, take_rows

RUN = Run(task="index-lookup", length=3, model="transformer", alphabet=4, width=16, steps=60,
          check_every=20, validate=300, evaluate=300, learning_rate=1e-2)  # fmt: skip
RUNS = [RUN.replace(learning_rate=lr, seed=s) for lr in (1e-2, 1e-3) for s in (0, 1)]


def together(runs, **options):
    return {result.run: result for result in train_together(runs, progress=False, **options)}


@pytest.mark.parametrize("model", sorted(MODELS))
def test_members_learn_as_alone(model):
    """One check only: rounding differs, and after many steps of Adam signs of tiny gradients do."""
    runs = [run.replace(model=model, steps=10, check_every=10) for run in RUNS]
    found = together(runs)
    assert list(found) == runs
    for run in runs:
        alone = train(run, progress=False).result
        assert found[run].curve[0].loss == pytest.approx(alone.curve[0].loss, rel=1e-3)
        assert abs(found[run].final.accuracy - alone.final.accuracy) < 0.05
        assert found[run].provenance["members"] == 4


def test_members_share_the_number_format_and_the_device_that_were_chosen():
    place = Device(torch.device("cpu"), torch.float64, "a test")  # a GPU differs in the device too
    training = Training(RUNS, place)
    tensors = [*training.model.parameters(), *training.alone.parameters()]
    assert {(x.dtype, x.device) for x in tensors} == {(place.dtype, place.device)}


def test_a_member_that_ends_leaves_and_the_others_go_on():
    slow = RUN.replace(learning_rate=1e-6, steps=600)
    fast, lost = (slow.replace(learning_rate=lr) for lr in (1e-2, 1e30))
    found = together([lost, slow, fast])
    assert [result.status for result in found.values()] == ["diverged", "reached", "finished"]
    assert list(found) == [lost, fast, slow]
    assert found[fast].final.accuracy > 0.99 and found[lost].final.accuracy == 0
    assert found[slow].steps == 600 and found[fast].steps < 600


def test_runs_that_differ_in_more_are_refused():
    for runs in ([], [RUN, RUN.replace(width=8)], [RUN, RUN]):
        with pytest.raises(ValueError, match="expected different runs of 1 setting"):
            list(train_together(runs))


def interrupt(runs, folder, monkeypatch, at):
    """Sweep `runs` together up to the checkpoint after step `at`, as if it were killed then."""
    monkeypatch.setattr(sys.modules["companion.experiments.training"], "SAVE_EVERY", 0.0)
    save = Training.save

    def save_and_stop(self, path):
        save(self, path)
        if self.step == at:
            raise KeyboardInterrupt

    monkeypatch.setattr(Training, "save", save_and_stop)
    with pytest.raises(KeyboardInterrupt):
        sweep(runs, folder, together=True, report=lambda line: None)
    monkeypatch.undo()


def test_interrupted_population_goes_on_where_it_was(tmp_path, monkeypatch):
    """Killed after one member has ended: its result is kept, the others lose nothing."""
    runs = [RUN.replace(learning_rate=lr, steps=300) for lr in (1e-2, 1e-6, 1e-5)]
    whole = together(runs)
    interrupt(runs, tmp_path, monkeypatch, at=280)
    assert [result.run for result in load(tmp_path)] == runs[:1]
    steps = []
    advance = Training.advance
    monkeypatch.setattr(Training, "advance", lambda self, n: steps.append(n) or advance(self, n))
    monkeypatch.setattr(
        sys.modules["companion.experiments.sweep"], "expectation", lambda groups, workers: ""
    )
    found = sweep(runs, tmp_path, together=True, report=lambda line: None)
    assert steps == [20]
    for result in found:
        assert result.curve == whole[result.run].curve
        assert (result.final, result.best) == (whole[result.run].final, whole[result.run].best)
    assert not list((tmp_path / ".running").iterdir())


def test_last_member_goes_on_alone(tmp_path, monkeypatch):
    runs = [RUN.replace(learning_rate=lr, steps=300) for lr in (1e-2, 1e-6)]
    interrupt(runs, tmp_path, monkeypatch, at=280)
    assert checkpoint_of(runs[1:], tmp_path).exists()
    found = sweep(runs, tmp_path, together=True, report=lambda line: None)
    assert [result.steps for result in found] == [found[0].steps, 300]
    assert found[1].provenance["members"] == 2


def test_checkpoint_of_other_members_is_refused(tmp_path, monkeypatch):
    runs = [RUN.replace(learning_rate=lr, steps=300) for lr in (1e-5, 1e-6)]
    interrupt(runs, tmp_path, monkeypatch, at=20)
    other = [runs[0], runs[0].replace(seed=7)]
    with pytest.raises(RuntimeError, match="2 of 2 runs failed"):
        sweep(other, tmp_path, together=True, report=lambda line: None)


def test_sweep_stores_each_run_as_before(tmp_path):
    lines = []
    found = sweep(RUNS, tmp_path, together=True, report=lines.append)
    assert [result.run for result in found] == RUNS
    assert len(load(tmp_path)) == 4
    assert sum(line.startswith("[") for line in lines) == 4


def test_groups_keep_settings_apart():
    other = RUN.replace(width=8)
    assert grouped([RUNS[0], other, *RUNS[1:]], together=True) == [RUNS, [other]]
    assert grouped(RUNS, together=False) == [[run] for run in RUNS]


@pytest.fixture
def define():
    """Registers a reader's model that is right, or wrong in one way, under the same name."""

    def register_it(wrong=None):
        @register("of a reader")
        class Reader(SequenceModel):
            def __init__(self, config: ModelConfig) -> None:
                super().__init__(config)
                self.table = torch.nn.Parameter(torch.randn(config.vocab, config.classes))
                if wrong == "buffer":  # which has no axis of members
                    self.register_buffer("scale", torch.ones(config.classes))

            def state_shapes(self, t):
                return ()

            def advance(self, tokens, state, read):
                logits = self.table[tokens] if wrong == "table" else lookup(self.table, tokens)
                return take_rows(logits, read.flatten(0, -2) if wrong == "rows" else read), ()

        return "of a reader"

    yield register_it
    MODELS.pop("of a reader", None)


@pytest.mark.parametrize("wrong", ["table", "rows", "buffer"])
def test_model_that_does_not_stack_is_found_out_by_trying(define, wrong):
    assert not is_stackable(define(wrong))


def test_it_is_trained_run_by_run_until_it_is_corrected(define):
    runs = [RUN.replace(model=define("table"), seed=seed) for seed in (0, 1)]
    assert grouped(runs, together=True) == [[run] for run in runs]
    define()  # a notebook's cell, run again
    assert grouped(runs, together=True) == [runs]


@pytest.mark.parametrize("model", sorted(MODELS))
def test_every_model_of_the_package_stacks(model):
    assert is_stackable(model)
