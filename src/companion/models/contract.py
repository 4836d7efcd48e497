"""Does a model keep the contract on which every protocol of this book rests?

    logits, state = model(tokens, state)      # whole = two halves = symbol by symbol

Theorems about recurrent models bound the *state*. If answers depended on anything else, on a symbol
still to come or on a cache that the last call left behind, Alice's message would not be what Bob
needs, and the bits that are counted would not be those that matter. So Alice and Bob get copies of
the model here, and nothing passes between them but the bytes of a state.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from torch import Tensor

from companion.models.base import SequenceModel, State

CLOSE = 1e-9  # of answers in double precision, where all that differs is the order of additions
JITTER = 0.1  # added to all parameters, since a zero among them could hide what it multiplies
LATE, PERIOD = 1 << 40, 256  # symbols; a state is largest within a period, and ever larger or not


class Contract(NamedTuple):
    """What `contract` found; differences are the largest between any two answers.

    Bits are those of the state of one sequence, in the model's own number format, as its
    `state_shapes` says; up to `symbols` this was seen to be true.
    """

    symbols: int  # length of the sequences that were read
    cuts: float  # in two pieces, the second by another copy of the model, against whole
    steps: float  # symbol by symbol, against whole
    rows: float  # with `read`, against whole
    bits: tuple[int, ...]  # of the state after 0, 1, 2, … symbols
    most: int | None  # bits that the state never exceeds; None if it grows for ever


@torch.no_grad()
def contract(model: SequenceModel, symbols: int = 24, batch: int = 3) -> Contract:
    """Check an architecture on random sequences, in double precision on the CPU.

    What is read is a copy whose parameters are moved a little. `symbols`: at most the model's
    `max_len`, if it has position vectors.

    >>> from companion.models import LSTM, ModelConfig
    >>> found = contract(LSTM(ModelConfig(vocab=5, classes=2, width=8)), symbols=6)
    >>> found.bits, found.most
    ((512, 512, 512, 512, 512, 512, 512), 512)

    Raises ValueError for the first thing that is wrong, saying what it means: states of other
    shapes than `state_shapes` says or of another number format than the model's, a call that
    changes the next one or the state it was given, answers that see the future or another sequence
    of the batch, answers that depend on where a sequence is cut or on which rows are read.
    """
    if symbols < 2 or batch < 2:
        raise ValueError(f"got symbols={symbols} and batch={batch}, expected at least 2 of each")
    bits = tuple(_bits(model, t) for t in range(symbols + 1))
    late, later = (max(_bits(model, k * LATE + i) for i in range(PERIOD)) for k in (1, 2))
    rng = torch.Generator().manual_seed(0)
    tokens = torch.randint(model.config.vocab, (batch, symbols), generator=rng)
    model = copy.deepcopy(model).cpu().eval()
    _format(model, tokens)
    model = model.double()
    for p in model.parameters():
        p += JITTER * torch.randn(p.shape, generator=rng, dtype=p.dtype)
    fresh = copy.deepcopy(model)

    whole, end = model(tokens)
    shape = (batch, symbols, model.config.classes)
    if tuple(whole.shape) != shape:
        raise ValueError(f"got logits of shape {tuple(whole.shape)}, expected {shape}")
    _equal("answers of a second call", model(tokens)[0], whole, "the first left something behind")
    for i in range(batch):
        alone, _ = model(tokens[i : i + 1])
        why = "it sees the others of its batch"
        _equal(f"answers to sequence {i} alone", alone, whole[i : i + 1], why)
    other = torch.randint(model.config.vocab, (batch, symbols), generator=rng)
    for t in range(1, symbols):
        changed, _ = model(torch.cat([tokens[:, :t], other[:, t:]], 1))
        _equal(f"the first {t} answers", changed[:, :t], whole[:, :t], "they see later symbols")
    cuts = max(_cut(fresh, tokens, t, whole, end) for t in range(1, symbols))
    steps, rows = _steps(model, tokens, whole), _rows(fresh, tokens, whole)
    return Contract(symbols, cuts, steps, rows, bits, None if later > late else max(*bits, late))


def _bits(model: SequenceModel, t: int) -> int:
    """Of a state that needs no memory here, however many symbols it has."""
    shapes = model.state_shapes(t)
    return model.state_bits(State(t, tuple(torch.empty(1, *s, device="meta") for s in shapes)))


def _format(model: SequenceModel, tokens: Tensor) -> None:
    """The tensors of a state in the model's own number format, whose bits are counted."""
    _, state = copy.deepcopy(model)(tokens)
    for i, x in enumerate(state.tensors):
        if x.dtype != model.dtype:
            raise ValueError(f"got tensor {i} of the state in {x.dtype}, expected {model.dtype}")


def _cut(fresh: SequenceModel, tokens: Tensor, t: int, whole: Tensor, end: State) -> float:
    """Alice reads t symbols and packs her state; Bob, with a copy of his own, reads the others."""
    batch, alice, bob = len(tokens), copy.deepcopy(fresh), copy.deepcopy(fresh)
    _, state = alice(tokens[:, :t])
    _shapes(alice, state, t, batch)
    received = bob.unpack(alice.pack(state), t=t, batch=batch)
    kept = [x.clone() for x in received.tensors]
    rest, after = bob(tokens[:, t:], received)
    _shapes(bob, after, tokens.shape[1], batch)
    why = "the state lacks something that the whole sequence knows"
    found = _equal(f"answers after a cut at {t}", rest, whole[:, t:], why)
    for i, (x, y) in enumerate(zip(after.tensors, end.tensors, strict=True)):
        _equal(f"numbers in tensor {i} of the state after a cut at {t}", x, y, why)
    for i, (x, y) in enumerate(zip(received.tensors, kept, strict=True)):
        _equal(f"numbers in tensor {i} of a state once read on from", x, y, "it is written over")
    return found


def _steps(model: SequenceModel, tokens: Tensor, whole: Tensor) -> float:
    return _equal("answers symbol by symbol", model.steps(tokens)[0], whole, "a chunk is not steps")


def _rows(fresh: SequenceModel, tokens: Tensor, whole: Tensor) -> float:
    """Answers at a few rows, in any order and repeated, of a first chunk and of a second."""
    found, half = 0.0, tokens.shape[1] // 2
    model = copy.deepcopy(fresh)
    _, state = model(tokens[:, :half])
    for first, before, chunk in ((0, None, "first"), (half, state, "second")):
        length = tokens.shape[1] - first
        read = torch.tensor([[length - 1, 0, length // 2, 0]]).expand(len(tokens), -1)
        logits, _ = model(tokens[:, first:], before, read=read)
        wanted = whole[:, first:].gather(1, read[..., None].expand(-1, -1, whole.shape[-1]))
        what = f"answers at the rows read of a {chunk} chunk"
        found = max(found, _equal(what, logits, wanted, "other rows are returned"))
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
        raise ValueError(
            f"got {what} of shape {tuple(got.shape)}, expected {tuple(expected.shape)}"
        )
    if not got.numel():
        return 0.0
    difference = float((got - expected).masked_fill(got == expected, 0.0).abs().max())
    scale = max(1.0, float(expected[expected.isfinite()].abs().sum()) / expected.numel())
    if not difference <= CLOSE * scale:
        raise ValueError(f"got {what} that differ by {difference:.2g}, expected equal: {why}")
    return difference
