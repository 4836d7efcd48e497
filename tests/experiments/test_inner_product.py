"""Inner product mod 2: exact labels, uniform inputs, and no shortcut."""

import pytest
import torch
from scipy.stats import chisquare

from companion.experiments import InnerProduct, Run, Task
from companion.theory.average_case import one_way_ceiling
from companion.theory.problems import inner_product


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def halves(tokens):
    """x and y of examples of one length."""
    h = tokens.shape[1] // 2
    assert (tokens[:, h] == 2).all()
    return tokens[:, :h], tokens[:, h + 1 :]


@pytest.mark.parametrize("N", [2, 4, 6, 14, 50], ids="N={}".format)
@pytest.mark.parametrize("exact", [False, True], ids=["mixed", "exact"])
@pytest.mark.parametrize("batch", [0, 1, 50])
def test_task_labels_what_it_samples(N, exact, batch):
    task = InnerProduct(N)
    assert isinstance(task, Task)
    tokens, read, targets = task.sample(batch, rng=rng(), exact=exact)
    assert torch.equal(task.label(tokens), targets)
    assert tokens.shape == (batch, N + 1) and read.shape == targets.shape == (batch, 1)
    if batch:
        assert 0 <= tokens.min() and tokens.max() < task.vocab == 4
        assert not exact or (read == N).all()


@pytest.mark.parametrize("n", [1, 2, 4])
def test_labels_are_the_matrix_of_the_problem(n):
    task, matrix = InnerProduct(2 * n), torch.from_numpy(inner_product(n).matrix.astype(int))
    tokens, _, targets = task.sample(2000, rng=rng(), exact=True)
    weights = 2 ** torch.arange(n)
    rows, columns = ((side * weights).sum(1) for side in halves(tokens))
    assert torch.equal(matrix[rows, columns], targets[:, 0])


def test_all_pairs_are_equally_likely():
    x, y = halves(InnerProduct(4).sample(40_000, rng=rng(1), exact=True).tokens)
    code = (torch.cat([x, y], 1) * 2 ** torch.arange(4)).sum(1)
    assert chisquare(torch.bincount(code, minlength=16).numpy()).pvalue > 0.001


@pytest.mark.parametrize("N", [2, 4, 20])
def test_chance_is_the_share_of_zeros(N):
    task = InnerProduct(N)
    zeros = 1 - task.sample(40_000, rng=rng(2), exact=True).targets.double().mean()
    assert abs(zeros - task.chance) < 5 * 0.5 / 200
    assert task.chance <= one_way_ceiling(0, N // 2)


@pytest.mark.parametrize("kept", [0, 5, 9, 10])
def test_less_than_all_of_the_first_string_tells_next_to_nothing(kept):
    """Guessing 0 for the bits not kept is right on 1/2 + 2^-(10 - kept) / 2."""
    task = InnerProduct(20)
    tokens, _, targets = task.sample(40_000, rng=rng(3), exact=True)
    x, y = (side[:, :kept] for side in halves(tokens))
    right = ((x & y).sum(1) % 2 == targets[:, 0]).double().mean()
    assert abs(right - (0.5 + 2.0 ** (kept - 11))) < 5 * 0.5 / 200
    assert right < one_way_ceiling(kept, 10) + 5 * 0.5 / 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"N": 0}, "N=0, expected an even number, at least 2"),
        ({"N": 7}, "N=7, expected an even number, at least 2"),
        ({"N": 4, "alphabet": 3}, "alphabet=3, expected 2"),
    ],
)
def test_impossible_size_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        InnerProduct(**options)


def test_run_of_the_task_has_two_classes():
    config = Run(task="ip2", length=20, model="lstm", alphabet=2).model_config()
    assert (config.vocab, config.classes, config.max_len) == (4, 2, 21)
