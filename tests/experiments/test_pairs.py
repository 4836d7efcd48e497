"""Every model takes every task: a training step forward and backward."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from companion.experiments import Run
from companion.experiments.task import NOTHING, TASKS
from companion.models import MODELS, build


def smallest(task, model):
    """A short run of a task; each has lengths and alphabets of its own."""
    for length, alphabet in itertools.product(range(4, 24), (4, 1, 2, 3, 6, 8)):
        try:
            return Run(task=task, length=length, model=model, alphabet=alphabet, width=8, heads=2)
        except ValueError:
            continue
    pytest.fail(f"{task} has no length from 4 to 23")


@pytest.mark.parametrize("task", sorted(TASKS))
@pytest.mark.parametrize("model", sorted(MODELS))
def test_step_forward_and_backward(model, task):
    run, rng = smallest(task, model), torch.Generator().manual_seed(0)
    net = build(model, run.model_config(), rng=rng)
    tokens, read, targets = run.build_task().sample(4, rng=rng)
    logits, _ = net(tokens, read=read)
    assert logits.shape == (*targets.shape, run.build_task().classes)
    F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=NOTHING).backward()
    gradients = {name: p.grad for name, p in net.named_parameters()}
    assert all(g is not None and g.isfinite().all() for g in gradients.values()), gradients.keys()
    assert sum(float(g.abs().sum()) > 0 for g in gradients.values()) > 0.8 * len(gradients)
