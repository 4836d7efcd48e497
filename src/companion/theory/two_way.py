"""Alice and Bob, both ways: what one layer of attention can hide (Theorem 4, Appendix D).

The symbols of one input are dealt to two players in any way. Both know the model. What the last
position attends to is a *sum* over positions, so each player adds up their own and they exchange
totals: a few numbers a head, however long the input is.

======= ==========================================================================
N       positions of the input; the answer is read at the last one
x_i     (d) row at position i, a function of the symbol there and of i
A_i, M  logit <Q(x_N), K(x_i)>, and the largest of them
e_i, Z  exp(A_i - M), rounded down, and their exact sum
a_i     attention weight e_i / Z, rounded down
U       exact sum of a_i V(x_i) over the positions of one player
H, m    heads, and the dimension of their queries, keys and values
p, f, S bits of a number, fractional bits, scale 2^f (see `integer_transformer`)
======= ==========================================================================

Everything is a whole number and every sum is exact, so how the symbols were dealt leaves no trace:
the players get the attended vector of the undivided model bit for bit. Floats would not do, as
their sums depend on the order. Rounding *down* keeps sum_i a_i <= 1, which bounds U.

Two protocols, of which the first follows the paper's proof line by line:

=============== ============================== ====================================
step            literal                        lean
=============== ============================== ====================================
last position   x_N: d p                       its symbol: log|Σ|, as x_N is public
maxima          both: 2 p a head               the same
denominators    both: 2 (p + log N) a head     both: 2 (f + log(N + 1)) a head
sums            both: 2 m 2p a head            one way: m (p + f) a head
answer          nothing, both can compute it   back: log of the number of answers
=============== ============================== ====================================

The claim is 3 m (p + log N) H. The literal steps add up to more on models of ordinary size; the
lean ones stay below it whenever m >= 4, so the theorem holds as it stands there.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from companion.theory._check import check_int
from companion.theory.communication import Channel
from companion.theory.integer_transformer import IntegerTransformer

VARIANTS = ("literal", "lean")


class Format(NamedTuple):
    """Whole numbers from low to high, `bits` bits each."""

    low: int
    high: int
    bits: int


def formats(model: IntegerTransformer, variant: str) -> dict[str, tuple[int, Format]]:
    """For each step: how many numbers cross the wire in all, and in which format."""
    a, H, N = model.arithmetic, model.H, model.N
    limit, p = a.R * a.S, model.p
    total, sums = N * a.S, limit * a.S
    if variant == "literal":
        return {
            "last position": (model.d, Format(-limit, limit, p)),
            "maxima": (2 * H, Format(-limit, limit, p)),
            "denominators": (2 * H, Format(0, total, p + (N - 1).bit_length())),
            "sums": (2 * H * model.v, Format(-sums, sums, 2 * p)),
        }
    if variant == "lean":
        return {
            "last position": (1, _below(model.alphabet)),
            "maxima": (2 * H, Format(-limit, limit, p)),
            "denominators": (2 * H, Format(0, total, total.bit_length())),
            "sums": (H * model.v, Format(-sums, sums, (2 * sums).bit_length())),
            "answer": (1, _below(model.answers)),
        }
    raise ValueError(f"expected variant in {VARIANTS}, got {variant!r}")


def _below(count: int) -> Format:
    return Format(0, count - 1, (count - 1).bit_length())


def transmit(
    wire: Channel, sender: str, numbers: Int[np.ndarray, "..."], form: Format, meaning: str
) -> Int[np.ndarray, "..."]:
    """Send whole numbers in exactly `form.bits` bits each, and read them again from the bytes.

    >>> wire = Channel()
    >>> transmit(wire, "Alice", np.array([-3, 3]), Format(-3, 3, 3), "two numbers").tolist()
    [-3, 3]
    >>> wire.messages[0].data.hex(), wire.bits
    ('30', 6)
    """
    numbers = np.asarray(numbers)
    for extreme in (numbers.min(initial=form.low), numbers.max(initial=form.low)):
        check_int(meaning, int(extreme), low=form.low, high=form.high)
    check_int("range", form.high - form.low, low=0, high=(1 << form.bits) - 1)
    bits, packed = numbers.size * form.bits, 0
    for number in reversed(numbers.ravel().tolist()):
        packed = packed << form.bits | (number - form.low)
    data = packed.to_bytes((bits + 7) // 8, "little")
    packed = int.from_bytes(wire.send(sender, data, bits=bits, meaning=meaning), "little")
    mask = (1 << form.bits) - 1
    received = [(packed >> i * form.bits & mask) + form.low for i in range(numbers.size)]
    return np.array(received, dtype=np.int64).reshape(numbers.shape)


class Player:
    """One player: knows the model and the symbols at the positions held, and no others."""

    def __init__(
        self, model: IntegerTransformer, name: str, tokens: Sequence[int], positions: Iterable[int]
    ):
        self.model, self.name, self.positions = model, name, sorted(positions)
        self.symbols = [int(tokens[i]) for i in self.positions]
        x = model.rows[np.array(self.symbols, int), np.array(self.positions, int)]  # (n, d)
        self.keys, self.values = model.project(x)

    @property
    def last(self) -> int:
        """The symbol at the last position, for the player who holds it."""
        return self.symbols[self.positions.index(self.model.N - 1)]

    def maxima(self, x_last: Int[np.ndarray, " d"]) -> Int[np.ndarray, " H"]:
        """Step 2: the largest own logit of each head; the lowest number if nothing is held."""
        self.A = self.model.logits(x_last, self.keys)  # (H, n)
        limit = self.model.arithmetic.R * self.model.arithmetic.S
        return self.A.max(-1, initial=-limit)

    def denominators(self, M: Int[np.ndarray, " H"]) -> Int[np.ndarray, " H"]:
        """Step 3: the sum of own exponentials."""
        self.e = self.model.exp(self.A - M[:, None])
        return self.e.sum(-1)

    def sums(self, Z: Int[np.ndarray, " H"]) -> Int[np.ndarray, "H v"]:
        """Step 4: own values weighted with a_i and added, exactly, at 2f fractional bits."""
        self.weights = self.e * self.model.arithmetic.S // Z[:, None]
        return (self.weights[:, None] @ self.values)[:, 0]


class Exchange(NamedTuple):
    """What came of it: per player who computed them, the answer and the attended vectors."""

    answers: dict[str, int]
    attended: dict[str, np.ndarray]
    channel: Channel

    @property
    def bits(self) -> dict[str, int]:
        """Bits of each step."""
        messages = self.channel.messages
        steps = dict.fromkeys(message.meaning for message in messages)
        return {step: sum(m.bits for m in messages if m.meaning == step) for step in steps}

    @property
    def answer(self) -> int:
        """The answer, which both players know."""
        return self.answers["Alice"]


def two_way(
    model: IntegerTransformer,
    tokens: Sequence[int],
    alice_positions: Iterable[int],
    variant: str = "lean",
    channel: Channel | None = None,
) -> Exchange:
    """Theorem 4: the model's answer, from two players who hold parts of the input.

    >>> from companion.theory.fixed_point import FixedPoint
    >>> grid = FixedPoint(f=4, R=7, softmax="early")
    >>> one = np.full((1, 1, 1), grid.S)
    >>> rows = grid.encode(np.array([[[0.0]] * 3, [[1.0]] * 3]))
    >>> mean = IntegerTransformer(rows, 0 * one, one, one, lambda x, o: int(o[0] > 0.5), 2, grid)
    >>> two_way(mean, [1, 0, 1], alice_positions=[1]).bits
    {'last position': 1, 'maxima': 16, 'denominators': 12, 'sums': 12, 'answer': 1}
    """
    tokens, mine = model.check(tokens), set(alice_positions)
    for i in mine:
        check_int("position", i, low=0, high=model.N - 1)
    alice = Player(model, "Alice", tokens, mine)
    bob = Player(model, "Bob", tokens, set(range(model.N)) - mine)
    return converse(alice, bob, variant, channel)


def converse(alice: Player, bob: Player, variant: str, channel: Channel | None = None) -> Exchange:
    """The protocol. All that one player learns of the other's symbols comes out of `send`."""
    model, wire = alice.model, Channel() if channel is None else channel
    form = {step: form for step, (_, form) in formats(model, variant).items()}
    owner, other = (alice, bob) if model.N - 1 in alice.positions else (bob, alice)

    def send(player: Player, step: str, numbers: np.ndarray) -> np.ndarray:
        return transmit(wire, player.name, numbers, form[step], step)

    def trade(step: str, mine: np.ndarray, yours: np.ndarray, join: Callable) -> tuple:
        """Both send; what the owner then knows, and what the other knows."""
        told, heard = send(owner, step, mine), send(other, step, yours)
        return join(mine, heard), join(told, yours)

    x, lean = model.rows[owner.last, -1], variant == "lean"
    told = send(owner, "last position", np.array(owner.last) if lean else x)
    x_told = model.rows[int(told), -1] if lean else told
    M = trade("maxima", owner.maxima(x), other.maxima(x_told), np.maximum)
    Z = trade("denominators", owner.denominators(M[0]), other.denominators(M[1]), np.add)
    U, S = (owner.sums(Z[0]), other.sums(Z[1])), model.arithmetic.S
    if lean:
        attended = {owner.name: (U[0] + send(other, "sums", U[1])) // S}
        said = model.answer(x, attended[owner.name])
        answers = {owner.name: said, other.name: int(send(owner, "answer", np.array(said)))}
    else:
        both = trade("sums", *U, np.add)
        attended = {owner.name: both[0] // S, other.name: both[1] // S}
        rows = {owner.name: x, other.name: x_told}
        answers = {name: model.answer(rows[name], attended[name]) for name in rows}
    return Exchange(answers, attended, wire)
