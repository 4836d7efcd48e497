"""Theorem 4: two players get what the undivided integer model gets, bit for bit, at a price."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch

from companion.experiments.run import Run
from companion.experiments.train import train
from companion.models import ModelConfig, build
from companion.theory.bounds import (
    first_impossible,
    least_width,
    needed_bits,
    two_way_bits,
)
from companion.theory.communication import Channel
from companion.theory.fixed_point import FixedPoint
from companion.theory.index_lookup import IndexLookup
from companion.theory.integer_transformer import IntegerTransformer
from companion.theory.problems import split
from companion.theory.transformer import LAST, FeedForward, Head, Layer
from companion.theory.two_way import (
    VARIANTS,
    Format,
    Player,
    converse,
    formats,
    transmit,
    two_way,
)

GRID = FixedPoint(f=7, R=1 << 10, softmax="early")


@pytest.fixture(scope="module")
def trained():
    """A Transformer that learned Index Lookup: 7 symbols of 4, and an index."""
    run = Run(
        task="index-lookup",
        length=7,
        model="transformer",
        alphabet=4,
        width=16,
        heads=2,
        learning_rate=1e-2,
        steps=2000,
        check_every=50,
    )
    model, result = train(run, progress=False)
    assert result.status == "reached"
    return model, run.build_task()


def inputs(task, count, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return task.sample(count, rng=rng, exact=True).tokens.tolist()


def random_parts(N, q=3, seed=0, *, heads=2, m=3, d=4, v=2, **options):
    rng = np.random.default_rng(seed)
    layer = Layer(
        [
            Head(rng.normal(size=(m, d)), rng.normal(size=(m, d)), rng.normal(size=(v, d)))
            for _ in range(heads)
        ],
        W_O=rng.normal(size=(d, v * heads)),
        ffn=FeedForward(
            rng.normal(size=(5, d)), rng.normal(size=5), rng.normal(size=(3, 5)), np.zeros(3)
        ),
        **options,
    )
    return layer, rng.normal(size=(q, N, d))


def random_model(N, arithmetic=GRID, residual=True, **options):
    layer, rows = random_parts(N, residual=residual, **options)
    return IntegerTransformer.from_layer(layer, rows, lambda z: int(z.argmax()), 3, arithmetic)


def sides(N):
    """All 2^N sets of positions."""
    return itertools.chain.from_iterable(itertools.combinations(range(N), k) for k in range(N + 1))


def assert_equal_bit_for_bit(model, tokens, mine, variant):
    attended, weights = model.attend(tokens)
    alice = Player(model, "Alice", tokens, mine)
    bob = Player(model, "Bob", tokens, set(range(model.N)) - set(mine))
    played = converse(alice, bob, variant)
    assert set(played.answers.values()) == {model(tokens)}
    for vectors in played.attended.values():
        assert vectors.dtype == attended.dtype and (vectors == attended).all()
    assert (alice.weights == weights[:, alice.positions]).all()
    assert (bob.weights == weights[:, bob.positions]).all()
    planned = {step: count * form.bits for step, (count, form) in formats(model, variant).items()}
    assert played.bits == planned and played.channel.bits == sum(planned.values())
    return played


# The undivided model


@pytest.mark.parametrize("residual", [False, True], ids=["plain", "residual"])
@pytest.mark.parametrize("N", [1, 2, 7])
def test_the_integer_model_is_the_layer_in_fixed_point(N, residual):
    layer, rows = random_parts(N, residual=residual)
    model = IntegerTransformer.from_layer(layer, rows, lambda z: int(z.argmax()), 3, GRID)
    bare = Layer(layer.heads)
    for tokens in itertools.islice(itertools.product(range(3), repeat=N), 81):
        X = rows[list(tokens), np.arange(N)]
        attended, weights = model.attend(tokens)
        assert (GRID.decode(attended).ravel() == bare(X, GRID, LAST)[0]).all()
        for own, theirs in zip(weights, layer.attention(X, GRID, LAST), strict=True):
            assert (GRID.decode(own) == theirs[0]).all()
        assert model(tokens) == layer(X, GRID, LAST)[0].argmax()


@pytest.mark.claim("Remark on causal attention", "Theorem 4, all inputs of 5 symbols")
def test_a_causal_mask_changes_nothing_at_the_last_position():
    plain, causal = random_model(5), random_model(5, causal=True)
    for tokens in itertools.product(range(3), repeat=5):
        assert (plain.attend(tokens)[0] == causal.attend(tokens)[0]).all()
    layer, rows = random_parts(5, causal=True, residual=True)
    tokens = [2, 0, 1, 1, 0]
    want = layer(rows[tokens, np.arange(5)], GRID, LAST)[0].argmax()
    assert causal(tokens) == want == two_way(causal, tokens, [1, 4]).answer


def test_headroom_is_that_of_the_worst_of_all_inputs():
    """Every number on the way, over all inputs; a grid with less than that is refused."""
    layer, rows = random_parts(3)
    model, most = random_model(3, residual=False), 0.0
    for tokens in itertools.product(range(3), repeat=3):
        keys, values = model.project(model.rows[list(tokens), np.arange(3)])
        A = model.logits(model.rows[tokens[-1], -1], keys)
        most = max(most, *(float(np.abs(GRID.decode(x)).max()) for x in (keys, values, A)))
    assert most <= model.largest <= most + 2 / GRID.S and model.headroom == 1024 - model.largest
    tight = FixedPoint(f=7, R=math.floor(most), softmax="early")
    with pytest.raises(OverflowError, match="numbers up to R"):
        IntegerTransformer.from_layer(layer, rows, lambda z: 0, 1, tight)


@pytest.mark.claim("Theorem 4")
def test_a_trained_model_says_how_clear_its_answers_are(trained):
    """Answers that are clearer than rounding moves the scores are those of the float model."""
    net, task = trained
    model = IntegerTransformer.from_model(net, 16)
    batch = task.sample(50, rng=torch.Generator().manual_seed(5), exact=True)
    with torch.no_grad():
        scores = net(batch.tokens, read=batch.read)[0][:, 0].double().numpy()
    for tokens, theirs in zip(batch.tokens.tolist(), scores, strict=True):
        x = model.rows[tokens[-1], -1]
        own = model.read_out(x, model.attend(tokens)[0])
        moved = float(np.abs(own - theirs).max())
        assert moved < 0.1 and model.margin(tokens) == np.diff(np.sort(own)[-2:])[0]
        assert model(tokens) == theirs.argmax() or model.margin(tokens) <= 2 * moved
    with pytest.raises(ValueError, match="3 scores from psi, got 1"):
        random_model(3).margin([0, 1, 2])


def test_exponentials_are_those_of_the_fixed_point():
    for f in (0, 1, 5, 12):
        grid = FixedPoint(f=f, R=16, softmax="early")
        rows = np.zeros((1, 1, 1), dtype=int)
        model = IntegerTransformer(rows, rows, rows, rows, lambda x, o: 0, 1, grid)
        A = -np.arange(0, 16 * grid.S + 1, max(1, grid.S // 64))
        assert (model.exp(A) == grid.encode(np.exp(A / grid.S))).all()
        assert model.exp(np.array([-(10**9)])) == 0


@pytest.mark.parametrize("N", [1, 4])
def test_norms_biases_and_residual_of_a_torch_model_are_kept(N):
    """All parameters are disturbed, so that a gain or an offset put in the wrong place shows."""
    config = ModelConfig(vocab=6, classes=9, width=12, heads=3, max_len=N + 1)
    rng = torch.Generator().manual_seed(0)
    model = build("transformer", config, rng=rng)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.4 * torch.randn(parameter.shape, generator=rng)
    fine, coarse = (IntegerTransformer.from_model(model, p, N) for p in (24, 10))
    tokens = torch.randint(0, 6, (150, N), generator=rng)
    with torch.no_grad():
        want = model(tokens)[0][:, -1].argmax(-1).tolist()
    assert [fine(row) for row in tokens.tolist()] == want
    assert fine.p == 24 and coarse.p == 10 and fine.N == N
    assert len(set(want)) > 1


@pytest.mark.claim("Theorem 4")
def test_a_trained_model_survives_rounding(trained):
    model, task = trained
    batch = task.sample(200, rng=torch.Generator().manual_seed(1), exact=True)
    with torch.no_grad():
        want = model(batch.tokens, read=batch.read)[0][:, 0].argmax(-1).tolist()
    agreement = {}
    for p in (10, 12, 16):
        integer = IntegerTransformer.from_model(model, p)
        assert integer.p == p
        said = [integer(row) for row in batch.tokens.tolist()]
        agreement[p] = np.mean(np.array(said) == want)
    assert agreement[10] > 0.95 and agreement[12] > 0.98 and agreement[16] == 1


# Two players


@pytest.mark.claim("Theorem 4", "all inputs and all partitions, N = {N}: {variant}")
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("N", "q"), [(1, 1), (1, 3), (2, 3), (3, 2)])
def test_every_input_and_every_partition_of_a_small_model(N, q, variant):
    model = random_model(N, q=q)
    for tokens in itertools.product(range(q), repeat=N):
        for mine in sides(N):
            assert_equal_bit_for_bit(model, tokens, mine, variant)


@pytest.mark.claim("Theorem 4", "all partitions of 8 symbols, a trained model: {variant}")
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_partition_of_a_trained_model(trained, variant):
    model = IntegerTransformer.from_model(trained[0], 12)
    assert model.N == 8
    tokens = inputs(trained[1], 4)
    for i, mine in enumerate(sides(8)):
        assert_equal_bit_for_bit(model, tokens[i % 4], mine, variant)


@pytest.mark.claim("Theorem 4")
@pytest.mark.parametrize("p", [8, 16, 24])
def test_other_precisions_of_a_trained_model(trained, p):
    model = IntegerTransformer.from_model(trained[0], p)
    rng = np.random.default_rng(p)
    for i, tokens in enumerate(inputs(trained[1], 20, seed=p)):
        mine = np.flatnonzero(rng.integers(0, 2, 8)).tolist()
        assert_equal_bit_for_bit(model, tokens, mine, VARIANTS[i % 2])


@pytest.mark.claim("Theorem 4", "random partitions of long inputs: {variant}")
@pytest.mark.parametrize("variant", VARIANTS)
def test_random_partitions_of_a_long_input(variant):
    """Theorem 1's layer for lookup in 50 symbols, played by two."""
    N, grid = 50, FixedPoint(f=10, R=1 << 6, softmax="early")
    lookup = IndexLookup.build(N, alphabet=4, arithmetic=grid)
    symbols = np.repeat(np.arange(4)[:, None], N, axis=1)
    rows = np.zeros((4 + N, N + 1, lookup.width))
    rows[:4, :N] = lookup.embed(symbols, np.zeros((4, 1), int))[:, :N]
    rows[4:, N] = lookup.embed(symbols[:1], np.arange(N)[None])[0, N:]

    def read(bits):
        return int(np.rint(bits) @ [1, 2])

    model = IntegerTransformer.from_layer(lookup.layer, rows, read, 4, grid)
    rng = np.random.default_rng(0)
    for _ in range(20):
        s, index = rng.integers(0, 4, N), int(rng.integers(N))
        mine = np.flatnonzero(rng.random(N + 1) < rng.random()).tolist()
        played = assert_equal_bit_for_bit(model, [*s.tolist(), 4 + index], mine, variant)
        assert played.answer == s[index]


@pytest.mark.claim("Theorem 4")
def test_numbers_that_were_clamped_do_not_betray_the_partition():
    model = random_model(4, FixedPoint(f=4, R=1, softmax="early", saturate=True))
    clamped = random_model(4, FixedPoint(f=4, R=64, softmax="early"))
    assert any(
        (model.attend(t)[0] != clamped.attend(t)[0]).any()
        for t in itertools.product(range(3), repeat=4)
    )
    for tokens in ([0, 1, 2, 0], [2, 2, 1, 1]):
        for mine, variant in itertools.product(sides(4), VARIANTS):
            assert_equal_bit_for_bit(model, tokens, mine, variant)


class Secret(int):
    """A symbol that must not be looked at."""

    def __index__(self):
        raise AssertionError("a player looked at a symbol of the other's")

    __int__ = __index__


@pytest.mark.claim("Theorem 4")
@pytest.mark.parametrize("variant", VARIANTS)
def test_players_cannot_see_each_others_symbols(variant):
    model, tokens = random_model(5), [0, 2, 1, 1, 2]
    for mine in sides(5):
        yours = [i for i in range(5) if i not in mine]
        alice = Player(
            model, "Alice", [s if i in mine else Secret() for i, s in enumerate(tokens)], mine
        )
        bob = Player(
            model, "Bob", [s if i in yours else Secret() for i, s in enumerate(tokens)], yours
        )
        assert converse(alice, bob, variant).answer == model(tokens)
    with pytest.raises(AssertionError, match="looked at a symbol"):
        Player(model, "Alice", [0, Secret(), 1, 1, 2], [1])


class Forger(Channel):
    """Delivers the message of one step with every bit turned over."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def send(self, sender, data, *, bits=None, meaning=""):
        data = super().send(sender, data, bits=bits, meaning=meaning)
        return bytes(255 - byte for byte in data) if meaning == self.step else data


@pytest.mark.claim("Theorem 4")
@pytest.mark.parametrize("step", ["denominators", "sums", "answer"])
def test_what_is_used_is_what_came_over_the_wire(step):
    model = dataclasses.replace(random_model(6), psi=lambda x, o: int(o[0] > 0))
    for tokens in itertools.islice(itertools.product(range(3), repeat=6), 0, 729, 100):
        played = two_way(model, tokens, [0, 2, 4], "lean", Forger(step))
        honest = two_way(model, tokens, [0, 2, 4], "lean")
        if step == "answer":
            assert played.answers["Bob"] == honest.answers["Bob"] != played.answers["Alice"]
        else:
            assert (played.attended["Bob"] != honest.attended["Bob"]).any()


@pytest.mark.claim("Theorem 4")
@pytest.mark.parametrize("variant", VARIANTS)
def test_bits_do_not_depend_on_input_or_partition_and_grow_with_log_n(variant):
    def bits(N):
        model = random_model(N, q=2)
        rng = np.random.default_rng(N)
        seen = {
            two_way(model, rng.integers(0, 2, N).tolist(), mine, variant).channel.bits
            for mine in ([], range(N), range(0, N, 2), [N - 1])
        }
        assert len(seen) == 1
        return seen.pop()

    counts = [bits(2**n) for n in range(1, 8)]
    assert set(np.diff(counts)) == {2 * 2}  # one bit more for each of 2 sums in each of 2 heads


@dataclasses.dataclass(frozen=True)
class Counting(FixedPoint):
    """Adds up the products of numbers that it is asked for."""

    products: list[int] = dataclasses.field(default_factory=list, compare=False)

    def matmul(self, a, b):
        result = super().matmul(a, b)
        self.products.append(result.size * a.shape[-1])
        return result


@pytest.mark.claim("Theorem 4", "products that are formed, N = 16 to 256: {variant}")
@pytest.mark.parametrize("variant", VARIANTS)
def test_work_is_linear_in_n_and_messages_are_not_more(variant):
    """Counted, not timed: twice as many symbols, twice as many products, beside a constant."""
    work, messages = [], set()
    for N in (16, 32, 64, 128, 256):
        grid = Counting(GRID.f, GRID.R, softmax="early")
        model = random_model(N, grid, q=2)
        grid.products.clear()
        played = two_way(model, [0, 1] * (N // 2), range(0, N, 3), variant)
        work.append(sum(grid.products))
        messages.add(len(played.channel.messages))
    steps = np.diff(work)
    assert (steps[1:] == 2 * steps[:-1]).all() and steps[0] > 0 and len(messages) == 1


def test_each_row_is_projected_once(monkeypatch):
    """Work linear in N: both players together project N rows, as the undivided model does."""
    model, projected = random_model(40, q=2), []
    project = IntegerTransformer.project
    monkeypatch.setattr(
        IntegerTransformer,
        "project",
        lambda self, x: projected.append(len(x)) or project(self, x),
    )
    two_way(model, [0, 1] * 20, range(7, 30))
    assert sum(projected) == 40


@pytest.mark.claim("Theorem 4")
def test_floats_would_betray_the_partition():
    """In float32 the denominator of the softmax depends on who adds up what."""
    e = np.exp(-5 * np.random.default_rng(0).random((400, 50), dtype=np.float32))
    alone = np.add.accumulate(e, axis=1)[:, -1]
    halves = [
        np.add.accumulate(e[:, part], axis=1)[:, -1] for part in (slice(0, 25), slice(25, 50))
    ]
    assert (alone != halves[0] + halves[1]).mean() > 0.2


@pytest.mark.claim("Theorem 4")
@pytest.mark.parametrize("N", [2, 4])
def test_no_protocol_beats_the_problem(N):
    """What a model computes never takes more bits than the players sent."""
    model = random_model(N, q=2)
    for mine in sides(N):
        problem = split(lambda s: model(s) == 0, N=N, alice=mine)
        assert problem.complexity() <= two_way(model, [0] * N, mine).channel.bits


# The wire


@pytest.mark.parametrize("bits", [0, 1, 7, 8, 40, 70])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_numbers_arrive_in_exactly_the_bits_stated(count, bits):
    high = min((1 << bits) - 1, (1 << 62))
    form, wire = Format(-(high // 2), high - high // 2, bits), Channel()
    rng = np.random.default_rng(bits)
    numbers = rng.integers(form.low, form.high, count, endpoint=True)
    numbers[:2] = [form.low, form.high][:count]
    assert (transmit(wire, "Alice", numbers, form, "test") == numbers).all()
    assert wire.bits == count * bits
    assert len(wire.messages[0].data) == math.ceil(count * bits / 8)


def test_numbers_out_of_range_are_refused():
    wire = Channel()
    for numbers in ([0, 8], [-1, 0]):
        with pytest.raises(ValueError, match="0 <= sum <= 7, got"):
            transmit(wire, "Alice", np.array(numbers), Format(0, 7, 3), "sum")
    with pytest.raises(ValueError, match="range <= 3, got 7"):
        transmit(wire, "Alice", np.array([0]), Format(0, 7, 2), "sum")
    assert wire.bits == 0


# The price


@pytest.mark.claim("Theorem 4")
def test_the_literal_steps_exceed_the_claim_and_the_lean_ones_do_not(trained):
    tokens = inputs(trained[1], 1)[0]
    for p in (8, 12, 16, 20):
        model = IntegerTransformer.from_model(trained[0], p)
        claim = two_way_bits(model.m, p, model.H, model.N, protocol="paper")
        literal, lean = (two_way(model, tokens, [0, 3], x).channel.bits for x in VARIANTS)
        assert model.m >= 4 and lean <= claim < literal
        ends = (model.alphabet - 1).bit_length() + (model.answers - 1).bit_length()
        assert lean <= two_way_bits(model.m, p, model.H, model.N, ends=ends)
        proof = two_way_bits(model.m, p, model.H, model.N, protocol="literal", d=model.d)
        assert 0 <= literal - proof < 2 * model.H  # log N is rounded up, in each of 2 H numbers


@pytest.mark.claim("Theorem 4")
@pytest.mark.parametrize(
    ("f", "lean", "claim"), [(6, 671, 1536), (8, 815, 1728), (10, 959, 1920), (14, 1247, 2304)]
)
def test_bits_of_a_model_of_width_16(f, lean, claim):
    """Two heads of dimension 16 on 16 symbols of 4, f fractional bits and 5 before the point."""
    W, grid = np.zeros((2, 16, 16), int), FixedPoint(f, 31, softmax="early")
    model = IntegerTransformer(
        np.zeros((4, 16, 16), int), W, W, W, lambda x, o: int(o[0] > 0), 2, grid
    )
    bits = two_way(model, [0] * 16, range(0, 16, 2)).bits
    assert sum(bits.values()) == lean and model.p == f + 6
    assert two_way_bits(16, model.p, 2, 16, protocol="paper") == claim
    literal = two_way(model, [0] * 16, [], "literal").bits
    assert sum(literal.values()) == two_way_bits(16, model.p, 2, 16, protocol="literal") > claim


@pytest.mark.claim("Theorem 4", "the constant 3 on a grid of sizes")
def test_lean_keeps_the_constant_3_from_width_4_on():
    sizes = itertools.product(
        (4, 5, 6, 8, 16, 199), (1, 2, 3, 5, 8, 16, 32, 129), range(1, 41, 3), (1, 2, 4, 16)
    )
    for m, p, n, H in sizes:
        assert two_way_bits(m, p, H, 2**n) <= two_way_bits(m, p, H, 2**n, protocol="paper")
    assert two_way_bits(3, 129, 1, 2) > two_way_bits(3, 129, 1, 2, protocol="paper")


@pytest.mark.claim("Theorem 4")
@pytest.mark.parametrize(("m", "constant"), [(1, 9), (2, 7), (4, 6), (16, 5.25)])
def test_the_literal_steps_need_another_constant(m, constant):
    """Their sum is at most c m (p + log N) H with c = 5 + 4 / m, and no smaller c will do."""

    def ratio(p, n, H):
        claim = two_way_bits(m, p, H, 2**n, protocol="paper")
        return 3 * two_way_bits(m, p, H, 2**n, protocol="literal") / claim

    ratios = [ratio(p, n, H) for p in (1, 8, 60, 10**6) for n in (1, 16, 40) for H in (1, 2, 16)]
    assert constant - 0.001 < max(ratios) < constant


@pytest.mark.claim("Theorem 4")
def test_where_the_literal_count_holds():
    def largest(m, H):
        return max(
            p
            for p in range(1, 200)
            if two_way_bits(m, p, H, 2**16, protocol="literal")
            <= two_way_bits(m, p, H, 2**16, protocol="paper")
        )

    assert [largest(m, 1) for m in (4, 8, 16, 64, 4096)] == [13, 17, 20, 23, 23]
    assert largest(4096, 4096) == 47  # with p >= 3 log N it never does


# What follows for tasks


@pytest.mark.claim("Theorem 5", "lengths ruled out, m = {m}")
@pytest.mark.claim("Theorem 10", "lengths ruled out, m = {m}")
@pytest.mark.parametrize(
    ("m", "H", "p", "paper", "literal", "lean"),
    [
        (16, 1, 16, 1264, 1366, 600),
        (64, 1, 16, 5458, 5210, 2140),
        (64, 1, 32, 8658, 10396, 4254),
        (64, 4, 32, 36208, 35450, 17020),
        (64, 12, 16, 74140, 51322, 25708),
        (128, 8, 32, 151162, 136466, 66836),
        (128, 96, 16, 1340154, 798390, 403012),
    ],
)
def test_where_one_layer_cannot_recognise_dyck(m, H, p, paper, literal, lean):
    assert first_impossible(m, p, H, protocol="paper", exact=False) == paper
    assert first_impossible(m, p, H, protocol="literal", exact=False) == literal
    assert first_impossible(m, p, H) == lean
    assert paper - 1 > 3 * m * (p + math.log2(paper)) * H  # mH < (N - 1) / 3(p + log N)
    assert paper - 3 <= 3 * m * (p + math.log2(paper - 2)) * H


@pytest.mark.claim("Theorem 5")
@pytest.mark.claim("Theorem 12", "the bound, length by length: {protocol}")
@pytest.mark.parametrize("task", ["dyck", "equality", "disjointness"])
@pytest.mark.parametrize("protocol", ["paper", "literal", "rounded", "lean"])
def test_first_impossible_length_by_trying_all(task, protocol):
    ends = 3 if task == "dyck" else 2
    for m, p, H, exact in itertools.product((1, 2, 5), (1, 3, 8), (1, 3), (False, True)):
        N = 2
        while needed_bits(task, N, exact=exact) <= two_way_bits(
            m, p, H, N, protocol=protocol, ends=ends
        ):
            N += 2
        found = first_impossible(m, p, H, task=task, protocol=protocol, exact=exact)
        assert found == N


@pytest.mark.claim("Theorem 12")
@pytest.mark.parametrize("protocol", ["paper", "literal", "lean"])
def test_least_width_is_least(protocol):
    for N, p, H in itertools.product((10, 1000, 10**6), (4, 32), (1, 8)):
        needed = needed_bits("equality", N)
        m = least_width(needed, N, p, H, protocol=protocol)
        bits = [two_way_bits(x, p, H, N, protocol=protocol, ends=2) for x in (m, max(1, m - 1))]
        assert bits[0] >= needed and (m == 1 or bits[1] < needed)


# Refusals


def test_a_model_that_could_leave_the_range_is_refused():
    layer, rows = random_parts(3)
    rows[2, 1] *= 40  # one symbol, at one position
    for arithmetic in (FixedPoint(f=4, R=16, softmax="early"), GRID):
        with pytest.raises(OverflowError, match="expected"):
            IntegerTransformer.from_layer(layer, 100 * rows, int, 1, arithmetic)


def test_a_large_logit_of_one_pair_is_refused():
    rows = np.zeros((2, 2, 1))
    rows[1] = 4
    one = Head(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)))
    with pytest.raises(OverflowError, match=r"numbers up to R = 15, got 16\.25"):
        IntegerTransformer.from_layer(
            Layer([one]), rows, int, 1, FixedPoint(f=2, R=15, softmax="early")
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"softmax": "late"}, "got 'late' and 'floor'"),
        ({"softmax": "early", "rounding": "nearest"}, "got 'early' and 'nearest'"),
        ({"softmax": "early", "f": 17}, "f <= 16, got 17"),
        ({"softmax": "early", "f": 16, "R": 1 << 31}, "bits of a sum <= 62, got 65"),
    ],
    ids=["late-softmax", "nearest", "fine-grid", "wide-sums"],
)
def test_other_arithmetics_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        random_model(3, FixedPoint(**{"f": 4, "R": 64, **options}))


def test_other_models_are_refused(trained):
    def net(name, **options):
        config = ModelConfig(vocab=4, classes=2, width=4, heads=1, max_len=3, **options)
        return build(name, config, rng=torch.Generator().manual_seed(0))

    with pytest.raises(ValueError, match="depth 1, got a LSTM of depth 1"):
        IntegerTransformer.from_model(net("lstm"), 8)
    with pytest.raises(ValueError, match="depth 1, got a Transformer of depth 2"):
        IntegerTransformer.from_model(net("transformer", depth=2), 8)
    with pytest.raises(ValueError, match="1 <= N <= 3, got 4"):
        IntegerTransformer.from_model(net("transformer"), 8, N=4)
    with pytest.raises(ValueError, match="2 <= p <= 31, got 1"):
        IntegerTransformer.from_model(net("transformer"), 1)
    with pytest.raises(ValueError, match="holds the weights and logits, got p = 3"):
        IntegerTransformer.from_model(trained[0], 3)


@pytest.mark.parametrize(
    ("tokens", "mine", "variant", "message"),
    [
        ([0, 1], [0], "lean", "3 <= length <= 3, got 2"),
        ([0, 1, 3], [0], "lean", "symbol <= 2, got 3"),
        ([0, -1, 2], [0], "lean", "0 <= symbol <= 2, got -1"),
        ([0, 1, 2], [3], "lean", "position <= 2, got 3"),
        ([0, 1, 2], [-1], "lean", "0 <= position <= 2, got -1"),
        ([0, 1, 2], [0], "greedy", "got 'greedy'"),
    ],
    ids=["short", "symbol", "negative-symbol", "position", "negative-position", "variant"],
)
def test_bad_calls_are_refused(tokens, mine, variant, message):
    with pytest.raises(ValueError, match=message):
        two_way(random_model(3), tokens, mine, variant)


def test_symbols_that_are_no_whole_numbers_are_refused():
    model = random_model(3)
    with pytest.raises(TypeError, match="whole numbers for symbol, got float64"):
        model.check([0, 1.5, 2])
    assert model.check([torch.tensor(0), np.int8(1), 2]) == [0, 1, 2]


def test_an_answer_that_was_not_announced_is_refused():
    layer, rows = random_parts(2)
    model = IntegerTransformer.from_layer(layer, rows, lambda z: 5, 2, GRID)
    with pytest.raises(ValueError, match="0 <= answer <= 1, got 5"):
        two_way(model, [0, 0], [0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: two_way_bits(0, 1, 1, 2), "m >= 1, got 0"),
        (lambda: two_way_bits(1, 1, 1, 2, protocol="fast"), "got 'fast'"),
        (lambda: needed_bits("dyck", 3), "even N, got 3"),
        (lambda: needed_bits("parity", 4), "got 'parity'"),
        (lambda: first_impossible(1, 1, 1, task="parity"), "got 'parity'"),
        (lambda: least_width(-1, 4, 1, 1), "needed >= 0, got -1"),
    ],
    ids=["width", "protocol", "odd", "task", "impossible-task", "needed"],
)
def test_bounds_refuse_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
