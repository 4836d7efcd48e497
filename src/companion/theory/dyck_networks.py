"""Recurrent networks with given weights for Dyck-(2, 2), or any regular language (Appendix E).

One unit for each live transition (q, c) -> q' of the minimal automaton: 12 for Dyck-(2, 2). It is 1
if the last symbol was c, read in state q. Let W[(q, c), (r, d)] = [(r, d) leads to q], let
U[(q, c), c'] = [c = c'], and z = W h + U x - 1. Then

    ReLU         h <- relu(z)
    sigmoid      h <- sigma(beta (2 z - 1))
    LSTM         i = sigma(beta (2 z - 1)), f ~ 0, g ~ o ~ 1, so c ~ i and h ~ tanh(1) i

======= ==========================================================================
q, c    state of the automaton, and symbol
h, x    hidden units; one-hot symbol. All units 0 is the dead state
beta    sharpness of the sigmoid
drift   epsilon: no unit is ever further than this from its ideal value, at any length
======= ==========================================================================

ReLU is exact on whole numbers. For the others drift is a box that the step maps into itself, with
every rounding error counted; so the networks are right at *every* length, or refuse to be built.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from automata.fa.dfa import DFA
from jaxtyping import Float, Int

from companion.models import LSTM, ModelConfig, SequenceModel, State
from companion.models.quantized import pack_levels, unpack_levels
from companion.models.stack import take_rows
from companion.theory.automata import minimal
from companion.theory.fixed_point import EXACT, Arithmetic, FixedPoint

_READ_OUT = 1 / 16  # margin left for rounding in the read-out


@dataclass(frozen=True, eq=False)
class Units:
    """One unit a live transition; b is -1 for all."""

    names: list[tuple[str, str]]  # (shortest word to the state, symbol)
    W: Float[np.ndarray, "m m"]
    U: Float[np.ndarray, "m vocab"]
    accept: Float[np.ndarray, " m"]  # 1 where the transition leads to a final state
    start: Float[np.ndarray, " m"]  # h before the first symbol: a unit that leads to the start

    @classmethod
    def of(cls, dfa: DFA, symbols: str) -> "Units":
        """The units of the minimal automaton.

        >>> from companion.theory.dyck import Dyck
        >>> units = Units.of(Dyck(2, 2).automaton(), "()[]")
        >>> len(units.names), units.names[:3], int(units.W.sum(1).max())
        (12, [('', '('), ('', '['), ('(', '(')], 3)
        """
        if dfa.isempty():
            raise ValueError("expected a language with a word in it, got the empty one")
        small = minimal(dfa).to_partial(retain_names=True, minify=False)
        moves = {(q, c): r for q, row in small.transitions.items() for c, r in row.items()}
        names = sorted(moves, key=lambda move: (len(move[0]), *move))
        target = [moves[name] for name in names]
        if small.initial_state not in target:
            names, target = (
                [("", ""), *names],
                ["", *target],
            )  # a unit that is on once, at the start
        equal = np.equal.outer
        return cls(
            names,
            W=equal([q for q, _ in names], target) * np.array([[c != ""] for _, c in names]) * 1.0,
            U=equal([c for _, c in names], list(symbols)) * 1.0,
            accept=np.array([r in small.final_states for r in target]) * 1.0,
            start=np.eye(len(names))[target.index(small.initial_state)],
        )

    def __len__(self) -> int:
        return len(self.names)

    def ideal(self) -> tuple[Float[np.ndarray, "s v m"], Float[np.ndarray, "s v m"]]:
        """W h + U x - 1 for every ideal h, the dead one last, and every x; and the next ideal h."""
        h = np.vstack([np.eye(len(self)), np.zeros(len(self))])
        z = (h @ self.W.T)[:, None] + self.U.T[None] - 1
        return z, np.maximum(z, 0)

    def rounding(self, beta: float, unit: float) -> float:
        """Largest rounding error of beta (2 z - 1), at `unit` relative error an operation."""
        additions, partial_sum = len(self) + 2, 5 * beta
        return additions * unit * partial_sum


class UnitNetwork(SequenceModel):
    """Units that move in a given `Arithmetic`; class 1 means accepted. The state is `vectors` of
    them: h, and for an LSTM c. Subclasses say what a step is."""

    def __init__(self, dfa: DFA, symbols: str, arithmetic: Arithmetic, vectors: int):
        super().__init__(ModelConfig(vocab=len(symbols), classes=2))
        self.units, self.arithmetic = Units.of(dfa, symbols), arithmetic
        self.vectors, self.accept = vectors, self.units.accept

    @abstractmethod
    def step(self, numbers: Sequence[np.ndarray], x: Int[np.ndarray, " B"]) -> list[np.ndarray]:
        """The vectors after one more symbol of each of B words."""

    @property
    def weight_count(self) -> int:
        """Numbers in W, U, b and the read-out."""
        return self.W.size + self.U.size + self.b.size + self.units.accept.size

    @property
    def dtype(self) -> torch.dtype:
        """Values are shown in float64, which holds them exactly."""
        return torch.float64

    @property
    def device(self) -> torch.device:
        """The CPU."""
        return torch.device("cpu")

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        """One number a unit in each vector."""
        return ((len(self.units),),) * self.vectors

    def initial_state(self, batch: int) -> State:
        """A unit vector whose transition leads to the start."""
        return State(0, (torch.tensor(self.units.start).repeat(batch, 1),))

    def advance(self, tokens, state, read):
        """Read the chunk symbol by symbol; the answer is a sum over accepting units of h."""
        a, numbers, sums = self.arithmetic, [x.numpy() for x in state.tensors], []
        for x in tokens.numpy().T:
            numbers = self.step(numbers, x)
            sums.append(a.decode(a.matmul(a.encode(numbers[0]), a.encode(self.accept[:, None]))))
        said = torch.from_numpy(np.concatenate(sums, axis=1))
        logits = torch.stack([torch.full_like(said, 0.5), said], dim=-1)
        return take_rows(logits, read), tuple(map(torch.from_numpy, numbers))

    def state_bits(self, state: State) -> int:
        """Numbers times the bits of one."""
        return self.vectors * len(self.units) * self.arithmetic.p

    def pack(self, state: State) -> bytes:
        """The numbers in the format of the arithmetic."""
        a, numbers = self.arithmetic, torch.cat(state.tensors, dim=-1).numpy()
        if isinstance(a, FixedPoint):
            return pack_levels(torch.from_numpy(a.encode(numbers) + a.R * a.S), a.p)
        return a.encode(numbers).contiguous().view(torch.uint8).numpy().tobytes()

    def unpack(self, data: bytes, *, t: int, batch: int) -> State:
        """The state from the bytes of `pack`."""
        a, m = self.arithmetic, self.vectors * len(self.units)
        if len(data) != math.ceil(batch * m * a.p / 8):
            raise ValueError(f"expected {batch} x {m} x {a.p} bits, got {len(data)} bytes")
        if isinstance(a, FixedPoint):
            levels = unpack_levels(data, batch, m, a.p).numpy() - a.R * a.S
        else:
            levels = torch.frombuffer(bytearray(data), dtype=a.dtype).view(batch, m)
        return State(t, torch.from_numpy(a.decode(levels)).chunk(self.vectors, dim=-1))

    def preactivation(self, h: np.ndarray, x: Int[np.ndarray, " B"]) -> np.ndarray:
        """W h + U x + b."""
        a = self.arithmetic
        z = a.add(a.matmul(a.encode(h), a.encode(self.W.T)), a.encode(self.U.T[x]))
        return a.decode(a.add(z, a.encode(self.b)))

    @property
    def rounding(self) -> float:
        """How far a number of size 1 is off: a step of the grid, or half a unit of a float."""
        a = self.arithmetic
        return 1 / a.S if isinstance(a, FixedPoint) else a.eps / 2


class Elman(UnitNetwork):
    """h <- phi(W h + U x + b) with the weights above, in any `Arithmetic`.

    Raises ValueError if drift and rounding leave the read-out no margin.

    >>> from companion.theory.dyck import Dyck
    >>> model = Elman(Dyck(2, 2).automaton(), "()[]")
    >>> logits, state = model(torch.tensor([[0, 2, 3, 1]]))  # ([])
    >>> logits[0].argmax(-1).tolist(), state.tensors[0].sum().item(), model.margin
    ([0, 0, 0, 1], 1.0, 0.5)
    """

    def __init__(
        self,
        dfa: DFA,
        symbols: str,
        activation: Literal["relu", "sigmoid"] = "relu",
        beta: float = 8.0,
        arithmetic: Arithmetic = EXACT,
    ):
        super().__init__(dfa, symbols, arithmetic, vectors=1)
        if activation not in ("relu", "sigmoid"):
            raise ValueError(f"expected activation 'relu' or 'sigmoid', got {activation!r}")
        self.activation, self.beta = activation, beta
        scale, bias = (1.0, -1.0) if activation == "relu" else (2 * beta, -3 * beta)
        self.W, self.U = scale * self.units.W, scale * self.units.U
        self.b = np.full(len(self.units), bias)
        exact = self._exact()
        self.drift = (0.0 if exact else math.inf) if activation == "relu" else self._box()
        check_read_out(self.margin, f"{activation} with beta = {beta:g} in {arithmetic}")

    @property
    def margin(self) -> float:
        """How far the read-out, a sum over accepting units, stays from its threshold 1/2."""
        return float(0.5 - self.units.accept.sum() * self.drift)

    def step(self, numbers, x):
        """h after one more symbol."""
        a, z = self.arithmetic, self.preactivation(numbers[0], x)
        return [a.decode(a.encode(np.maximum(z, 0) if self.activation == "relu" else sigma(z)))]

    def _exact(self) -> bool:
        """Whether one step from ideal units is exact, so that all are. Refuses numbers beyond R."""
        _, target = self.units.ideal()
        states, symbols, m = target.shape
        h = np.vstack([np.eye(m), np.zeros(m)]).repeat(symbols, axis=0)
        (found,) = self.step([h], np.tile(np.arange(symbols), states))
        return bool((found == target.reshape(-1, m)).all())

    def _box(self) -> float:
        """A drift that one step maps into itself; infinite where the search finds none."""
        z, target = self.units.ideal()
        unit, grid = self.rounding, isinstance(self.arithmetic, FixedPoint)
        rounding = len(self.units) * unit if grid else self.units.rounding(self.beta, unit)

        def after(drift: float) -> float:
            spread = np.abs(self.W).sum(1) * drift + rounding
            middle = self.beta * (2 * z - 1)
            ends = [sigma(middle + sign * spread) for sign in (-1, 1)]
            return max(float(np.abs(end - target).max()) for end in ends) + unit

        return invariant(after)


class TransitionLSTM(LSTM):
    """The same units as the cells of `torch.nn.LSTM`; only the first state is not zero.

    >>> from companion.theory.dyck import Dyck
    >>> model = TransitionLSTM(Dyck(2, 2).automaton(), "()[]")
    >>> logits, state = model(torch.tensor([[0, 2, 3, 1]]))
    >>> logits[0].argmax(-1).tolist(), [tuple(x.shape) for x in state.tensors], model.margin > 0.49
    ([0, 0, 0, 1], [(1, 1, 12), (1, 1, 12)], True)
    """

    def __init__(
        self, dfa: DFA, symbols: str, beta: float = 8.0, dtype: torch.dtype = torch.float64
    ):
        units = Units.of(dfa, symbols)
        width = max(len(units), len(symbols))
        with torch.random.fork_rng(devices=[]):  # layers draw weights, which are replaced below
            super().__init__(ModelConfig(len(symbols), classes=2, width=width, heads=1))
        self.units, self.beta = units, beta
        self.to(dtype).requires_grad_(False)  # first, or weights would be rounded to float32
        self._set_weights()
        self.drift = self._box()
        check_read_out(self.margin, f"beta = {beta:g} in {dtype}")

    @property
    def margin(self) -> float:
        """How far the read-out stays from its threshold 1/2."""
        return float(0.5 - self.units.accept.sum() * self.drift / math.tanh(1))

    def initial_state(self, batch: int) -> State:
        """c is a unit vector, h is tanh(1) times it."""
        c = torch.zeros(batch, 1, self.config.width, dtype=self.dtype, device=self.device)
        c[:, 0, : len(self.units)] = torch.tensor(self.units.start)
        return State(0, (math.tanh(1) * c, c))

    @torch.no_grad()
    def _set_weights(self) -> None:
        m, D, beta, lstm = len(self.units), self.config.width, self.beta, self.lstm
        for weight in self.parameters():
            weight.zero_()
        self.embedding.weight.copy_(torch.eye(*self.embedding.weight.shape))
        lstm.weight_ih_l0[:m, : self.units.U.shape[1]] = torch.tensor(2 * beta * self.units.U)
        lstm.weight_hh_l0[:m, :m] = torch.tensor(2 * beta / math.tanh(1) * self.units.W)
        gates = torch.tensor([-3 * beta, -beta, beta, beta])  # in, forget, cell, out
        lstm.bias_ih_l0.copy_(gates.repeat_interleave(D))
        self.head.weight[1, :m] = torch.tensor(self.units.accept / math.tanh(1))
        self.head.bias[0] = 0.5

    def _box(self) -> float:
        """A drift of h that one step maps into itself; that of c, which is smaller than 1, too."""
        z, target = self.units.ideal()
        unit, beta = torch.finfo(self.dtype).eps, self.beta
        rounding = self.units.rounding(beta, unit / 2)
        (f, o), g = sigma(np.array([-beta, beta])), math.tanh(beta)

        def after(drift: float) -> float:
            spread = 2 * beta / math.tanh(1) * self.units.W.sum(1) * drift + rounding
            middle = beta * (2 * z - 1)
            low = sigma(middle - spread) * g - f - 4 * unit  # c is between -1 and 2 before
            high = sigma(middle + spread) + 2 * f + 4 * unit
            ends = o * np.tanh(low), np.tanh(high)
            ideal = math.tanh(1) * target
            return max(float(np.abs(end - ideal).max()) for end in ends) + 4 * unit

        return invariant(after)


def sigma(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def invariant(after) -> float:
    """Some epsilon <= 1 with after(epsilon) <= epsilon, close to the least; else infinity."""
    drift = 0.0
    while drift <= 1:
        moved = after(drift)
        if moved <= drift:
            return drift
        drift = 1.01 * moved
    return math.inf


def check_read_out(margin: float, what: str) -> None:
    if not margin > _READ_OUT:
        raise ValueError(
            f"expected a margin above {_READ_OUT} at every length, got {margin:g} with {what}"
        )
