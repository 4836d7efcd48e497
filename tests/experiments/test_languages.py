"""Formal languages: every string up to length 8, distributions, bins, refusals."""

from collections import Counter
from itertools import product
from math import comb

import pytest
import torch
from automata.fa.dfa import DFA
from automata.fa.nfa import NFA
from scipy.stats import chisquare

from companion.experiments import TASKS, Run, Task, build_task
from companion.experiments.counter_languages import bracket_prefixes, bracket_words
from companion.experiments.languages import Language
from companion.experiments.task import NOTHING, answered, exams

LANGUAGES = sorted(name for name, task in TASKS.items() if issubclass(task, Language))
REGULAR = {"parity": "(0*10*1)*0*", "aa-star": "(aa)*", "abab-star": "(abab)*"}
KINDS = {"dyck-1": ("()",), "reset-dyck-1": ("()",), "shuffle-2": ("()", "[]")}


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def encode(task, words):
    return torch.tensor([[task.symbols.index(c) for c in word] for word in words])


def decode(task, tokens):
    return ["".join((task.symbols + "_")[t] for t in row).rstrip("_") for row in tokens.tolist()]


def brackets(word, kinds):
    """Open brackets of each kind after each prefix; None from where one closes too many."""
    depth, found = dict.fromkeys(kinds, 0), []
    for c in word:
        for kind in kinds:
            depth[kind] += (c == kind[0]) - (c == kind[1])
        if c == "1":
            depth = dict.fromkeys(kinds, 0)
        if min(depth.values()) < 0:
            return None
        found.append(tuple(depth.values()))
    return found


def expected(name, word):
    """The answers after all prefixes, found otherwise than in the package; None if ill-formed."""
    if name in REGULAR:
        dfa = DFA.from_nfa(NFA.from_regex(REGULAR[name]))
        return [int(dfa.accepts_input(word[: t + 1])) for t in range(len(word))]
    if name in KINDS:
        found = brackets(word, KINDS[name])
        return found and [sum(2**i * (d > 0) for i, d in enumerate(depths)) for depths in found]
    answers, symbols = [], TASKS[name].symbols
    for t in range(1, len(word) + 1):
        n = max(word[:t].count("a"), 1)
        if not "".join(c * n for c in symbols).startswith(word[:t]):
            return None
        block = (t - 1) // n
        last = t == n * (block + 1)
        answers.append(0 if block == 0 else block + last)
    return answers


def members(name, n):
    """All strings that the task may draw at length n, by filtering all words."""
    words = map("".join, product(TASKS[name].symbols, repeat=n))
    if name == "parity":
        return list(words)
    kept = [word for word in words if (found := expected(name, word)) is not None and found]
    if name == "reset-dyck-1":
        return [w for w in kept if w.count("1") == 1 and expected(name, w)[-1] == 0]
    return [w for w in kept if expected(name, w)[-1] == final(name)]


def final(name):
    """The answer after a member."""
    return 1 if name in REGULAR else 0 if name in KINDS else len(TASKS[name].symbols)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("name", LANGUAGES)
def test_both_ways_to_answer_agree_with_an_automaton_or_a_counter_on_all_strings(name, n):
    task = build_task(name, 8, len(TASKS[name].symbols))
    words = ["".join(word) for word in product(task.symbols, repeat=n)]
    if n == 8 and len(task.symbols) == 4:
        words = words[::17]
    right = {word: answers for word in words if (answers := expected(name, word)) is not None}
    assert right
    tokens, wanted = encode(task, right), torch.tensor(list(right.values()))
    assert torch.equal(task.label(tokens), wanted)
    assert torch.equal(task._answers(tokens), wanted)
    assert 0 <= wanted.min() and wanted.max() < task.classes


@pytest.mark.parametrize("name", LANGUAGES)
def test_all_members_up_to_length_8_are_drawn_and_nothing_else(name):
    task, found = build_task(name, 8, len(TASKS[name].symbols)), {}
    for n in task.lengths(2, 8):
        found[n] = Counter(decode(task, task.draw(20_000, n, n, rng=rng(n)).tokens))
        wanted = set(members(name, n))
        assert set(found[n]) <= wanted
        assert len(wanted) > 1000 or set(found[n]) == wanted
    assert len(found) == 8 // task.period - (task.period == 1)


@pytest.mark.parametrize("name", ["parity", "dyck-1", "shuffle-2"])
@pytest.mark.parametrize("n", [2, 4, 6])
def test_strings_of_one_length_are_equally_likely(name, n):
    task = build_task(name, 8, len(TASKS[name].symbols))
    wanted = members(name, n)
    found = Counter(decode(task, task.draw(40_000, n, n, rng=rng(n)).tokens))
    assert len(wanted) == 1 or chisquare([found[word] for word in wanted]).pvalue > 0.001


def test_the_reset_stands_anywhere_and_what_follows_it_is_uniform():
    task = build_task("reset-dyck-1", 9, 3)
    words = decode(task, task.draw(60_000, 9, 9, rng=rng()).tokens)
    places = Counter(word.index("1") for word in words)
    assert sorted(places) == [0, 2, 4, 6, 8] and chisquare(list(places.values())).pvalue > 0.001
    after = Counter(word[3:] for word in words if word.index("1") == 2)
    assert len(after) == 5 and chisquare(list(after.values())).pvalue > 0.001
    before = Counter(word[:4] for word in words if word.index("1") == 4)
    assert len(before) == 6 and chisquare(list(before.values())).pvalue > 0.001


def test_distribution_tests_can_fail():
    counts = torch.bincount(torch.randint(7, (40_000,), generator=rng()) % 3).numpy()
    assert chisquare(counts).pvalue < 1e-6


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("N", [4, 7, 8, 50], ids="N={}".format)
@pytest.mark.parametrize("batch", [0, 1, 200])
def test_task_labels_what_it_samples(name, N, batch):
    task = build_task(name, N, len(TASKS[name].symbols))
    assert isinstance(task, Task) and task.max_len == 4 * N
    tokens, read, targets = task.sample(batch, rng=rng(), exact=True)
    assert torch.equal(task.label(tokens), targets)
    assert tokens.shape == read.shape == targets.shape == (batch, N)
    assert tokens.dtype == read.dtype == targets.dtype == torch.int64
    assert torch.equal(answered(targets), tokens != task.pad)
    assert (read == torch.arange(N)).all()
    if batch:
        assert 0 <= tokens.min() and tokens.max() < task.vocab == task.alphabet + 1
        assert targets.max() < task.classes and targets.min() >= NOTHING


@pytest.mark.parametrize("name", LANGUAGES)
def test_bins_have_all_their_lengths_equally_likely(name):
    task = build_task(name, 50, len(TASKS[name].symbols))
    further = exams(task)
    assert list(further) == ["bin1", "bin2", "bin3"]
    spans = [(task, (2, 50)), (further["bin1"], (51, 100)), (further["bin3"], (151, 200))]
    for drawn, (low, high) in spans:
        tokens, _, targets = drawn.sample(10_000, rng=rng(1))
        assert tokens.shape == (10_000, high)
        counts = Counter((tokens != task.pad).sum(1).tolist())
        assert sorted(counts) == list(task.lengths(low, high))
        assert chisquare(list(counts.values())).pvalue > 0.001
        assert torch.equal(drawn.label(tokens[:100]), targets[:100])


@pytest.mark.parametrize("name", LANGUAGES)
def test_all_answers_occur_and_chance_is_the_most_frequent(name):
    task = build_task(name, 50, len(TASKS[name].symbols))
    targets = task.sample(2000, rng=rng(5)).targets
    counts = torch.bincount(targets[answered(targets)], minlength=task.classes)
    assert (counts > 0).all()
    assert task.chance == pytest.approx(float(counts.max() / counts.sum()), abs=0.02)


def test_same_seed_gives_the_same_strings():
    for name in LANGUAGES:
        task = build_task(name, 30, len(TASKS[name].symbols))
        first, second, third = (task.sample(20, rng=rng(s)).tokens for s in (3, 3, 4))
        assert torch.equal(first, second) and not torch.equal(first, third)


@pytest.mark.parametrize("m", [0, 1, 2, 3, 4, 5])
def test_bracket_words_are_those_of_catalan_in_equal_numbers(m):
    opens = bracket_words(torch.full((30_000, 1), m), 6, rng=rng(m))
    assert opens.shape == (30_000, 12)
    height = (2 * opens[:, : 2 * m].long() - 1).cumsum(1)
    assert (height >= 0).all() and (height[:, -1:] == 0).all()
    counts = Counter(map(tuple, opens[:, : 2 * m].tolist()))
    assert len(counts) == (1, 1, 2, 5, 14, 42)[m]
    assert len(counts) == 1 or chisquare(list(counts.values())).pvalue > 0.001


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6])
def test_bracket_prefixes_are_all_walks_that_stay_above_minus_one_in_equal_numbers(n):
    opens = bracket_prefixes(torch.full((30_000, 1), n), 7, rng=rng(n))
    assert opens.shape == (30_000, 7)
    counts = Counter(map(tuple, opens[:, :n].tolist()))
    assert all((torch.tensor(word).long() * 2 - 1).cumsum(0).min() >= 0 for word in counts if word)
    assert len(counts) == comb(n, n // 2)
    assert len(counts) == 1 or chisquare(list(counts.values())).pvalue > 0.001


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"alphabet": 64}, "got alphabet=64 for .*, expected [1-4]$"),
        ({"N": 1}, "got N=1 for .*, expected at least [234]$"),
        ({"bin": 4}, "got bin=4, expected 0 to 3"),
    ],
    ids=["alphabet", "N", "bin"],
)
def test_impossible_size_is_refused(name, more, message):
    with pytest.raises(ValueError, match=message):
        TASKS[name](**{"N": 50, **more})


def test_lengths_without_a_string_are_refused():
    with pytest.raises(ValueError, match="got lengths 9 to 11, expected one of abab-star"):
        build_task("abab-star", 50, 2).draw(3, 9, 11, rng=rng())


def test_run_of_a_language_has_its_classes():
    config = Run(task="counter-3", length=50, model="lstm", alphabet=3).model_config()
    assert (config.vocab, config.classes, config.max_len) == (4, 4, 200)
