"""How many answers of a model are right: in parts that fit into memory, and learning nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from companion.experiments.result import Score
from companion.experiments.task import NOTHING, Batch
from companion.models import Population, SequenceModel

AT_ONCE = 250  # sequences per forward pass; bounds the memory


def examine(model: SequenceModel, batch: Batch) -> tuple[Score, Score]:
    """How many answers are right, and in how many examples all of them.

    An answer with a logit that is not finite is wrong.
    """
    answers, examples = scores(model, batch)
    return answers[0], examples[0]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Without gradients, and without what a reader's model does in training only, as dropout."""
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was)


def scores(model: SequenceModel | Population, batch: Batch) -> tuple[list[Score], list[Score]]:
    """The same for each member of a population; of a model alone, lists of one."""
    members, count = batch.tokens.shape[:-2], batch.tokens.shape[-2]
    right, asked, whole = (torch.zeros(members, dtype=torch.int64) for _ in range(3))
    for tokens, read, targets in zip(*(x.split(AT_ONCE, -2) for x in batch), strict=True):
        with evaluating(model):
            logits, _ = model(tokens, read=read)
        good = (logits.argmax(-1) == targets) & logits.isfinite().all(-1)
        due = targets != NOTHING
        right += (good & due).sum((-2, -1)).cpu()
        asked += due.sum((-2, -1)).cpu()
        whole += (good | ~due).all(-1).sum(-1).cpu()
    pairs = zip(right.view(-1).tolist(), asked.view(-1).tolist(), strict=True)
    return [Score(*pair) for pair in pairs], [Score(n, count) for n in whole.view(-1).tolist()]
