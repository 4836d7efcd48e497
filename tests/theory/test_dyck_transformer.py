"""Two causal layers for Dyck-(2, 2): all short words, hard long ones, where 16 bits give out."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from companion.theory.automata import all_words
from companion.theory.dyck import Dyck, fooling_set, join, sample
from companion.theory.dyck_transformer import CODE, DyckTransformer
from companion.theory.fixed_point import EXACT, FixedPoint, Floating
from companion.theory.transformer import LAST, Stack

DYCK = Dyck(2, 2)
HALF, BRAIN = Floating(torch.float16), Floating(torch.bfloat16)
ARITHMETICS = {"float64": EXACT, "float32": Floating(torch.float32), "float16": HALF}
ARITHMETICS |= {"bfloat16": BRAIN}
FIXED = {
    f"{softmax}, {rounding}": FixedPoint.paper(16, 2, softmax=softmax, rounding=rounding)
    for softmax in ("late", "early")
    for rounding in ("floor", "nearest")
}


def hard_words(N, count, seed=0):
    """Members; one bracket changed in kind or direction; two that cancel in every count."""
    rng = np.random.default_rng(seed)
    words = sample(N, 3 * count, rng=rng)
    one, two = words[count : 2 * count], words[2 * count :]
    at = rng.integers(0, N, count)
    one[np.arange(count), at] ^= rng.choice([1, 2], count)
    for word in two:  # swap two closing brackets of different kinds
        first, second = (rng.choice(np.flatnonzero(word == s)) for s in (1, 3))
        word[[first, second]] = word[[second, first]]
    return words


def long_distance(N):
    """( [] [] ... [] ) with the last bracket right and wrong, behind all kinds of beginnings."""
    inner = np.array([0, *[2, 3] * ((N - 2) // 2), 1])
    wrong = inner.copy()
    wrong[-1] = 3
    late = np.concatenate([np.tile([2, 3], (N - 4) // 2), [0, 0, 1, 1]])
    bad = late.copy()
    bad[-1] = 3
    return np.stack([inner, wrong, late, bad])


@pytest.mark.claim("Depth separation for Dyck", "all words to length 6: {arithmetic}")
@pytest.mark.parametrize("N", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_all_words_of_every_length(N, arithmetic):
    model = DyckTransformer(N, ARITHMETICS[arithmetic])
    for n in range(1, min(N, 6) + 1):
        words = all_words(4, n)
        assert (model.many(words) == DYCK.many(words)).all()


@pytest.mark.claim(
    "Depth separation for Dyck", "all words to length 6, fixed point in all orders of rounding"
)
@pytest.mark.parametrize("arithmetic", FIXED)
def test_all_words_in_fixed_point(arithmetic):
    model = DyckTransformer(16, FIXED[arithmetic])
    for n in range(1, 7):
        words = all_words(4, n)
        assert (model.many(words) == DYCK.many(words)).all()


@pytest.mark.slow
@pytest.mark.claim("Depth separation for Dyck", "all words of length {n}")
@pytest.mark.parametrize("n", [7, 8, 9, 10])
def test_all_words_up_to_length_ten(n):
    words = all_words(4, n)
    found = DyckTransformer(16 if n < 10 else 10).many(words)
    assert (found == DYCK.many(words)).all() and found.sum() == DYCK.count(n)


@pytest.mark.claim("Depth separation for Dyck", "the whole fooling set of length 10")
def test_every_pair_of_the_fooling_set():
    """What no narrow single layer can do: tell x, y from x, y' for all members of length 10."""
    x, y = fooling_set(10)
    model, rng = DyckTransformer(10), np.random.default_rng(0)
    assert model.many(join(x, y)).all()
    assert not model.many(join(x, np.roll(y, rng.integers(1, len(y)), axis=0))).any()


@pytest.mark.claim("Depth separation for Dyck", "hard words of length {N}: {arithmetic}")
@pytest.mark.parametrize("arithmetic", [*ARITHMETICS, "fixed"])
@pytest.mark.parametrize("N", [64, 500, 1024])
def test_long_words_wherever_it_can_be_built(N, arithmetic):
    a = ARITHMETICS.get(arithmetic, FixedPoint(f=N.bit_length() + 5, R=2 * N))
    if arithmetic == "bfloat16" and N > 504:
        with pytest.raises(ValueError, match="expected a positive margin"):
            DyckTransformer(N, a)
        return
    model = DyckTransformer(N, a)
    words = np.concatenate([hard_words(N, 5), long_distance(N)])
    want = DYCK.many(words)
    assert want.any() and not want.all() and (model.many(words) == want).all()


@pytest.mark.claim("Depth separation for Dyck", "hard words of length 2048: {arithmetic}")
@pytest.mark.parametrize("arithmetic", ["float64", "float32", "float16"])
def test_longest_words(arithmetic):
    """The fourth type, bfloat16, ends at 504."""
    words = np.concatenate([hard_words(2048, 1), long_distance(2048)])
    assert (DyckTransformer(2048, ARITHMETICS[arithmetic]).many(words) == DYCK.many(words)).all()


@pytest.mark.parametrize(("a", "N"), [(BRAIN, 504), (HALF, 4084)], ids=["bfloat16", "float16"])
def test_16_bit_floats_end_where_even_numbers_do(a, N):
    """r = i + offset must be an even number that the type holds: up to 2^9, and up to 2^12."""
    model = DyckTransformer(N, a)
    assert model.margin > 0.15
    assert N - 2 + model.offset == 4 / torch.finfo(a.dtype).eps  # position N - 2 is the last even
    with pytest.raises(ValueError, match="expected a positive margin"):
        DyckTransformer(N + 1, a)


def test_beyond_that_the_answers_are_wrong_indeed():
    """The refusal is needed: the same weights in bfloat16 misjudge words of length 1024."""
    model = DyckTransformer(1024)
    words = np.concatenate([hard_words(1024, 4), long_distance(1024)])
    want = DYCK.many(words)
    assert (model.many(words) == want).all()
    score = model.stack(model.embed(words), BRAIN, rows=LAST)[:, 0, 0]
    assert ((score > 0.5) != want).sum() >= 3


@pytest.mark.parametrize("N", [2, 3, 17, 64])
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_no_word_is_worse_than_the_margin_says(N, arithmetic):
    """Fetched signs, read before the network, stay within nu of the true ones."""
    model, rng = DyckTransformer(N, ARITHMETICS[arithmetic]), np.random.default_rng(N)
    words = rng.integers(0, 4, (50, N))
    words[:, 0] = 2 * rng.integers(0, 2, 50)
    x = model.embed(words)
    before, wanted = model.stack.layers[0].attention(x, model.arithmetic)
    a, b = x[..., 0], x[..., 1]
    openers = (words % 2 == 0) & (np.arange(N) % 2 == 0)
    last = np.maximum.accumulate(np.where(openers, np.arange(N), 0), axis=1)
    previous = np.maximum(np.arange(N) - 1, 0)
    for values in (a, b):
        off = np.abs((before @ values[..., None])[..., 0] - values[:, previous]).max()
        assert off <= model.nu_before + 1e-9
    off = np.abs((wanted @ b[..., None])[..., 0] - np.take_along_axis(b, last, 1)).max()
    assert off <= model.nu_wanted + 1e-9


@pytest.mark.claim("Depth separation for Dyck")
def test_sizes_grow_with_the_logarithm():
    for N in (1, 2, 3, 64, 65, 1024):
        model = DyckTransformer(N)
        n = max(1, (N - 1).bit_length())
        assert model.width == model.embed(np.zeros((1, N), int)).shape[-1] == CODE + 2 * n
        assert len(model.stack.layers) == 2 and model.stack.heads == 2
        assert model.stack.parameters < 3 * (CODE + 2 * n) ** 2 + 60


def test_the_mask_is_needed():
    """Without it, the last opener may be one that comes later."""
    model, word = DyckTransformer(8), DYCK.encode("()[]()[]")[None]
    assert model.many(word).all()
    blind = Stack([replace(layer, causal=False) for layer in model.stack.layers])
    assert blind(model.embed(word), rows=LAST)[0, 0, 0] < 0.5


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="1 <= N <= 4096, got 0"):
        DyckTransformer(0)
    model = DyckTransformer(4)
    for word in ([], [0, 1] * 3):
        with pytest.raises(ValueError, match=f"1 <= length <= 4, got {len(word)}"):
            model(np.array(word, dtype=int))
    with pytest.raises(ValueError, match="0 <= symbol <= 3, got 4"):
        model([0, 4])
    with pytest.raises(OverflowError, match="R = 64"):
        DyckTransformer(64, FixedPoint.paper(64, 1))
