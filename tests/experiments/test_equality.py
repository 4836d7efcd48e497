"""String equality: lengths, halves, exact labels, and the shortcuts that two of the tasks allow."""

import pytest
import torch
from scipy.stats import chisquare

from companion.experiments import TASKS, EqNext, EqOne, EqRandom, Task, build_task


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def halves(tokens, separator):
    """What stands before and after the separator, in examples of one length."""
    (at,) = set((tokens == separator).nonzero()[:, 1].tolist())
    return tokens[:, :at], tokens[:, at + 1 :]


@pytest.fixture(params=["eq-random", "eq-one", "eq-ncp"])
def name(request):
    return request.param


@pytest.mark.parametrize("N", [2, 4, 6, 14, 50], ids="N={}".format)
@pytest.mark.parametrize("exact", [False, True], ids=["mixed", "exact"])
@pytest.mark.parametrize("batch", [0, 1, 50])
def test_every_task_labels_what_it_samples(name, N, exact, batch):
    task = build_task(name, N, alphabet=5)
    assert isinstance(task, Task)
    tokens, read, targets = task.sample(batch, rng=rng(), exact=exact)
    assert torch.equal(task.label(tokens), targets)
    assert tokens.shape == (batch, task.max_len) and read.shape == targets.shape
    assert tokens.dtype == read.dtype == targets.dtype == torch.int64
    if batch:
        assert 0 <= tokens.min() and tokens.max() < task.vocab == 7
        assert 0 <= targets.min() and targets.max() < task.classes
        assert 0 <= read.min() and read.max() < task.max_len
        assert not exact or (tokens != task.pad).all()


def test_same_seed_gives_the_same_data(name):
    task = build_task(name, N=20, alphabet=64)
    first = task.sample(8, rng=rng(3))
    torch.rand(5)
    assert all(torch.equal(a, b) for a, b in zip(first, task.sample(8, rng=rng(3)), strict=True))
    assert not torch.equal(first.tokens, task.sample(8, rng=rng(4)).tokens)


@pytest.mark.parametrize(
    ("N", "shortest"), [(2, 2), (4, 2), (20, 2), (22, 4), (40, 4), (50, 6), (400, 40)]
)
def test_lengths_are_even_between_a_tenth_of_N_and_N_and_equally_likely(name, N, shortest):
    task, lengths = build_task(name, N, alphabet=3), list(range(shortest, N + 1, 2))
    tokens, read, _ = task.sample(20_000, rng=rng())
    k = 2 * (tokens == task.separator).long().argmax(1)
    counts = [int((k == length).sum()) for length in lengths]
    assert sum(counts) == 20_000
    assert len(lengths) == 1 or chisquare(counts).pvalue > 0.001
    assert torch.equal((tokens != task.pad).sum(1), read.max(1).values + 1)
    assert torch.equal(read.max(1).values, k - int(name == "eq-ncp"))


def test_label_reads_the_tokens():
    task = EqRandom(N=6, alphabet=3)
    tokens = torch.tensor([[0, 2, 3, 0, 2, 4, 4], [0, 2, 3, 2, 0, 4, 4]])
    assert task.label(tokens).tolist() == [[1], [0]]
    assert EqOne(N=6, alphabet=3).label(tokens).tolist() == [[1], [0]]
    copied = torch.tensor([[0, 2, 3, 0, 4, 4], [2, 0, 1, 3, 2, 0]])
    assert EqNext(N=6, alphabet=3).label(copied).tolist() == [[0, 2, 0], [2, 0, 1]]


def test_next_symbols_are_asked_from_the_separator_on():
    task = EqNext(N=8, alphabet=5)
    tokens, read, targets = task.sample(20, rng=rng(), exact=True)
    u, v = halves(tokens, task.separator)
    assert torch.equal(u, targets) and torch.equal(v, u[:, :-1])
    assert read.tolist() == [[4, 5, 6, 7]] * 20


@pytest.mark.parametrize("alphabet", [2, 3])
def test_random_strings_are_uniform_and_half_of_the_pairs_copies(alphabet):
    """Each of the q^2 first halves is as likely; equal are 1/2 + 1/2 q^-2 of the pairs."""
    task = EqRandom(N=4, alphabet=alphabet)
    tokens, _, targets = task.sample(40_000, rng=rng(1), exact=True)
    u, v = halves(tokens, task.separator)
    cells = alphabet**2

    def code(x):
        return x[:, 0] * alphabet + x[:, 1]

    for side in (u, v):
        assert chisquare(torch.bincount(code(side), minlength=cells).numpy()).pvalue > 0.001
    assert task.chance == (1 + 1 / cells) / 2
    assert abs(targets.double().mean() - task.chance) < 5 * 0.5 / 200
    unequal = code(u)[targets[:, 0] == 0] * cells + code(v)[targets[:, 0] == 0]
    counts = torch.bincount(unequal, minlength=cells**2)
    assert chisquare(counts[counts > 0].numpy()).pvalue > 0.001 and (counts > 0).sum() == (
        cells * (cells - 1)
    )


def test_one_symbol_is_changed_at_any_position_to_any_other():
    task = EqOne(N=6, alphabet=4)
    tokens, _, targets = task.sample(30_000, rng=rng(2), exact=True)
    u, v = halves(tokens, task.separator)
    assert torch.equal((u != v).sum(1), 1 - targets[:, 0])
    assert abs(targets.double().mean() - 0.5) < 5 * 0.5 / 30_000**0.5
    at = (u != v).nonzero()[:, 1]
    change = ((v - u) % 4)[u != v] - 1
    assert chisquare(torch.bincount(3 * at + change, minlength=9).numpy()).pvalue > 0.001


def test_counting_decides_eq_one():
    """The shortcut that Appendix H.2 names: no order is needed, only how often each symbol is."""
    task = EqOne(N=20, alphabet=7)
    tokens, _, targets = task.sample(500, rng=rng(), exact=True)
    u, v = (torch.nn.functional.one_hot(side, 7).sum(1) for side in halves(tokens, 7))
    assert torch.equal((u == v).all(1).long()[:, None], targets)


@pytest.mark.parametrize("kept", [1, 3])
def test_a_few_symbols_decide_most_of_eq_random(kept):
    """Comparing c symbols errs on 2^-(c + 1) of the examples, less where nothing differs."""
    task = EqRandom(N=20)
    tokens, _, targets = task.sample(20_000, rng=rng(), exact=True)
    u, v = (side[:, :kept] for side in halves(tokens, 2))
    right = ((u == v).all(1).long()[:, None] == targets).double().mean()
    assert abs(right - (1 - 2.0 ** -(kept + 1) + 2.0**-11)) < 5 * 0.5 / 20_000**0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"N": 0}, "N=0, expected an even number, at least 2"),
        ({"N": 7}, "N=7, expected an even number, at least 2"),
        ({"N": 4, "alphabet": 1}, "alphabet=1, expected at least 2"),
    ],
)
def test_impossible_size_is_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        TASKS[name](**options)
