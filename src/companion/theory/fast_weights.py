"""Fast weight programmers with given weights: overwriting, reflecting, feeding back, copying.

Each is one layer with one head of a model in `companion.models`, exact in every float format and at
every length: what goes into a sigmoid or softmax is so large that 0 or 1 comes out, and what is
stored are small whole numbers. So the model has few reachable states, `automata.extract` finds them
all, and its answers are known for *all* strings.

| construction | model           | what a symbol does to the number stored                        |
|--------------|-----------------|----------------------------------------------------------------|
| `latch`      | DeltaNet        | S <- v: a rate of 1 replaces; a rate of 0 keeps                |
| `memory`     | DeltaNet        | the same in a row for each key; a symbol may ask for one       |
| `reflection` | DeltaNet, b <= 2| S <- S + 2 (1/2 - S) = 1 - S: a reflection at 1/2              |
| `feedback`   | Recurrent Delta | S <- c - c tanh(S): the value written depends on the one read  |
| `self_copy`  | SRWM            | a row is replaced by another, which names the row to come next |

======= ==========================================================================
S       the number stored: first row and column of the fast weights, where one key is in use
v, b    value and rate of a symbol: S <- S + b (v - S)
c       what feedback stores after an odd number of 1s; tanh(c) = 1 in all formats
A, SURE as in `_weights`
======= ==========================================================================

With v = 0 the reflection is S <- -S, as the literature has it. But a state that starts at 0, like
that of every model here, would stay there; so it is reflected at 1/2 and takes the values 0 and 1.
"""

import numpy as np
import torch
from jaxtyping import Int

from companion.models import SRWM, DeltaNet, DeltaNetNegative, RecurrentDelta
from companion.models.stack import Stack
from companion.theory._check import check_int
from companion.theory._weights import SURE, Model, loud, sign_vectors, silent, use_one_key, write

PARITY = "01"  # symbols; class 1 says that the number of 1s is even
LATCH = "()1"  # symbols: set, keep, reset; class 1 says that "(" has come since the last "1"
_c = 64.0


@torch.no_grad()
def latch(dtype: torch.dtype = torch.float64) -> DeltaNet:
    """Has "(" come since the last "1"? A DeltaNet that forgets at a symbol.

    "(" writes 1 at rate 1, "1" writes 0 at rate 1, and ")" has rate 0.

    >>> latch()(torch.tensor([[0, 1, 2, 1, 0]]))[0].argmax(-1).tolist()  # ()1)(
    [[1, 1, 0, 0, 1]]
    """
    _, opens, closes, reset, out, *_ = sign_vectors(8)
    model = silent(DeltaNet, np.stack([opens, closes, reset]), 2, dtype)
    use_one_key(model)
    mix = model.blocks[0].mix
    write(mix.value.weight[0], opens / 8)
    write(mix.rate.weight[0], SURE / 8 * (opens - closes + reset))
    _say(model, out, above=0.5)
    return model


def memory_symbols(keys: int, values: int) -> list[str]:
    """ "a1": store 1 at a; and after all of these "a?": what is stored at a?

    >>> memory_symbols(2, 2)
    ['a1', 'a2', 'b1', 'b2', 'a?', 'b?']
    """
    check_int("keys", keys, low=1, high=8)
    check_int("values", values, low=1, high=8)
    names = "abcdefgh"[:keys]
    return [f"{a}{j}" for a in names for j in range(1, values + 1)] + [f"{a}?" for a in names]


@torch.no_grad()
def memory(
    kind: type[Model] = DeltaNet,
    keys: int = 3,
    values: int = 2,
    dtype: torch.dtype = torch.float64,
) -> Model:
    """What was stored last at the key of the symbol just read? Class 0: nothing, class j: value j.

    With `kind` a `LinearUnnormalised`, the same weights without the rate: it says what has been
    stored most often, and anything where two have been equally often. A sum does not know the last.

    >>> from companion.models import LinearUnnormalised
    >>> word = torch.tensor([[0, 0, 3, 1, 6, 7, 8]])  # a1 a1 b2 a2, and then a? b? c?
    >>> memory()(word)[0][0, -3:].argmax(-1).tolist()
    [2, 2, 0]
    >>> memory(LinearUnnormalised)(word)[0][0, -3:].argmax(-1).tolist()
    [1, 2, 0]
    """
    count = len(memory_symbols(keys, values))
    D = 1 << (count + values + 1).bit_length()
    rows = sign_vectors(D)[1:]
    stores, asks = rows[: keys * values].reshape(keys, values, D), rows[keys * values : count]
    nothing, outs = rows[count], rows[count + 1 : count + 1 + values]
    model = silent(kind, rows[:count], values + 1, dtype)
    mix, A = model.blocks[0].mix, loud(dtype)
    for layer in (mix.key, mix.query):
        layer.bias.fill_(-SURE)
        write(layer.weight[:keys], SURE / D * (stores.sum(1) + asks))
    write(mix.value.weight[:values], stores.sum(0) / D)
    if hasattr(mix, "rate"):
        write(mix.rate.weight[0], SURE / D * (stores.sum((0, 1)) - asks.sum(0)))
    write(mix.output.weight[:, :values], A * outs.T)
    write(mix.output.bias, A / 2 * nothing)
    write(model.head.weight, np.vstack([nothing, outs]))
    return model


@torch.no_grad()
def reflection(dtype: torch.dtype = torch.float64) -> DeltaNetNegative:
    """Parity with one stored number: "1" has rate 2 and value 1/2, "0" has rate 0.

    >>> model = reflection()
    >>> logits, state = model(torch.tensor([[0, 1, 0, 1, 1]]))
    >>> logits.argmax(-1).tolist(), state.tensors[0].count_nonzero().item()
    ([[1, 0, 0, 1, 0]], 1)
    """
    model = _switched(DeltaNetNegative, dtype)
    model.blocks[0].mix.value.bias[0] = 0.5
    _say(model, sign_vectors(4)[2], above=-0.5, scale=-1.0)
    return model


@torch.no_grad()
def feedback(dtype: torch.dtype = torch.float64) -> RecurrentDelta:
    """Parity with rates of 0 and 1 alone: "1" writes c - c tanh(S), c after 0 and 0 after c.

    >>> feedback()(torch.tensor([[0, 1, 0, 1, 1]]))[0].argmax(-1).tolist()
    [[1, 0, 0, 1, 0]]
    """
    model = _switched(RecurrentDelta, dtype)
    mix = model.blocks[0].mix
    mix.value.bias[0] = _c
    mix.feedback[0, 0, 2 * mix.size] = -_c
    _say(model, sign_vectors(4)[2], above=-0.5, scale=-1 / _c)
    return model


@torch.no_grad()
def self_copy(dtype: torch.dtype = torch.float64) -> SRWM:
    """Parity by a matrix that copies its own rows: now, even, odd and their sum, four in all.

    The symbols are +-(1, -1, -1, 1), so x W = +-(now - even - odd + sum) = +-now: everything that W
    computes is what its first row says. "0" reads it with a plus: the rate is 0 and nothing
    changes. "1" reads it with a minus: the rate is 1, the key is row "now", and the query is the
    row that is to be copied there, which "even" and "odd" name each other to be. The output is +-1
    times the same sign, the parity that includes the symbol just read.

    >>> self_copy()(torch.tensor([[0, 1, 0, 1, 1]]))[0].argmax(-1).tolist()
    [[1, 0, 0, 1, 0]]
    """
    _, _, out, sign = sign_vectors(4)
    model = silent(SRWM, np.stack([sign, -sign]), 2, dtype)
    even, odd = (
        np.concatenate([answer * np.eye(4)[0], -SURE * np.eye(4)[other], -SURE * np.eye(4)[0],
                        np.full(4, -SURE)])
        for answer, other in ((1, 2), (-1, 1))
    )  # fmt: skip
    write(model.blocks[0].mix.initial[0], np.stack([even, even, odd, even + odd]))
    _say(model, out, above=0.0)
    return model


def _switched(kind: type, dtype: torch.dtype) -> Stack:
    """A delta rule whose rate is largest at "1" and 0 at "0"."""
    _, zero, *_ = sign_vectors(4)
    model = silent(kind, np.stack([zero, -zero]), 2, dtype)
    use_one_key(model)
    write(model.blocks[0].mix.rate.weight[0], -SURE / 4 * zero)
    return model


def _say(model: Stack, out: Int[np.ndarray, " D"], above: float, scale: float = 1.0) -> None:
    """Class 1 where scale times the first number read exceeds `above`, else class 0."""
    size, read = loud(model.dtype), model.blocks[0].mix.output
    write(read.weight[:, 0], size * scale * out)
    write(read.bias, -size * above * out)
    write(model.head.weight, np.stack([-out, out]))
