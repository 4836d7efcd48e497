"""Associative recall: lengths, distribution, exact labels, and the reduction's token scheme."""

import pytest
import torch
from scipy.stats import chisquare

from companion.experiments import TASKS, Run, Task, build_task
from companion.experiments.recall import AssociativeRecall, MultiQueryRecall
from companion.theory.communication import solve_index
from companion.theory.recall import RecallAsLookup, RecallRegister

NAMES = ("associative-recall", "mqar")


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("N", "alphabet"), [(1, 1), (1, 5), (2, 2), (3, 7), (11, 13), (20, 64)])
@pytest.mark.parametrize("exact", [False, True], ids=["training", "exact"])
@pytest.mark.parametrize("batch", [0, 1, 50])
def test_every_task_labels_what_it_samples(name, N, alphabet, exact, batch):
    task = build_task(name, N, alphabet)
    assert isinstance(task, Task)
    tokens, read, targets = task.sample(batch, rng=rng(), exact=exact)
    assert torch.equal(task.label(tokens), targets)
    assert tokens.shape == (batch, task.max_len)
    assert read.shape == targets.shape == (batch, N if name == "mqar" else 1)
    assert tokens.dtype == read.dtype == targets.dtype == torch.int64
    if batch:
        assert 0 <= tokens.min() and tokens.max() < task.vocab
        assert 0 <= targets.min() and targets.max() < task.classes


@pytest.mark.parametrize("N", [1, 2, 9])
def test_keys_differ_and_all_come_back_once(N):
    tokens, read, _ = MultiQueryRecall(N, 12).sample(200, rng=rng())
    keys, labels, asked = tokens[:, : 2 * N : 2], tokens[:, 1 : 2 * N : 2], tokens[:, 2 * N :]
    assert (keys >= 2).all() and (labels < 2).all()
    assert all(len(set(row)) == N for row in keys.tolist())
    assert torch.equal(keys.sort(1).values, asked.sort(1).values)
    assert torch.equal(tokens.gather(1, read), asked)


def uniform(values, cells):
    """p-value of the χ² test that `values` are uniform on 0 … cells - 1."""
    return chisquare(torch.bincount(values.flatten(), minlength=cells).numpy()).pvalue


def test_every_example_is_equally_likely():
    """Two of three keys in order, two labels, one of two orders: 6·4·2 examples."""
    tokens, _, _ = MultiQueryRecall(2, 3).sample(48_000, rng=rng(1))
    first, second = tokens[:, 0] - 2, tokens[:, 2] - 2
    pair = 2 * first + second - (second > first).long()
    same = (tokens[:, 4] == tokens[:, 0]).long()
    assert uniform(pair + 6 * tokens[:, 1] + 12 * tokens[:, 3] + 24 * same, 48) > 0.001


def test_the_query_is_any_of_the_keys():
    tokens, _, _ = AssociativeRecall(5, 5).sample(20_000, rng=rng(2))
    place = (tokens[:, 0:10:2] == tokens[:, 10:]).long().argmax(1)
    assert uniform(place, 5) > 0.001


def test_uniformity_test_can_fail():
    assert uniform(torch.randint(7, (24_000,), generator=rng()) % 3, 3) < 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_gives_the_same_data(name):
    task = build_task(name, 6, 9)
    first, second, third = (task.sample(8, rng=rng(s)) for s in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first.tokens, third.tokens)


@pytest.mark.claim("Proposition 9")
def test_tokens_are_those_of_the_reduction():
    """What Alice and Bob feed in Proposition 9 is an example of this task."""
    N, seen = 6, []

    class Spy(RecallRegister):
        def transition(self, token, state, t):
            seen.append(int(token[0]))
            return super().transition(token, state, t)

    a = torch.tensor([1, 0, 0, 1, 1, 0])
    played = solve_index(RecallAsLookup(Spy(N), N), a, alphabet=2)
    example = torch.tensor([seen[: 2 * N + 1]])
    assert played.right.all() and example[0, 1::2].tolist() == a.tolist()
    task = AssociativeRecall(N, N)
    assert task.label(example).tolist() == [[int(a[example[0, -1] - 2])]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"N": 0}, "got N=0, expected at least 1"),
        ({"N": 5, "alphabet": 4}, "got alphabet=4, expected at least N=5 different keys"),
    ],
    ids=["N", "alphabet"],
)
def test_impossible_size_is_refused(name, fields, message):
    with pytest.raises(ValueError, match=message):
        TASKS[name](**fields)


def test_run_of_the_task_has_two_classes():
    config = Run(task="mqar", length=8, model="lstm", alphabet=16).model_config()
    assert (config.vocab, config.classes, config.max_len) == (18, 2, 24)
