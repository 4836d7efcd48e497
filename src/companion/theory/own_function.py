"""Your own function: its matrix, what it costs two players, and which models cannot compute it.

Hand in a predicate or a truth table. Whatever way of dealing the symbols is hardest bounds one
layer of attention (Theorem 4); cuts into a prefix and a suffix bound recurrent models (Theorem 2).

======= ==========================================================================
f, N    a function of N symbols with values 0 and 1
q       size of the alphabet, |Σ|
D       bits that the players must exchange, both ways
K       cut: the first K symbols are Alice's. Prefixes that some suffix tells apart
        must reach different states
m, p, H width of a head, bits of a number, heads
======= ==========================================================================
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Shaped

from companion.models import SequenceModel
from companion.theory._check import check_int
from companion.theory.bounds import least_width
from companion.theory.problems import Problem, split

_MOST_TRIED = 8  # symbols up to which all balanced partitions are tried
_LARGEST_CLIQUE = 64  # cells among which a largest fooling set is looked for; else a greedy one
_LARGEST_ENUMERATION = 1 << 16  # prefixes that are read in the search for a mistake


class Mistake(NamedTuple):
    """Two inputs of different value, to which a model gives one answer."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    cut: int  # after so many symbols the model was in one state
    answer: int


@dataclass(frozen=True, eq=False)
class FiniteFunction:
    """f by its truth table, dealt to Alice, who holds the positions `alice`, and Bob.

    >>> palindrome = FiniteFunction.of(lambda s: s == s[::-1], N=6)  # dealt the hardest way
    >>> palindrome.alice, palindrome.bits, palindrome.state_bits
    ((0, 1, 2), (4, 4), 3)
    >>> palindrome.one_layer_width(p=1), palindrome.recurrent_units(p=1)
    (1, 3)
    """

    table: Shaped[np.ndarray, "..."]  # one axis of length q for each symbol
    alice: tuple[int, ...]

    @classmethod
    def of(
        cls,
        f: Callable[[tuple[int, ...]], object] | Sequence[int] | np.ndarray,
        N: int,
        alice: Sequence[int] | None = None,
        *,
        alphabet: int = 2,
    ) -> "FiniteFunction":
        """`f`: a predicate of a tuple of symbols, or its q^N values, the first symbol first.

        Without `alice` it is the balanced partition that needs most bits by rank, if N <= 8, and
        the first half beyond that.
        """
        check_int("N", N, low=1)
        whole = split(f, N, range(N), alphabet=alphabet)  # refuses what is no such function
        table = whole.matrix.reshape((alphabet,) * N)
        if alice is not None:
            return cls(table, tuple(sorted(alice)))
        half = N // 2
        sides = [tuple(range(half))]
        if N <= _MOST_TRIED:
            sides = [s for s in itertools.combinations(range(N), half) if not s or s[0] == 0]
        return max((cls(table, side) for side in sides), key=lambda g: g.problem.lower_bound)

    @property
    def N(self) -> int:
        """Symbols of an input."""
        return self.table.ndim

    @property
    def alphabet(self) -> int:
        """|Σ|."""
        return self.table.shape[0]

    def dealt(self, alice: Sequence[int]) -> Problem:
        """The same function with other positions for Alice."""
        return split(self.table.ravel(), self.N, alice, alphabet=self.alphabet)

    @cached_property
    def problem(self) -> Problem:
        """The matrix M, with the larger of its two fooling sets."""
        bare = self.dealt(self.alice)
        found = max((fooling_set(bare, b) for b in (0, 1)), key=len)
        return Problem("f", bare.matrix, tuple(found))

    @cached_property
    def bits(self) -> tuple[int, int]:
        """Bounds on D; they are equal where it is known, as for up to 16 distinct rows."""
        try:
            D = self.problem.complexity()
        except ValueError:
            return self.problem.lower_bound, self.problem.upper_bound
        return D, D

    def one_layer_width(self, p: int, H: int = 1) -> int:
        """No one-layer Transformer with H narrower heads of p-bit numbers computes f."""
        ends = (self.alphabet - 1).bit_length() + 1  # the last symbol, and the answer
        return least_width(self.bits[0], self.N, p, H, ends=ends)

    @cached_property
    def residual_classes(self) -> list[int]:
        """For each cut K = 0, ..., N, how many different futures the prefixes have."""
        rows = (self.table.reshape(self.alphabet**K, -1) for K in range(self.N + 1))
        return [len(np.unique(M, axis=0)) for M in rows]

    @property
    def state_bits(self) -> int:
        """No recurrent model with a smaller state computes f; time-dependent steps need no more."""
        return (max(self.residual_classes) - 1).bit_length()

    def recurrent_units(self, p: int) -> int:
        """The same in units of p bits."""
        check_int("p", p, low=1)
        return -(-self.state_bits // p)

    def summary(self, p: int = 16, H: int = 1) -> list[tuple[str, object]]:
        """All of it, line by line, for a table."""
        low, high = self.bits
        return [
            ("rows and columns of M", " × ".join(map(str, self.problem.matrix.shape))),
            ("Alice's positions", ", ".join(map(str, self.alice))),
            ("rank of M, and of its complement", f"{self.problem.rank(1)}, {self.problem.rank(0)}"),
            ("fooling set", len(self.problem.fooling)),
            ("D, bits both ways", low if low == high else f"{low} to {high}"),
            ("bits, Alice only", self.problem.one_way("Alice")),
            ("bits, Bob only", self.problem.one_way("Bob")),
            (f"one layer: least width (p = {p}, H = {H})", self.one_layer_width(p, H)),
            ("recurrent: least bits of state", self.state_bits),
            (f"recurrent: least units (p = {p})", self.recurrent_units(p)),
        ]

    def find_mistake(self, model: SequenceModel) -> Mistake:
        """Theorem 2 as a search: two inputs that a model with too small a state confuses.

        Refuses a model whose state is large enough for every cut: nothing is promised there.
        """
        for K, classes in enumerate(self.residual_classes):
            with torch.no_grad():
                _, state = model.steps(torch.zeros(1, K, dtype=torch.int64, device=model.device))
            if 2 ** model.state_bits(state) < classes:
                return self._confused(model, K)
        raise ValueError(
            f"expected a state below {self.state_bits} bits, got {model.state_bits(state)}"
        )

    def _confused(self, model: SequenceModel, K: int) -> Mistake:
        check_int("prefixes to read", self.alphabet**K, low=1, high=_LARGEST_ENUMERATION)
        futures = self.table.reshape(self.alphabet**K, -1)
        prefixes = list(itertools.product(range(self.alphabet), repeat=K))
        with torch.no_grad():
            _, state = model.steps(torch.tensor(prefixes, device=model.device))
        seen: dict[bytes, int] = {}
        for i, key in enumerate(state.keys()):
            j = seen.setdefault(key, i)
            if (futures[i] != futures[j]).any():
                at = int((futures[i] != futures[j]).argmax())
                rest = tuple(int(s) for s in np.unravel_index(at, self.table.shape[K:]))
                first, second = (prefixes[k] + rest for k in (j, i))
                logits = model.steps(torch.tensor([first, second], device=model.device))[0]
                answers = logits[:, -1].argmax(-1).tolist()
                if answers[0] != answers[1]:
                    raise AssertionError(
                        "equal states, different answers: more is kept than packed"
                    )
                return Mistake(first, second, K, answers[0])
        raise AssertionError("more kinds of prefixes than states, yet no two shared one")


def fooling_set(problem: Problem, b: int) -> list[tuple[int, int]]:
    """A fooling set of value b: a largest one among up to 64 cells, else one that no cell extends.

    >>> from companion.theory.problems import equality
    >>> len(fooling_set(equality(7), 1))
    128
    """
    same = problem.matrix == b
    if int(same.sum()) <= _LARGEST_CLIQUE:
        return problem.largest_fooling(b)
    left, found = same.copy(), []
    while left.any():
        x, y = (int(i) for i in np.unravel_index(left.argmax(), left.shape))
        found.append((x, y))
        left &= ~(same[x] & same[:, y, None])  # cells that would fool nobody beside (x, y)
    return found
