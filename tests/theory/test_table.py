"""The table's values are those of the objects that the chapters build."""

import math

import pytest

from companion.theory.bounds import index_first_bits, least_width, needed_bits, two_way_bits
from companion.theory.dyck_transformer import DyckTransformer
from companion.theory.equality import Equality
from companion.theory.fixed_point import FixedPoint
from companion.theory.index_lookup import IndexLookup
from companion.theory.inequality import RotatingRegister
from companion.theory.nearest_neighbor import NearestNeighbor
from companion.theory.recurrent import IndexFirst, ShiftRegister
from companion.theory.sparse_threshold import intersection
from companion.theory.table import ARCHITECTURES, TABLE, bits, longest
from companion.theory.vectors import binary


def row(start):
    (found,) = (row for row in TABLE if row.task.startswith(start))
    return found


@pytest.mark.claim("Summary table", "widths of the constructions, N = {N}")
@pytest.mark.parametrize("N", [4, 16, 64])
def test_widths_are_those_of_the_constructions(N):
    lookup = IndexLookup.build(N, 64, binary(N))
    assert row("Index Lookup, index last").one.value(N, 16, 64) == lookup.width
    equal = Equality.build(N, T=binary(N))
    assert row("Equality").two.value(N, 16, 2) == equal.stack.width
    disjoint = intersection(N, T=binary(2 * N))
    assert row("Disjointness").two.value(N, 16, 2) == disjoint.stack.width
    nearest = NearestNeighbor.build(N, math.ceil(math.log2(N)), 0.5, T=binary(2 * N))
    assert row("Nearest neighbour").two.value(N, 16, 2) == nearest.stack.width
    pairs = NearestNeighbor.build(N + 1, math.ceil(math.log2(N + 1)), 0.5, T=binary(2 * N + 2))
    assert row("Associative recall").two.value(N, 16, 2) == pairs.stack.width
    assert row("Dyck").two.value(N, 16, 4) == DyckTransformer(N).width


@pytest.mark.claim("Summary table")
@pytest.mark.parametrize("N", [16, 64])
def test_constructions_run_on_the_grid_that_the_table_says(N):
    def grid(start, architecture):
        return FixedPoint.paper(N, getattr(row(start), architecture).K_c, softmax="early")

    lookup = grid("Index Lookup, index last", "one")
    assert IndexLookup.build(N, 64, binary(N), arithmetic=lookup).margin > 0
    assert Equality.build(N, T=binary(N), arithmetic=grid("Equality", "two")).margin >= 0
    assert intersection(N, T=binary(2 * N), arithmetic=grid("Disjointness", "two")).margin >= 0
    assert DyckTransformer(N, grid("Dyck", "two")).margin > 0
    nearest = grid("Nearest neighbour", "two")
    d = math.ceil(math.log2(N))
    assert NearestNeighbor.build(N, d, 0.5, T=binary(2 * N), arithmetic=nearest).margin > 0


@pytest.mark.claim("Summary table", "states of the machines, N = {N}")
@pytest.mark.parametrize("N", [4, 16, 64])
def test_states_are_those_of_the_machines(N):
    def size(machine):
        return machine.state_bits(machine.initial_state(1))

    assert row("Index Lookup, index last").rnn.value(N, 16, 64) == size(ShiftRegister(N, 64))
    first = row("Index Lookup, index first").rnn.value(N, 16, 64)
    assert first == size(IndexFirst(N, 64)) == index_first_bits(N, 64)
    assert row("Equality").rnn.value(N, 16, 2) == size(RotatingRegister(N))


@pytest.mark.parametrize("state_bits", [0, 5, 37, 2048, 10_000])
def test_longest_is_the_last_even_length_that_the_bits_allow(state_bits):
    for entry in TABLE:
        N, value = longest(entry, state_bits), entry.rnn.value
        if entry.rnn.bound == "enough":
            assert N is None
        elif N is None:
            assert value(1 << 60, 1, 64) <= state_bits
        else:
            assert N % 2 == 0 and value(N + 2, 1, 64) > state_bits
            assert N == 0 or value(N, 1, 64) <= state_bits


@pytest.mark.claim("Summary table", "least widths of one layer: {task}")
@pytest.mark.parametrize("task", ["dyck", "equality", "disjointness"])
def test_one_layer_widths_are_the_least_that_the_protocol_allows(task):
    N, p = 4096, 16
    ends = 3 if task == "dyck" else 2
    m = least_width(needed_bits(task, N), N, p, 1, ends=ends)
    assert two_way_bits(m, p, 1, N, ends=ends) >= needed_bits(task, N)
    assert two_way_bits(m - 1, p, 1, N, ends=ends) < needed_bits(task, N)
    (value,) = {r.one.value(N, p, 2) for r in TABLE if r.task.lower().startswith(task)}
    assert value == m


@pytest.mark.claim("Summary table")
def test_every_entry_evaluates_or_is_open_and_the_separations_show():
    for r in TABLE:
        for architecture in ARCHITECTURES:
            value = bits(r, architecture, 1 << 20, 32, 64)
            is_open = getattr(r, architecture).bound == "open"
            assert (value is None) if is_open else (value > 0)
    N = 1 << 20
    assert bits(row("Index Lookup, index last"), "rnn", N, 32, 64) > 1000 * bits(
        row("Index Lookup, index last"), "one", N, 32, 64
    )
    for task in ("Dyck", "Equality", "Disjointness"):
        assert bits(row(task), "one", N, 32, 2) > 40 * bits(row(task), "two", N, 32, 2)
    assert bits(row("Dyck"), "rnn", N, 32, 4) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((12, 16, 64), "power of two, got 12"),
        ((1, 16, 64), "got 1"),
        ((16, 16, 3), "power of two, got 3"),
        ((16, 0, 64), "p >= 1, got 0"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        bits(TABLE[0], "rnn", *arguments)
