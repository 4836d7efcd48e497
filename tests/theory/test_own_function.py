"""Any function in, all of its bounds out; and any model that they rule out is caught."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from companion.models import ModelConfig, Quantized, SequenceModel, build
from companion.models.stack import take_rows
from companion.theory.bounds import least_width, needed_bits
from companion.theory.inequality import RotatingRegister
from companion.theory.own_function import FiniteFunction, Mistake, fooling_set
from companion.theory.problems import Problem, disjointness, equality, split


def equal(s):
    return s[: len(s) // 2] == s[len(s) // 2 :]


def parity(s):
    return sum(s) % 2


def random_function(N, seed, alphabet=2):
    values = np.random.default_rng(seed).integers(0, 2, alphabet**N)
    return FiniteFunction.of(values, N, alphabet=alphabet)


class Leaky(SequenceModel):
    """A reader's own module: two numbers, and the least that the interface asks for."""

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab, 2)
        self.head = nn.Linear(4, config.classes)

    def state_shapes(self, t):
        return ((2,),)

    def advance(self, tokens, state, read):
        h, rows = state.tensors[0], []
        for token in tokens.unbind(-1):
            h = torch.tanh(0.9 * h + self.embed(token))
            rows.append(self.head(torch.cat([h, h * h], -1)))
        return take_rows(torch.stack(rows, -2), read), (h,)


def small(bits, seed=0):
    model, rng = Leaky(ModelConfig(vocab=2, classes=2)), torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        nn.init.normal_(weight, generator=rng)
    return Quantized(model.requires_grad_(False), bits)


@pytest.mark.parametrize("N", [2, 4, 6, 8, 10])
def test_equality_has_the_bounds_of_the_chapters(N):
    f = FiniteFunction.of(equal, N, alice=range(N // 2))
    assert f.bits == (N // 2 + 1, N // 2 + 1) and len(f.problem.fooling) == 2 ** (N // 2)
    assert f.state_bits == N // 2 and (f.problem.matrix == equality(N // 2).matrix).all()
    for p in (1, 4):
        assert f.one_layer_width(p) == least_width(needed_bits("equality", N), N, p, 1)
        assert f.recurrent_units(p) == -(-N // (2 * p))


def test_the_hardest_partition_is_the_hardest():
    f = FiniteFunction.of(lambda s: s[::2] == s[1::2], 6)  # neighbours: halves are easy
    by_side = {side: f.dealt(side).lower_bound for side in itertools.combinations(range(6), 3)}
    assert f.problem.lower_bound == max(by_side.values()) == 4 > by_side[0, 1, 2]
    assert FiniteFunction.of(parity, 9).alice == (0, 1, 2, 3)  # beyond 8, the first half


@pytest.mark.parametrize("alphabet", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_for_random_functions(seed, alphabet):
    f = random_function(4, seed, alphabet)
    low, high = f.bits
    assert low == high == f.problem.complexity() >= np.log2(len(f.problem.fooling))
    assert f.problem.is_fooling(f.problem.fooling)
    prefixes = itertools.product(range(alphabet), repeat=2)
    futures = {f.table[prefix].tobytes() for prefix in prefixes}
    assert f.residual_classes[2] == len(futures) and f.residual_classes[0] == 1
    text = dict(f.summary(p=8, H=2))
    assert text["D, bits both ways"] == low
    assert text["one layer: least width (p = 8, H = 2)"] == f.one_layer_width(8, 2)


def test_bounds_of_a_matrix_too_large_to_search():
    """Bob has an index and a mask: of 32 rows and 10 columns, and a rank of 6 only."""

    def masked(s):
        i = 4 * s[5] + 2 * s[6] + s[7]
        return s[i if i < 5 else 0] ^ s[8]

    f = FiniteFunction.of(masked, 9, alice=range(5))
    assert f.bits == (4, 5) and dict(f.summary())["D, bits both ways"] == "4 to 5"


def test_a_table_and_a_predicate_are_the_same():
    strings = list(itertools.product((0, 1), repeat=5))
    f, g = (FiniteFunction.of(h, 5) for h in (parity, [parity(s) for s in strings]))
    assert (f.table == g.table).all() and f.bits == g.bits == (2, 2)
    assert f.table[1, 0, 1, 1, 0] == 1 and (f.N, f.alphabet) == (5, 2)


@pytest.mark.parametrize("b", [0, 1])
def test_greedy_fooling_sets_are_fooling_and_cannot_be_added_to(b):
    problem = Problem("random", np.random.default_rng(b).integers(0, 2, (20, 30)))
    found = fooling_set(problem, b)
    assert len(found) > 3 and problem.is_fooling(found)
    assert all(problem.matrix[cell] == b for cell in found)
    others = {(int(x), int(y)) for x, y in np.argwhere(problem.matrix == b)} - set(found)
    assert not any(problem.is_fooling([*found, cell]) for cell in others)
    assert len(fooling_set(disjointness(3), 0)) == 8  # few cells: a largest one


@pytest.mark.claim("Theorem 2", "a mistake found in every too small model of a reader's own")
@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("f", [equal, lambda s: s == s[::-1]], ids=["equality", "palindrome"])
def test_a_model_that_is_ruled_out_is_caught(f, bits):
    """Two numbers of 1 or 2 bits, where 5 are needed: some input must be wrong, and is found."""
    model, g = small(bits), FiniteFunction.of(f, 10)
    found = g.find_mistake(model)
    assert isinstance(found, Mistake) and f(found.first) != f(found.second)
    assert found.first[found.cut :] == found.second[found.cut :]
    logits = model.steps(torch.tensor([found.first, found.second]))[0][:, -1]
    assert torch.equal(logits[0], logits[1]) and int(logits[0].argmax()) == found.answer


def test_a_trained_kind_of_model_of_the_book_is_caught_as_well():
    config = ModelConfig(vocab=2, classes=2, width=2, heads=1)
    lstm = Quantized(build("lstm", config, rng=torch.Generator().manual_seed(0)), 1)
    found = FiniteFunction.of(equal, 10).find_mistake(lstm)  # 4 bits
    assert equal(found.first) != equal(found.second)


def test_a_state_that_is_large_enough_is_not_accused():
    f = FiniteFunction.of(lambda s: not equal(s), 6)
    with pytest.raises(ValueError, match="state below 3 bits, got 3"):
        f.find_mistake(RotatingRegister(6))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FiniteFunction.of(parity, 0), "N >= 1, got 0"),
        (lambda: FiniteFunction.of([0, 1, 1], 2), "= 4 values, got 3"),
        (lambda: FiniteFunction.of([0, 1, 2, 1], 2), "matrix of 0 and 1, got 2"),
        (lambda: FiniteFunction.of(parity, 2, [2]).problem, "positions below N = 2"),
        (lambda: FiniteFunction.of(parity, 2).recurrent_units(0), "p >= 1, got 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_any_partition_is_that_of_split():
    f = random_function(5, 3)
    for side in ([], [1, 4], range(5)):
        assert (f.dealt(side).matrix == split(f.table.ravel(), 5, side).matrix).all()
