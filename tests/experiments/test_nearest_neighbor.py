"""Nearest neighbour: labels, unique nearest points, distributions, and the two-layer stack."""

from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from companion.experiments import TASKS, MultiQueryRecall, NearestNeighbor, Run, Task
from companion.theory.nearest_neighbor import NearestNeighbor as Construction
from companion.theory.recall import key_margin, key_vectors


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def parts(task, tokens):
    """Points, labels and queries as numbers from 0."""
    pairs, asked = tokens[:, : 2 * task.N], tokens[:, 2 * task.N :]
    return pairs[:, ::2] - 2, pairs[:, 1::2], asked - 2


@pytest.mark.parametrize(("N", "alphabet"), [(1, 1), (1, 2), (2, 2), (3, 8), (5, 13), (20, 64)])
@pytest.mark.parametrize("exact", [False, True], ids=["training", "exact"])
@pytest.mark.parametrize("batch", [0, 1, 50])
def test_task_labels_what_it_samples(N, alphabet, exact, batch):
    task = NearestNeighbor(N, alphabet)
    assert isinstance(task, Task) and TASKS[task.name] is NearestNeighbor
    tokens, read, targets = task.sample(batch, rng=rng(), exact=exact)
    assert torch.equal(task.label(tokens), targets)
    assert tokens.shape == (batch, task.max_len) == (batch, 3 * N)
    assert read.shape == targets.shape == (batch, N)
    assert tokens.dtype == read.dtype == targets.dtype == torch.int64
    if batch:
        assert 0 <= tokens.min() and tokens.max() < task.vocab == alphabet + 2
        assert 0 <= targets.min() and targets.max() < task.classes


@pytest.mark.parametrize(("N", "alphabet"), [(2, 4), (3, 8), (5, 13), (20, 64)])
def test_answers_are_the_labels_of_the_largest_inner_product_ahead_by_the_margin(N, alphabet):
    task = NearestNeighbor(N, alphabet)
    tokens, _, targets = task.sample(200, rng=rng(1))
    points, labels, asked = parts(task, tokens)
    vectors = torch.from_numpy(key_vectors(alphabet))
    product = vectors[asked] @ vectors[points].mT  # (B, queries, points)
    best, second = product.topk(2, dim=-1).values.unbind(-1)
    assert (best - second >= key_margin(alphabet) - 1e-9).all()
    assert torch.equal(labels.gather(1, product.argmax(-1)), targets)


def test_points_and_queries_are_different_corners():
    task = NearestNeighbor(7, 30)
    points, _, asked = parts(task, task.sample(300, rng=rng()).tokens)
    for row in (*points.tolist(), *asked.tolist()):
        assert len(set(row)) == 7


def test_every_admissible_example_is_equally_likely():
    """Two of four corners in order, labels, and two of the queries with one nearest corner."""
    task, wanted = NearestNeighbor(2, 4), set()
    for a, b in permutations(range(4), 2):
        fair = [q for q in range(4) if (q ^ a).bit_count() != (q ^ b).bit_count()]
        wanted |= {(a, b, *asked) for asked in permutations(fair, 2)}
    points, labels, asked = parts(task, task.sample(60_000, rng=rng(2)).tokens)
    rows, counts = np.unique(torch.cat([points, asked], 1).numpy(), axis=0, return_counts=True)
    assert set(map(tuple, rows.tolist())) == wanted
    many = {(a, b): sum(pair[:2] == (a, b) for pair in wanted) for a, b, *_ in wanted}
    share = [60_000 / 12 / many[a, b] for a, b, *_ in rows.tolist()]
    assert chisquare(counts, share).pvalue > 0.001
    assert chisquare(torch.bincount(2 * labels[:, 0] + labels[:, 1]).numpy()).pvalue > 0.001


def test_with_as_many_points_as_pairs_it_is_multi_query_recall():
    task = NearestNeighbor(6, 6)
    tokens, _, targets = task.sample(100, rng=rng())
    assert torch.equal(MultiQueryRecall(6, 6).label(tokens), targets)


@pytest.mark.parametrize(("alphabet", "exact"), [(64, 0.61), (256, 0.15), (1024, 0.04)])
def test_share_of_exact_matches(alphabet, exact):
    task = NearestNeighbor(20, alphabet)
    points, _, asked = parts(task, task.sample(100, rng=rng(3)).tokens)
    same = (points[:, None] == asked[..., None]).any(-1).double().mean()
    assert same == pytest.approx(exact, abs=0.03)


@pytest.mark.claim("Theorem 7")
def test_two_layers_of_attention_answer_what_the_task_asks():
    task = NearestNeighbor(6, 64)
    tokens, _, targets = task.sample(5, rng=rng(4))
    vectors = key_vectors(64)
    network = Construction.build(N=7, d=6, gamma=key_margin(64))
    for points, labels, asked, answers in zip(*parts(task, tokens), targets, strict=True):
        for query, answer in zip(asked, answers, strict=True):
            x = np.vstack([vectors[points], vectors[query]])
            assert network(x, labels.numpy()) == int(answer)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"N": 0}, "got N=0, expected at least 1"),
        ({"N": 5, "alphabet": 4}, "got alphabet=4, expected at least N=5 different keys"),
    ],
    ids=["N", "alphabet"],
)
def test_impossible_size_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        NearestNeighbor(**fields)


def test_run_of_the_task_has_two_classes():
    config = Run(task="nearest-neighbor", length=8, model="lstm", alphabet=64).model_config()
    assert (config.vocab, config.classes, config.max_len) == (66, 2, 24)
