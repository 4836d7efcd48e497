"""Alice and Bob on real models: bits counted, bytes resumed bit for bit, collisions found."""

import itertools

import numpy as np
import pytest
import torch

from companion.models import MODELS, ModelConfig, Quantized, build
from companion.theory.bounds import longest_lookup
from companion.theory.communication import Channel, find_collision, one_way, solve_index
from companion.theory.recurrent import IndexFirst, ShiftRegister

N, ALPHABET = 12, 4


def model(name, seed=0, width=16, heads=2, longest=N):
    config = ModelConfig(
        vocab=ALPHABET + longest,
        classes=ALPHABET,
        width=width,
        depth=2,
        heads=heads,
        max_len=longest + 1,
    )
    return build(name, config, rng=torch.Generator().manual_seed(seed))


RECURRENT = [
    name for name in sorted(MODELS) if model(name).state_shapes(0) == model(name).state_shapes(N)
]


def test_the_compared_recurrent_architectures_are_all_here():
    compared = {"lstm", "mamba", "dss", "linear_transformer", "retnet", "deltanet"}
    assert compared <= set(RECURRENT) and set(MODELS) - set(RECURRENT) == {"transformer"}


def tokens(seed, length=N):
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(0, ALPHABET, (1, length), generator=rng)


def test_channel_counts_and_refuses_a_wrong_price():
    wire = Channel()
    wire.send("Alice", b"\x01\x02")
    wire.send("Bob", b"\x01", bits=1, meaning="answer")
    assert wire.bits == 17 and [m.sender for m in wire.messages] == ["Alice", "Bob"]
    for bits in (0, 9):
        with pytest.raises(ValueError, match=f"for {bits} bits, got 1"):
            wire.send("Bob", b"\x01", bits=bits)
    with pytest.raises(ValueError, match="bits >= 0, got -5"):
        wire.send("Bob", b"", bits=-5)
    with pytest.raises(TypeError, match="whole number, got True"):
        wire.send("Bob", b"\x01", bits=True)
    assert wire.bits == 17 and wire.send("Bob", b"", bits=0) == b""


@pytest.mark.claim("Theorem 2", "bytes resumed bit for bit at every cut of 13 tokens: {name}")
@pytest.mark.parametrize("name", [*RECURRENT, "transformer"])
def test_two_parties_compute_what_one_model_computes_bit_for_bit(name):
    net = model(name)
    sequence = torch.cat([tokens(0), torch.tensor([[ALPHABET + 3]])], -1)  # N symbols, an index
    whole, _ = net.steps(sequence)
    for K in range(N + 2):
        wire = Channel()
        assert torch.equal(one_way(net, sequence[:, :K], sequence[:, K:], wire), whole[:, K:])
        assert wire.bits == net.state_bits(net.steps(sequence[:, :K])[1])


@pytest.mark.claim("Theorem 2")
@pytest.mark.parametrize("name", RECURRENT)
def test_a_recurrent_message_does_not_grow_and_a_cache_does(name):
    def bits(net, K):
        wire = Channel()
        one_way(net, tokens(0, K), torch.tensor([[ALPHABET]]), wire)
        return wire.bits

    assert bits(model(name), 1) == bits(model(name), N)
    cache = [bits(model("transformer"), K) for K in (1, 2, 3)]
    assert cache == [2 * 2 * 16 * K * 32 for K in (1, 2, 3)]  # keys, values; layers; width; float32


@pytest.mark.claim("Theorem 3", "the register that meets it, |Σ| = {alphabet}")
@pytest.mark.parametrize("alphabet", [2, 3, 4])
def test_shift_register_solves_index_with_exactly_the_bits_needed(alphabet):
    for seed in range(5):
        a = torch.randint(0, alphabet, (7,), generator=torch.Generator().manual_seed(seed))
        played = solve_index(ShiftRegister(7, alphabet), a, alphabet)
        assert played.right.all() and played.answers.tolist() == a.tolist()
        assert played.channel.bits == 7 * (alphabet - 1).bit_length()
        assert len(played.channel.messages) == 1


@pytest.mark.claim("Theorem 3", "INDEX by the state of every architecture")
@pytest.mark.parametrize("name", RECURRENT)
def test_the_reduction_runs_on_every_recurrent_model(name):
    """One message, whatever is asked; its bits are those of the state, and bound the length."""
    net, bits = model(name), set()
    for seed in range(3):
        a = tokens(seed)[0]
        played = solve_index(net, a, ALPHABET)
        asked = torch.cat([a.expand(N, N), ALPHABET + torch.arange(N)[:, None]], -1)
        said = net.steps(asked)[0][:, -1, :ALPHABET].argmax(-1)
        assert played.answers.tolist() == said.tolist() and len(played.channel.messages) == 1
        bits.add(played.channel.bits)
    assert len(bits) == 1 and longest_lookup(bits.pop(), ALPHABET) > N


@pytest.mark.claim("Theorem 3", "all 2^N strings, N = {N}: distinct states, and too few of them")
@pytest.mark.parametrize("N", range(1, 14))
def test_all_strings_reach_different_states_and_with_one_cell_less_two_collide(N):
    strings = torch.tensor(list(itertools.product((0, 1), repeat=N)))
    _, state = ShiftRegister(N, 2).steps(strings)
    assert len(set(state.keys())) == 2**N
    if N > 1:
        found = find_collision(ShiftRegister(N, 2, cells=N - 1), N)
        assert found.first[:-1] == found.second[:-1] and found.position == N - 1


@pytest.mark.claim("Theorem 3", "collisions in quantised LSTMs, {bits} bits a number")
@pytest.mark.parametrize("bits", [1, 2])
def test_a_state_too_small_has_a_collision(bits):
    net = Quantized(model("lstm", width=2, heads=1, longest=20), bits)  # 2 layers x 2 x 2 numbers
    strings = find_collision(net, N=20, alphabet=2)
    assert strings.read <= 2 ** (8 * bits) + 1
    first, second, p = strings.first, strings.second, strings.position
    assert first != second and first[p] != second[p] and first[:p] == second[:p]
    pair = torch.tensor([first, second])
    packed = [net.pack(net.steps(row[None])[1]) for row in pair]
    assert packed[0] == packed[1]
    logits = net.steps(torch.cat([pair, torch.full((2, 1), 2 + p)], -1))[0]
    assert torch.equal(logits[0, -1], logits[1, -1])


def test_no_collision_is_promised_for_a_state_large_enough():
    with pytest.raises(ValueError, match=r"= 12 bits of state, got 12"):
        find_collision(ShiftRegister(12, 2), N=12)
    with pytest.raises(ValueError, match="N >= 1, got 0"):
        find_collision(ShiftRegister(12, 2), N=0)


@pytest.mark.parametrize("net", [ShiftRegister(3, 2), model("transformer")], ids=["own", "net"])
def test_the_empty_string_has_no_positions(net):
    played = solve_index(net, torch.zeros(0, dtype=torch.int64), alphabet=2)
    assert played.answers.shape == played.right.shape == (0,)
    assert played.answers.dtype == np.int64


def test_collisions_of_a_state_in_bfloat16():
    net = Quantized(model("lstm", width=2, heads=1, longest=20).bfloat16(), 1)
    found = find_collision(net, N=20, alphabet=2)
    assert found.first != found.second


def test_solve_index_refuses_symbols_outside_the_alphabet():
    with pytest.raises(ValueError, match=r"symbols 0 to 1, got \[0, 2\]"):
        solve_index(ShiftRegister(2, 2), torch.tensor([0, 2]), alphabet=2)


@pytest.mark.claim("Index-first lookup", "all inputs, N = {N}")
@pytest.mark.parametrize(("N", "alphabet"), [(1, 2), (2, 2), (5, 3), (4, 5)])
def test_index_first_needs_the_bits_stated(N, alphabet):
    """Exhaustive: right on every input, and as many states occur as the bound counts."""
    machine = IndexFirst(N, alphabet)
    strings = np.stack(np.meshgrid(*[np.arange(alphabet)] * N, indexing="ij"), -1).reshape(-1, N)
    states = set()
    for p in range(N):
        read = np.concatenate([np.full((len(strings), 1), alphabet + p), strings], 1)
        logits, _ = machine(torch.tensor(read))
        assert (logits[:, -1].argmax(-1).numpy() == strings[:, p]).all()
        _, state = machine(torch.tensor(read[:, :2]))
        states |= {int(x) for x in state.tensors[0].flatten()}
    assert len(states) == N - 1 + alphabet <= 2**machine.bits
    assert 2 ** (machine.bits - 1) < max(N - 1 + alphabet, 2)
    assert machine.state_bits(machine.initial_state(1)) == machine.bits


def test_index_first_runs_as_a_protocol_and_refuses_the_other_order():
    machine, wire = IndexFirst(1000, 64), Channel()
    symbols = torch.randint(0, 64, (1, 1000), generator=torch.Generator().manual_seed(0))
    prefix = torch.cat([torch.tensor([[64 + 700]]), symbols[:, :400]], -1)
    answers = one_way(machine, prefix, symbols[:, 400:], wire)
    assert int(answers[0, -1].argmax()) == symbols[0, 700] and wire.bits == 11
    with pytest.raises(ValueError, match="one index token, before the symbols"):
        machine(torch.tensor([[1, 64]]))


def test_shift_register_refuses_a_symbol_too_many():
    with pytest.raises(ValueError, match="at most N = 2 symbols"):
        ShiftRegister(2, 2)(torch.tensor([[0, 1, 1]]))
