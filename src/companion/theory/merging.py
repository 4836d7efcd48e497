"""Why memories that only fade cannot count modulo two: 1^n and 1^(n+1) end in one state.

Feed one symbol again and again to a layer whose state obeys S <- a S + b with 0 <= a < 1: DeltaNet
with rates up to 1 along its key, where a = 1 - beta |k|^2; Mamba, where a = exp(dt A); RetNet
without its rotation, where a = gamma. Every number in S then moves *monotonically* towards
b / (1 - a). Rounded to p bits, a monotone bounded sequence is constant from some n on: two strings
that parity tells apart end in the same bits. The layer above reads a constant input from there on,
so the argument climbs through all layers. A reflection, a = -1, alternates for ever.

======= ==========================================================================
a       factor of one step: how much of the old state is left
p       bits of a number of the state
n       symbols after which one more makes no difference
======= ==========================================================================

Rounding only what is sent (`sent`), this is a proof. Rounding after each symbol (a `Quantized`
model) it is one wherever numbers do not mix, as x -> round(a x + b) is monotone: Mamba, RetNet,
and DeltaNet with a key along an axis; for other keys it is what we measure. Factors that turn, a
complex with |a| < 1 as in DSS and in RetNet's rotation, also make S converge, so what is sent
merges, unless a limit lies between two cells; rounded at each symbol it may go in circles for ever.
"""

import math

import torch

from companion.models import Quantized, SequenceModel, State
from companion.theory._check import check_int, check_open_unit


def merge(
    model: SequenceModel, token: int, limit: int = 10_000, *, sent: int | None = None
) -> int | None:
    """The first n with equal states after n and after n + 1 times `token`; None if above `limit`.

    `sent`: p, if numbers are rounded for the comparison only. By default states are compared in all
    the bits they have. The model must not count the time: by positions, say.

    >>> from companion.theory.fast_weights import PARITY, latch, reflection
    >>> merge(latch(), 0), merge(reflection(), PARITY.index("1"), limit=1000)
    (1, None)
    """
    check_int("limit", limit, low=0)
    states = _run(model, token, limit + 2)
    key = State.keys if sent is None else in_bits(model, sent, token).pack
    before = key(next(states))
    for n, state in enumerate(states):
        after = key(state)
        if after == before:
            return n
        before = after
    return None


def in_bits(model: SequenceModel, p: int, token: int, steps: int = 100) -> Quantized:
    """`model` with p-bit numbers in its state, on a range that the first `steps` times `token`
    leave free at both ends, so that nothing is cut off."""
    check_int("steps", steps, low=1)
    largest = max(
        float(x.abs().max()) for state in _run(model, token, steps) for x in state.tensors
    )
    return Quantized(model, p, bound=1.25 * largest or 1.0)


def told_apart(a: float, p: int) -> int:
    """How many symbols p bits tell apart: S <- a S + 1 - a from 0 rests, on 2^p cells of [-1, 1].

    After n symbols S is a^n away from its limit; below half a cell, 2^-p, no cell is left to move.

    >>> told_apart(0.5, 8), told_apart(0.99, 8), told_apart(0.99, 16)
    (8, 552, 1104)
    """
    check_open_unit("a", a)
    check_int("p", p, low=1)
    return math.ceil(p / -math.log2(a))


def _run(model: SequenceModel, token: int, count: int):
    """`count` states: after 0, 1, 2, ... times the same token."""
    check_int("token", token, low=0, high=model.config.vocab - 1)
    state, tokens = model.initial_state(1), torch.full((1, 1), token, device=model.device)
    for _ in range(count):
        yield state
        with torch.no_grad():
            state = model(tokens, state)[1]
