"""Theorem 8 and Proposition 9 on hand-built and quantised models; MQAR by two layers."""

import itertools

import numpy as np
import pytest
import torch

from companion.models import ModelConfig, Quantized, build
from companion.theory.communication import find_collision, solve_index
from companion.theory.nearest_neighbor import NearestNeighbor
from companion.theory.recall import (
    RecallAsLookup,
    RecallRegister,
    key_margin,
    key_vectors,
    mqar,
    solve_mqar,
)
from companion.theory.vectors import binary


def lstm(N, width=2):
    config = ModelConfig(vocab=2 + N, classes=2, width=width, depth=2, heads=1, max_len=4 * N)
    return build("lstm", config, rng=torch.Generator().manual_seed(0))


@pytest.mark.claim("Theorem 8", "all strings of {N} labels, to the bit")
@pytest.mark.parametrize("N", [1, 2, 7])
def test_bob_learns_every_string_from_n_bits(N):
    rng = np.random.default_rng(N)
    for a in itertools.product((0, 1), repeat=N):
        order = torch.tensor(rng.permutation(N))
        played = solve_mqar(RecallRegister(N), torch.tensor(a), order)
        assert played.answers.tolist() == list(a) and played.right.all()
        assert played.channel.bits == N and len(played.channel.messages) == 1


@pytest.mark.claim("Theorem 8")
def test_so_he_knows_whether_the_sets_meet():
    for a, b in itertools.product(itertools.product((0, 1), repeat=4), repeat=2):
        played = solve_mqar(RecallRegister(4), torch.tensor(a), torch.arange(4))
        assert (played.answers & b).any() == any(x and y for x, y in zip(a, b, strict=True))


@pytest.mark.claim("Theorem 8")
def test_the_protocol_runs_on_a_trained_kind_of_model_and_counts_its_state():
    played = solve_mqar(lstm(6), torch.tensor([1, 0, 1, 1, 0, 0]), torch.arange(6))
    assert played.channel.bits == 2 * 2 * 2 * 32 and len(played.answers) == 6


@pytest.mark.claim("Proposition 9", "the register that meets it, N = {N}")
@pytest.mark.parametrize("N", [1, 3, 8])
def test_recall_solves_index_with_n_bits(N):
    a = torch.randint(0, 2, (N,), generator=torch.Generator().manual_seed(N))
    played = solve_index(RecallAsLookup(RecallRegister(N), N), a, alphabet=2)
    assert played.right.all() and played.channel.bits == N


@pytest.mark.claim("Proposition 9", "a collision below the bound, N = 12")
@pytest.mark.claim("Theorem 8")
def test_a_state_below_n_bits_confuses_two_strings():
    N = 12
    small = RecallAsLookup(Quantized(lstm(N), 1), N)  # 8 numbers of 1 bit
    found = find_collision(small, N)
    assert found.first[found.position] != found.second[found.position] and found.read <= 257
    with pytest.raises(ValueError, match=r"N log2 \|Σ\| = 8 bits of state, got 8"):
        find_collision(RecallAsLookup(RecallRegister(8), 8), 8)


@pytest.mark.claim("MQAR", "all pairs of {alphabet} keys")
@pytest.mark.parametrize("alphabet", [2, 3, 16, 64, 100])
def test_margin_of_the_keys_is_exact(alphabet):
    dots = key_vectors(alphabet) @ key_vectors(alphabet).T
    np.testing.assert_allclose(np.diag(dots), 1)
    np.fill_diagonal(dots, -1)
    assert 1 - dots.max() == pytest.approx(key_margin(alphabet))
    assert key_margin(alphabet) >= 1 / np.log2(alphabet)  # the paper's margin is smaller


@pytest.mark.claim("MQAR", "all queries of random strings, N = {N}")
@pytest.mark.claim("Theorem 7")
@pytest.mark.parametrize(("N", "alphabet"), [(1, 2), (2, 2), (5, 7), (32, 64), (60, 64)])
def test_two_layers_answer_all_queries_in_one_pass(N, alphabet):
    rng = np.random.default_rng(N)
    keys = np.array([rng.permutation(alphabet)[:N] for _ in range(8)])
    labels = rng.integers(0, 2, keys.shape)
    order = np.array([rng.permutation(N) for _ in keys])
    points, given = mqar(keys, labels, order, alphabet)
    model = NearestNeighbor.build(
        2 * N, points.shape[-1], key_margin(alphabet), binary(4 * N), causal=True
    )
    assert (model.all_queries(points, given, N) == np.take_along_axis(labels, order, -1)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: key_vectors(1), "alphabet >= 2, got 1"),
        (lambda: RecallRegister(0), "N >= 1, got 0"),
        (lambda: RecallRegister(2)(torch.tensor([[3]])), "expected key 0 as token 0, got 3"),
        (lambda: RecallRegister(2)(torch.tensor([[2, 3]])), "expected a label as token 1, got 3"),
        (lambda: RecallAsLookup(RecallRegister(2), 3), "N <= 2, got 3"),
        (
            lambda: RecallAsLookup(RecallRegister(2), 2)(torch.tensor([[2, 0]])),
            "symbols and then one index",
        ),
        (
            lambda: solve_mqar(RecallRegister(2), torch.tensor([0, 1]), torch.tensor([0, 0])),
            r"order of 0, ..., 1, got \[0, 0\]",
        ),
        (
            lambda: solve_mqar(RecallRegister(1), torch.tensor([2]), torch.tensor([0])),
            r"bits, got \[2\]",
        ),
        (
            lambda: mqar(*np.zeros((3, 1, 2), dtype=np.int64), 4),
            "different keys in a row, got one twice",
        ),
        (lambda: mqar(*np.array([[[0, -1]], [[0, 1]], [[0, 1]]]), 4), "0 <= key <= 3, got -1"),
        (lambda: mqar(*np.array([[[0, 4]], [[0, 1]], [[0, 1]]]), 4), "0 <= key <= 3, got 4"),
        (lambda: mqar(*np.array([[[0, 1]], [[0, 2]], [[0, 1]]]), 4), "0 <= label <= 1, got 2"),
        (lambda: mqar(*np.array([[[0, 1]], [[0, 1]], [[0, 0]]]), 4), r"order of .*got \[0, 0\]"),
        (lambda: mqar(*np.array([[[0, 1]], [[0, 1]], [[0, -1]]]), 4), r"order of .*got \[0, -1\]"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
