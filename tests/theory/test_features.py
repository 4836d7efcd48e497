"""Truth tables and DIMACS files."""

import itertools

import numpy as np
import pytest

from companion.theory.features import Feature, clauses_fail, read_dimacs, terms_hold


def all_bits(N):
    return np.array(list(itertools.product((0, 1), repeat=N)))


@pytest.mark.parametrize("indices", [(), (2,), (3, 0), (1, 2, 0)], ids=str)
def test_table_is_the_predicate(indices):
    x = all_bits(4)

    def odd(*bits):
        return sum(bits) % 2

    assert (Feature.of(indices, odd)(x) == x[:, list(indices)].sum(1) % 2).all()


def test_literals():
    x = all_bits(3)
    term, clause = terms_hold([(1, -3)])[0], clauses_fail([(-1, 2)])[0]
    assert (term(x) == (x[:, 0] & (1 - x[:, 2]))).all()
    assert (clause(x) == (x[:, 0] & (1 - x[:, 1]))).all()
    assert not terms_hold([(2, -2)])[0](x).any() and not clauses_fail([(2, -2)])[0](x).any()
    assert terms_hold([()])[0](x).all() and clauses_fail([()])[0](x).all()
    assert terms_hold([(1, 1)])[0] == Feature((0,), (0, 1))


def test_dimacs_clauses_may_break_and_share_lines():
    text = "c made by hand\np cnf 4 3\n1 -4\n0 2 3 -1 0\n-2\n-3 0\n%\n0\n"
    assert read_dimacs(text) == (4, [(1, -4), (2, 3, -1), (-2, -3)])
    assert read_dimacs("p cnf 0 0\n") == (0, [])
    assert read_dimacs("p cnf 1 1\n0\n") == (1, [()])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'p cnf N M', got none"),
        ("1 0\n", "line 1: expected 'p cnf N M' first, got '1 0'"),
        ("p cnf 2\n", "line 1: expected 'p cnf N M', got 'p cnf 2'"),
        ("p cnf 2 0\np cnf 2 0\n", "line 2: expected one header"),
        ("p cnf 2 1\n1 3 0\n", "line 2: expected literals up to 2, got 3"),
        ("p cnf 2 1\n1 x 0\n", "line 2: expected a literal, got 'x'"),
        ("p cnf 2 1\n1 2\n", r"a 0 after the last clause, got \[1, 2\]"),
        ("p cnf 2 2\n1 2 0\n", "expected 2 clauses, got 1"),
    ],
)
def test_files_that_are_not_dimacs(text, message):
    with pytest.raises(ValueError, match=message):
        read_dimacs(text)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Feature((0, 0), (0, 0, 0, 1)), r"different indices, got \(0, 0\)"),
        (lambda: Feature((0,), (0, 1, 1)), "table of 2 answers, got 3"),
        (lambda: Feature((0,), (0, 2)), "answers 0 and 1"),
        (lambda: Feature((-1,), (0, 1)), "index >= 0, got -1"),
        (lambda: Feature.of(range(11), any), "k <= 10, got 11"),
        (lambda: terms_hold([(0,)]), r"other than 0, got \[0\]"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
