"""Inequality, and the recurrent model that is as small as Theorem 11 allows (Appendix F.1).

INEQ(x) says whether the two halves of x differ; EQ = 1 - INEQ is Equality.

======= ==========================================================================
N       length of x, even
s       the register, N / 2 bits, s <- rotate(s) XOR x_t e_0
m p     bits of state: Theorem 11 says m p >= N / 2, and the register has N / 2
======= ==========================================================================
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from companion.theory._check import check_even
from companion.theory.automata import Acceptor


def inequality(x: Int[Tensor, "*B N"]) -> Bool[Tensor, "*B"]:
    """INEQ of every row.

    >>> inequality(torch.tensor([[0, 1, 0, 1], [0, 1, 1, 1]])).tolist()
    [False, True]
    """
    N = x.shape[-1]
    check_even(N)
    return (x[..., : N // 2] != x[..., N // 2 :]).any(-1)


class RotatingRegister(Acceptor):
    """INEQ on words of length N with N / 2 bits of state, in steps that do not know the time.

    A full turn brings every cell back after N / 2 steps, just when the symbol that must equal it
    comes; XOR then leaves 0. Class 1 means that s is not 0. Only after N symbols is that INEQ:
    what is said of other lengths is left open in Theorem 11, and `decide` refuses them.

    >>> model = RotatingRegister(6)
    >>> model.decide(torch.tensor([[0, 1, 1, 0, 1, 1], [0, 1, 1, 0, 0, 1]])).tolist()
    [False, True]
    >>> model.state_bits(model.initial_state(1))
    3
    """

    def __init__(self, N: int):
        check_even(N)
        super().__init__(vocab=2, size=N // 2, bits=1)
        self.N = N

    def transition(self, token: Int[Tensor, " B"], state: Int[Tensor, "B size"], t: int) -> Tensor:
        """Rotate, then add the symbol to cell 0."""
        state = state.roll(1, dims=1)
        return torch.cat([state[:, :1] ^ token[:, None], state[:, 1:]], dim=1)

    def answer(self, token: Int[Tensor, " B"], state: Int[Tensor, "B size"]) -> Int[Tensor, " B"]:
        """Whether any cell is 1."""
        return state.any(1).long()

    def decide(self, x: Int[Tensor, "B N"]) -> Bool[Tensor, " B"]:
        """INEQ of words of the length that the register was made for."""
        if x.shape[1] != self.N:
            raise ValueError(f"expected words of length N = {self.N}, got {x.shape[1]}")
        return self(x)[0][:, -1].argmax(-1).bool()


def inequality_bits(N: int) -> int:
    """Theorem 11, and it is exact: N / 2 bits of state, or 2^(N/2) states of an automaton."""
    check_even(N)
    return N // 2


def strict_inequality_states(N: int) -> int:
    """States of the minimal automaton that accepts exactly {x of length N: INEQ(x)}.

    3 * 2^(N/2) + N/2 - 2: the paper's automaton may say anything of other lengths, this one not.

    >>> [strict_inequality_states(N) for N in (2, 4, 6, 8, 10)]
    [5, 12, 25, 50, 99]
    """
    check_even(N)
    return 3 * 2 ** (N // 2) + N // 2 - 2


def strict_equality_states(N: int) -> int:
    """The same for EQ: 3 * 2^(N/2) - 1, as all words found unequal share the dead state."""
    check_even(N)
    return 3 * 2 ** (N // 2) - 1
