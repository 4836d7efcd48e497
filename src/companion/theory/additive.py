"""What a sum can hold: linear Transformers as recurrent networks, their counters and their limits.

The fast weights of a linear Transformer are S = sum_j phi(k_j) v_j^T, and with a normaliser also
z = sum_j phi(k_j). That is a recurrent network of fixed size; it counts; and it forgets the order.

======= ==========================================================================
S, z    fast weights and normaliser, as in `companion.models.linear_transformer`
k       kinds of brackets; symbols are "()", "()[]", ... in this order
c_i     brackets of kind i that are open: opened less closed
t       symbols read, so that z = t where phi(k_j) = 1
p       bits of a float's significand: its whole numbers are exact up to 2^p
======= ==========================================================================

*Order.* In one layer without positions a key or value depends on its symbol alone, so S and z are
sums over the *multiset* of symbols, and the last output depends on that and on the last symbol.
Two strings with both in common get one answer, whatever the weights (`SAME_SUM`).

*Counting.* With phi(k) = 1 and values +1 and -1 the sum is c, and c > 1/2 asks whether a bracket is
open: right at every length, as long as nothing is nested more than 2^p deep. With the normaliser
the layer holds c / t instead. A threshold below 1 / t has to know the length, and the step from 0
to 1 / t is lost beside a number of size 1 as soon as t reaches 2^p, however shallow the string.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.models import LinearTransformer, LinearUnnormalised, SequenceModel, State
from companion.theory._check import check_int
from companion.theory._weights import loud, sign_vectors, silent, use_one_key, write

BRACKETS = "()[]{}<>"
SAME_SUM = ("(1()", "1(()")  # the same symbols, ")" last; after the "1" one has closed all, one not


class Forms(NamedTuple):
    """Logits of one linear Transformer, computed in three ways."""

    parallel: Float[Tensor, "B T classes"]  # one masked T x T matrix in the last layer
    chunked: Float[Tensor, "B T classes"]  # matrices within chunks, S and z between them
    recurrent: Float[Tensor, "B T classes"]  # S and z alone, symbol by symbol

    @property
    def difference(self) -> float:
        """The largest difference between any two forms."""
        return max(float((self.parallel - x).abs().max()) for x in (self.chunked, self.recurrent))


def three_forms(model: SequenceModel, tokens: Int[Tensor, "B T"]) -> Forms:
    """The same answers as attention, in chunks, and as a recurrent network.

    >>> from companion.models import ModelConfig, build
    >>> config = ModelConfig(vocab=3, classes=2, width=8)
    >>> model = build("linear_transformer", config, rng=torch.Generator().manual_seed(0)).double()
    >>> three_forms(model, torch.arange(150)[None] % 3).difference < 1e-12
    True
    """
    rows = torch.arange(tokens.shape[-1], device=tokens.device).expand(tokens.shape)
    with torch.no_grad():
        return Forms(model(tokens, read=rows)[0], model(tokens)[0], model.steps(tokens)[0])


def significand(dtype: torch.dtype) -> int:
    """p: whole numbers up to 2^p are exact.

    >>> [significand(x) for x in (torch.float64, torch.float32, torch.float16, torch.bfloat16)]
    [53, 24, 11, 8]
    """
    return 1 - round(math.log2(torch.finfo(dtype).eps))


def deepest(k: int, dtype: torch.dtype) -> int:
    """The depth up to which `counter` is right: 2^p, less for several kinds read at once.

    A class is read as a sum of k numbers, and the smallest, 1/2, must show beside the largest.

    >>> deepest(1, torch.bfloat16), deepest(2, torch.bfloat16)
    (256, 32)
    """
    check_int("k", k, low=1, high=len(BRACKETS) // 2)
    p = significand(dtype)
    return 2**p if k == 1 else 2 ** (p - 2) // k


def longest(dtype: torch.dtype) -> int:
    """The length up to which `averager` is right: 2^p - 1 where sums are wider than the numbers.

    Where they are not, as in float32, a norm and a read-out may lose three bits more.

    >>> longest(torch.float32), longest(torch.float16), longest(torch.bfloat16)
    (2097152, 2047, 255)
    """
    p = significand(dtype)
    return 2**p - 1 if dtype.itemsize == 2 else 2 ** (p - 3)


@torch.no_grad()
def counter(k: int = 1, *, depth: int, dtype: torch.dtype = torch.float64) -> LinearUnnormalised:
    """Which kinds of brackets are open, for any prefix that is never more than `depth` deep.

    Class sum_i 2^(i-1) [c_i > 0]. k = 1 is Dyck-1, k = 2 is Shuffle-2.

    >>> counter(2, depth=100)(torch.tensor([[0, 2, 1, 3]]))[0].argmax(-1).tolist()  # ([)]
    [[1, 3, 2, 0]]

    Raises ValueError for a depth that the floats cannot count to.
    """
    check_int("depth", depth, low=1)
    if depth > deepest(k, dtype):
        raise ValueError(f"expected depth <= {deepest(k, dtype)} for {dtype}, got {depth}")
    return _counting(LinearUnnormalised, k, 0.5, dtype)


@torch.no_grad()
def averager(*, length: int, dtype: torch.dtype = torch.float64) -> LinearTransformer:
    """The counter for k = 1 with the normaliser, for strings of at most `length` symbols.

    The same weights but one: it compares c / t with 1 / (2 length), not c with 1 / 2.

    >>> averager(length=100)(torch.tensor([[0, 1, 0, 1, 0]]))[0].argmax(-1).tolist()  # ()()(
    [[1, 0, 1, 0, 1]]

    Raises ValueError for a length at which the floats may lose 1 / t.
    """
    check_int("length", length, low=1)
    if length > longest(dtype):
        raise ValueError(f"expected length <= {longest(dtype)} for {dtype}, got {length}")
    return _counting(LinearTransformer, 1, 1 / (2 * length), dtype)


def after_pairs(model: SequenceModel, t: int) -> State:
    """The state of `counter` or `averager` after t symbols "()()...", t even: nothing is open.

    Lengths that would take long to read are reached like this. Where t is no number of the dtype
    this is what a state should be, not what it would be.

    >>> model = averager(length=1000)
    >>> after_pairs(model, 8).keys() == model.steps(torch.tensor([[0, 1] * 4]))[1].keys()
    True
    """
    state = model.initial_state(1)
    for z in state.tensors[1:]:
        z[..., 0] = t
    return State(t, state.tensors)


def _counting(kind: type, k: int, threshold: float, dtype: torch.dtype):
    """Symbols +-h_i on pairs of equal coordinates; pair i then takes +-(o_i - threshold)."""
    half = 2 ** k.bit_length()
    h = sign_vectors(half)[1 : k + 1].repeat(2, axis=1)
    model = silent(kind, np.stack([h, -h], 1).reshape(2 * k, 2 * half), 2**k, dtype)
    use_one_key(model)
    mix, A = model.blocks[0].mix, loud(dtype)
    pairs = np.repeat(np.eye(half), 2, axis=0)[:, :k]
    pairs[1::2] *= -1  # (D, k): the difference within a pair is what is read
    write(mix.value.weight[:k], h / (2 * half))
    write(mix.output.weight[:, :k], A * pairs)
    write(mix.output.bias, -A * threshold * pairs.sum(1))
    opened = 2 * (np.arange(2**k)[:, None] >> np.arange(k) & 1) - 1
    write(model.head.weight, opened @ pairs.T)
    return model
