"""Random orders and random sets: all equally likely, at small and at awkward sizes."""

from collections import Counter

import pytest
import torch
from scipy.stats import chisquare

from companion.experiments.shuffle import choose, permutations


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 7, 8, 9, 1023, 1024, 1025])
@pytest.mark.parametrize("rows", [0, 1, 20])
def test_every_row_is_a_permutation(rows, size):
    found = permutations(rows, size, rng=rng())
    assert found.shape == (rows, size) and found.dtype == torch.int64
    assert torch.equal(found.sort(1).values, torch.arange(size).expand(rows, -1))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_order_is_as_likely(size):
    counts = Counter(map(tuple, permutations(24_000, size, rng=rng(size)).tolist()))
    assert len(counts) == {2: 2, 3: 6, 4: 24}[size]
    assert chisquare(list(counts.values())).pvalue > 0.001


@pytest.mark.parametrize(("many", "n"), [(0, 0), (0, 3), (1, 1), (2, 5), (4, 5), (5, 5), (7, 7)])
def test_every_set_of_places_is_as_likely(many, n):
    rows = choose(torch.full((20_000, 1), many), torch.full((20_000, 1), n), 7, rng=rng(n))
    assert (rows.sum(1) == many).all() and not rows[:, n:].any()
    counts = Counter(map(tuple, rows.tolist()))
    assert len(counts) == {(2, 5): 10, (4, 5): 5}.get((many, n), 1)
    assert len(counts) == 1 or chisquare(list(counts.values())).pvalue > 0.001


def test_rows_may_differ_in_size():
    many, n = torch.tensor([[3], [1], [0]]), torch.tensor([[3], [4], [0]])
    assert choose(many, n, 4, rng=rng()).sum(1).tolist() == [3, 1, 0]


def test_same_seed_gives_the_same_order():
    first, second, third = (permutations(3, 50, rng=rng(s)) for s in (1, 1, 2))
    assert torch.equal(first, second) and not torch.equal(first, third)
