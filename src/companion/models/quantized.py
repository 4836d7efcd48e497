"""A recurrent model whose state is m numbers of p bits, to the letter of Theorem 3.

A trained model keeps its state in float32; what it can tell apart in practice is unknown. Here each
number of the state is rounded to one of 2^p values after every symbol, so the state has at most
2^(m·p) values, fits in m·p bits, and the theorem's counting applies as it stands.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from companion.models.base import SequenceModel, State, _check_bytes, _check_range
from companion.models.stack import take_rows


class Quantized(SequenceModel):
    """`model` with every number of its state rounded, after every symbol, to `bits` bits.

    The 2^bits levels are the midpoints of as many equal cells of [-bound, bound]; a number outside
    takes the outermost level. Rounding has no gradient: this is for running, not for training.

    >>> from companion.models import LSTM, ModelConfig
    >>> model = Quantized(LSTM(ModelConfig(vocab=3, classes=2, width=4)), bits=3, bound=1.0)
    >>> _, state = model(torch.tensor([[0, 1, 2]]))
    >>> model.state_bits(state), len(model.pack(state))
    (24, 3)

    `bits`: p, from 1 to 16. `bound`: the largest magnitude represented; the h of an LSTM needs 1.

    Raises ValueError for bits or bound out of range, and for a model whose state grows with the
    length (a Transformer): such a model has no m.
    """

    def __init__(self, model: SequenceModel, bits: int, bound: float = 1.0) -> None:
        super().__init__(model.config)
        if not 1 <= bits <= 16:
            raise ValueError(f"got bits={bits}, expected 1 to 16")
        if not 0 < bound < math.inf:
            raise ValueError(f"got bound={bound}, expected a positive number")
        if model.state_shapes(0) != model.state_shapes(1):
            before, after = model.state_shapes(0), model.state_shapes(1)
            raise ValueError(
                f"got a model whose state grows, from {before} to {after}; expected a fixed size"
            )
        self.model, self.bits, self.bound = model, bits, bound

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return self.model.state_shapes(t)

    def initial_state(self, batch: int) -> State:
        state = self.model.initial_state(batch)
        return State(state.t, tuple(self._value(self._level(x)) for x in state.tensors))

    def advance(
        self, tokens: Tensor, state: State, read: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        answers = []
        for i in range(tokens.shape[-1]):
            logits, state = self.model(tokens[..., i : i + 1], state)
            state = State(state.t, tuple(self._value(self._level(x)) for x in state.tensors))
            answers.append(logits)
        return take_rows(torch.cat(answers, dim=-2), read), state.tensors

    def state_bits(self, state: State) -> int:
        return self.bits * sum(math.prod(x.shape[1:]) for x in state.tensors)

    def pack(self, state: State) -> bytes:
        """Exactly batch · m · p bits, sequence after sequence, filled up to a whole byte."""
        levels = torch.cat([self._level(x).flatten(1) for x in state.tensors], dim=1)  # (B, m)
        return pack_levels(levels, self.bits)

    def unpack(self, data: bytes, *, t: int, batch: int) -> State:
        shapes = self.state_shapes(t)
        sizes = [math.prod(shape) for shape in shapes]
        _check_bytes(data, math.ceil(batch * sum(sizes) * self.bits / 8), t, batch)
        levels = unpack_levels(data, batch, sum(sizes), self.bits)
        parts = zip(levels.split(sizes, dim=1), shapes, strict=True)
        return State(t, tuple(self._value(x.reshape(batch, *shape)) for x, shape in parts))

    def _level(self, x: Tensor) -> Tensor:
        """The number, 0 to 2^bits - 1, of the cell that x lies in."""
        if not bool(x.isfinite().all()):
            raise ValueError("got a state with a number that is not finite, expected finite ones")
        cells = 2**self.bits
        return ((x / self.bound + 1) * (cells / 2)).floor().clamp(0, cells - 1).to(torch.int64)

    def _value(self, level: Tensor) -> Tensor:
        """The midpoint of a cell."""
        step = 2 * self.bound / 2**self.bits
        return ((level + 0.5) * step - self.bound).to(self.device, self.dtype)


def pack_levels(levels: Int[Tensor, "B m"], bits: int) -> bytes:
    """B·m whole numbers below 2^bits as B·m·bits bits, filled up to a whole byte.

    >>> pack_levels(torch.tensor([[5, 1]]), bits=3).hex()  # 101 100, lowest bit first, and 00
    'b0'

    Raises TypeError for levels that are not whole numbers, ValueError for one outside the range.
    """
    if levels.is_floating_point() or levels.is_complex():
        raise TypeError(f"got levels of {levels.dtype}, expected whole numbers")
    _check_range("level", levels, 1 << bits, "2^bits")
    digits = levels[..., None] >> torch.arange(bits, device=levels.device)
    return np.packbits((digits & 1).to(torch.uint8).cpu().numpy()).tobytes()


def unpack_levels(data: bytes, batch: int, m: int, bits: int) -> Int[Tensor, "B m"]:
    """The numbers from the bytes of `pack_levels`; refuses another number of bytes."""
    count = batch * m * bits
    if len(data) != math.ceil(count / 8):
        raise ValueError(f"got {len(data)} bytes, expected {math.ceil(count / 8)} for {count} bits")
    flat = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=count)
    digits = torch.from_numpy(flat).view(batch, m, bits).to(torch.int64)
    return (digits << torch.arange(bits)).sum(-1)
