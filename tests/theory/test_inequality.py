"""Theorem 11 and the register that meets it, exhaustively."""

import itertools

import numpy as np
import pytest
import torch
from automata.fa.dfa import DFA

from companion.theory.automata import (
    all_words,
    automaton_bits,
    counterexample,
    extract,
    minimal,
    residual_profile,
    state_profile,
    strict_states,
)
from companion.theory.communication import Channel, one_way
from companion.theory.inequality import (
    RotatingRegister,
    inequality,
    inequality_bits,
    strict_equality_states,
    strict_inequality_states,
)

LENGTHS = [2, 4, 6, 8, 10]


@pytest.mark.claim("Theorem 11", "the register that meets it on all words, N = {N}")
@pytest.mark.parametrize("N", [2, 4, 6, 8, 10, 12, 14, 16, 18])
def test_register_is_right_on_every_word_with_exactly_the_bits_needed(N):
    model, x = RotatingRegister(N), torch.tensor(all_words(2, N))
    half = 1 << N // 2
    first, second = torch.arange(len(x)) // half, torch.arange(len(x)) % half
    assert torch.equal(model.decide(x), first != second)
    assert torch.equal(inequality(x), first != second)
    assert model.state_bits(model.initial_state(1)) == inequality_bits(N) == N // 2


@pytest.mark.claim("Theorem 11", "all residual classes, N = {N}")
@pytest.mark.parametrize("N", LENGTHS)
def test_no_model_has_fewer_states(N):
    """Half way, all 2^(N/2) prefixes have different residuals; even a clock does not help."""
    profile = residual_profile(inequality(torch.tensor(all_words(2, N))).numpy())
    assert max(profile) == profile[N // 2] == 2 ** (N // 2)
    rising = [2**t for t in range(N // 2 + 1)]
    falling = [2**t + 1 for t in reversed(range(N // 2))]  # "still equal", or known to differ
    assert profile == rising + falling
    held = state_profile(RotatingRegister(N), N)
    assert all(a <= b for a, b in zip(profile, held, strict=True)) and max(held) == max(profile)


@pytest.mark.claim("Theorem 11", "all automata of three states, N = 4")
def test_no_automaton_of_three_states_does_length_four():
    """All 3^6 x 2^3 of them, by brute force."""
    words = all_words(2, 4)
    want = inequality(torch.tensor(words)).numpy()
    tables = np.array(list(itertools.product(range(3), repeat=6))).reshape(-1, 3, 2)
    state = np.zeros((len(tables), len(words)), int)
    for column in words.T:
        state = tables[np.arange(len(tables))[:, None], state, column[None]]
    for final in itertools.product([False, True], repeat=3):
        assert not (np.array(final)[state] == want).all(1).any()


@pytest.mark.claim("Theorem 11")
@pytest.mark.parametrize("N", LENGTHS)
def test_register_as_an_automaton_is_minimal(N):
    found = extract(RotatingRegister(N), "01", empty=False)
    assert found.memories == len(minimal(found.dfa).states) == 2 ** (N // 2)
    assert automaton_bits(found.dfa) == N // 2


@pytest.mark.claim("Theorem 11")
@pytest.mark.parametrize("K", [0, 1, 3, 6, 9, 12])
def test_first_proof_as_a_protocol(K):
    """Alice reads K symbols and sends N / 2 bits; Bob reads on and says INEQ."""
    N, rng = 12, np.random.default_rng(K)
    for _ in range(20):
        u, v = rng.integers(0, 2, (2, N // 2))
        word = torch.tensor(np.concatenate([u, v if rng.integers(2) else u]))[None]
        wire = Channel()
        whole = RotatingRegister(N)(word)[0][:, K:]
        assert torch.equal(one_way(RotatingRegister(N), word[:, :K], word[:, K:], wire), whole)
        assert wire.bits == N // 2
        if K < N:
            assert bool(whole[0, -1].argmax()) == bool(inequality(word))


@pytest.mark.parametrize("N", LENGTHS)
def test_states_if_other_lengths_are_rejected(N):
    words = all_words(2, N)
    differ = inequality(torch.tensor(words)).numpy()
    for table, formula in (
        (differ, strict_inequality_states(N)),
        (~differ, strict_equality_states(N)),
    ):
        assert strict_states(table) == formula
        listed = {"".join(map(str, word)) for word in words[table]}
        dfa = DFA.from_finite_language({"0", "1"}, listed)
        assert len(minimal(dfa).states) == formula


def test_other_lengths_are_left_open():
    """Lemma 4 asks for agreement on all words; the register agrees with INEQ on one length only."""
    strict = DFA.from_finite_language({"0", "1"}, {"01", "10"})
    found = extract(RotatingRegister(2), "01", empty=False)
    assert counterexample(found.dfa, strict) == "1"
    assert len(minimal(found.dfa).states) == 2 < strict_inequality_states(2) == 5


def test_bad_input_is_refused():
    for make in (RotatingRegister, inequality_bits, strict_inequality_states):
        with pytest.raises(ValueError, match="N >= 2, got 0"):
            make(0)
        with pytest.raises(ValueError, match="even N, got 5"):
            make(5)
    with pytest.raises(ValueError, match="even N, got 3"):
        inequality(torch.zeros(1, 3, dtype=torch.int64))
    with pytest.raises(ValueError, match="length N = 4, got 6"):
        RotatingRegister(4).decide(torch.zeros(1, 6, dtype=torch.int64))
    with pytest.raises(ValueError, match="got token 2"):
        RotatingRegister(4)(torch.tensor([[2]]))
