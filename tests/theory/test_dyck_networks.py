"""Recurrent networks with given weights: right on all short words, and as automata on all words."""

import numpy as np
import pytest
import torch
from automata.fa.dfa import DFA

from companion.models import LSTM, Quantized
from companion.theory.automata import all_words, counterexample, extract, minimal
from companion.theory.communication import Channel, one_way
from companion.theory.dyck import Dyck, sample
from companion.theory.dyck_networks import Elman, TransitionLSTM, Units
from companion.theory.fixed_point import EXACT, FixedPoint, Floating

DYCK = Dyck(2, 2)
DFA_2_2 = DYCK.automaton()
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
FLOATS = {str(dtype)[6:]: Floating(dtype) for dtype in DTYPES}
ANY = FLOATS | {"integers": FixedPoint(f=0, R=3), "8 bits": FixedPoint(f=8, R=128)}


def mistakes(model, longest):
    count = 0
    for N in range(1, longest + 1):
        words = all_words(4, N)
        said = model(torch.tensor(words))[0][:, -1].argmax(-1).numpy()
        count += int((said != DYCK.many(words)).sum())
    return count


def long_words(N=1000, count=200, seed=0):
    """Members, and members with a bracket or two replaced by another."""
    rng = np.random.default_rng(seed)
    words = sample(N, count, rng=rng)
    for i in range(0, count, 2):
        at = rng.integers(0, N, size=rng.integers(1, 3))
        words[i, at] = (words[i, at] + rng.integers(1, 4)) % 4
    return words


def right_on_long_words(model):
    words = long_words()
    said = model(torch.tensor(words))[0][:, -1].argmax(-1).bool().numpy()
    want = DYCK.many(words)
    return want.any() and not want.all() and (said == want).all()


def test_units_are_the_live_transitions():
    units = Units.of(DFA_2_2, DYCK.symbols)
    assert len(units) == 12 and units.accept.sum() == 2 and units.start.sum() == 1
    assert sorted(units.W.sum(1).tolist()) == [1] * 4 + [2] * 2 + [3] * 6
    assert (units.U.sum(1) == 1).all()
    model = Elman(DFA_2_2, DYCK.symbols)
    assert model.weight_count == 12 * 12 + 12 * 4 + 12 + 12


@pytest.mark.claim("Constant-size RNN for Dyck", "ReLU, all words to length 9")
def test_relu_on_all_words_up_to_length_nine():
    """The rival of the lower bound: 12 units, whatever the length."""
    assert mistakes(Elman(DFA_2_2, "()[]"), 9) == 0


@pytest.mark.slow
@pytest.mark.claim("Constant-size RNN for Dyck", "ReLU, all words of length 10")
def test_relu_on_all_words_of_length_ten():
    words = all_words(4, 10)
    said = Elman(DFA_2_2, "()[]")(torch.tensor(words))[0][:, -1].argmax(-1).bool().numpy()
    assert said.sum() == 512 and (said == DYCK.many(words)).all()


@pytest.mark.claim(
    "Constant-size RNN for Dyck",
    "ReLU, every length by the automaton inside: {arithmetic}",
)
@pytest.mark.parametrize("arithmetic", ANY)
def test_relu_as_an_automaton_in_every_arithmetic(arithmetic):
    model = Elman(DFA_2_2, "()[]", arithmetic=ANY[arithmetic])
    found = extract(model, "()[]", empty=True)
    assert (model.drift, model.margin) == (0, 0.5)
    assert found.memories == 13 and len(minimal(found.dfa).states) == 8
    assert counterexample(found.dfa, DFA_2_2) is None
    assert right_on_long_words(model)


SIGMOIDS = [(8.0, "float64"), (20.0, "float64"), (6.0, "float32"), (8.0, "float32")]
SIGMOIDS += [(6.0, "float16"), (20.0, "float16"), (8.0, "bfloat16"), (20.0, "bfloat16")]
SIGMOIDS += [(8.0, "8 bits")]


@pytest.mark.claim(
    "Constant-size RNN for Dyck",
    "sigmoid, every length by the automaton inside: {arithmetic}",
)
@pytest.mark.parametrize(("beta", "arithmetic"), SIGMOIDS)
def test_sigmoid_as_an_automaton(beta, arithmetic):
    """Rounding leaves finitely many states, so equality holds for words of every length."""
    model = Elman(DFA_2_2, "()[]", "sigmoid", beta, ANY[arithmetic])
    found = extract(model, "()[]", empty=True)
    assert counterexample(found.dfa, DFA_2_2) is None and found.memories >= 13
    assert right_on_long_words(model) and mistakes(model, 6) == 0


@pytest.mark.parametrize("beta", [6.0, 8.0, 10.0, 20.0])
def test_sigmoid_on_all_words_and_its_units_stay_in_their_box(beta):
    model = Elman(DFA_2_2, "()[]", "sigmoid", beta)
    assert mistakes(model, 7) == 0
    ideal, words = Elman(DFA_2_2, "()[]"), torch.tensor(all_words(4, 7))
    h, one = (m(words)[1].tensors[0] for m in (model, ideal))
    assert 0 < float((h - one).abs().max()) <= model.drift < 3e-3


@pytest.mark.claim("Constant-size RNN for Dyck", "torch's LSTM, all words to length 7: {dtype}")
@pytest.mark.parametrize("beta", [6.0, 8.0, 12.0, 20.0])
@pytest.mark.parametrize("dtype", DTYPES[:2], ids=str)
def test_lstm_on_all_words_and_its_cells_stay_in_their_box(dtype, beta):
    model = TransitionLSTM(DFA_2_2, "()[]", beta, dtype)
    assert isinstance(model.lstm, torch.nn.LSTM) and isinstance(model, LSTM)
    assert mistakes(model, 7) == 0 and right_on_long_words(model)
    ideal, words = Elman(DFA_2_2, "()[]"), torch.tensor(all_words(4, 6))
    h, one = model(words)[1].tensors[0][:, 0], ideal(words)[1].tensors[0]
    assert float((h - np.tanh(1) * one).abs().max()) <= model.drift < 0.01


@pytest.mark.parametrize(("dtype", "beta"), [(torch.float16, 6.0), (torch.bfloat16, 32.0)], ids=str)
def test_lstm_in_16_bits(dtype, beta):
    model = TransitionLSTM(DFA_2_2, "()[]", beta, dtype)
    assert mistakes(model, 6) == 0 and right_on_long_words(model)


@pytest.mark.claim("Lemma 4", "the LSTM for Dyck-(2,2), 3, 4 and 8 bits a number")
def test_bits_that_a_quantised_lstm_needs():
    """Four bits a number do; with three, the extracted automaton shows a shortest mistake."""
    model = TransitionLSTM(DFA_2_2, "()[]")
    found = {
        bits: extract(Quantized(model, bits, bound=1.25), "()[]", empty=True) for bits in (3, 4, 8)
    }
    assert [counterexample(x.dfa, DFA_2_2) is None for x in found.values()] == [False, True, True]
    assert found[4].memories == found[8].memories == 13
    word = counterexample(found[3].dfa, DFA_2_2)
    tokens = torch.tensor(DYCK.encode(word))[None]
    said = Quantized(model, 3, bound=1.25)(tokens)[0][0, -1].argmax()
    assert bool(said) != (word in DYCK)


@pytest.mark.claim("Theorem 2")
@pytest.mark.parametrize(
    "model",
    [
        Elman(DFA_2_2, "()[]"),
        Elman(DFA_2_2, "()[]", "sigmoid", arithmetic=FLOATS["bfloat16"]),
        Elman(DFA_2_2, "()[]", arithmetic=FixedPoint(f=1, R=3)),
        TransitionLSTM(DFA_2_2, "()[]", dtype=torch.float32),
    ],
    ids=["relu", "sigmoid", "integers", "lstm"],
)
def test_two_parties_with_a_contiguous_split(model):
    """A message of fixed size: the odd/even split that is hard for one layer is no matter here."""
    word = torch.tensor(sample(40, 1, rng=np.random.default_rng(3)))
    for K in (0, 1, 17, 40):
        wire = Channel()
        assert torch.equal(
            one_way(model, word[:, :K], word[:, K:], wire), model.steps(word)[0][:, K:]
        )
        assert wire.bits == model.state_bits(model.initial_state(1))
    with pytest.raises(ValueError, match="bytes"):
        model.unpack(b"\0", t=1, batch=1)


def test_any_other_regular_language():
    """Units for an automaton to whose first state nothing returns: words with an a first."""
    dfa = DFA.from_prefix({"a", "b", "c"}, "a", contains=True)
    units = Units.of(dfa, "abc")
    assert len(units) == 1 + 1 + 3 and units.names[0] == ("", "")
    words = all_words(3, 5)
    for model in (Elman(dfa, "abc"), Elman(dfa, "abc", "sigmoid"), TransitionLSTM(dfa, "abc")):
        said = model(torch.tensor(words))[0][:, -1].argmax(-1).numpy()
        assert (said == (words[:, 0] == 0)).all()
    found = extract(Elman(dfa, "abc"), "abc", empty=False)
    assert found.memories == 6 and counterexample(found.dfa, dfa) is None


def test_building_a_model_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    TransitionLSTM(DFA_2_2, "()[]")
    assert torch.equal(before, torch.get_rng_state())


def test_where_nothing_is_promised_the_networks_refuse():
    with pytest.raises(ValueError, match=r"margin above .* with sigmoid with beta = 2 in"):
        Elman(DFA_2_2, "()[]", "sigmoid", 2.0)
    with pytest.raises(ValueError, match=r"beta = 6 in Floating.*bfloat16"):
        Elman(DFA_2_2, "()[]", "sigmoid", 6.0, FLOATS["bfloat16"])
    with pytest.raises(ValueError, match=r"beta = 8 in torch\.bfloat16"):
        TransitionLSTM(DFA_2_2, "()[]", 8.0, torch.bfloat16)
    with pytest.raises(OverflowError, match="R = 4, got 16"):
        Elman(DFA_2_2, "()[]", "sigmoid", 8.0, FixedPoint(f=8, R=4))
    with pytest.raises((ValueError, TypeError), match="'tanh'"):  # the import hook is faster
        Elman(DFA_2_2, "()[]", "tanh")
    with pytest.raises(ValueError, match="the empty one"):
        Elman(DFA.empty_language({"a"}), "a")
    assert Elman(DFA_2_2, "()[]", arithmetic=EXACT).margin == 0.5
