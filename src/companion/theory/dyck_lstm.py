"""The LSTM of `dyck_networks`, cell by cell in any arithmetic, fixed point included (Appendix E).

`TransitionLSTM` runs torch's own cells, which know floats only. Here the same gates are computed
one operation at a time, so that they can be rounded to a grid after each:

    z = (2 beta / tanh 1) W h + 2 beta U x - 3 beta
    c <- f c + sigma(z) g          h <- o tanh c

with the constant gates f = sigma(-beta), o = sigma(beta) and g = tanh beta. Symbols as there.
"""

import math

import numpy as np
import torch
from automata.fa.dfa import DFA

from companion.models import State
from companion.theory.dyck_networks import UnitNetwork, check_read_out, invariant, sigma
from companion.theory.fixed_point import EXACT, Arithmetic, FixedPoint


class RoundedLSTM(UnitNetwork):
    """The LSTM's cells in one arithmetic, right at every length, or refused.

    >>> from companion.theory.dyck import Dyck
    >>> grid = FixedPoint(f=8, R=64)
    >>> model = RoundedLSTM(Dyck(2, 2).automaton(), "()[]", arithmetic=grid)
    >>> logits, state = model(torch.tensor([[0, 2, 3, 1]]))  # ([])
    >>> logits[0].argmax(-1).tolist(), model.state_bits(state), model.margin > 0.4
    ([0, 0, 0, 1], 384, True)
    """

    def __init__(self, dfa: DFA, symbols: str, beta: float = 8.0, arithmetic: Arithmetic = EXACT):
        super().__init__(dfa, symbols, arithmetic, vectors=2)
        a, self.beta = arithmetic, beta
        a.check_range(6 * beta)

        def rounded(x: np.ndarray) -> np.ndarray:
            return a.decode(a.encode(x))

        self.W = rounded(2 * beta / math.tanh(1) * self.units.W)
        self.U, self.b = rounded(2 * beta * self.units.U), rounded(np.array([-3 * beta]))
        self.accept = rounded(self.units.accept / math.tanh(1))
        self.f, self.o, self.g = rounded(
            np.array([*sigma(np.array([-beta, beta])), math.tanh(beta)])
        )
        self.drift = self._box()
        check_read_out(self.margin, f"beta = {beta:g} in {arithmetic}")

    @property
    def margin(self) -> float:
        """How far the read-out stays from its threshold 1/2."""
        off = float(np.abs(self.accept * math.tanh(1) - self.units.accept).max())
        return float(0.5 - self.accept.sum() * self.drift - off - 2 * self.rounding)

    def initial_state(self, batch: int) -> State:
        """c is a unit vector, h is tanh(1) times it, rounded."""
        a, c = self.arithmetic, super().initial_state(batch).tensors[0]
        return State(0, (torch.from_numpy(a.decode(a.encode(math.tanh(1) * c.numpy()))), c))

    def step(self, numbers, x):
        """h and c after one more symbol."""
        a, (h, c) = self.arithmetic, numbers
        f, o, g = (a.encode(np.array([gate])) for gate in (self.f, self.o, self.g))
        i = a.encode(sigma(self.preactivation(h, x)))
        c = a.add(a.multiply(f, a.encode(c)), a.multiply(i, g))
        return [a.decode(a.multiply(o, a.encode(np.tanh(a.decode(c))))), a.decode(c)]

    def _box(self) -> float:
        """A drift of h that one step maps into itself, while c stays between -1 and 2."""
        on = np.vstack([np.eye(len(self.units)), np.zeros(len(self.units))])
        target = math.tanh(1) * self.units.ideal()[1]
        middle = math.tanh(1) * (on @ self.W.T)[:, None] + self.U.T[None] + self.b
        grid = isinstance(self.arithmetic, FixedPoint)
        unit = self.rounding if grid else 2 * self.rounding  # numbers may be as large as 2
        rounding = unit if grid else self.units.rounding(self.beta, self.rounding)

        def after(drift: float) -> float:
            spread = np.abs(self.W).sum(1) * drift + rounding
            low = (sigma(middle - spread) - unit) * self.g - self.f - 3 * unit
            high = (sigma(middle + spread) + unit) * self.g + 2 * self.f + 3 * unit
            if low.min() < -1 or high.max() > 2:
                return math.inf
            ends = self.o * np.tanh(low), self.o * np.tanh(high)
            return max(float(np.abs(end - target).max()) for end in ends) + 2 * unit

        return invariant(after)
