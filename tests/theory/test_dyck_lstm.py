"""The LSTM in fixed point: right on all words, as an automaton, or refused."""

import numpy as np
import pytest
import torch

from companion.theory.automata import all_words, counterexample, extract
from companion.theory.communication import Channel, one_way
from companion.theory.dyck import Dyck, sample
from companion.theory.dyck_lstm import RoundedLSTM
from companion.theory.dyck_networks import Elman, TransitionLSTM
from companion.theory.fixed_point import EXACT, FixedPoint, Floating

DYCK = Dyck(2, 2)
DFA_2_2 = DYCK.automaton()
CASES = {
    "f = 6": (32.0, FixedPoint(f=6, R=255)),
    "f = 8": (8.0, FixedPoint(f=8, R=64)),
    "to nearest": (12.0, FixedPoint(f=8, R=127, rounding="nearest")),
    "f = 16": (8.0, FixedPoint(f=16, R=64)),
    "bfloat16": (20.0, Floating(torch.bfloat16)),
    "float16": (8.0, Floating(torch.float16)),
}


@pytest.mark.claim("Constant-size RNN for Dyck", "an LSTM, all words to length 6: {case}")
@pytest.mark.parametrize("case", CASES)
def test_all_words_and_cells_that_stay_in_their_box(case):
    model = RoundedLSTM(DFA_2_2, "()[]", *CASES[case])
    for N in range(1, 7):
        words = all_words(4, N)
        logits, state = model(torch.tensor(words))
        assert (logits[:, -1].argmax(-1).numpy() == DYCK.many(words)).all()
    h, c = (x.numpy() for x in state.tensors)
    ideal = Elman(DFA_2_2, "()[]")(torch.tensor(words))[1].tensors[0].numpy()
    assert np.abs(h - np.tanh(1) * ideal).max() <= model.drift < 0.2
    assert -1 <= c.min() and c.max() <= 2 and model.margin > 0.2


@pytest.mark.claim(
    "Constant-size RNN for Dyck", "an LSTM, every length by the automaton inside: {case}"
)
@pytest.mark.parametrize("case", ["f = 6", "f = 8", "to nearest", "bfloat16"])
def test_as_an_automaton(case):
    """A grid leaves finitely many states, so equality holds for words of every length."""
    found = extract(RoundedLSTM(DFA_2_2, "()[]", *CASES[case]), "()[]", empty=True)
    assert counterexample(found.dfa, DFA_2_2) is None and found.memories >= 13


def test_in_float64_it_is_torchs_own_lstm():
    words = torch.tensor(sample(60, 20, rng=np.random.default_rng(0)))
    mine, torchs = (Net(DFA_2_2, "()[]") for Net in (RoundedLSTM, TransitionLSTM))
    (said, state), (logits, theirs) = mine(words), torchs(words)
    torch.testing.assert_close(said, logits, rtol=0, atol=1e-12)
    for x, y in zip(state.tensors, theirs.tensors, strict=True):
        torch.testing.assert_close(x, y[:, 0], rtol=0, atol=1e-12)
    assert mine.arithmetic is EXACT and abs(mine.drift - torchs.drift) < 1e-6


@pytest.mark.claim("Theorem 2", "an LSTM in 16-bit fixed point, cut at {K}")
@pytest.mark.parametrize("K", [0, 1, 17, 40])
def test_two_parties(K):
    model, wire = RoundedLSTM(DFA_2_2, "()[]", *CASES["f = 8"]), Channel()
    word = torch.tensor(sample(40, 1, rng=np.random.default_rng(3)))
    assert torch.equal(one_way(model, word[:, :K], word[:, K:], wire), model.steps(word)[0][:, K:])
    assert wire.bits == 2 * 12 * model.arithmetic.p == 2 * 12 * 16


@pytest.mark.parametrize(
    ("beta", "arithmetic", "message"),
    [
        (4.0, EXACT, "margin above .* with beta = 4"),
        (8.0, FixedPoint(f=4, R=64), "margin above .* with beta = 8 in FixedPoint"),
        (8.0, FixedPoint(f=8, R=16), "range R >= 48, got 16"),
        (8.0, Floating(torch.bfloat16), "margin above .*bfloat16"),
    ],
)
def test_where_nothing_is_promised_it_refuses(beta, arithmetic, message):
    with pytest.raises(ValueError, match=message):
        RoundedLSTM(DFA_2_2, "()[]", beta, arithmetic)
