"""Recurrent models built by hand whose state is exactly as large as the lower bound says.

They are called like every other model, so Alice, Bob and the collision finder run on them as they
do on a trained LSTM. Symbols are 0, ..., |Σ| - 1; the index token of position p is |Σ| + p.
"""

from abc import abstractmethod

import torch
from jaxtyping import Int
from torch import Tensor, nn

from companion.models import ModelConfig, SequenceModel, State
from companion.models.quantized import pack_levels, unpack_levels
from companion.models.stack import take_rows
from companion.theory._check import check_int
from companion.theory.bounds import index_first_bits


class Machine(SequenceModel):
    """A recurrent model whose state is `size` whole numbers of `bits` bits each."""

    def __init__(self, vocab: int, classes: int, size: int, bits: int):
        super().__init__(ModelConfig(vocab=vocab, classes=classes))
        self.size, self.bits = size, bits
        self.register_buffer("place", torch.empty(0))  # carries device and dtype of the logits

    @abstractmethod
    def transition(self, token: Int[Tensor, " B"], state: Int[Tensor, "B size"], t: int) -> Tensor:
        """The state after one more token, the t-th from 0."""

    @abstractmethod
    def answer(self, token: Int[Tensor, " B"], state: Int[Tensor, "B size"]) -> Int[Tensor, " B"]:
        """The symbol said after this token, in the state that it led to."""

    def advance(self, tokens, state, read):
        """Read the chunk token by token."""
        numbers, said = state.tensors[0], []
        for i in range(tokens.shape[-1]):
            numbers = self.transition(tokens[:, i], numbers, state.t + i)
            said.append(self.answer(tokens[:, i], numbers))
        answers = torch.stack(said, dim=-1)
        logits = nn.functional.one_hot(answers, self.config.classes).to(self.dtype)
        return take_rows(logits, read), (numbers,)

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        """One vector of `size` whole numbers."""
        return ((self.size,),)

    @property
    def dtype(self) -> torch.dtype:
        """Type of the logits, which are 0 and 1."""
        return self.place.dtype

    @property
    def device(self) -> torch.device:
        """Where the state lives."""
        return self.place.device

    def initial_state(self, batch: int) -> State:
        """All numbers 0."""
        return State(0, (torch.zeros(batch, self.size, dtype=torch.int64, device=self.device),))

    def state_bits(self, state: State) -> int:
        """size x bits."""
        return self.size * self.bits

    def pack(self, state: State) -> bytes:
        """Exactly batch x size x bits bits, filled up to a whole byte."""
        return pack_levels(state.tensors[0], self.bits)

    def unpack(self, data: bytes, *, t: int, batch: int) -> State:
        """The state from the bytes of `pack`."""
        return State(t, (unpack_levels(data, batch, self.size, self.bits).to(self.device),))


class Lookup(Machine):
    """A machine that reads N symbols and an index token."""

    def __init__(self, N: int, alphabet: int, size: int, bits: int):
        check_int("N", N, low=1)
        check_int("alphabet", alphabet, low=2)
        super().__init__(alphabet + N, alphabet, size, bits)
        self.N, self.alphabet = N, alphabet


class ShiftRegister(Lookup):
    """Index Lookup with N ceil(log2 |Σ|) state bits: it writes the string down.

    Theorem 3 says that N log2 |Σ| bits are needed, so for |Σ| a power of two this is
    optimal, and no cleverer recurrence exists. With fewer `cells` than N it keeps the first ones
    and says 0 for the rest.

    >>> model = ShiftRegister(N=4, alphabet=8)
    >>> logits, state = model(torch.tensor([[7, 0, 5, 2, 8 + 2]]))  # ask for position 2
    >>> int(logits[0, -1].argmax()), model.state_bits(state)
    (5, 12)
    """

    def __init__(self, N: int, alphabet: int, cells: int | None = None):
        cells = N if cells is None else cells
        check_int("cells", cells, low=1, high=N)
        super().__init__(N, alphabet, size=cells, bits=(alphabet - 1).bit_length())

    def transition(self, token: Int[Tensor, " B"], state: Int[Tensor, "B size"], t: int) -> Tensor:
        """A symbol goes to cell t; an index token changes nothing."""
        symbol = token < self.alphabet
        if t >= self.N and bool(symbol.any()):
            raise ValueError(f"expected at most N = {self.N} symbols, got one more")
        cell = torch.arange(self.size, device=state.device) == t
        return torch.where(symbol[:, None] & cell, token[:, None], state)

    def answer(self, token: Int[Tensor, " B"], state: Int[Tensor, "B size"]) -> Int[Tensor, " B"]:
        """The cell that an index token names; after a symbol, the symbol itself."""
        place = token - self.alphabet
        kept = state.gather(1, place.clamp(0, self.size - 1)[:, None])[:, 0]
        said = torch.where(place < self.size, kept, torch.zeros_like(kept))
        return torch.where(token < self.alphabet, token, said)


class IndexFirst(Lookup):
    """Lookup with the index *first*, p s_0 ... s_{N-1}: a countdown, then the symbol it caught.

    ceil(log2(N - 1 + |Σ|)) bits are enough, which is the authors' answer to a reviewer's
    question: the order of the input decides between log N and N.

    >>> model = IndexFirst(N=1000, alphabet=64)
    >>> logits, state = model(torch.tensor([[64 + 2, 7, 0, 5, 2]]))  # position 2, then the symbols
    >>> int(logits[0, -1].argmax()), model.state_bits(state)
    (5, 11)
    """

    def __init__(self, N: int, alphabet: int):
        super().__init__(N, alphabet, size=1, bits=index_first_bits(N, alphabet))

    def transition(self, token: Int[Tensor, " B"], state: Int[Tensor, "B size"], t: int) -> Tensor:
        """Below N - 1 the state counts down; N - 1 + s says that s was caught.

        The index N - 1 would be one number more; it shares that of caught symbol 0, which cannot
        occur yet when t = 1, and t is common knowledge.
        """
        is_index = token[:, None] >= self.alphabet
        if bool((is_index[:, 0] != (t == 0)).any()):
            raise ValueError("expected one index token, before the symbols")
        if t == 0:
            return token[:, None] - self.alphabet
        waiting = (state < self.N - 1) | torch.tensor(t == 1, device=state.device)
        caught = waiting & (state == 0)
        return torch.where(
            caught, self.N - 1 + token[:, None], torch.where(waiting, state - 1, state)
        )

    def answer(self, token: Int[Tensor, " B"], state: Int[Tensor, "B size"]) -> Int[Tensor, " B"]:
        """The symbol caught, or symbol 0 while there is none."""
        return (state[:, 0] - (self.N - 1)).clamp(0, self.alphabet - 1)
