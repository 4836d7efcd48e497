"""Dyck-(n, k): members in the language and others not, the distributions of Appendix H.1."""

from functools import cache

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from companion.experiments import Dyck, HardDyck, Run, Task, build_task
from companion.theory import dyck

SIZES = [(2, 2), (2, 1), (1, 1), (1, 3), (3, 2), (2, 5)]


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def by_stack(words, n, k):
    return torch.as_tensor(dyck.Dyck(n, k).many(words.numpy()))


@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("N", [2, 4, 6, 14, 50])
def test_members_are_members_and_others_are_none(N, n, k):
    task = Dyck(N, 2 * n, k)
    members = task.members(500, rng=rng())
    assert members.shape == (500, N) and by_stack(members, n, k).all()
    others = task.corrupt(members, rng=rng(1))
    assert others.shape == members.shape and not by_stack(others, n, k).any()


@pytest.mark.parametrize("N", [2, 10, 22, 38], ids="N={}".format)
@pytest.mark.parametrize("batch", [0, 1, 50])
@pytest.mark.parametrize("name", ["dyck", "dyck-hard"])
def test_task_labels_what_it_samples(name, batch, N):
    if name == "dyck-hard" and N < 20:
        with pytest.raises(ValueError, match=f"N={N}, expected at least 20"):
            build_task(name, N, 4)
        return
    task = build_task(name, N, alphabet=4)
    assert isinstance(task, Task)
    tokens, read, targets = task.sample(batch, rng=rng())
    assert torch.equal(task.label(tokens), targets)
    assert tokens.shape == (batch, N) == (batch, task.max_len) and (read == N - 1).all()
    assert read.shape == targets.shape == (batch, 1)
    assert tokens.dtype == read.dtype == targets.dtype == torch.int64
    assert not batch or (tokens.min() >= 0 and tokens.max() < task.vocab == 4)


@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("N", [0, 1, 2, 3, 8, 9], ids="N={}".format)
def test_fast_membership_equals_the_stack_on_any_word(N, n, k):
    words = torch.randint(2 * n, (2000, N), generator=rng(N))
    task = Dyck(max(2, N + N % 2), 2 * n, k)
    task.N = N
    assert torch.equal(task.accepts(words), by_stack(words, n, k))


@pytest.mark.parametrize("N", [4, 6, 8])
def test_fast_membership_on_all_words(N):
    words = torch.cartesian_prod(*[torch.arange(4)] * N)
    accepted = Dyck(N).accepts(words)
    assert accepted.sum() == 2 ** (N - 1) and torch.equal(accepted, by_stack(words, 2, 2))


@cache
def chance(stack: str, left: int, n: int, k: int) -> dict[str, float]:
    """Appendix H.1 read literally: every continuation of `left` brackets and its probability."""
    if left == 0:
        return {"": 1.0} if not stack else {}
    options = [c + "'" for c in stack[-1:]]
    if len(stack) < min(k, left):
        options += map(str, range(n))
    found: dict[str, float] = {}
    for bracket in options:
        after = stack[:-1] if bracket.endswith("'") else stack + bracket
        symbol = str(2 * int(bracket[0]) + bracket.endswith("'"))
        for rest, p in chance(after, left - 1, n, k).items():
            found[symbol + rest] = found.get(symbol + rest, 0) + p / len(options)
    return found


@pytest.mark.parametrize(("n", "k", "N"), [(2, 2, 6), (1, 3, 8), (3, 1, 4), (2, 3, 6)], ids=str)
def test_members_have_the_papers_distribution(n, k, N):
    expected = chance("", N, n, k)
    assert sum(expected.values()) == pytest.approx(1)
    assert len(expected) == dyck.Dyck(n, k).count(N)
    words = Dyck(N, 2 * n, k).members(60_000, rng=rng(3)).numpy()
    found = dict.fromkeys(expected, 0)
    for word, count in zip(*np.unique(words, axis=0, return_counts=True), strict=True):
        found["".join(map(str, word))] += int(count)
    wanted = 60_000 * np.array(list(expected.values()))
    assert chisquare(list(found.values()), wanted).pvalue > 0.001
    uniform = np.full(len(wanted), 60_000 / len(wanted))
    assert np.allclose(wanted, uniform) or chisquare(list(found.values()), uniform).pvalue < 1e-6


def test_half_of_the_labels_are_ones():
    positive = Dyck(20).sample(20_000, rng=rng()).targets.sum()
    assert abs(positive - 10_000) < 300  # four standard deviations


def test_others_differ_in_one_to_a_tenth_of_the_places_all_equally_likely():
    task, members = Dyck(50), Dyck(50).members(20_000, rng=rng())
    changed = task._replace(members, rng(1))[0] != members
    assert chisquare(torch.bincount(changed.sum(1), minlength=6)[1:].numpy()).pvalue > 0.001
    assert changed.sum(1).max() == 5
    per_place = changed.sum(0).numpy()
    assert chisquare(per_place).pvalue > 0.001


def test_words_that_are_members_all_the_same_keep_one_replaced_bracket():
    task, members = Dyck(20), Dyck(20).members(20_000, rng=rng())
    found, place, bracket = task._replace(members, rng(1))
    one = members.scatter(1, place, bracket)
    again = by_stack(found, 2, 2)
    assert 100 < again.sum() < 300 and not by_stack(one, 2, 2).any()
    expected = torch.where(again[:, None], one, found)
    assert torch.equal(task.corrupt(members, rng=rng(1)), expected)
    changed = (one != members).sum(1)
    assert (changed == 1).all() and ((found == one) | (one == members)).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_half_of_the_replaced_brackets_turn_and_half_change_their_kind(n):
    task = Dyck(20, 2 * n)
    members = task.members(20_000, rng=rng())
    found, *_ = task._replace(members, rng(1))
    at = members != found
    old, new = members[at], found[at]
    turned = new == old ^ 1
    assert (turned | ((new % 2 == old % 2) & (new // 2 != old // 2))).all()
    if n == 1:
        assert turned.all()
    else:
        assert chisquare(torch.bincount(turned.long()).numpy()).pvalue > 0.001
    if n == 3:
        shift = (new[~turned] // 2 - old[~turned] // 2) % 3
        assert chisquare(torch.bincount(shift)[1:].numpy()).pvalue > 0.001


@pytest.mark.parametrize("N", [20, 50])
def test_counting_is_right_on_members_and_catches_all_but_a_few_in_a_hundred_others(N):
    task = Dyck(N)
    members = task.members(10_000, rng=rng())
    assert task.balanced(members).all()
    missed = task.balanced(task.corrupt(members, rng=rng(1))).float().mean()
    assert 0.02 < missed < 0.08


SEEN = {
    "()[()][]": True,
    "(()))([]": True,  # closes what is not open
    "[)(]()()": True,  # mixes kinds
    "([)][][]": False,  # round brackets two apart
    ")(()[][]": False,  # begins by closing
    "()[]([])": True,
    "((((()))": False,  # more open than close
}


@pytest.mark.parametrize("word", SEEN)
def test_what_counting_sees(word):
    tokens = torch.tensor(dyck.Dyck().encode(word))[None]
    assert bool(Dyck(8).balanced(tokens)) == SEEN[word]


@pytest.mark.parametrize("N", [20, 50])
def test_hard_others_are_no_members_and_pass_the_counting(N):
    task = HardDyck(N)
    tokens, _, targets = task.sample(400, rng=rng())
    assert task.balanced(tokens).all() and 100 < targets.sum() < 300
    assert torch.equal(task.label(tokens), targets)


def test_same_seed_gives_the_same_words():
    first, second, third = (Dyck(20).sample(8, rng=rng(s)).tokens for s in (3, 3, 4))
    assert torch.equal(first, second) and not torch.equal(first, third)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"N": 0}, "N=0, expected an even number"),
        ({"N": 7}, "N=7, expected an even number"),
        ({"N": 6, "alphabet": 0}, "alphabet=0, expected an even number"),
        ({"N": 6, "alphabet": 5}, "alphabet=5, expected an even number"),
        ({"N": 6, "depth": 0}, "depth=0, expected at least 1"),
        ({"N": 6, "depth": 38}, "depth=38 with alphabet=4, expected .* at most 2"),
    ],
    ids=str,
)
def test_impossible_size_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Dyck(**fields)


def test_run_of_the_task_has_two_classes():
    config = Run(task="dyck", length=20, model="lstm", alphabet=4).model_config()
    assert (config.vocab, config.classes, config.max_len) == (4, 2, 20)
