"""A sequence model is something that reads a sequence in pieces.

Every model is called as `logits, state = model(tokens, state)`. Feeding a sequence whole, in two
halves, or symbol by symbol gives the same answer, so what Alice sends to Bob in the one-way
protocol (Theorems 2 and 3) is `model.pack(state)` and what Bob does is `model(tokens, state)`.

| symbol | meaning                                            |
|--------|----------------------------------------------------|
| B, T   | sequences in the batch, symbols in this chunk      |
| R      | positions of the chunk whose answers are wanted    |
| t      | symbols read before this chunk                     |
| D, H   | width and heads; a head has D / H coordinates      |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.models.positions import INIT_STD, POSITIONS, VECTORLESS


class State(NamedTuple):
    """All that a model remembers of the symbols it has read.

    `t` counts these symbols. Both parties of a protocol know it, so it costs no bits. Each of
    `tensors` has a leading batch axis (B, …).
    """

    t: int
    tensors: tuple[Tensor, ...]

    def keys(self) -> list[bytes]:
        """The numbers of each sequence as bytes, equal where the numbers are; -0.0 counts as 0.0.

        >>> State(1, (torch.tensor([[0.0], [-0.0], [1.0]]),)).keys()
        [b'\\x00\\x00\\x00\\x00', b'\\x00\\x00\\x00\\x00', b'\\x00\\x00\\x80?']
        """
        flat = [(x.detach().cpu() + 0).flatten(1).contiguous() for x in self.tensors]
        raw = [x.view(torch.uint8).numpy() for x in flat]  # bytes, as numpy has no bfloat16
        return [b"".join(x[i].tobytes() for x in raw) for i in range(len(self.tensors[0]))]


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of a model.

    >>> ModelConfig(vocab=85, classes=64)  # doctest: +ELLIPSIS
    ModelConfig(vocab=85, classes=64, width=64, depth=1, heads=4, max_len=512, ...)

    Raises ValueError for a size that is not positive, a width that the heads do not divide,
    positions of an unknown name, or tied index tokens that lie outside the vocabulary or have no
    position vector.
    """

    vocab: int  # different tokens; Index Lookup: |Σ| + N + 1
    classes: int  # different answers; Index Lookup: |Σ| = 64
    width: int = 64  # D; paper: 64, 128, 256, 512
    depth: int = 1  # layers; paper: 1, 2, 4, 6 (LSTM: up to 3)
    heads: int = 4  # H, attention and its linear forms only; paper: 4, 8
    max_len: int = 512  # rows of the position table; paper: at most 400 symbols and a query
    positions: str = "learned"  # paper: absolute encodings; models that read in order ignore this
    tied_from: int | None = None  # from this token on, token is position vector (Theorem 1)
    embedding_std: float = INIT_STD  # of token and position vectors; an LSTM's tokens have 1
    state_size: int | None = None  # N, per coordinate: DSS, complex (None: 64), and Mamba (16)

    def __post_init__(self) -> None:
        for name in ("vocab", "classes", "width", "depth", "heads", "max_len"):
            if getattr(self, name) < 1:
                raise ValueError(f"got {name}={getattr(self, name)}, expected at least 1")
        if self.width % self.heads:
            raise ValueError(
                f"got width={self.width} and heads={self.heads}, expected heads to divide width"
            )
        if self.positions not in POSITIONS:
            known = ", ".join(POSITIONS)
            raise ValueError(f"got positions={self.positions!r}, expected one of: {known}")
        if not 0 < self.embedding_std < math.inf:
            raise ValueError(f"got embedding_std={self.embedding_std}, expected a positive number")
        if self.state_size is not None and self.state_size < 1:
            raise ValueError(f"got state_size={self.state_size}, expected at least 1")
        if self.tied_from is not None:
            self._check_tied(self.tied_from)

    def _check_tied(self, first: int) -> None:
        if not 0 <= first < self.vocab:
            raise ValueError(f"got tied_from={first}, expected a token of vocab={self.vocab}")
        if self.positions in VECTORLESS:
            raise ValueError(
                f"got tied_from={first} and positions={self.positions!r}, expected position vectors"
            )
        if self.vocab - first > self.max_len:
            raise ValueError(
                f"got {self.vocab - first} tied tokens (vocab={self.vocab}, tied_from={first}), "
                f"expected at most max_len={self.max_len} position vectors"
            )


class SequenceModel(nn.Module, ABC):
    """A map (tokens, state) → (logits, state) for which reading in pieces changes nothing.

    A subclass says how large its state is (`state_shapes`) and how it reads a chunk (`advance`);
    checks, empty chunks, packing and step mode are the same for all and live here.
    """

    members: tuple[int, ...] = ()  # (P,) if this is a `Population`: then all axes have P in front

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config

    @abstractmethod
    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        """Shapes, without the batch axis, of the state's tensors after `t` symbols."""

    @abstractmethod
    def advance(
        self, tokens: Tensor, state: State, read: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Read a chunk of at least one symbol: logits of the rows `read` (all if None) and the
        tensors of the new state. Called by `forward`, which has checked the arguments."""

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def initial_state(self, *batch: int) -> State:
        """The state before the first symbol: zeros."""
        shapes = self.state_shapes(0)
        options = {"dtype": self.dtype, "device": self.device}
        return State(0, tuple(torch.zeros(*batch, *shape, **options) for shape in shapes))

    def forward(
        self,
        tokens: Int[Tensor, "*P B T"],
        state: State | None = None,
        read: Int[Tensor, "*P B R"] | None = None,
    ) -> tuple[Float[Tensor, "*P B rows classes"], State]:
        """Logits (B, T, classes) after each symbol, and the state after the last one.

        With `read`, the positions inside this chunk whose logits are wanted, the logits are
        (B, R, classes) and the last layer computes only these rows.

        Raises TypeError for tokens that are not integers; ValueError for tokens of another rank,
        outside the vocabulary or beyond `max_len`, for `read` outside the chunk, and for a state
        of another batch size. Values are compared on the CPU only: on a GPU that would halt the
        stream at every step, so there call `check` once on data you do not trust.
        """
        if tokens.is_cpu:
            self.check(tokens, read)
        *batch, length = tokens.shape
        state = self.initial_state(*batch) if state is None else state
        found = list(state.tensors[0].shape[: len(batch)]) if state.tensors else batch
        if found != batch:
            raise ValueError(f"got a state of {found[-1]} sequences and tokens of {batch[-1]}")
        if length == 0:
            return torch.zeros(
                *batch, 0, self.config.classes, dtype=self.dtype, device=self.device
            ), state
        logits, tensors = self.advance(tokens, state, read)
        return logits, State(state.t + length, tensors)

    def check(self, tokens: Tensor, read: Tensor | None = None) -> None:
        """Refuse tokens, or positions to read, that this model cannot take."""
        for name, values in (("tokens", tokens), ("read", read)):
            if values is None:
                continue
            if values.dtype not in (torch.int64, torch.int32):
                raise TypeError(f"got {name} of {values.dtype}, expected torch.int64")
            if values.shape[:-2] != self.members or values.ndim < 2:
                expected = ", ".join(
                    [*map(str, self.members), "B", "T" if name == "tokens" else "R"]
                )
                raise ValueError(
                    f"got {name} of shape {tuple(values.shape)}, expected ({expected})"
                )
        _check_range("token", tokens, self.config.vocab, "vocab")
        if read is not None:
            _check_range("read position", read, tokens.shape[-1], "length of the chunk")

    def steps(
        self, tokens: Int[Tensor, "B T"], state: State | None = None
    ) -> tuple[Float[Tensor, "B T classes"], State]:
        """The same map, symbol by symbol: what Alice and Bob run.

        Each symbol takes the same operations on the same shapes however the sequence is divided,
        so a run that was interrupted, packed and resumed is equal bit by bit.
        """
        logits, state = self(tokens[:, :0], state)
        answers = [logits]
        for i in range(tokens.shape[-1]):
            logits, state = self(tokens[:, i : i + 1], state)
            answers.append(logits)
        return torch.cat(answers, dim=-2), state

    def state_bits(self, state: State) -> int:
        """Bits of the state of one sequence."""
        numbers = sum(math.prod(x.shape[1:]) for x in state.tensors)
        return numbers * torch.finfo(self.dtype).bits

    def pack(self, state: State) -> bytes:
        """The state as raw little-endian numbers, tensor after tensor, without any header."""
        flat = [x.detach().cpu().contiguous().view(-1) for x in state.tensors]
        return b"".join(x.view(torch.uint8).numpy().tobytes() for x in flat)

    def unpack(self, data: bytes, *, t: int, batch: int) -> State:
        """The state of `batch` sequences after `t` symbols, from the bytes of `pack`.

        Raises ValueError if the number of bytes is not the one that such a state has.
        """
        shapes = [(batch, *shape) for shape in self.state_shapes(t)]
        sizes = [math.prod(shape) * self.dtype.itemsize for shape in shapes]
        _check_bytes(data, sum(sizes), t, batch)
        raw = torch.empty(len(data), dtype=torch.uint8)
        raw.numpy()[:] = memoryview(data)
        tensors = []
        for shape, part in zip(shapes, raw.split(sizes), strict=True):
            # Each tensor gets memory of its own: kernels may add in another order where the
            # address is aligned in another way, and the resumed run must be bitwise equal.
            tensors.append(part.clone().view(self.dtype).view(shape).to(self.device))
        return State(t, tuple(tensors))


def _check_range(what: str, values: Tensor, end: int, name: str) -> None:
    if values.numel() == 0:
        return
    low, high = (int(x) for x in values.aminmax())
    if low < 0 or high >= end:
        wrong = low if low < 0 else high
        raise ValueError(f"got {what} {wrong}, expected 0 to {end - 1} ({name} = {end})")


def _check_bytes(data: bytes, expected: int, t: int, batch: int) -> None:
    if len(data) != expected:
        raise ValueError(
            f"got {len(data)} bytes, expected {expected} for {batch} sequence(s) after {t} symbols"
        )


MODELS: dict[str, type[SequenceModel]] = {}


def register(name: str) -> Callable[[type[SequenceModel]], type[SequenceModel]]:
    """Class decorator that makes a model known to `build`, to runs and to sweeps by `name`.

    Raises ValueError if another class has the name already.
    """

    def add(model: type[SequenceModel]) -> type[SequenceModel]:
        known = MODELS.get(name)
        # A notebook cell that is run twice defines its class twice; that is not a conflict.
        if known is not None and known.__qualname__ != model.__qualname__:
            raise ValueError(f"got {name!r} for {model.__name__}, it already names {known!r}")
        MODELS[name] = model
        return model

    return add


def build(name: str, config: ModelConfig, *, rng: torch.Generator) -> SequenceModel:
    """A new model whose parameters are drawn from `rng`, a generator on the CPU, and from it alone.

    >>> config = ModelConfig(vocab=85, classes=64, max_len=21)
    >>> model = build("lstm", config, rng=torch.Generator().manual_seed(0))
    >>> tokens = torch.tensor([[3, 1, 4, 1, 5]])
    >>> whole, _ = model(tokens)
    >>> _, state = model(tokens[:, :2])
    >>> rest, _ = model(tokens[:, 2:], state)
    >>> bool(torch.allclose(whole[:, 2:], rest, atol=1e-6)), model.state_bits(state)
    (True, 4096)

    Raises ValueError for an unknown name.
    """
    if name not in MODELS:
        raise ValueError(f"got model {name!r}, expected one of: {', '.join(sorted(MODELS))}")
    # PyTorch's layers initialise themselves from the global generator and take no other, so `rng`
    # stands in for it during construction. Plain layers of a reader's model are then seeded too.
    saved = torch.get_rng_state()
    torch.set_rng_state(rng.get_state())
    try:
        model = MODELS[name](config)
        rng.set_state(torch.get_rng_state())
    finally:
        torch.set_rng_state(saved)
    return model
