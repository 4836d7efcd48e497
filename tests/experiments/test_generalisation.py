"""Scores by length and overlaps of splits, for models whose mistakes are known."""

import pytest
import torch

from companion.experiments import build_task
from companion.experiments.generalisation import accuracy_by_length, different, splits
from companion.experiments.result import Score
from companion.experiments.task import Batch
from companion.theory.recurrent import Machine


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


class Parity(Machine):
    """Right about the parity of token `one`, but wrong from the symbol number `until` on."""

    def __init__(self, one, vocab, until):
        super().__init__(vocab, 2, size=2, bits=16)
        self.one, self.until = one, until

    def transition(self, token, state, t):
        return torch.stack([state[:, 0] ^ (token == self.one), state[:, 1] + 1], dim=1)

    def answer(self, token, state):
        return 1 - state[:, 0] ^ (state[:, 1] > self.until)


def test_a_string_is_right_only_if_all_its_answers_are():
    task = build_task("parity", 10, 2)
    found = accuracy_by_length(
        Parity(1, task.vocab, until=8), task, task.lengths(7, 10), 50, rng=rng()
    )
    assert list(found) == [7, 8, 9, 10]
    strings = {n: scores.strings.total for n, scores in found.items()}
    assert [found[n].strings.correct for n in found] == [strings[7], strings[8], 0, 0]
    assert found[8].symbols.accuracy == 1.0
    assert found[10].symbols == Score(8 * strings[10], 10 * strings[10])


def test_equal_strings_count_once():
    task = build_task("aa-star", 50, 1)
    found = accuracy_by_length(
        Parity(0, task.vocab, until=99), task, task.lengths(2, 200), rng=rng()
    )
    assert list(found) == list(range(2, 201, 2))
    assert all(scores.strings == Score(1, 1) or n > 99 for n, scores in found.items())
    assert found[200].symbols == Score(99, 200)


def test_a_length_that_is_not_there_is_refused():
    task = build_task("aa-star", 50, 1)
    with pytest.raises(ValueError, match="got lengths 3 to 3, expected one of aa-star"):
        accuracy_by_length(Parity(0, task.vocab, until=9), task, [2, 3], rng=rng())


def test_different_keeps_one_of_each():
    tokens = torch.tensor([[0, 1], [1, 1], [0, 1]])
    kept = different(Batch(tokens, tokens, tokens + 5))
    assert sorted(kept.tokens.tolist()) == [[0, 1], [1, 1]]
    assert torch.equal(kept.targets, kept.tokens + 5)


def test_overlap_is_whole_where_strings_are_few_and_small_where_there_are_many():
    few = splits(build_task("counter-3", 50, 3), 1000, 500, rng=rng())
    assert few == (16, 16, 17, 1.0)
    many = splits(build_task("parity", 50, 2), 1000, 500, rng=rng())
    assert many.bin1 == 500 and many.training > 800 and many.shared < 0.2
    short = splits(build_task("parity", 3, 2), 1000, 1500, rng=rng())
    assert short == (4 + 8, 4 + 8, 16 + 32 + 64, 1.0)
