"""Given weights in the trained classes: right on short strings, and as automata on all strings."""

import pytest
import torch
from automata.fa.dfa import DFA

from companion.experiments import build_task
from companion.models import DeltaNet, DeltaNetNegative, LinearUnnormalised, RecurrentDelta
from companion.theory._weights import FLOATS, loud, sign_vectors, silent
from companion.theory.automata import all_words, counterexample, extract
from companion.theory.communication import Channel, one_way
from companion.theory.fast_weights import (
    LATCH,
    PARITY,
    feedback,
    latch,
    memory,
    memory_symbols,
    reflection,
    self_copy,
)

EVEN = DFA.count_mod(set(PARITY), 2, symbols_to_count={"1"})
SET = DFA(
    states={"set", "reset"},
    input_symbols=set(LATCH),
    transitions={name: {"(": "set", ")": name, "1": "reset"} for name in ("set", "reset")},
    initial_state="reset",
    final_states={"set"},
)
BUILDERS = {"reflection": reflection, "feedback": feedback, "self_copy": self_copy}
TASK = build_task("parity", 50, 2)


@pytest.fixture(params=BUILDERS.values(), ids=BUILDERS.keys())
def build(request):
    return request.param


@pytest.fixture(params=FLOATS, ids=str)
def dtype(request):
    return request.param


def long_strings(length, count=2, seed=0):
    return torch.randint(2, (count, length), generator=torch.Generator().manual_seed(seed))


@pytest.mark.claim("Parity by recurrent fast weights", "all strings, N = {N}")
@pytest.mark.claim("Parity by a reflection", "all strings, N = {N}")
@pytest.mark.parametrize("N", range(1, 13))
def test_parity_of_every_string(build, N):
    words = torch.tensor(all_words(2, N))
    said = build()(words)[0].argmax(-1)
    assert torch.equal(said, TASK.label(words) if N < 9 else 1 - words.cumsum(1) % 2)


@pytest.mark.claim(
    "Parity by recurrent fast weights", "every length by the automaton inside: {dtype}"
)
@pytest.mark.claim("Parity by a reflection", "every length by the automaton inside: {dtype}")
def test_parity_at_every_length_as_an_automaton(build, dtype):
    """Two memories, found by trying all symbols in all of them: nothing else can happen."""
    found = extract(build(dtype), PARITY, empty=True)
    assert found.memories == 2 and counterexample(found.dfa, EVEN) is None


@pytest.mark.claim("Parity by a reflection", "random strings of 10,000 symbols: {dtype}")
def test_parity_of_random_strings_of_ten_thousand_symbols(dtype):
    words = long_strings(10_000)
    logits, state = reflection(dtype)(words)
    assert torch.equal(logits.argmax(-1), 1 - words.cumsum(1) % 2)
    assert float((logits[..., 1] - logits[..., 0]).abs().min()) > 3
    assert torch.equal(state.tensors[0].flatten(1)[:, 0].long(), words.sum(1) % 2)
    assert state.tensors[0].flatten(1)[:, 1:].count_nonzero() == 0


@pytest.mark.claim("Parity by recurrent fast weights", "random strings of 2,000 symbols: {dtype}")
@pytest.mark.parametrize("build", [feedback, self_copy])
def test_parity_of_random_strings_of_two_thousand_symbols(build, dtype):
    words = long_strings(2000)
    assert torch.equal(build(dtype)(words)[0].argmax(-1), 1 - words.cumsum(1) % 2)


@pytest.mark.claim("Forgetting by the delta rule", "every length by the automaton inside: {dtype}")
def test_latch_at_every_length_as_an_automaton(dtype):
    found = extract(latch(dtype), LATCH, empty=False)
    assert found.memories == 2 and counterexample(found.dfa, SET) is None


@pytest.mark.claim("Forgetting by the delta rule", "all strings, N = {N}")
@pytest.mark.parametrize("N", range(1, 8))
def test_latch_on_every_string(N):
    words = all_words(3, N)
    said = latch()(torch.tensor(words))[0].argmax(-1).tolist()
    for word, answers in zip(words.tolist(), said, strict=True):
        for t, answer in enumerate(answers):
            recent = "".join(LATCH[c] for c in word[: t + 1]).rpartition("1")[2]
            assert answer == ("(" in recent)


@pytest.mark.claim("Forgetting by the delta rule")
def test_at_rate_one_a_value_is_replaced():
    model = latch()
    states = [model(torch.tensor([word]))[1].tensors[0] for word in ([0], [2], [0, 2], [0, 0])]
    assert torch.equal(states[0], states[3]) and torch.equal(states[1], states[2])
    assert states[0].flatten().tolist() == [1.0] + [0.0] * 63


def stored(words, keys, values):
    """At the key of each symbol: the value that came last, and the one that came most often.

    -1 where several came equally often, 0 where none came.
    """
    last, most = torch.zeros_like(words), torch.zeros_like(words)
    for i, word in enumerate(words.tolist()):
        came = [[] for _ in range(keys)]
        for t, c in enumerate(word):
            here = came[c // values if c < keys * values else c - keys * values]
            if c < keys * values:
                here.append(c % values + 1)
            best = [j for j in set(here) if here.count(j) == max(map(here.count, here))]
            last[i, t] = here[-1] if here else 0
            most[i, t] = (best or [0])[0] if len(best) < 2 else -1
    return last, most


@pytest.mark.claim("Forgetting by the delta rule", "all strings of {N} symbols, {keys} keys")
@pytest.mark.parametrize(("keys", "values", "N"), [(1, 1, 9), (1, 3, 6), (2, 2, 5), (3, 2, 4)])
def test_memory_says_what_came_last_and_a_sum_what_came_most(keys, values, N):
    words = torch.tensor(all_words(len(memory_symbols(keys, values)), N))
    last, most = stored(words, keys, values)
    assert torch.equal(memory(DeltaNet, keys, values)(words)[0].argmax(-1), last)
    said = memory(LinearUnnormalised, keys, values)(words)[0].argmax(-1)
    assert torch.equal(said[most >= 0], most[most >= 0])
    assert (values == 1) == torch.equal(last[most >= 0], most[most >= 0])


@pytest.mark.claim("Forgetting by the delta rule", "a memory of 8 keys, 300 symbols: {dtype}")
def test_memory_of_long_strings(dtype):
    symbols = len(memory_symbols(8, 4))
    words = torch.randint(symbols, (20, 300), generator=torch.Generator().manual_seed(0))
    said = memory(DeltaNet, 8, 4, dtype)(words)[0].argmax(-1)
    assert torch.equal(said, stored(words, 8, 4)[0])


@pytest.mark.claim("Theorem 2", "fast weights of chapter 9, cut after {cut} of 20")
@pytest.mark.parametrize("cut", [0, 1, 7, 20])
def test_two_parties(build, cut):
    """The protocol of chapter 3, unchanged: the state crosses as bytes."""
    model, word, wire = build(torch.float32), long_strings(20, 1), Channel()
    said = one_way(model, word[:, :cut], word[:, cut:], wire)
    assert torch.equal(said.argmax(-1), (1 - word.cumsum(1) % 2)[:, cut:])
    assert wire.bits == model.state_bits(model.initial_state(1))


def test_they_are_the_models_that_are_trained():
    assert type(latch()) is DeltaNet and type(reflection()) is DeltaNetNegative
    assert type(feedback()) is RecurrentDelta
    assert DeltaNet.mixer.largest_rate == RecurrentDelta.mixer.largest_rate == 1
    before = torch.get_rng_state()
    self_copy()
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("n", [1, 2, 4, 16])
def test_sign_vectors_become_exact_signs(n, dtype):
    rows = sign_vectors(n)
    assert (rows @ rows.T == n * torch.eye(n).int().numpy()).all()
    x = loud(dtype) * torch.tensor(rows[1:], dtype=dtype)
    if n > 1:
        assert torch.equal(torch.nn.LayerNorm(n, dtype=dtype)(x), x.sign())


def test_other_sizes_and_numbers_are_refused():
    with pytest.raises(ValueError, match="1 <= keys <= 8, got 9"):
        memory(DeltaNet, 9, 1)
    with pytest.raises(ValueError, match=r"expected a dtype of .*, got torch\.int64"):
        silent(DeltaNet, sign_vectors(2), 2, torch.int64)
