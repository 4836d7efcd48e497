"""Bounded brackets: counting, the odd/even split, and its exact complexity."""

import math
from functools import cache

import numpy as np
import pytest
import torch

from companion.theory.automata import Automaton, all_words, live_states, minimal
from companion.theory.bounds import first_impossible, needed_bits
from companion.theory.communication import Channel
from companion.theory.dyck import (
    Dyck,
    exact_complexity,
    fooling_set,
    join,
    matrix,
    partner,
    partners,
    partners_back,
    play,
    sample,
    split,
)
from companion.theory.problems import Problem

LANGUAGES = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2), (2, 4)]


def balanced(word, n, k):
    """Membership by the definition: cancel neighbours that match; count what is open."""
    signs = np.cumsum([1 - 2 * (s % 2) for s in word])
    text = "".join(map(str, word))
    for _ in word:
        for kind in range(n):
            text = text.replace(f"{2 * kind}{2 * kind + 1}", "")
    return text == "" and max(signs, default=0) <= k


@pytest.mark.parametrize(("n", "k"), LANGUAGES)
def test_membership_agrees_with_the_definition(n, k):
    dyck = Dyck(n, k)
    for N in range(6 if n > 1 else 9):
        words = all_words(2 * n, N)
        want = [balanced(word, n, k) for word in words.tolist()]
        assert dyck.many(words).tolist() == want
        assert [dyck.decode(word) in dyck for word in words] == want
        assert sum(want) == dyck.count(N)


@pytest.mark.claim("Lemma 1")
def test_count_by_dynamic_programming():
    dyck = Dyck(2, 2)
    assert [dyck.count(N) for N in range(1, 130, 2)] == [0] * 65
    assert [dyck.count(N) for N in range(2, 130, 2)] == [2 ** (N - 1) for N in range(2, 130, 2)]
    assert dyck.count(0) == 1
    for n in (1, 3, 5):
        assert Dyck(n, 2).count(12) == 2**5 * n**6


@pytest.mark.claim("Lemma 1", "all members, N = {N}")
@pytest.mark.parametrize("N", [0, 1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18])
def test_count_by_enumeration(N):
    words = Dyck(2, 2).members(N)
    assert len(words) == Dyck(2, 2).count(N) == len({word.tobytes() for word in words})
    assert Dyck(2, 2).many(words).all()
    if N <= 10:
        every = all_words(4, N)
        assert (every[Dyck(2, 2).many(every)] == words).all()


@pytest.mark.claim("Lemma 1", "the whole fooling set, N = {N}")
@pytest.mark.parametrize("N", [2, 4, 6, 8, 10, 12, 14, 16, 18])
def test_fooling_set_is_all_members_and_each_half_gives_the_other(N):
    x, y = fooling_set(N)
    assert len(x) == 2 ** (N - 1)
    assert {w.tobytes() for w in join(x, y)} == {w.tobytes() for w in Dyck().members(N)}
    assert (partners_back(y) == x).all()
    assert len({row.tobytes() for row in y}) == len(y)
    for i in range(0, len(x), max(1, len(x) // 50)):
        assert list(partner(x[i].tolist())) == y[i].tolist()


@pytest.mark.claim("Definition 1", "the fooling set of Dyck-(2,2), all pairs, N = {N}")
@pytest.mark.parametrize("N", [2, 4, 6, 8, 10])
def test_matrix_is_a_partial_permutation_of_full_rank(N):
    M, K = matrix(N).astype(int), 2 ** (N - 1)
    assert M.sum() == K and M.sum(0).max() == M.sum(1).max() == 1
    assert np.linalg.matrix_rank(M) == K and np.linalg.matrix_rank(1 - M) == K + 1
    x, y = fooling_set(N)
    place = 4 ** np.arange(N // 2)[::-1]
    pairs = list(zip((x @ place).tolist(), (y @ place).tolist(), strict=True))
    assert Problem("Dyck", M).is_fooling(pairs)
    crossed = M[np.ix_(x @ place, y @ place)]
    assert (crossed == np.eye(K)).all()  # *both* crossed pairs are no members


@pytest.mark.parametrize(("N", "n"), [(2, 1), (6, 1), (4, 3), (6, 3), (4, 5)])
def test_any_number_of_kinds(N, n):
    x, y = fooling_set(N, n)
    assert len(x) == 2 ** (N // 2 - 1) * n ** (N // 2) == matrix(N, n).sum() == Dyck(n, 2).count(N)
    assert Dyck(n, 2).many(join(x, y)).all()


@cache
def search(pairs, row, column):
    """Exact D of an identity matrix with, perhaps, a row and a column of zeros more."""
    if pairs == 0 or (pairs == 1 and not row and not column):
        return 0  # constant
    return 1 + min(first_sends(pairs, row, column), first_sends(pairs, column, row))


def first_sends(pairs, row, column):
    """The row player says which part of the rows; columns that lose their row are zero there."""
    costs = [
        max(search(m, left, column or m < pairs), search(pairs - m, row and not left, column or m))
        for m in range(pairs + 1)
        for left in {False, row}
        if 0 < m + left < pairs + row
    ]
    return min(costs, default=math.inf)


@pytest.mark.claim("Lemma 1", "exact cost by search, N = {N}")
@pytest.mark.parametrize("N", [2, 4, 6, 8])
def test_exact_complexity_by_search(N):
    assert search(2 ** (N - 1), True, True) == N + 1 == exact_complexity(N)


@pytest.mark.claim("Lemma 1")
@pytest.mark.parametrize("N", [2, 4, 6, 8])
def test_exact_complexity_by_leaves(N):
    assert Problem("Dyck", matrix(N).astype(int)).complexity() == N + 1
    assert exact_complexity(N) == needed_bits("dyck", N) >= needed_bits("dyck", N, exact=False)


@pytest.mark.claim("Theorem 5", "from Theorem 4 and Lemma 1, m = {m}")
@pytest.mark.claim("Theorem 10", "as Theorem 5, m = {m}")
@pytest.mark.parametrize(("m", "p", "H"), [(16, 16, 1), (64, 32, 1), (64, 16, 12), (128, 32, 8)])
def test_one_layer_below_the_width_of_theorem_5_is_too_narrow(m, p, H):
    """m H >= (N - 1) / 3 (p + log N) fails at N*: the protocol is shorter than Lemma 1 allows."""
    N = first_impossible(m, p, H, protocol="paper", exact=False)
    assert m * H < (N - 1) / (3 * (p + math.log2(N)))
    assert m * H >= (N - 3) / (3 * (p + math.log2(N - 2)))
    lean = first_impossible(m, p, H)
    assert lean < N  # a leaner protocol, and the exact complexity, rule out more
    spent = H * ((2 * m + 4) * p + 2 * math.ceil(math.log2(lean + 1))) + 3
    assert spent < exact_complexity(lean)


@pytest.mark.claim("Lemma 1")
@pytest.mark.parametrize("N", [0, 2, 4, pytest.param(6, marks=pytest.mark.slow)])
def test_protocol_meets_the_bound(N):
    words = all_words(4, N)
    for word, member in zip(words, Dyck().many(words), strict=True):
        wire = Channel()
        assert play(word, wire) == member and wire.bits == N + 1
        assert [message.sender for message in wire.messages] == ["Alice", "Bob"]


@pytest.mark.claim("Lemma 1", "the decoder, reads and answers counted to N = 10^6")
def test_decoder_is_one_pass():
    """Reads and answers alternate, so work is linear and one bracket is all it keeps."""
    N, reads, writes = 10**6, 0, 0
    word = sample(N, 1, rng=np.random.default_rng(0))[0]

    def counted(symbols):
        nonlocal reads
        for symbol in symbols:
            reads += 1
            yield symbol

    x, y = split(word)
    for found, want in zip(partner(counted(x.tolist())), y.tolist(), strict=True):
        writes += 1
        assert found == want and writes <= reads <= writes + 1
    assert reads == writes == N // 2
    assert (partners(x[None])[0] == y).all()
    assert Dyck().decode(word) in Dyck()


def test_sample_is_uniform():
    words = sample(6, 6400, rng=np.random.default_rng(0))
    assert Dyck().many(words).all()
    _, counts = np.unique(words, axis=0, return_counts=True)
    chi2 = ((counts - 200) ** 2 / 200).sum()
    assert len(counts) == 32 and chi2 < 61.1  # 31 degrees of freedom, p = 0.001


@pytest.mark.parametrize(("n", "k"), [*LANGUAGES, (4, 6)])
def test_automaton_is_minimal(n, k):
    dfa = Dyck(n, k).automaton()
    live = k + 1 if n == 1 else (n ** (k + 1) - 1) // (n - 1)
    assert len(dfa.states) == len(dfa.minify().states) == live + 1
    assert live_states(dfa) == live


def test_dyck_2_2_has_7_live_states_and_a_dead_one_and_takes_three_bits():
    dyck = Dyck(2, 2)
    model = Automaton(dyck.automaton(), dyck.symbols)
    stacks = {"", "(", "[", "((", "([", "[(", "[["}
    assert set(minimal(dyck.automaton()).states) == stacks | {")"}  # ")" leads to the dead state
    assert model.state_bits(model.initial_state(1)) == 3
    for N in range(1, 9):
        words = all_words(4, N)
        said = model(torch.tensor(words))[0][:, -1].argmax(-1).numpy()
        assert (said == dyck.many(words)).all()


def test_no_samples_are_an_empty_answer():
    assert sample(6, 0, rng=np.random.default_rng(0)).shape == (0, 6)
    assert join(*np.zeros((2, 0, 3), int)).shape == (0, 6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: play(np.array([4, 1]), Channel()), "0 <= symbol <= 3, got 4"),
        (lambda: play(np.array([0, 5]), Channel()), "0 <= symbol <= 3, got 5"),
        (lambda: play(np.array([-1, 1]), Channel()), "0 <= symbol <= 3, got -1"),
        (lambda: list(partner([-2])), "symbol >= 0, got -2"),
        (lambda: list(partner(iter([0.0]))), "whole number, got 0.0"),
        (lambda: partners(np.array([[-2]])), "symbol >= 0, got -2"),
        (lambda: sample(2, -1, rng=np.random.default_rng(0)), "size >= 0, got -1"),
    ],
)
def test_symbols_that_are_none_are_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_bad_input_is_refused():
    for make in (lambda: Dyck(0, 2), lambda: Dyck(2, 0)):
        with pytest.raises(ValueError, match="1, got 0"):
            make()
    with pytest.raises(ValueError, match=r"brackets of '\(\)\[\]', got 'a'"):
        "(a)" in Dyck()  # noqa: B015
    with pytest.raises(ValueError, match="symbol <= 3, got 4"):
        Dyck().many(np.array([[4]]))
    with pytest.raises(ValueError, match="n <= 4, got 5"):
        _ = Dyck(5, 2).symbols
    with pytest.raises(ValueError, match="even length, got 3"):
        split(np.zeros((1, 3), int))
    with pytest.raises(ValueError, match="even N, got 3"):
        fooling_set(3)
    with pytest.raises(ValueError, match="N >= 2, got 0"):
        exact_complexity(0)
    with pytest.raises(ValueError, match="opening bracket first, got symbol 1"):
        list(partner([1, 0]))
    with pytest.raises(ValueError, match="opening bracket first"):
        partners(np.array([[1, 0]]))
    with pytest.raises(ValueError, match="<= 4194304"):
        Dyck().members(30)
    with pytest.raises(ValueError, match="<= 4611686018427387904"):
        Dyck(2, 50).many(np.array([[0]]))
