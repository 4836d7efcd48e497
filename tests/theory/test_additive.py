"""What a sum holds: one network in three forms, no order, exact counts within stated limits."""

import pytest
import torch

from companion.experiments import build_task
from companion.models import (
    DeltaNet,
    LinearTransformer,
    LinearUnnormalised,
    ModelConfig,
    build,
)
from companion.theory._weights import FLOATS
from companion.theory.additive import (
    SAME_SUM,
    _counting,
    after_pairs,
    averager,
    counter,
    deepest,
    longest,
    significand,
    three_forms,
)
from companion.theory.automata import all_words
from companion.theory.communication import Channel, find_collision, one_way

SUMS = ("linear_transformer", "linear_unnormalised")
RESET = build_task("reset-dyck-1", 50, 3)
HALVES = [torch.float16, torch.bfloat16]


def random_model(name, seed, vocab=3, **sizes):
    config = ModelConfig(vocab, 2, **{"width": 8, "heads": 2, "positions": "none", **sizes})
    model = build(name, config, rng=torch.Generator().manual_seed(seed)).double()
    rng = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.5 * torch.randn(p.shape, generator=rng, dtype=p.dtype)
    return model


def tokens_of(word, symbols="()1"):
    return torch.tensor([[symbols.index(c) for c in word]])


def opened(words, k):
    """The class of a counter, by counting."""
    depth = [(words == 2 * i).cumsum(1) - (words == 2 * i + 1).cumsum(1) for i in range(k)]
    return sum(2**i * (c > 0).long() for i, c in enumerate(depth))


# One network in three forms


@pytest.mark.claim("Linear Transformer as RNN", "three forms, {length} symbols: {name}")
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 200])
def test_three_forms_agree(name, length):
    rng = torch.Generator().manual_seed(length)
    model, tokens = random_model(name, 0), torch.randint(3, (2, length), generator=rng)
    forms = three_forms(model, tokens)
    assert forms.difference < 1e-12 and forms.chunked.abs().max() > 0.1


@pytest.mark.claim("Linear Transformer as RNN")
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("depth", [1, 2])
def test_its_state_does_not_grow_and_can_be_sent(name, depth):
    """So it is bound by Theorem 3: the protocol runs at every cut, and small states collide."""
    model, sizes = random_model(name, 1, depth=depth), set()
    tokens = torch.randint(3, (1, 70), generator=torch.Generator().manual_seed(1))
    for cut in (0, 1, 64, 69):
        wire = Channel()
        rest = one_way(model, tokens[:, :cut], tokens[:, cut:], wire)
        assert torch.equal(rest, model.steps(tokens)[0][:, cut:])
        sizes.add(wire.bits)
    numbers = depth * (8 * 8 // 2 + (8 if name == "linear_transformer" else 0))
    assert sizes == {64 * numbers}


@pytest.mark.claim("Theorem 3")
def test_a_small_linear_transformer_collides():
    config = ModelConfig(2 + 20, 2, width=1, heads=1, positions="none")
    model = build("linear_unnormalised", config, rng=torch.Generator()).bfloat16()
    found = find_collision(model, N=18)
    assert found.first != found.second and found.read <= 2**16 + 1


# Order


@pytest.mark.claim("A sum forgets order", "a pair of strings, random weights: {name}")
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("seed", range(5))
def test_pair_gets_one_answer_from_all_weights(name, seed):
    first, second = (tokens_of(word) for word in SAME_SUM)
    assert sorted(SAME_SUM[0]) == sorted(SAME_SUM[1]) and SAME_SUM[0][-1] == SAME_SUM[1][-1]
    labels = [int(RESET.label(x)[0, -1]) for x in (first, second)]
    assert labels == [0, 1]
    model = random_model(name, seed)
    with torch.no_grad():
        answers = [model(x)[0][0, -1] for x in (first, second)]
    assert float((answers[0] - answers[1]).abs().max()) < 1e-12


def test_what_the_pair_has_to_do_with_the_claim():
    """Another rule, more layers or positions tell the pair apart; so the reason is the sum."""
    others = [random_model("deltanet", 0), random_model("linear_transformer", 0, depth=2)]
    others.append(random_model("linear_transformer", 0, positions="learned"))
    for model in others:
        answers = [model.requires_grad_(False)(tokens_of(word))[0][0, -1] for word in SAME_SUM]
        assert float((answers[0] - answers[1]).abs().max()) > 1e-3
    assert isinstance(others[0], DeltaNet)


@pytest.mark.claim("A sum forgets order", "orders of 89 symbols, random weights: {name}")
@pytest.mark.parametrize("name", SUMS)
def test_any_order_of_any_prefix(name):
    model = random_model(name, 7, vocab=5).requires_grad_(False)
    rng = torch.Generator().manual_seed(0)
    word = torch.randint(5, (1, 90), generator=rng)
    last = model(word)[0][0, -1]
    for _ in range(5):
        order = torch.randperm(89, generator=rng)
        mixed = torch.cat([word[:, order], word[:, -1:]], dim=1)
        assert float((model(mixed)[0][0, -1] - last).abs().max()) < 1e-12


# Counting


@pytest.mark.claim("Counting by a sum", "all strings of {N} symbols, {k} kinds of brackets")
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("k", "N"), [(1, 12), (2, 6), (3, 4), (4, 4)])
def test_every_string(k, N, dtype):
    model, words = counter(k, depth=min(20, deepest(k, dtype)), dtype=dtype), all_words(2 * k, N)
    words = torch.tensor(words)
    assert type(model) is LinearUnnormalised
    assert torch.equal(model(words)[0].argmax(-1), opened(words, k))


@pytest.mark.claim("Counting by a sum", "Bin0 and Bin1 of {name}")
@pytest.mark.parametrize(("name", "k"), [("dyck-1", 1), ("shuffle-2", 2)])
def test_answers_of_the_training_tasks(name, k):
    task = build_task(name, 50, 2 * k)
    model = counter(k, depth=100)
    for bin in (task, task.exams()["bin1"]):
        tokens, _, targets = bin.sample(50, rng=torch.Generator().manual_seed(0))
        for row, target in zip(tokens, targets, strict=True):
            word = row[row != task.pad][None]
            assert torch.equal(model(word)[0].argmax(-1)[0], target[: word.shape[1]])


def deep(k, depth, kind):
    """One bracket of each kind open, `depth` of one, then all closed in the same order."""
    others = [i for i in range(k) if i != kind]
    opens = [2 * i for i in others] + [2 * kind] * depth
    closes = [2 * i + 1 for i in others] + [2 * kind + 1] * depth
    return torch.tensor([opens + closes])


@pytest.mark.claim("Counting by a sum", "the deepest strings, {k} kinds: {dtype}")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_deepest_strings(k, dtype):
    depth = deepest(k, dtype)
    model = counter(k, depth=depth, dtype=dtype)
    for kind in range(k):
        word = deep(k, depth, kind)
        assert torch.equal(model(word)[0].argmax(-1), opened(word, k))
        if depth <= 256:
            assert torch.equal(model.steps(word)[0].argmax(-1), opened(word, k))


@pytest.mark.claim("Counting by a sum")
def test_one_bracket_deeper_is_one_too_many():
    """2^p + 1 is no number of the format: the last bracket is not counted."""
    dtype, depth = torch.bfloat16, deepest(1, torch.bfloat16) + 1
    with pytest.raises(ValueError, match=f"depth <= {depth - 1} for {dtype}, got {depth}"):
        counter(depth=depth, dtype=dtype)
    model, word = counter(depth=depth - 1, dtype=dtype), deep(1, depth, 0)
    wrong = (model.steps(word)[0].argmax(-1) != opened(word, 1))[0]
    assert wrong.nonzero().flatten().tolist() == [2 * depth - 2]  # one is still open there


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_limits_are_those_of_whole_numbers(dtype):
    p = significand(dtype)
    whole = torch.tensor([2.0**p - 1, 2.0**p, 2.0**p], dtype=dtype)
    assert (whole + 1).double().tolist() == [2.0**p, 2.0**p, 2.0**p]


# The average


@pytest.mark.claim("Counting by a sum")
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("length", [1, 2, 12])
def test_average_on_every_string(length, dtype):
    model, words = averager(length=length, dtype=dtype), torch.tensor(all_words(2, length))
    assert type(model) is LinearTransformer
    assert torch.equal(model(words)[0].argmax(-1), opened(words, 1))


def test_average_under_the_weights_of_the_sum_fails_at_once():
    """One of three open: 1/3 is below the threshold of 1/2."""
    sum_, average = counter(depth=9), _counting(LinearTransformer, 1, 0.5, torch.float64)
    average_weights, weights = average.state_dict(), sum_.state_dict()
    assert all(torch.equal(weights[name], average_weights[name]) for name in weights)
    word = torch.tensor([[0, 1, 0]])
    assert [m(word)[0][0, -1].argmax().item() for m in (sum_, average)] == [1, 0]


@pytest.mark.claim("Counting by a sum")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_average_breaks_on_flat_strings_that_a_sum_reads_for_ever(dtype):
    end = 2 ** significand(dtype)
    flat = torch.tensor([[0, 1] * end])
    model = averager(length=longest(dtype), dtype=dtype)
    wrong = (model(flat)[0].argmax(-1) != opened(flat, 1))[0].nonzero().flatten()
    assert wrong[0] == end == longest(dtype) + 1  # the first "(" after 2^p symbols
    shallow = counter(depth=1, dtype=dtype)
    assert torch.equal(shallow(flat)[0].argmax(-1), opened(flat, 1))


def ends(model, t):
    """What is said after t symbols "()()..." and one more bracket: "(", or its partner."""
    state, open_ = after_pairs(model, t), after_pairs(model, t + 1)
    open_.tensors[0][..., 0, 0] = 1.0
    return [
        model(torch.tensor([[token]]), before)[0][0, 0].argmax().item()
        for token, before in ((0, state), (1, open_))
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_wide_average_is_right_to_its_limit_and_wrong_beyond(dtype):
    end, p = longest(dtype), significand(dtype)
    model = averager(length=end, dtype=dtype)
    for t in [2**i for i in range(1, end.bit_length() - 1)] + [end - 2, end - 10]:
        assert ends(model, t) == [1, 0]
    far = _counting(LinearTransformer, 1, 1 / 2 ** (p + 5), dtype)
    assert ends(far, 2 ** (p + 2)) == [0, 0]
    assert ends(counter(depth=1, dtype=dtype), 2 ** (p + 2)) == [1, 0]


def test_state_after_pairs_is_the_state_after_pairs():
    flat = torch.tensor([[0, 1] * 20])
    for model in (counter(depth=3), averager(length=50)):
        wanted, found = model.steps(flat)[1], after_pairs(model, 40)
        assert wanted.t == found.t and wanted.keys() == found.keys()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: counter(5, depth=1), "1 <= k <= 4, got 5"),
        (lambda: counter(depth=0), "depth >= 1, got 0"),
        (lambda: averager(length=0), "length >= 1, got 0"),
        (lambda: averager(length=256, dtype=torch.bfloat16), "length <= 255 .*bfloat16, got 256"),
        (lambda: counter(2, depth=33, dtype=torch.bfloat16), "depth <= 32 .*, got 33"),
    ],
)
def test_where_nothing_is_promised_it_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
