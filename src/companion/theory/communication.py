"""Alice and Bob, one way: what a state costs (Theorems 2 and 3, Proposition 9, Appendix C.1).

Alice holds the first symbols of an input, Bob the rest. She runs a model on hers and sends its
state; he goes on from there. So a model with an m p-bit state is a protocol of m p bits, and no
model can do with less than the problem needs. Everything crosses a `Channel`, which counts.

======= ==========================================================================
INDEX   Alice has a string of N symbols, Bob a position i, and Bob must say a_i
m p     bits of the model's state: m numbers of p bits, over all layers
B       the same, when a model's state is measured rather than assumed
======= ==========================================================================
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from companion.models import SequenceModel, State
from companion.theory._check import check_int

_LARGEST_ENUMERATION = 1 << 22  # strings that the collision finder is willing to read


class Message(NamedTuple):
    """What one party sent."""

    sender: str
    data: bytes
    bits: int
    meaning: str


@dataclass
class Channel:
    """A wire that keeps a transcript and counts its bits.

    >>> wire = Channel()
    >>> wire.send("Alice", b"\\x05", bits=3, meaning="a number below 8")
    b'\\x05'
    >>> wire.bits
    3
    """

    messages: list[Message] = field(default_factory=list)

    def send(
        self, sender: str, data: bytes, *, bits: int | None = None, meaning: str = ""
    ) -> bytes:
        """Carry `data` and charge `bits` for it, all its bytes unless the last is part filled."""
        bits = 8 * len(data) if bits is None else bits
        check_int("bits", bits, low=0)
        if not 8 * len(data) - 8 < bits <= 8 * len(data):
            needed = math.ceil(bits / 8)
            raise ValueError(f"expected {needed} bytes for {bits} bits, got {len(data)}")
        self.messages.append(Message(sender, bytes(data), bits, meaning))
        return bytes(data)

    @property
    def bits(self) -> int:
        """Bits sent so far, by both parties."""
        return sum(message.bits for message in self.messages)


def alice(model: SequenceModel, prefix: Int[Tensor, "1 K"]) -> tuple[bytes, int]:
    """Read the prefix symbol by symbol; the state as bytes, and how many of its bits count."""
    with torch.no_grad():
        state = model.steps(prefix)[1]
    return model.pack(state), model.state_bits(state)


def bob(
    model: SequenceModel, data: bytes, t: int, suffix: Int[Tensor, "1 S"]
) -> Float[Tensor, "1 S classes"]:
    """Rebuild the state from bytes and read on; t, the number of symbols read, is known to both."""
    with torch.no_grad():
        return model.steps(suffix, model.unpack(data, t=t, batch=1))[0]


def one_way(
    model: SequenceModel,
    prefix: Int[Tensor, "1 K"],
    suffix: Int[Tensor, "1 S"],
    channel: Channel | None = None,
) -> Float[Tensor, "1 S classes"]:
    """Theorem 2: the model's answers on the suffix, computed by two parties and one message.

    Both run the model symbol by symbol, so the answers equal those of an undivided run bit for bit.

    >>> from companion.models import ModelConfig, build
    >>> model = build("lstm", ModelConfig(vocab=4, classes=2), rng=torch.Generator().manual_seed(0))
    >>> wire, tokens = Channel(), torch.tensor([[0, 1, 1, 0, 3]])
    >>> answers = one_way(model, tokens[:, :4], tokens[:, 4:], wire)
    >>> torch.equal(answers, model.steps(tokens)[0][:, 4:]), wire.bits  # 2 x 64 numbers x 32 bits
    (True, 4096)
    """
    channel = Channel() if channel is None else channel
    data, bits = alice(model, prefix)
    t = prefix.shape[-1]
    sent = channel.send("Alice", data, bits=bits, meaning=f"state after {t} symbols")
    return bob(model, sent, t, suffix)


class IndexProtocol(NamedTuple):
    """INDEX, played with a model that was made for Index Lookup."""

    answers: Int[np.ndarray, " N"]  # Bob's, for every position he may be given
    right: Shaped[np.ndarray, " N"]  # whether a_i was said
    channel: Channel


def solve_index(model: SequenceModel, a: Int[Tensor, " N"], alphabet: int) -> IndexProtocol:
    """Theorem 3's reduction: Alice feeds a, Bob feeds the index token, |Σ| + i (from 0).

    Alice sends once. Bob tries every i on the same message, as he could hold any of them.

    >>> from companion.theory.recurrent import ShiftRegister
    >>> played = solve_index(ShiftRegister(5, 2), torch.tensor([1, 0, 0, 1, 1]), alphabet=2)
    >>> played.answers.tolist(), played.channel.bits
    ([1, 0, 0, 1, 1], 5)
    """
    if len(a) and not 0 <= int(a.min()) <= int(a.max()) < alphabet:
        raise ValueError(f"expected symbols 0 to {alphabet - 1}, got {a.tolist()}")
    channel = Channel()
    data, bits = alice(model, a[None])
    sent = channel.send("Alice", data, bits=bits, meaning=f"state after {len(a)} symbols")
    said = [
        int(bob(model, sent, len(a), torch.tensor([[alphabet + i]]))[0, 0, :alphabet].argmax())
        for i in range(len(a))
    ]
    answers = np.array(said, dtype=np.int64)  # of this type even if there are none
    return IndexProtocol(answers, answers == a.numpy(), channel)


class Collision(NamedTuple):
    """Two strings that leave a model in one state, and a position where they differ.

    Asked for that position the model gives one answer to both, so it is wrong on one of them.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    position: int
    answer: int
    read: int  # strings read until the collision


def find_collision(model: SequenceModel, N: int, alphabet: int = 2) -> Collision:
    """Theorem 3 as a search: strings of length N are read until two share a state.

    With fewer than N log2 |Σ| state bits B the pigeonhole principle promises a pair among the
    first 2^B + 1 strings. A larger state is refused: nothing is promised there.
    """
    check_int("N", N, low=1)
    check_int("alphabet", alphabet, low=2)
    bits = model.state_bits(_read(model, np.zeros((1, N), int)))
    if 2**bits >= alphabet**N:
        needed = N * math.log2(alphabet)
        raise ValueError(f"expected under N log2 |Σ| = {needed:g} bits of state, got {bits}")
    check_int("strings to read", 2**bits + 1, low=1, high=_LARGEST_ENUMERATION)
    seen: dict[bytes, tuple[int, ...]] = {}
    strings = itertools.product(range(alphabet), repeat=N)
    while block := list(itertools.islice(strings, 1 << 12)):
        state = _read(model, np.array(block))
        for string, key in zip(block, state.keys(), strict=True):
            other = seen.setdefault(key, string)
            if other != string:
                return _collision(model, other, string, alphabet, len(seen) + 1)
    raise AssertionError("distinct strings outnumber states, yet no two shared one")


def _read(model: SequenceModel, strings: np.ndarray) -> State:
    with torch.no_grad():
        return model.steps(torch.as_tensor(strings, device=model.device))[1]


def _collision(model, first, second, alphabet: int, read: int) -> Collision:
    p = next(i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
    asked = torch.tensor([[alphabet + p]] * 2, device=model.device)
    with torch.no_grad():
        logits = model.steps(asked, _read(model, np.array([first, second])))[0]
    answers = logits[:, 0, :alphabet].argmax(-1)
    if answers[0] != answers[1]:
        raise AssertionError("equal states, different answers: the model keeps more than it packs")
    return Collision(first, second, p, int(answers[0]), read)
