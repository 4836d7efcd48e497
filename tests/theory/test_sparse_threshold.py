"""Theorem 13, by all inputs of random members of the class; formulas, precision, causal masks."""

import dataclasses
import itertools
import re

import numpy as np
import pytest
import torch

from companion.theory.copy_and_count import copying
from companion.theory.features import Feature, read_dimacs
from companion.theory.fixed_point import FixedPoint, Floating
from companion.theory.sparse_threshold import (
    SparseThreshold,
    compile_cnf,
    compile_dnf,
    inequality,
    intersection,
    majority,
    place,
)
from companion.theory.vectors import binary


def all_bits(N):
    return np.array(list(itertools.product((0, 1), repeat=N)))


def random_member(rng, *, causal=False, **options):
    """N <= 8, k <= 3, up to N features, any threshold."""
    N = int(rng.integers(1, 9))
    features = []
    for _ in range(rng.integers(0, N + 1)):
        k = int(rng.integers(0, min(3, N) + 1))
        indices = tuple(int(i) for i in rng.permutation(N)[:k])
        features.append(Feature(indices, tuple(int(g) for g in rng.integers(0, 2, 2**k))))
    b = int(rng.integers(0, len(features) + 1))
    negate = bool(rng.integers(0, 2))
    options.setdefault("T", binary(16))
    return SparseThreshold.build(N, features, b, negate=negate, causal=causal, **options)


@pytest.mark.claim("Theorem 13", "random members of N ≤ 8 bits, all inputs")
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
def test_random_members_on_all_inputs(causal):
    rng = np.random.default_rng(0)
    values = set()
    for _ in range(40):
        model = random_member(rng, causal=causal)
        x = all_bits(model.N)
        assert (model.many(x) == model.definition(x)).all()
        values.add(int(model.definition(x).sum()))
    assert len(values) > 10  # not all constant


@pytest.mark.claim("Theorem 13")
@pytest.mark.parametrize("rounding", ["floor", "nearest"])
def test_fixed_point_is_right_or_refused(rounding):
    """f bits: counts c are read with an error of up to c L / S, so coarse grids are refused."""
    outcome = {2: [0, 0], 8: [0, 0], 12: [0, 0]}
    for f in outcome:
        rng = np.random.default_rng(1)
        grid = FixedPoint(f=f, R=64, rounding=rounding)
        for _ in range(25):
            try:
                model = random_member(rng, arithmetic=grid)
            except ValueError as refusal:
                assert re.match("expected (counts|copies) within", str(refusal))
                outcome[f][1] += 1
                continue
            x = all_bits(model.N)
            assert (model.many(x) == model.definition(x)).all()
            outcome[f][0] += 1
    assert outcome[2][1] > 5 and outcome[12] == [25, 0]


@pytest.mark.claim("Theorem 13", "EQ and DISJ on all inputs, N = {N}")
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
@pytest.mark.parametrize(
    "N", [2, 4, 6, 8, 10, *(pytest.param(N, marks=pytest.mark.slow) for N in (12, 14))]
)
def test_inequality_and_intersection_on_all_inputs(N, causal):
    x = all_bits(N)
    a, b = x[:, : N // 2], x[:, N // 2 :]
    for model, wanted in (
        (inequality(N, causal=causal, T=binary(16)), (a != b).any(1)),
        (intersection(N, causal=causal, T=binary(16)), (a & b).any(1)),
    ):
        parts = np.split(x, max(1, len(x) // 1024))
        assert (np.concatenate([model.many(part) for part in parts]) == wanted).all()
        assert model.L == N + 1 and model.k == 2  # a causal mask costs no pads here
        assert model.stack.heads == 2 and model.stack.width == 1 + 3 * 4 + 4 + 2


@pytest.mark.claim("Theorem 13")
@pytest.mark.parametrize("softmax", ["late", "early"])
@pytest.mark.parametrize("N", [2, 4, 8])
def test_inequality_and_intersection_in_fixed_point(N, softmax):
    """Twice log N fractional bits, as for K_c = 2, and a range that holds 2k + 2."""
    grid = FixedPoint(f=2 * (N.bit_length() - 1) + 1, R=64, softmax=softmax)
    x = all_bits(N)
    for model in (
        inequality(N, T=binary(16), arithmetic=grid),
        intersection(N, T=binary(16), arithmetic=grid),
    ):
        assert (model.many(x) == model.definition(x)).all()


@pytest.mark.claim("Theorem 13")
@pytest.mark.parametrize("N", [64, 256])
def test_long_inputs_one_bit_apart(N):
    rng = np.random.default_rng(N)
    model = inequality(N)
    half = rng.integers(0, 2, N // 2)
    x = np.tile(np.concatenate([half, half]), (3, 1))
    x[1, 3] ^= 1
    x[2, N - 1] ^= 1
    assert model.many(x).tolist() == [0, 1, 1]
    disjoint = np.concatenate([half, 1 - half])
    met = disjoint.copy()
    met[int(half.argmax()) + N // 2] = 1
    assert intersection(N).many(np.stack([disjoint, met])).tolist() == [0, 1]


@pytest.mark.claim("Theorem 13")
@pytest.mark.parametrize("N", [1, 2, 3, 8])
def test_majority(N):
    x = all_bits(N)
    assert (majority(N).many(x) == (x.sum(1) > N // 2)).all()


@pytest.mark.claim("Theorem 13", "CNF and DNF of {M} clauses, all inputs")
@pytest.mark.parametrize("M", [1, 5, 20])
def test_formulas_of_any_length_on_all_inputs(M):
    """More clauses than variables get pads: the theorem at N = M."""
    rng = np.random.default_rng(M)
    literals = (rng.permutation(6)[:3] + 1 for _ in range(M))
    formula = [
        [int(v * s) for v, s in zip(c, rng.choice([-1, 1], 3), strict=True)] for c in literals
    ]
    x = all_bits(6)
    holds = np.array([[x[:, abs(v) - 1] == (v > 0) for v in part] for part in formula])  # (M, 3, B)
    for causal in (False, True):
        cnf, dnf = compile_cnf(formula, 6, causal=causal), compile_dnf(formula, 6, causal=causal)
        assert (cnf.many(x) == holds.any(1).all(0)).all()
        assert (dnf.many(x) == holds.all(1).any(0)).all()
        assert cnf.stack.heads == 3 and (causal or cnf.L == 1 + max(6, M))


@pytest.mark.claim("Theorem 13")
def test_a_dimacs_file_compiles():
    text = "c two of three\np cnf 3 3\n1 2 0\n1 3 0\n2 3 0\n"
    formula = read_dimacs(text)
    x = all_bits(3)
    assert (compile_cnf(formula.clauses, formula.N).many(x) == (x.sum(1) >= 2)).all()


@pytest.mark.claim("Remark on causal attention", "Theorem 13 broken by a mask and repaired")
def test_a_causal_mask_breaks_features_of_later_bits_and_pads_repair_them():
    x = all_bits(3)
    last = Feature.of((2,), bool)
    open_ = SparseThreshold.build(3, [last], T=binary(8))
    masked = dataclasses.replace(open_.stack.layers[0], causal=True)
    broken = dataclasses.replace(open_.stack, layers=[masked, open_.stack.layers[1]])
    said = np.rint(broken(open_.embed(x), rows=slice(-1, None))[:, 0, 0])
    assert open_.places == (1,) and (said != x[:, 2]).any()
    for count in (1, 2, 3):
        repaired = SparseThreshold.build(3, [last] * count, T=binary(8), causal=True)
        assert (repaired.many(x) == x[:, 2]).all()
        assert repaired.L == 1 + 3 + count - 1 and min(repaired.places) == 3


@pytest.mark.claim("Remark on causal attention", "all places for up to four features")
def test_no_fewer_pads_would_do():
    """Against every assignment of up to four features to places."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        N = int(rng.integers(1, 5))
        lasts = rng.integers(0, N, rng.integers(1, 5))
        features = [Feature.of((int(i),), bool) for i in lasts]
        places, L = place(features, N, causal=True)
        assert all(p > i for p, i in zip(places, lasts, strict=True))
        possible = [
            all(p > i for p, i in zip(assigned, lasts, strict=True))
            for assigned in itertools.permutations(range(L - 1), len(lasts))
        ]
        assert L == 1 + max(N, len(lasts)) or not any(possible)


@pytest.mark.claim("Theorem 13")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_floats_are_right_or_refused(dtype):
    a = Floating(dtype)
    x = all_bits(8)[::5]
    for model in (inequality(8, arithmetic=a), majority(8, arithmetic=a)):
        assert (model.many(x) == model.definition(x)).all()
    if dtype == torch.bfloat16:
        with pytest.raises(ValueError, match="counts within 1/2"):
            majority(1024, arithmetic=a)


@pytest.mark.claim("Theorem 13")
@pytest.mark.parametrize("softmax", ["late", "early"])
@pytest.mark.parametrize("f", [4, 6])
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
def test_the_bluntest_heads_accepted_on_a_grid_are_right_on_every_input(causal, f, softmax):
    grid, T, x = FixedPoint(f, 64, softmax=softmax), binary(16), all_bits(6)

    def accepted(steps):
        try:
            return [inequality(6, T=T, eta=T.k * steps / grid.S, arithmetic=grid, causal=causal)]
        except ValueError:
            return []

    model = next(model for steps in range(1, 16 * grid.S) for model in accepted(steps))
    assert (model.many(x) == model.definition(x)).all()
    parts = [copying(T, L, model.eta, grid).error for L in range(1, model.L + 1)]
    assert max(parts if causal else parts[-1:]) <= model.copy_error <= model.tolerance


@pytest.mark.claim("Poly-log size", "all disjunctions of literals, N = {N}")
@pytest.mark.parametrize("N", [1, 2, 3, 4])
def test_three_to_the_n_functions_need_tables_of_at_least_that_many_bits(N):
    """1-DNFs with each variable absent, plain or negated are all different."""
    x = all_bits(N)
    seen = set()
    for kinds in itertools.product((0, 1, -1), repeat=N):
        terms = [(kind * (v + 1),) for v, kind in enumerate(kinds) if kind]
        model = compile_dnf(terms, N, T=binary(8))
        said = model.many(x)
        assert (said == model.definition(x)).all()
        seen.add(said.tobytes())
    assert len(seen) == 3**N


@pytest.mark.claim("Poly-log size")
def test_width_is_logarithmic_and_size_is_not():
    sizes = [
        (m.stack.width, m.stack.parameters, m.positions.size) for m in map(majority, (64, 512))
    ]
    assert sizes[1][0] < 2 * sizes[0][0] and sizes[1][2] > 7 * sizes[0][2]


def closed_under_majority(x):
    """Whether the majority of any three rows is a row: true exactly of the models of a 2-CNF."""
    rows = {row.tobytes() for row in x}
    three = (x[:, None, None] + x[:, None] + x >= 2).reshape(-1, x.shape[1])
    return all(row.tobytes() in rows for row in np.unique(three, axis=0).astype(x.dtype))


@pytest.mark.parametrize("N", [2, 4, 6])
def test_equality_is_a_2_cnf_of_n_clauses_and_intersection_is_none(N):
    """Nor is it in disguise: three pairs of sets meet in three places, and their majority not."""
    x, half = all_bits(N), N // 2
    equal = (x[:, :half] == x[:, half:]).all(1)
    clauses = [c for i in range(1, half + 1) for c in ((i, -i - half), (-i, i + half))]
    assert len(clauses) == N and (compile_cnf(clauses, N).many(x) == equal).all()
    meet = (x[:, :half] & x[:, half:]).any(1)
    assert closed_under_majority(x[equal]) and closed_under_majority(x[~meet])
    assert closed_under_majority(x[meet]) == (N < 6)


MODEL = majority(3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: SparseThreshold.build(0, []), ValueError, "N >= 1, got 0"),
        (lambda: SparseThreshold.build(1, [], b=-1), ValueError, "b >= 0, got -1"),
        (lambda: compile_cnf([(4,)], 3), ValueError, "index of a bit <= 2, got 3"),
        (lambda: majority(8, T=binary(8)), ValueError, "L = 9 vectors, got 8"),
        (lambda: majority(3, eta=0.1), ValueError, "copies within"),
        (lambda: inequality(3), ValueError, "even N, got 3"),
        (lambda: majority(3, arithmetic=FixedPoint(f=8, R=3)), ValueError, "R >= 4, got 3"),
        (
            lambda: dataclasses.replace(MODEL, places=(1, 1, 2)),
            ValueError,
            r"one place a feature, got \(1, 1, 2\)",
        ),
        (
            lambda: dataclasses.replace(majority(3, causal=True), places=(3, 2, 1)),
            ValueError,
            "3 <= place <= 3, got 1",
        ),
        (lambda: MODEL([0, 1]), ValueError, "3 <= length <= 3, got 2"),
        (lambda: MODEL([0, 1, 2]), ValueError, "0 <= bit <= 1, got 2"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
