"""The list of claims, and what tests say of how far they check them."""

import ast
from pathlib import Path

import pytest

from companion.theory.claims import CLAIMS, checked, span

HERE = Path(__file__).parent


def marks():
    """Arguments of all claim markers below this folder."""
    for path in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, ast.FunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.claim":
                        yield node.name, *(argument.value for argument in mark.args)


def test_every_claim_has_a_test_that_says_on_what_and_every_mark_names_a_claim():
    names = [claim.name for claim in CLAIMS]
    found = list(marks())
    assert len(set(names)) == len(names) and {mark[1] for mark in found} == set(names)
    assert {mark[1] for mark in found if len(mark) == 3} == set(names)


@pytest.mark.parametrize(
    ("template", "runs", "text"),
    [
        ("all words", [{}], "all words"),
        ("all words", [{"N": 1}, {"N": 2}], "all words"),
        ("N = {N}", [{"N": 4}], "N = 4"),
        ("N = {N}", [{"N": 4, "seed": 1}, {"N": 2, "seed": 0}], "N = 2, 4"),
        ("N = {N}", [{"N": N} for N in (8, 1, 2, 4, 16)], "N = 1, 2, 4, 8, 16"),
        ("N = {N}", [{"N": N} for N in range(3, 20, 4)], "N = 3, 7, …, 19"),
        ("{a} of {b}", [{"a": 1, "b": 2}, {"a": 3, "b": 4}], "1 of 2; 3 of 4"),
        ("{a} of {b}", [{"a": a, "b": b} for a in (1, 2) for b in "xy"], "1, 2 of x, y"),
        ("{t}", [{"t": "torch.float16"}, {"t": "torch.bfloat16"}], "bfloat16, float16"),
    ],
)
def test_what_was_checked_is_told_by_the_runs(template, runs, text):
    assert checked(template, runs) == text


def test_a_parameter_that_the_test_does_not_have_is_an_error():
    with pytest.raises(KeyError, match="N"):
        checked("N = {N}", [{"M": 1}])


def test_steps_must_be_even_to_be_left_out():
    assert span([1, 2, 3, 4, 6]) == "1, 2, 3, 4, 6" and span([4, 3, 2, 1]) == "1, 2, 3, 4"
    assert span([0.5, 1.0, 1.5, 2.0, 2.5]) == "0.5, 1.0, …, 2.5"
