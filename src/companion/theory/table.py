"""The separations in one table: task by architecture, what each needs on inputs of length N.

This is the only copy; the landing page and its explorer draw from it. An entry's `value`
evaluates its formula: bits of state for a recurrent model, width for a Transformer, the constants
being those of this book's constructions and bounds.

======= ==========================================================================
N       length of the input, for some tasks the number of pairs or points; a power of
        two where a value is asked for
p       bits of a number; log is base 2
q       size of the alphabet, |Σ|
needs   a lower bound: no model of this kind does with less
enough  an upper bound: a model of this kind is constructed
exactly both, and they meet
======= ==========================================================================
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from companion.theory._check import check_int
from companion.theory.average_case import one_layer_bits, recurrent_bits
from companion.theory.bounds import (
    index_first_bits,
    least_width,
    lookup_bits,
    multi_index_bits,
    needed_bits,
)

ARCHITECTURES = {
    "rnn": "Recurrent model, any depth: bits of state",
    "one": "Transformer, one layer: width",
    "two": "Transformer, two layers: width",
}
LONGEST = 1 << 60  # beyond any input
EPSILON = 0.25  # advantage over guessing at which average-case entries are evaluated


@dataclass(frozen=True)
class Entry:
    """What one architecture needs for one task."""

    bound: Literal["needs", "enough", "exactly", "open"]
    formula: str  # LaTeX, without dollar signs
    source: str  # theorem of the paper, or who showed it
    chapter: int  # the chapter that executes it
    value: Callable[[int, int, int], float] | None = None  # (N, p, q)
    ours: bool = False  # sharpened or supplied in this book
    K_c: int = 1  # the construction runs on the paper's grid of this constant, 2 K_c log N + 2 bits


@dataclass(frozen=True)
class Row:
    """A task, and what each architecture needs for it."""

    task: str
    rnn: Entry
    one: Entry
    two: Entry


def bits(row: Row, architecture: str, N: int, p: int, q: int) -> float | None:
    """Bits that an architecture must hold at once: its state, or one vector of its width.

    None where the question is open. A construction's numbers have p bits, or as many as the grid
    takes on which it is known to be right, if that is more.

    >>> bits(TABLE[0], "rnn", N=1024, p=16, q=64), bits(TABLE[0], "one", N=1024, p=16, q=64)
    (6144.0, 572.0)
    """
    check_int("N", N, low=2)
    check_int("p", p, low=1)
    check_int("q", q, low=2)
    for name, value in (("N", N), ("q", q)):
        if value & (value - 1):
            raise ValueError(f"expected {name} to be a power of two, got {value}")
    entry = getattr(row, architecture)
    if entry.value is None:
        return None
    if architecture == "rnn":
        return float(entry.value(N, p, q))
    if entry.bound == "enough":
        p = max(p, 2 * entry.K_c * _log(N) + 2)
    return float(entry.value(N, p, q) * p)


def longest(row: Row, state_bits: int, q: int = 64) -> int | None:
    """The largest even N that the table leaves to a recurrent model with such a state: two more,
    and no weights of any such model do the task. Up to it nothing is promised, unless the entry
    says "exactly". None where no N up to 2^60 is excluded.

    >>> [longest(row, 2048) for row in TABLE[:2]], longest(TABLE[5], 2048)
    ([340, None], None)
    """
    check_int("state_bits", state_bits, low=0)
    check_int("q", q, low=2)
    entry = row.rnn
    assert entry.value is not None
    if entry.bound == "enough" or entry.value(LONGEST, 1, q) <= state_bits:
        return None
    low, high = 0, LONGEST // 2  # of halves: low is allowed, high is not
    while high - low > 1:
        middle = (low + high) // 2
        if entry.value(2 * middle, 1, q) <= state_bits:
            low = middle
        else:
            high = middle
    return 2 * low


def _log(x: int) -> int:
    return math.ceil(math.log2(x))


def _lookup(N: int, p: int, q: int) -> int:
    return _log(q) + 2 * _log(N)


def _halves(task: str) -> Callable[[int, int, int], int]:
    ends = 3 if task == "dyck" else 2  # one of four symbols or of two, and the answer
    return lambda N, p, q: least_width(needed_bits(task, N), N, p, 1, ends=ends)


def _nearest(points: int) -> int:
    return 2 * _log(points) + 3 + 2 * _log(2 * points)  # dimensions and addresses in binary


_LOOKUP = ("enough", r"O(\log N)")

TABLE = (
    Row(
        "Index Lookup, index last",
        Entry("exactly", r"N\log|\Sigma|", "Theorem 3", 3, lambda N, p, q: lookup_bits(N, q), True),
        Entry("enough", r"\log|\Sigma|+2\log N", "Theorem 1", 2, _lookup, True),
        Entry(*_LOOKUP, "Theorem 1", 2, _lookup),
    ),
    Row(
        "Index Lookup, index first",
        Entry(
            "exactly",
            r"\lceil\log(N-1+|\Sigma|)\rceil",
            "authors' response",
            3,
            lambda N, p, q: index_first_bits(N, q),
            True,
        ),
        Entry(*_LOOKUP, "Theorem 1", 2, _lookup),
        Entry(*_LOOKUP, "Theorem 1", 2, _lookup),
    ),
    Row(
        "Multi-Index Lookup, $N/2$ indices first and last",
        Entry(
            "needs",
            r"\tfrac N2\log|\Sigma|",
            "authors' response",
            3,
            lambda N, p, q: multi_index_bits(N // 2, q),
            True,
        ),
        Entry(*_LOOKUP, "authors' response", 3, _lookup),
        Entry(*_LOOKUP, "authors' response", 3, _lookup),
    ),
    Row(
        "Associative recall of $N$ pairs",
        Entry("needs", r"N", "Proposition 9", 7, lambda N, p, q: N),
        Entry("open", "", "open in the paper; for a relative settled later", 7),
        Entry(*_LOOKUP, "Theorem 7", 7, lambda N, p, q: _nearest(N + 1), K_c=2),
    ),
    Row(
        "Nearest neighbour, $N$ points in $d'$ dimensions",
        Entry("needs", r"N/2", "Theorem 8", 7, lambda N, p, q: N / 2),
        Entry("open", "", "open in the paper", 7),
        Entry(
            "enough",
            r"2d'+O(\log N)",
            "Theorem 7, repaired",
            7,
            lambda N, p, q: _nearest(N),
            True,
            K_c=2,
        ),
    ),
    Row(
        "Dyck-(2,2)",
        Entry("enough", r"3", "Section 4.1", 5, lambda N, p, q: 3),
        Entry("needs", r"\Omega(N/p)", "Theorem 5", 5, _halves("dyck")),
        Entry("enough", r"7+2\log N", "this book", 5, lambda N, p, q: 7 + 2 * _log(N), True, 2),
    ),
    Row(
        "Equality",
        Entry("exactly", r"N/2", "Theorem 11", 6, lambda N, p, q: N / 2, True),
        Entry("needs", r"\Omega(N/p)", "Theorem 12", 6, _halves("equality")),
        Entry("enough", r"2+2\log N", "Theorem 6", 6, lambda N, p, q: 2 + 2 * _log(N), True),
    ),
    Row(
        "Disjointness",
        Entry("exactly", r"N/2", "Fact 1 and Theorem 2", 6, lambda N, p, q: N / 2, True),
        Entry("needs", r"\Omega(N/p)", "Theorem 4 and Fact 1", 6, _halves("disjointness")),
        Entry(*_LOOKUP, "Theorem 13", 6, lambda N, p, q: 7 + 3 * (_log(N) + 1), K_c=2),
    ),
    Row(
        "Inner product mod 2, on average",
        Entry(
            "needs",
            r"N/2-2\log\tfrac1{2\varepsilon}",
            "authors' response",
            8,
            lambda N, p, q: max(0.0, recurrent_bits(N, EPSILON)),
            True,
        ),
        Entry(
            "needs",
            r"\Omega(N/p)",
            "authors' response",
            8,
            lambda N, p, q: least_width(max(0, math.ceil(one_layer_bits(N, EPSILON))), N, p, 1),
        ),
        Entry("open", "", "not covered", 8),
    ),
)
