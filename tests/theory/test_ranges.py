"""The table of ranges: what is accepted there is right, what is refused is refused."""

import numpy as np
import pytest
import torch

from companion.theory.automata import all_words
from companion.theory.dyck import Dyck, sample
from companion.theory.fixed_point import FixedPoint
from companion.theory.nearest_neighbor import hardest
from companion.theory.ranges import CONSTRUCTIONS, EVERY, FORMATS, built, measure

LONGEST = 64  # inputs that are run, where longer ones are accepted
BY_NAME = {construction.name: construction for construction in CONSTRUCTIONS}


def strings(N, rng):
    """Halves that are equal, differ in one bit, in all, in all but one; and random ones."""
    u = rng.integers(0, 2, N // 2)
    x = np.tile(u, (N + 4, 2))
    x[np.arange(N), np.arange(N)] ^= 1
    x[N + 1, : N // 2] ^= 1
    x[N + 2, 1 : N // 2] ^= 1
    x[N + 3] = rng.integers(0, 2, N)
    return x


def equality(model, rng):
    x = strings(model.N, rng)
    return model.many(x) == (x[:, : model.N // 2] == x[:, model.N // 2 :]).all(1)


def never_unequal(model, rng):
    """Fingerprints err on one side only: equal strings, and an odd number of differences."""
    x = strings(model.N, rng)[: model.N + 1]
    return model.many(x) == (np.arange(model.N + 1) == model.N)


def threshold(model, rng):
    """All counts from 0 to N, ones first, last and anywhere; and the halves of equality."""
    first = (np.arange(model.N) < np.arange(model.N + 1)[:, None]).astype(int)
    x = np.vstack([first, first[:, ::-1], rng.permuted(first, axis=-1), strings(model.N, rng)])
    return model.many(x) == model.definition(x)


def lookup(model, rng):
    """The worst string for a position has the complement of the right symbol everywhere else."""
    right = []
    for p in {0, 1, model.N // 2, model.N - 1} & set(range(model.N)):
        for symbol in (0, 21, 63):
            string = np.full(model.N, 63 - symbol)
            string[p] = symbol
            right.append(model(string, p) == symbol)
    return np.array(right)


def nearest(model, rng):
    right = []
    for _ in range(10):
        points, labels = hardest(model.N, model.d, model.gamma * (1 + 1e-9), rng=rng)
        right.append(model(points, labels) == labels[(points[:-1] @ points[-1]).argmax()])
    return np.array(right)


def brackets(model, rng):
    """Members, members with one bracket changed, and openers of one kind but the last."""
    words = sample(model.N, 40, rng=rng)
    words[::2][np.arange(20), rng.integers(0, model.N, 20)] ^= rng.integers(1, 4, 20)
    hard = np.tile([0, 1], model.N // 2)
    hard[-2:] = 2, 3
    words = np.vstack([words, hard, [*hard[:-1], 1]])
    return model.many(words) == Dyck(2, 2).many(words)


def every_word(model, rng):
    words = np.vstack([all_words(4, 6), sample(6, 50, rng=rng)])
    long = sample(500, 20, rng=rng)
    long[::2, -1] ^= 2
    said = [model(torch.tensor(x))[0][:, -1].argmax(-1).bool().numpy() for x in (words, long)]
    return np.concatenate(said) == np.concatenate([Dyck(2, 2).many(x) for x in (words, long)])


CHECKS = {
    "Index Lookup": lookup,
    "Equality, two layers": equality,
    "Disjointness": threshold,
    "Majority": threshold,
    "Nearest": nearest,
    "Dyck-(2,2), two layers": brackets,
    "Equality, one layer, exact": equality,
    "Equality, one layer, finger": never_unequal,
    "Dyck-(2,2)": every_word,
}


@pytest.fixture(scope="module")
def table():
    found = {}

    def entry(name, format):
        if (name, format) not in found:
            found[name, format] = measure(BY_NAME[name], format)
        return found[name, format]

    return entry


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", BY_NAME)
def test_accepted_lengths_are_right_and_the_refused_one_is_refused(name, format, table):
    found, construction = table(name, format), BY_NAME[name]
    check = next(check for start, check in CHECKS.items() if name.startswith(start))
    rng = np.random.default_rng(0)
    lengths = [N for N in construction.sizes if found.first is not None and N <= found.last]
    short = [N for N in lengths if N >= found.first and N <= LONGEST]
    for N in {*short[:1], *short[-1:]}:
        model = built(construction, format, N)
        assert check(model, rng).all() and model.margin >= 0
    if found.refused is None:
        assert found.last == construction.sizes[-1]
    elif " bits" not in format:  # a grid of so many bits tries thirty divisions, once is enough
        with pytest.raises((ValueError, OverflowError)) as refusal:
            built(construction, format, found.refused)
        assert str(refusal.value) == found.reason != ""


def test_the_table_tells_the_formats_apart(table):
    """What needs a count needs numbers as large as N; what needs a margin, digits; look-up none."""
    assert table("Index Lookup", "8 bits").last == 1 << 20
    assert table("Equality, two layers", "bfloat16").last == 1 << 16
    counts = [table("Majority, two layers", x).last for x in ("bfloat16", "float16", "float32")]
    assert counts == sorted(counts) and counts[0] == 128
    margins = [table("Nearest neighbour, γ = 1/N", x).last for x in ("bfloat16", "float16")]
    assert margins == [16, 128]
    papers = table("Nearest neighbour, the paper's way, γ = 1/4", "bfloat16")
    assert papers.last < table("Nearest neighbour, γ = 1/4", "bfloat16").last
    for name in BY_NAME:
        assert all(
            table(name, "float64").last >= table(name, x).last
            for x in ("float32", "8 bits")
            if table(name, x).last is not None
        )


def test_ours_marks_what_our_integers_cannot_hold(table):
    found = table("Nearest neighbour, γ = 1/4", "K_c = 2")
    assert found.ours and "61 bits" in found.reason and found.first == 32
    assert not table("Equality, two layers", "16 bits").ours
    assert BY_NAME["Dyck-(2,2), LSTM"].sizes == (EVERY,)


def test_all_divisions_of_the_bits_are_tried():
    made = list(FORMATS["16 bits"](4))
    assert {a.f for a in made} == set(range(15)) and all(a.p == 16 for a in made)
    assert all(isinstance(a, FixedPoint) and a.softmax == "early" for a in made)
