"""Automata: minimal ones, those inside recurrent models, and counts of residuals."""

import itertools

import numpy as np
import pytest
import torch
from automata.fa.dfa import DFA

from companion.models import LSTM, LinearTransformer, ModelConfig, Quantized, Transformer, build
from companion.theory.automata import (
    Acceptor,
    Automaton,
    all_words,
    automaton_bits,
    counterexample,
    extract,
    live_states,
    minimal,
    residual_profile,
    state_profile,
    strict_states,
)
from companion.theory.dyck import Dyck
from companion.theory.recurrent import ShiftRegister

DYCK = Dyck(2, 2).automaton()


def automaton(table, final):
    """States 0, 1, ...; table[q][token]."""
    return DFA(
        states=set(range(len(table))),
        input_symbols={"0", "1"},
        transitions={q: dict(zip("01", row, strict=True)) for q, row in enumerate(table)},
        initial_state=0,
        final_states=set(final),
    )


def random_automaton(rng, n):
    return automaton(rng.integers(0, n, (n, 2)).tolist(), np.flatnonzero(rng.integers(0, 2, n)))


def language(dfa, longest=5):
    """What it says of all short words: enough to tell automata of at most 3 states apart."""
    words = ["".join(w) for n in range(longest + 1) for w in itertools.product("01", repeat=n)]
    return tuple(dfa.accepts_input(word) for word in words)


class DepthOnly(Acceptor):
    """Brackets by their depth alone, which two bits hold: 3 is dead."""

    def __init__(self):
        super().__init__(vocab=4, size=1, bits=2)

    def transition(self, token, state, t):
        depth = state + 1 - 2 * (token[:, None] % 2)
        return torch.where((state == 3) | (depth < 0) | (depth > 2), 3, depth)

    def answer(self, token, state):
        return (state[:, 0] == 0).long()


def test_all_words_in_order():
    assert all_words(3, 0).shape == (1, 0) and all_words(1, 3).tolist() == [[0, 0, 0]]
    assert all_words(3, 4).tolist() == [list(w) for w in itertools.product(range(3), repeat=4)]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_minimal_keeps_the_language_and_names_states_by_words(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        dfa = random_automaton(rng, n)
        small = minimal(dfa)
        assert counterexample(dfa, small) is None and len(small.states) <= n
        for q in small.states:
            assert list(small.read_input_stepwise(q, ignore_rejection=True))[-1] == q


def test_counterexample_is_a_shortest_one():
    rng = np.random.default_rng(0)
    for _ in range(40):
        first, second = random_automaton(rng, 3), random_automaton(rng, 3)
        words = ["".join(w) for n in range(6) for w in itertools.product("01", repeat=n)]
        differ = [w for w in words if first.accepts_input(w) != second.accepts_input(w)]
        assert counterexample(first, second) == (differ[0] if differ else None)


def test_live_states_of_the_empty_language():
    assert live_states(DFA.empty_language({"0"})) == 0
    assert live_states(DFA.universal_language({"0"})) == 1


@pytest.mark.claim("Lemma 4", "every one-bit machine, every minimal automaton of three states")
def test_every_one_bit_machine_against_every_minimal_automaton_of_three_states():
    """All 2^(1 x 1)-state automata: none has the language of a minimal one with 3 states."""
    one_bit = {
        language(automaton(table, final))
        for table in itertools.product(itertools.product(range(2), repeat=2), repeat=2)
        for final in ((), (0,), (1,), (0, 1))
    }
    rng, tried = np.random.default_rng(0), 0
    for _ in range(300):
        dfa = random_automaton(rng, 3)
        if len(minimal(dfa).states) == 3:
            assert automaton_bits(dfa) == 2 and language(dfa) not in one_bit
            tried += 1
        else:
            assert automaton_bits(dfa) <= 1 and language(dfa) in one_bit
    assert tried > 50


@pytest.mark.claim("Lemma 4", "automata of {n} states, met to the bit")
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9])
def test_bound_is_met_by_a_machine(n):
    rng = np.random.default_rng(n)
    for _ in range(10):
        dfa = random_automaton(rng, n)
        model = Automaton(dfa, "01")
        assert model.state_bits(model.initial_state(1)) == automaton_bits(dfa)
        found = extract(model, "01", empty=dfa.accepts_input(""))
        assert counterexample(found.dfa, dfa) is None
        assert found.memories == len(minimal(dfa).states)


@pytest.mark.claim("Lemma 4", "automata inside quantised LSTMs, {bits} bits a number")
@pytest.mark.parametrize("bits", [1, 2, 3])
def test_a_quantised_lstm_is_an_automaton_no_larger_than_its_state(bits):
    for seed in range(4):
        config = ModelConfig(vocab=2, classes=2, width=2, heads=1)
        model = Quantized(build("lstm", config, rng=torch.Generator().manual_seed(seed)), bits)
        found = extract(model, "01", empty=False)
        assert found.memories <= 2 ** model.state_bits(model.initial_state(1))
        assert automaton_bits(found.dfa) <= model.state_bits(model.initial_state(1)) + 1
        words = all_words(2, 8)
        said = model.steps(torch.tensor(words))[0][:, -1].argmax(-1).bool().tolist()
        assert said == [found.dfa.accepts_input("".join(map(str, w))) for w in words]


def test_shortest_mistake_of_a_machine_that_only_counts():
    found = extract(DepthOnly(), "()[]", empty=True)
    assert found.memories == 4 and counterexample(found.dfa, DYCK) == "(]"


def test_extraction_refuses_what_is_no_automaton():
    config = ModelConfig(vocab=2, classes=2, width=4, heads=1, max_len=8)
    with pytest.raises(ValueError, match="state of fixed size"):
        extract(Transformer(config), "01", empty=True)
    with pytest.raises(ValueError, match="same step at all times"):
        extract(LinearTransformer(config), "01", empty=True)
    with pytest.raises(ValueError, match="at most limit = 50 states"):
        extract(LSTM(config), "01", empty=True, limit=50)
    with pytest.raises(ValueError, match="2 different symbols, got '00'"):
        extract(LSTM(config), "00", empty=True)
    with pytest.raises(ValueError, match="2 classes, got 3"):
        extract(ShiftRegister(2, 3), "01234", empty=True)
    with pytest.raises(ValueError, match="each symbol of"):
        Automaton(DYCK, "()")


@pytest.mark.parametrize("N", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("q", [2, 3])
def test_residuals_against_the_minimal_automaton_of_the_words(N, q):
    """For words of one length, automata-lib builds the minimal automaton from the list."""
    rng, symbols = np.random.default_rng(N), "abc"[:q]
    for density in (0.1, 0.5, 0.9):
        table = rng.random(q**N) < density
        words = ["".join(symbols[s] for s in w) for w in all_words(q, N)[table]]
        dfa = DFA.from_finite_language(set(symbols), set(words))
        assert strict_states(table, q) == len(minimal(dfa).states)


def test_residual_profile_bounds_machines_that_know_the_time():
    """Bracket words of length 8: at no time has the automaton fewer states than residuals."""
    words = all_words(4, 8)
    needed = residual_profile(Dyck().many(words), q=4)
    model = Automaton(DYCK, "()[]")
    assert all(a <= b for a, b in zip(needed, state_profile(model, 8), strict=True))
    assert max(needed) == 6 and needed[0] == 1 and needed[-1] == 2
    assert state_profile(model, 3) == [1, 3, 6, 3]


def test_tables_of_a_wrong_size_are_refused():
    for table in (np.zeros(0, bool), np.zeros(6, bool)):
        with pytest.raises(ValueError, match=f"got {len(table)}"):
            residual_profile(table)
    with pytest.raises(ValueError, match="q >= 2, got 1"):
        residual_profile(np.zeros(1, bool), q=1)
