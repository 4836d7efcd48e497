"""k-sparse features as truth tables, and formulas in the DIMACS format.

======= ==========================================================================
k       bits that a feature depends on
table   its 2^k answers; entry a is for the bits of the number a, lowest first
literal as in DIMACS: variable v = 1, ..., N is bit v - 1, and -v its negation
======= ==========================================================================
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Shaped

from companion.theory._check import check_int

_LARGEST_K = 10  # a table of 2^k answers is part of every token


@dataclass(frozen=True)
class Feature:
    """g(x) = table[bits of x at `indices`].

    >>> Feature.of((0, 3), lambda a, b: a and not b)
    Feature(indices=(0, 3), table=(0, 1, 0, 0))
    """

    indices: tuple[int, ...]
    table: tuple[int, ...]

    def __post_init__(self):
        check_int("k", len(self.indices), low=0, high=_LARGEST_K)
        if len(set(self.indices)) < len(self.indices):
            raise ValueError(f"expected different indices, got {self.indices}")
        check_int("index", min(self.indices, default=0), low=0)
        if len(self.table) != 1 << len(self.indices):
            needed = 1 << len(self.indices)
            raise ValueError(f"expected a table of {needed} answers, got {len(self.table)}")
        if not set(self.table) <= {0, 1}:
            raise ValueError(f"expected answers 0 and 1, got {self.table}")

    @classmethod
    def of(cls, indices: Sequence[int], function: Callable[..., object]) -> "Feature":
        """From a Python predicate of k bits."""
        check_int("k", len(indices), low=0, high=_LARGEST_K)
        k = len(indices)
        rows = ([a >> i & 1 for i in range(k)] for a in range(1 << k))
        return cls(tuple(indices), tuple(int(bool(function(*row))) for row in rows))

    def __call__(self, x: Shaped[np.ndarray, "B N"]) -> Int[np.ndarray, " B"]:
        """Its value on every row of bits."""
        place = (x[:, list(self.indices)].astype(np.int64) << np.arange(len(self.indices))).sum(-1)
        return np.array(self.table)[place]


def terms_hold(terms: Iterable[Iterable[int]]) -> list[Feature]:
    """A feature a term: all its literals are true. A term with v and -v never holds."""
    return [_literals(term, lambda true: all(true)) for term in terms]


def clauses_fail(clauses: Iterable[Iterable[int]]) -> list[Feature]:
    """A feature a clause: all its literals are false.

    >>> clauses_fail([(1, -2)])
    [Feature(indices=(0, 1), table=(0, 0, 1, 0))]
    """
    return [_literals(clause, lambda true: not any(true)) for clause in clauses]


def _literals(literals: Iterable[int], function: Callable[[list[bool]], bool]) -> Feature:
    literals = list(dict.fromkeys(literals))
    if 0 in literals:
        raise ValueError(f"expected literals other than 0, got {literals}")
    indices = sorted({abs(v) - 1 for v in literals})

    def value(*bits):
        read = dict(zip(indices, bits, strict=True))
        return function([bool(read[abs(v) - 1]) == (v > 0) for v in literals])

    return Feature.of(indices, value)


class CNF(NamedTuple):
    """A formula in conjunctive normal form."""

    N: int
    clauses: list[tuple[int, ...]]


def read_dimacs(text: str) -> CNF:
    """A formula from the text of a DIMACS CNF file.

    >>> read_dimacs("c a comment\\np cnf 3 2\\n1 -2 0 2\\n3 0\\n")
    CNF(N=3, clauses=[(1, -2), (2, 3)])

    Raises ValueError, with the line, for anything else than comments, one "p cnf N M", and M
    clauses of literals up to N that end in 0. A "%" line ends the file, as in SATLIB's.
    """
    header: tuple[int, int] | None = None
    literals: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("c"):
            continue
        if words[0] == "%":
            break
        if words[0] == "p":
            if header is not None:
                raise ValueError(f"line {number}: expected one header, got another: {line!r}")
            header = _header(words, number)
        elif header is None:
            raise ValueError(f"line {number}: expected 'p cnf N M' first, got {line!r}")
        else:
            literals += [_literal(word, header[0], number) for word in words]
    if header is None:
        raise ValueError("expected a line 'p cnf N M', got none")
    return CNF(header[0], _clauses(literals, header[1]))


def _header(words: list[str], number: int) -> tuple[int, int]:
    if len(words) != 4 or words[1] != "cnf" or not all(w.isdecimal() for w in words[2:]):
        raise ValueError(f"line {number}: expected 'p cnf N M', got {' '.join(words)!r}")
    return int(words[2]), int(words[3])


def _literal(word: str, N: int, number: int) -> int:
    if not word.removeprefix("-").isdecimal():
        raise ValueError(f"line {number}: expected a literal, got {word!r}")
    if abs(int(word)) > N:
        raise ValueError(f"line {number}: expected literals up to {N}, got {word}")
    return int(word)


def _clauses(literals: list[int], M: int) -> list[tuple[int, ...]]:
    clauses: list[tuple[int, ...]] = []
    clause: list[int] = []
    for literal in literals:
        if literal:
            clause.append(literal)
        else:
            clauses.append(tuple(clause))
            clause = []
    if clause:
        raise ValueError(f"expected a 0 after the last clause, got {clause}")
    if len(clauses) != M:
        raise ValueError(f"expected {M} clauses, got {len(clauses)}")
    return clauses
