"""Looks inside: the layer's own attention, known answers, and models trained in seconds."""

import math
from functools import partial

import numpy as np
import pytest
import torch

from companion.experiments import IndexLookup, Run, train
from companion.experiments.inspection import (
    accepts,
    attention_weights,
    cosines,
    pointing,
    pointing_of_theorem_1,
    position_vectors,
    right_by_place,
)
from companion.models import ModelConfig, build
from companion.theory.automata import Automaton, all_words, counterexample
from companion.theory.dimensions import welch
from companion.theory.dyck import Dyck
from companion.theory.dyck_networks import TransitionLSTM
from companion.theory.index_lookup import IndexLookup as Construction
from companion.theory.observation import observe
from companion.theory.vectors import random


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def transformer(**more):
    return build("transformer", ModelConfig(vocab=9, classes=4, width=16, **more), rng=rng())


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("T", [1, 2, 7])
def test_weights_are_a_causal_softmax_that_gives_the_layers_output(heads, depth, T):
    model = transformer(heads=heads, depth=depth)
    tokens = torch.randint(9, (3, T), generator=rng(1))
    read = torch.arange(T).repeat(3, 1)
    weights = attention_weights(model, tokens, read)
    assert weights.shape == (3, heads, T, T) and (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, heads, T))
    assert (weights == weights.tril()).all()
    last = attention_weights(model, tokens, read[:, -1:])
    torch.testing.assert_close(last, weights[:, :, -1:])


def test_right_answers_are_counted_by_place():
    """One question at a time, of a model that knows some answers by chance."""
    task = IndexLookup(N=5, alphabet=2)
    config = ModelConfig(vocab=task.vocab, classes=2, width=16, max_len=task.max_len)
    model = build("transformer", config, rng=rng())
    right = right_by_place(model, task, strings=40, rng=rng(1))
    strings = torch.randint(2, (40, 5), generator=rng(1))
    for p in range(5):
        tokens = torch.cat([strings, torch.full((40, 1), 2 + p)], 1)
        answers = model(tokens)[0][:, -1].argmax(-1)
        assert right[p] == (answers == strings[:, p]).double().mean()
    assert len(set(right)) > 1


def test_weights_that_do_not_explain_the_layer_are_refused():
    tokens, read = torch.zeros(1, 3, dtype=torch.int64), torch.tensor([[2]])
    linear = build("linear_transformer", ModelConfig(vocab=9, classes=4), rng=rng())
    with pytest.raises(ValueError, match="got a layer of LinearAttention, expected one of Att"):
        attention_weights(linear, tokens, read)
    rotary = transformer(positions="rotary")
    with torch.no_grad():
        for parameter in rotary.parameters():
            parameter.normal_(generator=rng(2))
    with pytest.raises(ValueError, match="expected plain attention"):
        attention_weights(rotary, torch.tensor([[3, 1, 2]]), read)


def hand_built(N, alphabet, sharpness):
    """One head that compares one-hot positions; the index token is a position, as in Theorem 1."""
    config = ModelConfig(
        vocab=alphabet + N + 1, classes=alphabet, width=N + 3, heads=1, max_len=N + 1,
        positions="one-hot", tied_from=alphabet,
    )  # fmt: skip
    model = build("transformer", config, rng=rng())
    mix, eye = model.blocks[0].mix, torch.eye(N + 3)
    with torch.no_grad():
        model.embedding.token.weight.zero_()
        model.embedding.position.table.copy_(100 * torch.eye(N + 1, N + 3))
        mix.query.weight.copy_(sharpness * eye)
        mix.key.weight.copy_(eye)
        mix.query.bias.zero_()
        mix.key.bias.zero_()
    return model


@pytest.mark.parametrize(("N", "sharpness"), [(1, 1.0), (4, 0.0), (4, 1.5), (9, 3.0)])
def test_pointing_of_a_layer_built_by_hand(N, sharpness):
    """The norm makes equal positions meet in D and different ones in -D / (D - 1); here the index
    token's own key is that of the position asked for, so the two share the weight."""
    model, D = hand_built(N, 5, sharpness), N + 3
    found = pointing(model, IndexLookup(N, 5), strings=3, rng=rng())
    same, other = (math.exp(sharpness * x / math.sqrt(D)) for x in (D, -D / (D - 1)))
    expected = np.full((N, 1, N + 1), other)
    expected[np.arange(N), :, np.arange(N)] = expected[:, :, N] = same
    expected /= expected.sum(-1, keepdims=True)
    np.testing.assert_allclose(found.weights, expected, atol=1e-4)
    np.testing.assert_allclose(found.best, same / (2 * same + (N - 1) * other), atol=1e-4)


@pytest.mark.claim("Theorem 1")
@pytest.mark.parametrize("N", [1, 2, 13, 50])
def test_theorem_1_points_where_it_is_asked(N):
    found = pointing_of_theorem_1(N, 6)
    assert found.weights.shape == (N, 1, N + 1)
    assert (found.weights[:, 0].argmax(-1) == np.arange(N)).all()
    assert found.best.min() == pytest.approx(Construction.build(N, 6).weight)
    assert found.best.min() > 0.75


def test_a_trained_layer_points_where_it_is_asked():
    run = Run(task="index-lookup", length=6, model="transformer", alphabet=8, width=32)
    run = run.replace(learning_rate=5e-3, steps=600, check_every=50, evaluate=500)
    before = pointing(
        build("transformer", run.model_config(), rng=rng()), run.build_task(), rng=rng()
    )
    model, result = train(run, progress=False)
    found = pointing(model, run.build_task(), rng=rng())
    assert result.best.accuracy > 0.97
    assert before.best.max() < 0.3 and found.best.mean() > 0.6


def test_position_vectors_are_the_table_and_their_cosines_those_of_all_pairs():
    model = transformer(positions="random", max_len=12)
    table = position_vectors(model, 10)
    assert table.shape == (10, 16) and np.allclose(np.abs(table), np.abs(table[0, 0]))
    c = cosines(table)
    assert c.shape == (45,) and np.abs(c).max() >= welch(10, 16)
    T = random(7, 32, seed=1)
    assert np.abs(cosines(T.table().astype(float))).max() == pytest.approx(T.coherence().absolute)
    assert not cosines(np.eye(4)).any()


def test_a_model_without_positions_has_no_table():
    with pytest.raises(ValueError, match="without a position table"):
        position_vectors(transformer(positions="none"), 3)


def test_accepts_is_the_answer_after_the_last_symbol():
    dyck = Dyck()
    model = Automaton(dyck.automaton(), dyck.symbols)
    words = all_words(4, 6)
    assert (accepts(model, words) == dyck.many(words)).all() and len(words) > 4000


def test_states_of_an_lstm_built_by_hand_are_those_of_the_minimal_automaton():
    dyck = Dyck()
    lstm = TransitionLSTM(dyck.automaton(), dyck.symbols, beta=8.0)
    seen = observe(partial(accepts, lstm), dyck.symbols, 20, filler="()")
    assert counterexample(seen.automaton(), dyck.automaton()) is None and len(seen.states) == 8


@pytest.mark.slow
def test_a_trained_lstm_keeps_apart_about_the_states_of_the_minimal_automaton():
    """Each mistake may add a row, or two that go different ways."""
    dyck = Dyck()
    run = Run(task="dyck", length=20, model="lstm", alphabet=4, width=32, learning_rate=1e-2)
    model, result = train(run.replace(schedule="cosine", steps=800), progress=False)
    seen = observe(partial(accepts, model), dyck.symbols, 20, filler="()")
    wrong = int(seen.wrong(dyck.automaton()).sum())
    assert result.best.accuracy > 0.99 and wrong < 100
    assert 8 <= len(seen.states) <= 8 + 2 * wrong
    if wrong == 0:
        assert counterexample(seen.automaton(), dyck.automaton()) is None
