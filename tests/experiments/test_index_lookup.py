"""Index Lookup and its relatives: lengths, distribution, exact labels."""

import pytest
import torch
from scipy.stats import chisquare

from companion.experiments import (
    TASKS,
    Batch,
    IndexFirst,
    IndexLookup,
    MultiIndexLookup,
    Task,
    build_task,
)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=["index-first", "index-lookup", "multi-index-lookup"])
def name(request):
    return request.param


@pytest.mark.parametrize("N", [1, 2, 3, 10, 11, 37])
@pytest.mark.parametrize("exact", [False, True], ids=["mixed", "exact"])
@pytest.mark.parametrize("batch", [0, 1, 50])
def test_every_task_labels_what_it_samples(name, N, exact, batch):
    task = build_task(name, N=N, alphabet=5)
    assert isinstance(task, Task)
    tokens, read, targets = task.sample(batch=batch, rng=rng(), exact=exact)
    assert torch.equal(task.label(tokens), targets)
    assert tokens.shape == (batch, task.max_len)
    assert read.shape == targets.shape
    assert tokens.dtype == read.dtype == targets.dtype == torch.int64
    if batch:
        assert 0 <= tokens.min() and tokens.max() < task.vocab
        assert 0 <= targets.min() and targets.max() < task.classes
        assert 0 <= read.min() and read.max() < task.max_len


def test_same_seed_gives_the_same_data(name):
    task = build_task(name, N=20, alphabet=64)
    first = task.sample(8, rng=rng(3))
    torch.rand(5)
    assert all(torch.equal(a, b) for a, b in zip(first, task.sample(8, rng=rng(3)), strict=True))
    assert not torch.equal(first.tokens, task.sample(8, rng=rng(4)).tokens)


def test_label_reads_the_tokens():
    task = IndexLookup(N=4, alphabet=9)
    tokens = torch.tensor([[7, 8, 3, 9 + 2, 13], [7, 8, 3, 5, 9 + 0]])
    assert task.label(tokens).tolist() == [[3], [7]]
    assert MultiIndexLookup(4, 9, queries=3).label(
        torch.tensor([[7, 8, 3, 11, 9, 9, 13]])
    ).tolist() == [[3, 7, 7]]
    assert IndexFirst(4, 9).label(torch.tensor([[11, 7, 8, 3, 13]])).tolist() == [[3]]


@pytest.mark.parametrize("N", [10, 25])
def test_mixed_lengths_lie_between_ten_and_N_and_exact_ones_at_N(name, N):
    task = build_task(name, N=N, alphabet=3)
    symbols = (task.sample(5000, rng=rng()).tokens < 3).sum(1)
    assert (symbols.min(), symbols.max()) == (10, N)
    assert ((task.sample(100, rng=rng(), exact=True).tokens < 3).sum(1) == N).all()


def test_after_the_read_position_there_is_only_padding():
    task = IndexLookup(N=20, alphabet=3)
    tokens, read, _ = task.sample(500, rng=rng())
    place = torch.arange(21)
    assert (tokens[place > read] == task.pad).all()
    assert (tokens[place < read] < 3).all()
    assert (tokens[place == read] >= 3).all()


def uniform(values, cells):
    """p-value of the χ² test that `values` are uniform on 0 … cells - 1."""
    return chisquare(torch.bincount(values.flatten(), minlength=cells).numpy()).pvalue


def test_joint_distribution_is_uniform():
    """Three symbols of two kinds and a position: all 2³·3 examples are equally likely."""
    tokens, _, _ = IndexLookup(N=3, alphabet=2).sample(48_000, rng=rng(1), exact=True)
    code = tokens[:, 0] + 2 * tokens[:, 1] + 4 * tokens[:, 2] + 8 * (tokens[:, 3] - 2)
    assert uniform(code, 24) > 0.001


def test_length_is_uniform_and_position_is_uniform_below_it():
    task = IndexLookup(N=14, alphabet=2)
    tokens, read, _ = task.sample(60_000, rng=rng(2))
    k, p = read[:, 0], tokens.gather(1, read)[:, 0] - 2
    assert uniform(k - 10, 5) > 0.001
    for length in range(10, 15):
        assert uniform(p[k == length], length) > 0.001


@pytest.mark.parametrize("N", [3, 14])
def test_places_are_asked_for_as_often_as_it_says(N):
    task = IndexLookup(N, alphabet=2)
    tokens, read, _ = task.sample(60_000, rng=rng(3))
    counts = torch.bincount(tokens.gather(1, read)[:, 0] - 2, minlength=N)
    assert task.asked().sum() == pytest.approx(1)
    assert chisquare(counts, 60_000 * task.asked()).pvalue > 0.001


def test_uniformity_test_can_fail():
    biased = torch.randint(7, (24_000,), generator=rng()) % 3
    assert uniform(biased, 3) < 1e-6


@pytest.mark.parametrize("fields", [{"N": 0}, {"N": 5, "alphabet": 0}], ids=["N", "alphabet"])
def test_impossible_size_is_refused(name, fields):
    with pytest.raises(ValueError, match="=0, expected at least 1"):
        TASKS[name](**fields)


def test_unknown_task_is_refused_with_the_known_names():
    with pytest.raises(ValueError, match=r"'index', expected one of: .*index-first, index-lookup"):
        build_task("index", N=3, alphabet=3)


def test_batch_moves_as_a_tuple():
    batch = IndexLookup(3).sample(2, rng=rng())
    assert Batch(*(x.to("meta") for x in batch)).tokens.is_meta
