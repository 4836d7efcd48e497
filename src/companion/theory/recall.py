"""Associative recall: nearest neighbour with exact matches (Theorem 8, Proposition 9, MQAR).

N pairs of a key and a label come first; then keys are asked for. Two layers of attention do this
with `NearestNeighbor`, since different keys are a margin of 2 / ceil(log2 |Σ|) apart. A recurrent
model needs N bits of state, one for each label.

======= ==========================================================================
N       pairs; the paper counts N points, N / 2 of them pairs
|Σ|, d' how many keys there are, and the dimension ceil(log2 |Σ|) of their vectors
a       the labels, a string of N bits; Alice's in the reductions
======= ==========================================================================

To a recurrent model a label is the token 0 or 1, and key i is the token 2 + i.
"""

import math

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.models import ModelConfig, SequenceModel, State
from companion.theory._check import check_int, check_whole
from companion.theory.communication import Channel, IndexProtocol, alice
from companion.theory.recurrent import Lookup


def key_vectors(alphabet: int) -> Float[np.ndarray, "alphabet d"]:
    """Unit vectors for |Σ| keys: their binary codes with entries +-1 / sqrt(d').

    Two of them differ in a bit or more, so their inner product is at most 1 - 2 / d'.

    >>> key_vectors(4).round(3).tolist()
    [[-0.707, -0.707], [0.707, -0.707], [-0.707, 0.707], [0.707, 0.707]]
    """
    check_int("alphabet", alphabet, low=2)
    d = (alphabet - 1).bit_length()
    return (2 * (np.arange(alphabet)[:, None] >> np.arange(d) & 1) - 1) / math.sqrt(d)


def key_margin(alphabet: int) -> float:
    """gamma = 2 / d' exactly; the paper is content with 1 / log N.

    >>> key_margin(64)
    0.3333333333333333
    """
    check_int("alphabet", alphabet, low=2)
    return 2 / (alphabet - 1).bit_length()


def mqar(
    keys: Int[np.ndarray, "B N"],
    labels: Int[np.ndarray, "B N"],
    order: Int[np.ndarray, "B N"],
    alphabet: int,
) -> tuple[Float[np.ndarray, "B points d"], Int[np.ndarray, "B all_labels"]]:
    """Multi-query recall as nearest neighbour: N pairs, then the same keys in another order.

    The labels given between the queries are the right ones, as in the task. The result goes to
    `NearestNeighbor.all_queries` with first = N, whose answers should be labels[order].
    """
    check_whole("key", keys, low=0, high=alphabet - 1)
    check_whole("label", labels, low=0, high=1)
    if any(len(set(row)) < len(row) for row in keys.tolist()):
        raise ValueError("expected different keys in a row, got one twice")
    N = keys.shape[-1]
    for row in order.tolist():
        if sorted(row) != list(range(N)):
            raise ValueError(f"expected an order of 0, ..., {N - 1}, got {row}")
    again = np.take_along_axis(keys, order, -1)
    points = key_vectors(alphabet)[np.concatenate([keys, again], -1)]
    return points, np.concatenate([labels, np.take_along_axis(labels, order, -1)], -1)[:, :-1]


class RecallRegister(Lookup):
    """Recall with N bits of state: the labels, written down.

    Its keys come in the fixed order 0, ..., N - 1, as Alice may feed them in Theorem 8, so that the
    time says whose label is read and the state is as small as the bound allows.

    >>> model = RecallRegister(N=3)
    >>> logits, state = model(torch.tensor([[2, 1, 3, 0, 4, 1, 2 + 2]]))  # labels 1, 0, 1; key 2
    >>> int(logits[0, -1].argmax()), model.state_bits(state)
    (1, 3)
    """

    def __init__(self, N: int):
        super().__init__(N, alphabet=2, size=N, bits=1)

    def transition(self, token: Int[Tensor, " B"], state: Int[Tensor, "B size"], t: int) -> Tensor:
        """The label of pair t // 2 is kept; queries and later labels change nothing."""
        pair, wants_label = divmod(t, 2)
        if pair >= self.N:
            return state
        wrong = token >= 2 if wants_label else token != 2 + pair
        if bool(wrong.any()):
            expected = "a label" if wants_label else f"key {pair}"
            raise ValueError(f"expected {expected} as token {t}, got {int(token[wrong][0])}")
        cell = torch.arange(self.size, device=state.device) == pair
        return torch.where(cell & bool(wants_label), token[:, None], state)

    def answer(self, token: Int[Tensor, " B"], state: Int[Tensor, "B size"]) -> Int[Tensor, " B"]:
        """The label of a key; after a label, the label itself."""
        cell = (token - 2).clamp(0, self.N - 1)
        return torch.where(token < 2, token, state.gather(1, cell[:, None])[:, 0])


def solve_mqar(
    model: SequenceModel, a: Int[Tensor, " N"], order: Int[Tensor, " N"]
) -> IndexProtocol:
    """Theorem 8's reduction: one message, and Bob reads off Alice's whole string.

    Alice feeds (key i, a_i) and sends her state. Bob asks for the keys in any order and feeds every
    answer back as a label. He then knows a, and so DISJ(a, b) or any other function of both.

    >>> a, order = torch.tensor([1, 0, 0, 1]), torch.tensor([2, 0, 3, 1])
    >>> played = solve_mqar(RecallRegister(4), a, order)
    >>> played.answers.tolist(), played.channel.bits
    ([1, 0, 0, 1], 4)
    """
    N = len(a)
    if sorted(order.tolist()) != list(range(N)):
        raise ValueError(f"expected an order of 0, ..., {N - 1}, got {order.tolist()}")
    if N and not 0 <= int(a.min()) <= int(a.max()) <= 1:
        raise ValueError(f"expected bits, got {a.tolist()}")
    pairs = torch.stack([2 + torch.arange(N), a], dim=-1).reshape(1, -1)
    data, bits = alice(model, pairs)
    channel = Channel()
    sent = channel.send("Alice", data, bits=bits, meaning=f"state after {N} pairs")
    said = np.empty(N, dtype=np.int64)
    with torch.no_grad():
        state = model.unpack(sent, t=2 * N, batch=1)
        for i in order.tolist():
            logits, state = model.steps(torch.tensor([[2 + i]]), state)
            said[i] = int(logits[0, 0, :2].argmax())
            _, state = model.steps(torch.tensor([[int(said[i])]]), state)
    return IndexProtocol(said, said == a.numpy(), channel)


class RecallAsLookup(SequenceModel):
    """Proposition 9's reduction: Index Lookup, played by a model of recall.

    Symbol a_i becomes the pair (key i, a_i), and index p, which comes last, the query key p. The
    state is the model's own, so all that Theorem 3 says of lookup holds of recall:
    `solve_index` and `find_collision` run on it.

    >>> from companion.theory.communication import solve_index
    >>> lookup = RecallAsLookup(RecallRegister(4), N=4)
    >>> solve_index(lookup, torch.tensor([1, 0, 0, 1]), alphabet=2).answers.tolist()
    [1, 0, 0, 1]
    """

    def __init__(self, model: SequenceModel, N: int):
        check_int("N", N, low=1, high=model.config.vocab - 2)
        super().__init__(ModelConfig(vocab=2 + N, classes=model.config.classes, max_len=N + 1))
        self.model, self.N = model, N

    def advance(self, tokens, state, read):
        """Every symbol as two tokens of the model, an index as one."""
        inner, said = State(2 * state.t, state.tensors), []
        for i, column in enumerate(tokens.unbind(-1)):
            labels = column < 2
            if bool(labels.all()) and state.t + i < self.N:
                key = torch.full_like(column, 2 + state.t + i)
                logits, inner = self.model.steps(torch.stack([key, column], -1), inner)
            elif not bool(labels.any()) and i == tokens.shape[-1] - 1:
                logits, inner = self.model.steps(column[:, None], inner)
            else:
                raise ValueError(f"expected at most N = {self.N} symbols and then one index")
            said.append(logits[:, -1])
        logits = torch.stack(said, dim=-2)
        if read is not None:
            logits = logits.gather(-2, read[..., None].expand(*read.shape, logits.shape[-1]))
        return logits, inner.tensors

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        """Those of the model after t pairs."""
        return self.model.state_shapes(2 * t)

    @property
    def dtype(self) -> torch.dtype:
        """Type of the model's logits."""
        return self.model.dtype

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return self.model.device

    def initial_state(self, batch: int) -> State:
        """The model's."""
        return self.model.initial_state(batch)

    def state_bits(self, state: State) -> int:
        """The model's, after as many pairs as there were symbols."""
        return self.model.state_bits(State(2 * state.t, state.tensors))

    def pack(self, state: State) -> bytes:
        """The model's."""
        return self.model.pack(State(2 * state.t, state.tensors))

    def unpack(self, data: bytes, *, t: int, batch: int) -> State:
        """The model's."""
        return State(t, self.model.unpack(data, t=2 * t, batch=batch).tensors)
