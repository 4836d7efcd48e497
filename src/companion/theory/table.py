"""The separations in one table: task by architecture, what each needs on inputs of length N.

This is the only copy. The landing page, the README and the chapters draw from it.

======= ==========================================================================
p       bits of a number; log is base 2
needs   a lower bound: no model of this kind does with less
enough  an upper bound: a model of this kind is constructed
exactly both, and they meet
======= ==========================================================================
"""

from dataclasses import dataclass
from typing import Literal

ARCHITECTURES = {
    "rnn": "Recurrent model, any depth: bits of state",
    "one": "Transformer, one layer: width",
    "two": "Transformer, two layers: width",
}


@dataclass(frozen=True)
class Entry:
    """What one architecture needs for one task."""

    bound: Literal["needs", "enough", "exactly", "open"]
    formula: str  # LaTeX, without dollar signs
    source: str  # theorem of the paper, or who showed it
    chapter: int  # the chapter that executes it
    ours: bool = False  # sharpened or supplied in this book

    def __post_init__(self):
        if self.bound not in ("needs", "enough", "exactly", "open"):
            raise ValueError(f"expected a kind of bound, got {self.bound!r}")


@dataclass(frozen=True)
class Row:
    """A task, and what each architecture needs for it."""

    task: str
    rnn: Entry
    one: Entry
    two: Entry


TABLE = (
    Row(
        "Index Lookup, index last",
        Entry("exactly", r"N\log|\Sigma|", "Theorem 3", 3, ours=True),
        Entry("enough", r"\log|\Sigma|+2\log N", "Theorem 1", 2, ours=True),
        Entry("enough", r"O(\log N)", "Theorem 1", 2),
    ),
    Row(
        "Index Lookup, index first",
        Entry("exactly", r"\lceil\log(N-1+|\Sigma|)\rceil", "authors' response", 3, ours=True),
        Entry("enough", r"O(\log N)", "Theorem 1", 2),
        Entry("enough", r"O(\log N)", "Theorem 1", 2),
    ),
    Row(
        "Multi-Index Lookup, $k$ indices first and last",
        Entry("needs", r"k\log|\Sigma|", "authors' response", 3, ours=True),
        Entry("enough", r"O(\log N)", "authors' response", 3),
        Entry("enough", r"O(\log N)", "authors' response", 3),
    ),
    Row(
        "Associative recall",
        Entry("needs", r"N", "Proposition 9", 7),
        Entry("open", "", "open in the paper; settled later", 7),
        Entry("enough", r"O(\log N)", "Theorem 7", 7),
    ),
    Row(
        "Nearest neighbour",
        Entry("needs", r"N/2", "Theorem 8", 7),
        Entry("open", "", "open in the paper", 7),
        Entry("enough", r"2d'+O(\log N)", "Theorem 7, repaired", 7, ours=True),
    ),
    Row(
        "Dyck-(2,2)",
        Entry("enough", r"3", "Section 4.1", 5),
        Entry("needs", r"\Omega(N/p)", "Theorem 5", 5),
        Entry("enough", r"8+2\log N", "this book", 5, ours=True),
    ),
    Row(
        "Equality",
        Entry("exactly", r"N/2", "Theorem 11", 6, ours=True),
        Entry("needs", r"\Omega(N/p)", "Theorem 12", 6),
        Entry("enough", r"2+2\log N", "Theorem 6", 6, ours=True),
    ),
    Row(
        "Disjointness",
        Entry("exactly", r"N/2", "Fact 1 and Theorem 2", 6, ours=True),
        Entry("needs", r"\Omega(N/p)", "Theorem 4 and Fact 1", 6),
        Entry("enough", r"O(\log N)", "Theorem 13", 6),
    ),
    Row(
        "Inner product mod 2, on average",
        Entry("needs", r"N/2-2\log\tfrac1{2\varepsilon}", "authors' response", 8, ours=True),
        Entry("needs", r"\Omega(N/p)", "authors' response", 8),
        Entry("open", "", "not covered", 8),
    ),
)
