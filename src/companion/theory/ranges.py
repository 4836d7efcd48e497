"""Which arithmetic is enough: how long inputs may be, by construction and format of numbers.

Every construction is built for one arithmetic and refuses where it would be wrong there. Here each
is asked, length after length, until it refuses; nothing is typed in. `measure` makes the table.

======= ==========================================================================
N       length of the input; for nearest neighbours, points
p       bits of a number in fixed point, divided between f and R as suits the construction best
K_c     the paper's grid, 2 K_c log N + 2 bits, which grows with N
======= ==========================================================================

On all grids exponentials are rounded before they are added, as in Appendix D. An accepted length is
a promise about all inputs; a refused one is refused by a *bound*, and may be fine on some of them.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch

from companion.theory.dyck import Dyck
from companion.theory.dyck_lstm import RoundedLSTM
from companion.theory.dyck_networks import Elman
from companion.theory.dyck_transformer import DyckTransformer
from companion.theory.equality import Equality
from companion.theory.fixed_point import Arithmetic, FixedPoint, Floating, TooWide
from companion.theory.index_lookup import IndexLookup
from companion.theory.nearest_neighbor import NearestNeighbor
from companion.theory.one_layer_equality import OneLayerEquality
from companion.theory.paper_nearest_neighbor import PaperNearestNeighbor
from companion.theory.sparse_threshold import intersection, majority
from companion.theory.vectors import Family, binary, trace_code

_ALPHABET, _DIMENSION = 64, 16
_BETA = 20.0  # sharpness of sigmoids


class Construction(NamedTuple):
    """What is built, for which lengths it is tried, and where it is explained."""

    name: str
    claim: str
    chapter: int
    build: Callable[[int, Arithmetic], object]
    sizes: tuple[int, ...]


class Range(NamedTuple):
    """The outcome for one construction in one format."""

    construction: str
    format: str
    first: int | None  # the first length accepted, or None
    last: int | None  # the last before one is refused
    refused: int | None  # that one; without `first`, the last that was tried; None if there is none
    reason: str  # what this refusal says
    ours: bool  # the format would do, but not the 64-bit integers that we compute it in


EVERY = 0  # stands for every length, for networks that need not know it


def _powers(first: int, last: int) -> tuple[int, ...]:
    return tuple(1 << n for n in range(first, last + 1))


@lru_cache
def _orthogonal(N: int) -> Family:
    return trace_code(2 * N, max(4, (2 * N - 1).bit_length()), t=1)


def _fingerprints(N: int, a: Arithmetic) -> OneLayerEquality:
    return OneLayerEquality.random(N, 8, a, rng=np.random.default_rng(0))


def _dyck(make: Callable, **options) -> Callable[[int, Arithmetic], object]:
    return lambda N, a: make(Dyck(2, 2).automaton(), "()[]", arithmetic=a, **options)


CONSTRUCTIONS = (
    Construction(
        "Index Lookup",
        "Theorem 1",
        2,
        lambda N, a: IndexLookup.build(N, _ALPHABET, binary(N), arithmetic=a),
        _powers(1, 20),
    ),
    Construction(
        "Equality, two layers",
        "Theorem 6",
        6,
        lambda N, a: Equality.build(N, binary(N), arithmetic=a),
        _powers(1, 16),
    ),
    Construction(
        "Disjointness, two layers",
        "Theorem 13",
        6,
        lambda N, a: intersection(N, T=binary(2 * N), arithmetic=a),
        _powers(1, 11),
    ),
    Construction(
        "Majority, two layers",
        "Theorem 13",
        6,
        lambda N, a: majority(N, T=binary(2 * N), arithmetic=a),
        _powers(1, 11),
    ),
    Construction(
        "Nearest neighbour, γ = 1/4",
        "Theorem 7, repaired",
        7,
        lambda N, a: NearestNeighbor.build(N, _DIMENSION, 0.25, binary(2 * N), a),
        _powers(1, 16),
    ),
    Construction(
        "Nearest neighbour, γ = 1/N",
        "Theorem 7, repaired",
        7,
        lambda N, a: NearestNeighbor.build(N, _DIMENSION, 1 / N, binary(2 * N), a),
        _powers(1, 16),
    ),
    Construction(
        "Nearest neighbour, the paper's way, γ = 1/4",
        "Theorem 7",
        7,
        lambda N, a: PaperNearestNeighbor(N, _DIMENSION, 0.25, _orthogonal(N), arithmetic=a),
        _powers(1, 9),
    ),
    Construction(
        "Dyck-(2,2), two layers",
        "Depth separation for Dyck",
        5,
        DyckTransformer,
        _powers(1, 11),
    ),
    Construction(
        "Equality, one layer, exact",
        "Theorem 12",
        6,
        OneLayerEquality.exact,
        _powers(1, 6),
    ),
    Construction(
        "Equality, one layer, fingerprints", "Theorem 12", 6, _fingerprints, _powers(1, 16)
    ),
    Construction(
        "Dyck-(2,2), ReLU network", "Constant-size RNN for Dyck", 5, _dyck(Elman), (EVERY,)
    ),
    Construction(
        "Dyck-(2,2), sigmoid network",
        "Constant-size RNN for Dyck",
        5,
        _dyck(Elman, activation="sigmoid", beta=_BETA),
        (EVERY,),
    ),
    Construction(
        "Dyck-(2,2), LSTM",
        "Constant-size RNN for Dyck",
        5,
        _dyck(RoundedLSTM, beta=_BETA),
        (EVERY,),
    ),
)
"""All constructions; those of recurrent networks are right at every length, and so have none."""


def _float(dtype: torch.dtype) -> Callable[[int], Iterator[Arithmetic]]:
    return lambda N: iter([Floating(dtype)])


def _bits(p: int) -> Callable[[int], Iterator[Arithmetic]]:
    """Every division of p bits, the even ones first: a sign, f bits behind the point, the rest."""
    splits = sorted(range(p - 1), key=lambda f: abs(2 * f - p))
    return lambda N: (FixedPoint(f, ((1 << p) - 1) >> (f + 1), softmax="early") for f in splits)


def _paper(K_c: int) -> Callable[[int], Iterator[Arithmetic]]:
    return lambda N: iter([FixedPoint.paper(N, K_c, softmax="early")] if N else [])


FORMATS: dict[str, Callable[[int], Iterator[Arithmetic]]] = {
    "float64": _float(torch.float64),
    "float32": _float(torch.float32),
    "float16": _float(torch.float16),
    "bfloat16": _float(torch.bfloat16),
    "8 bits": _bits(8),
    "16 bits": _bits(16),
    "32 bits": _bits(32),
    "K_c = 1": _paper(1),
    "K_c = 2": _paper(2),
}


def built(construction: Construction, format: str, N: int) -> object:
    """The construction in this format, in the first arithmetic of it that is accepted.

    Raises the first refusal if none is.

    >>> lookup = next(c for c in CONSTRUCTIONS if c.name.startswith("Index Lookup"))
    >>> built(lookup, "8 bits", 1 << 20).arithmetic.p
    8
    """
    refusals: list[Exception] = []
    for arithmetic in FORMATS[format](N):
        try:
            return construction.build(N, arithmetic)
        except (ValueError, OverflowError) as refusal:
            refusals.append(refusal)
    raise (refusals or [ValueError("expected a length, which sets the grid, got every length")])[0]


def measure(construction: Construction, format: str) -> Range:
    """Ask for length after length, from the first that is accepted until one is refused."""
    first = last = refused = None
    reason, ours = "", False
    for N in construction.sizes:
        try:
            built(construction, format, N)
        except (ValueError, OverflowError) as refusal:
            refused, reason, ours = N, str(refusal), isinstance(refusal, TooWide)
            if first is not None:
                break
        else:
            first, last = N if first is None else first, N
            refused, reason, ours = None, "", False
    return Range(construction.name, format, first, last, refused, reason, ours)


def ranges() -> list[Range]:
    """The whole table, row by row."""
    return [measure(construction, format) for construction in CONSTRUCTIONS for format in FORMATS]
