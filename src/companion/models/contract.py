"""Does a model keep the contract on which every protocol of this book rests?

    logits, state = model(tokens, state)      # whole = two halves = symbol by symbol

Theorems about recurrent models bound the *state*. If answers depended on anything else, on a symbol
still to come or on an attribute that the last call left behind, Alice's message would not be what
Bob needs, and the bits that are counted would not be those that matter.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from torch import Tensor

from companion.models.base import SequenceModel, State

CLOSE = 1e-9  # of answers in double precision, where all that differs is the order of additions

LATE = 1 << 40  # symbols; a state that is still growing then grows for ever


class Contract(NamedTuple):
    """What `contract` found; differences are the largest between any two answers.

    `bits` are those of the state of one sequence in the model's own number format.
    """

    symbols: int  # length of the sequences that were read
    cuts: float  # in two pieces, against whole
    steps: float  # symbol by symbol, against whole
    rows: float  # with `read`, against whole
    bits: tuple[int, ...]  # of the state after 0, 1, 2, … symbols
    most: int | None  # bits that the state never exceeds; None if it grows for ever


@torch.no_grad()
def contract(model: SequenceModel, symbols: int = 24, batch: int = 3) -> Contract:
    """Check a model, trained or not, on random sequences, in double precision on the CPU.

    >>> from companion.models import LSTM, ModelConfig
    >>> found = contract(LSTM(ModelConfig(vocab=5, classes=2, width=8)), symbols=6)
    >>> found.bits, found.most
    ((512, 512, 512, 512, 512, 512, 512), 512)

    Raises ValueError for the first thing that is wrong, saying what it means: states of other
    shapes than `state_shapes` says, a call that changes the next one, answers that see the future
    or another sequence of the batch, answers that depend on where a sequence is cut, on which rows
    are read, or on whether the state has been packed.
    """
    if symbols < 2 or batch < 2:
        raise ValueError(f"got symbols={symbols} and batch={batch}, expected at least 2 of each")
    bits, late = tuple(_bits(model, t) for t in range(symbols + 1)), _bits(model, LATE)
    most = None if _bits(model, 2 * LATE) > late else late
    model = copy.deepcopy(model).cpu().double().eval()
    rng = torch.Generator().manual_seed(0)
    tokens = torch.randint(model.config.vocab, (batch, symbols), generator=rng)
    whole, end = model(tokens)
    shape = (batch, symbols, model.config.classes)
    if tuple(whole.shape) != shape:
        raise ValueError(f"got logits of shape {tuple(whole.shape)}, expected {shape}")
    _equal("a second call", model(tokens)[0], whole, "the first one left something behind")
    for i in range(batch):
        alone, _ = model(tokens[i : i + 1])
        _equal(f"sequence {i} alone", alone, whole[i : i + 1], "it sees the others of its batch")
    other = torch.randint(model.config.vocab, (batch, symbols), generator=rng)
    for t in range(1, symbols):
        changed, _ = model(torch.cat([tokens[:, :t], other[:, t:]], 1))
        _equal(f"the first {t} answers", changed[:, :t], whole[:, :t], "they see later symbols")
    cuts = max(_cut(model, tokens, t, whole, end) for t in range(1, symbols))
    steps, rows = _steps(model, tokens, whole), _rows(model, tokens, whole)
    return Contract(symbols, cuts, steps, rows, bits, most)


def _bits(model: SequenceModel, t: int) -> int:
    numbers = sum(torch.Size(shape).numel() for shape in model.state_shapes(t))
    return numbers * torch.finfo(model.dtype).bits


def _cut(model: SequenceModel, tokens: Tensor, t: int, whole: Tensor, end: State) -> float:
    """Read t symbols, pack the state, unpack it, and read the others."""
    batch = len(tokens)
    _, state = model(tokens[:, :t])
    _shapes(model, state, t, batch)
    rest, after = model(tokens[:, t:], model.unpack(model.pack(state), t=t, batch=batch))
    _shapes(model, after, tokens.shape[1], batch)
    why = "the state lacks something that the whole sequence knows"
    found = _equal(f"answers after a cut at {t}", rest, whole[:, t:], why)
    for i, (x, y) in enumerate(zip(after.tensors, end.tensors, strict=True)):
        _equal(f"tensor {i} of the state after a cut at {t}", x, y, why)
    return found


def _steps(model: SequenceModel, tokens: Tensor, whole: Tensor) -> float:
    return _equal("answers symbol by symbol", model.steps(tokens)[0], whole, "a chunk is not steps")


def _rows(model: SequenceModel, tokens: Tensor, whole: Tensor) -> float:
    """Answers at a few rows, in any order and repeated, from the first chunk and from a later."""
    found, half = 0.0, tokens.shape[1] // 2
    _, state = model(tokens[:, :half])
    for first, before in ((0, None), (half, state)):
        length = tokens.shape[1] - first
        read = torch.tensor([[length - 1, 0, length // 2, 0]]).expand(len(tokens), -1)
        logits, _ = model(tokens[:, first:], before, read=read)
        wanted = whole[:, first:].gather(1, read[..., None].expand(-1, -1, whole.shape[-1]))
        found = max(found, _equal("answers with read", logits, wanted, "other rows are returned"))
    return found


def _shapes(model: SequenceModel, state: State, t: int, batch: int) -> None:
    got = [tuple(x.shape) for x in state.tensors]
    expected = [(batch, *shape) for shape in model.state_shapes(t)]
    if state.t != t or got != expected:
        raise ValueError(
            f"got a state of shapes {got} after {state.t} symbols, expected {expected} after {t}, "
            "as state_shapes says"
        )


def _equal(what: str, got: Tensor, expected: Tensor, why: str) -> float:
    """The largest difference; raises if there is any to speak of."""
    if got.shape != expected.shape:
        raise ValueError(f"got {what} of shape {got.shape}, expected {expected.shape}")
    difference = float((got - expected).abs().max()) if got.numel() else 0.0
    if not difference <= CLOSE * max(1.0, float(expected.abs().max())):
        raise ValueError(f"got {what} that differ by {difference:.2g}, expected none: {why}")
    return difference
