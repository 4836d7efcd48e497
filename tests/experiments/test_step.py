"""Steps: what a GPU needs of them can be seen on a CPU, by watching every operation."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from companion.experiments import TASKS, Device, Run
from companion.experiments.step import choose_execution, cross_entropy
from companion.experiments.training import Training
from companion.models import MODELS, SequenceModel

CPU = Device(torch.device("cpu"), torch.float32, "a test")
# Operations whose result, or its shape, the host must wait for, and copies of a number it has.
WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "is_nonzero", "equal",
           "lift_fresh")  # fmt: skip


class Watch(TorchDispatchMode):
    """Collects the names of operations that wait, and all shapes in their order."""

    def __init__(self):
        super().__init__()
        self.waiting, self.shapes = [], []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().split("::")[-1].split(".")[0]
        if name in WAITING or (name == "index" and any(_is_mask(x) for x in args[1])):
            self.waiting.append(name)
        result = func(*args, **(kwargs or {}))
        self.shapes.append((name, getattr(result, "shape", None)))
        return result


def _is_mask(x):
    return isinstance(x, torch.Tensor) and x.dtype == torch.bool


@pytest.fixture
def watched(monkeypatch):
    """What two steps of some runs do that follow one that warms up."""
    monkeypatch.setattr(SequenceModel, "check", lambda *_: None)  # not called on a GPU either

    def watch(runs):
        training = Training(runs, CPU)
        training.take()
        found = []
        for _ in range(2):
            with Watch() as seen:
                training.take()
            found.append(seen)
        return found

    return watch


def run_of(task, model="transformer"):
    """A small run of a task, with the smallest alphabet that it takes."""
    for alphabet in (1, 2, 3, 4, 8, 64):
        try:
            return Run(task=task, length=20, model=model, alphabet=alphabet, width=8, heads=2,
                       batch=8, validate=4)  # fmt: skip
        except ValueError:
            continue
    raise AssertionError(task)


@pytest.mark.parametrize("task", sorted(set(TASKS) - {"dyck-hard"}))  # an exam, not trained on
def test_nothing_in_a_step_waits_for_the_host_and_no_shape_depends_on_the_data(task, watched):
    run = run_of(task)
    for runs in ([run], [run, run.replace(seed=1), run.replace(learning_rate=1e-2)]):
        first, second = watched(runs)
        assert not first.waiting and not second.waiting
        assert first.shapes == second.shapes


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_same_for_every_model(model, watched):
    run = run_of("index-lookup", model)
    for runs in ([run], [run, run.replace(seed=1)]):
        first, second = watched(runs)
        assert not first.waiting and not second.waiting
        assert first.shapes == second.shapes


def test_execution_is_chosen_by_the_device_and_can_be_told(monkeypatch):
    monkeypatch.delenv("COMPANION_STEP", raising=False)
    for device, together, mode in (
        ("cpu", True, "eager"),
        ("cuda", True, "graph"),
        ("cuda", False, "eager"),
    ):
        assert choose_execution(torch.device(device), together=together).mode == mode
    monkeypatch.setenv("COMPANION_STEP", "compile")
    assert choose_execution(torch.device("cpu"), together=True).mode == "compile"
    monkeypatch.setenv("COMPANION_STEP", "graph")
    with pytest.raises(ValueError, match="'graph' on cpu, expected a CUDA GPU"):
        choose_execution(torch.device("cpu"), together=True)
    monkeypatch.setenv("COMPANION_STEP", "fast")
    with pytest.raises(ValueError, match="'fast', expected one of: eager, graph, compile"):
        choose_execution(torch.device("cuda"), together=False)


def test_loss_of_each_member_is_the_one_it_has_alone():
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 4, 2, 5, generator=rng)
    targets = torch.randint(5, (3, 4, 2), generator=rng)
    targets[1, 0] = targets[2, :, 1] = -100
    alone = torch.stack([cross_entropy(a, b) for a, b in zip(logits, targets, strict=True)])
    assert torch.allclose(cross_entropy(logits, targets), alone)


@pytest.mark.parametrize(
    "wait",
    [
        lambda x: x.sum().item(),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: torch.tensor([1.0]),
        lambda x: int(x.aminmax()[0]),
    ],
)
def test_what_waits_is_seen(wait):
    with Watch() as watch:
        wait(torch.ones(3))
    assert watch.waiting
