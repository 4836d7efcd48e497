"""Automata from answers: exact for exact models, and refused where the answers are of none."""

import numpy as np
import pytest
import torch
from automata.fa.dfa import DFA

from companion.experiments import Dyck as DyckTask
from companion.theory.automata import counterexample, live_states, minimal
from companion.theory.dyck import Dyck
from companion.theory.observation import observe


@pytest.mark.parametrize(("n", "k", "longest"), [(1, 1, 2), (1, 2, 3), (2, 1, 2), (2, 2, 3)])
@pytest.mark.parametrize("N", [6, 8, 20])
def test_brackets_are_recovered_from_words_of_one_length(n, k, longest, N):
    dyck = Dyck(n, k)
    seen = observe(dyck.many, dyck.symbols, N, longest=longest, filler="()")
    assert counterexample(seen.automaton(), dyck.automaton()) is None
    assert len(seen.states) == live_states(dyck.automaton()) + 1
    assert not seen.wrong(dyck.automaton()).any()
    assert set(minimal(seen.automaton()).states) == set(seen.states.values())


@pytest.mark.parametrize("period", [2, 3, 5])
def test_counting_is_recovered(period):
    counted = DFA.count_mod({"0", "1"}, period, symbols_to_count={"1"})
    seen = observe(lambda words: words.sum(1) % period == 0, "01", 12, longest=period, filler="0")
    assert len(seen.states) == period
    assert counterexample(seen.automaton(), counted) is None


def test_words_are_filled_up_and_what_does_not_fit_is_not_asked():
    lengths = []

    def accepts(words):
        lengths.append(words.shape)
        return np.ones(len(words), bool)

    seen = observe(accepts, "ab", 5, longest=2, filler="ab")
    assert lengths == [(2 * 2 + 2 * 4 * 2, 5)]  # 1 + 0, 0 + 1, 1 + 2 and 2 + 1 symbols
    assert seen.accepted.sum() == 20
    assert not seen.accepted[0, 0]


def test_without_a_filler_only_whole_words_are_asked():
    seen = observe(lambda words: np.ones(len(words), bool), "ab", 4, longest=2)
    assert seen.accepted.sum() == 16 and seen.accepted[-4:, -4:].all()


def test_counting_brackets_is_told_from_matching_them():
    """The rule that tells most of the paper's non-members keeps other states apart."""
    dyck, task = Dyck(), DyckTask(20)

    def balanced(words):
        return task.balanced(torch.from_numpy(words)).numpy()

    seen = observe(balanced, dyck.symbols, 20, longest=3, filler="()")
    assert len(seen.states) > 8 and seen.wrong(dyck.automaton()).any()
    members = np.array([[(u + v) in dyck for v in seen.words] for u in seen.words])
    assert seen.accepted[members].all()


def test_shares_by_state_are_zeros_and_ones_for_an_exact_model():
    dyck = Dyck()
    seen = observe(dyck.many, dyck.symbols, 8, filler="()")
    exact = seen.by_state(dyck.automaton())
    assert set(exact) == set(dyck.automaton().states)
    assert all(set(np.unique(row)) <= {0, 1} for row in exact.values())
    assert exact["(["][seen.words.index("])")] == 1 and exact["dead"].sum() == 0

    def noisy(words):
        return dyck.many(words) ^ (words[:, -1] == 0)

    shares = observe(noisy, dyck.symbols, 8, filler="()").by_state(dyck.automaton())
    assert any(((row > 0) & (row < 1)).any() for row in shares.values()) or any(shares["dead"] > 0)


def exact_index(word):
    seen = observe(Dyck().many, Dyck().symbols, 8, filler="()")
    return seen.words.index(word)


def test_answers_of_no_automaton_are_refused():
    rng = np.random.default_rng(0)
    random = observe(lambda words: rng.random(len(words)) < 0.5, "01", 8, longest=2, filler="0")
    with pytest.raises(ValueError, match="expected"):
        random.automaton()


@pytest.mark.parametrize(
    ("period", "longest", "message"),
    [
        (3, 2, "expected a longer prefix for every row, got none for"),
        (6, 3, "expected equal ways from equal rows, got '1' and '111' by '1' from"),
    ],
    ids=["prefixes", "suffixes"],
)
def test_tables_too_small_for_the_language_are_refused(period, longest, message):
    """Three states take prefixes of 3 symbols; the rows of 1 and 11 look alike until 4 follow."""
    seen = observe(lambda x: x.sum(1) % period == 0, "01", 12, longest=longest, filler="0")
    with pytest.raises(ValueError, match=message):
        seen.automaton()


def test_words_too_short_for_the_table_are_refused():
    with pytest.raises(ValueError, match="N"):
        observe(Dyck().many, Dyck().symbols, 4, longest=3, filler="()")
