"""Regular languages, and the automata inside recurrent models (Lemma 4, Appendices E and F.1).

A recurrent model with m numbers of p bits *is* a finite automaton with at most 2^(m p) states, so
it takes m p >= log2 n bits to agree with a language whose minimal automaton has n states. The
library `automata-lib` minimises and compares; words are strings, and token i is `symbols[i]`.

======= ==========================================================================
q       size of the alphabet, |Σ|
N       length of the words of a finite language; t of the symbols have been read
n       states of a minimal automaton, the dead one among them
residual  of a word u: the words v for which uv is accepted (Myhill and Nerode)
======= ==========================================================================
"""

from collections import deque
from typing import NamedTuple

import numpy as np
import torch
from automata.fa.dfa import DFA
from jaxtyping import Bool, Int
from torch import Tensor

from companion.models import SequenceModel, State
from companion.theory._check import check_int
from companion.theory.recurrent import Machine

_LARGEST_LIST = 1 << 24  # words that are listed at once


def all_words(q: int, N: int) -> Int[np.ndarray, "words N"]:
    """All q^N words in the order of the alphabet, one a row.

    >>> all_words(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    check_int("q", q, low=1)
    check_int("N", N, low=0)
    check_int("q^N", q**N, low=1, high=_LARGEST_LIST)
    return np.arange(q**N)[:, None] // q ** np.arange(N)[::-1] % q


def minimal(dfa: DFA) -> DFA:
    """The minimal complete automaton; each state is named by the first shortest word leading to it.

    >>> even = {"even": {"a": "odd"}, "odd": {"a": "other"}, "other": {"a": "odd"}}
    >>> dfa = DFA(states=set(even), input_symbols={"a"}, transitions=even, initial_state="even",
    ...           final_states={"even", "other"})
    >>> sorted(minimal(dfa).states)
    ['', 'a']
    """
    small = dfa.to_complete().minify()
    names, queue = {small.initial_state: ""}, deque([small.initial_state])
    while queue:
        state = queue.popleft()
        for symbol in sorted(small.input_symbols):
            target = small.transitions[state][symbol]
            if target not in names:
                names[target] = names[state] + symbol
                queue.append(target)
    table = {
        name: {symbol: names[target] for symbol, target in small.transitions[state].items()}
        for state, name in names.items()
    }
    return DFA(
        states=set(table),
        input_symbols=small.input_symbols,
        transitions=table,
        initial_state="",
        final_states={names[state] for state in small.final_states},
    )


def live_states(dfa: DFA) -> int:
    """States of the minimal automaton from which some word is accepted: all but the dead one."""
    return len(dfa.to_partial().states) if not dfa.isempty() else 0


def counterexample(first: DFA, second: DFA) -> str | None:
    """A shortest word that one accepts and the other does not; None if the languages are equal.

    >>> parity, anything = DFA.count_mod({"a"}, 2), DFA.universal_language({"a"})
    >>> counterexample(parity, anything), counterexample(parity, parity)
    ('a', None)
    """
    difference = first ^ second
    if difference.isempty():
        return None
    return min(difference.words_of_length(difference.minimum_word_length()))


def automaton_bits(dfa: DFA) -> int:
    """Lemma 4: bits of state of any time-invariant recurrent model for this language.

    The paper says "a DFA with n states"; it must be the minimal one. The dead state counts, as a
    recurrent model reads on after every word.

    >>> automaton_bits(DFA.universal_language({"a"})), automaton_bits(DFA.count_mod({"a"}, 5))
    (0, 3)
    """
    return (len(minimal(dfa).states) - 1).bit_length()


class Acceptor(Machine):
    """A machine that says after every symbol whether it accepts what it has read: class 1 or 0."""

    def __init__(self, vocab: int, size: int, bits: int):
        super().__init__(vocab, 2, size, bits)


class Automaton(Acceptor):
    """Any minimal automaton of n states as a recurrent model of ceil(log2 n) bits (Appendix E).

    This meets Lemma 4, so the lemma cannot be improved.

    >>> model = Automaton(DFA.count_mod({"a", "b"}, 3, symbols_to_count={"b"}), "ab")
    >>> logits, state = model(torch.tensor([[1, 0, 1, 1, 0]]))  # babba: three times b
    >>> logits[0].argmax(-1).tolist(), model.state_bits(state)
    ([0, 0, 0, 1, 1], 2)
    """

    def __init__(self, dfa: DFA, symbols: str):
        if set(symbols) != dfa.input_symbols or len(symbols) != len(dfa.input_symbols):
            raise ValueError(
                f"expected each symbol of {sorted(dfa.input_symbols)} once, got {symbols!r}"
            )
        small = minimal(dfa)
        order = sorted(small.states, key=lambda name: (len(name), name))  # the start comes first
        super().__init__(len(symbols), size=1, bits=(len(order) - 1).bit_length())
        number = {name: i for i, name in enumerate(order)}
        table = [[number[small.transitions[name][c]] for c in symbols] for name in order]
        self.register_buffer("table", torch.tensor(table))
        self.register_buffer("final", torch.tensor([name in small.final_states for name in order]))

    def transition(self, token: Int[Tensor, " B"], state: Int[Tensor, "B size"], t: int) -> Tensor:
        """Look the next state up."""
        return self.table[state[:, 0], token][:, None]

    def answer(self, token: Int[Tensor, " B"], state: Int[Tensor, "B size"]) -> Int[Tensor, " B"]:
        """Whether the state is final."""
        return self.final[state[:, 0]].long()


class Extraction(NamedTuple):
    """A recurrent model as an automaton."""

    dfa: DFA  # a state for each (memory, answer) that occurs; not minimised
    memories: int  # different states of the model that occur: what Lemma 4 counts


def extract(model: SequenceModel, symbols: str, *, empty: bool, limit: int = 1 << 16) -> Extraction:
    """The proof of Lemma 4: all states that the model can reach, and what each symbol does to them.

    `model` accepts where class 1 has the largest logit; `empty` says whether the empty word, after
    which a model gives no answer, is accepted. Raises ValueError for a model with more than `limit`
    states (quantise it), whose state grows, or whose step depends on the time.

    >>> parity = DFA.count_mod({"0", "1"}, 2, symbols_to_count={"1"})
    >>> found = extract(Automaton(parity, "01"), "01", empty=True)
    >>> found.memories, counterexample(found.dfa, parity)
    (2, None)
    """
    _check_extractable(model, symbols)
    start = model.initial_state(1)
    nodes = {(start.keys()[0], empty): 0}
    table: list[dict[str, int]] = []
    frontier, depth = start.tensors, 0
    while len(frontier[0]):
        first, fresh = len(table), []
        table.extend({} for _ in range(len(frontier[0])))
        for token, symbol in enumerate(symbols):
            keys, accepted, after = _step(model, frontier, token, depth)
            for row, node in enumerate(zip(keys, accepted, strict=True)):
                if node not in nodes:
                    nodes[node] = len(nodes)
                    fresh.append(tuple(x[row] for x in after))
                table[first + row][symbol] = nodes[node]
            if len(nodes) > limit:
                raise ValueError(f"expected at most limit = {limit} states, got more")
        if not fresh:
            break
        frontier, depth = tuple(torch.stack(x) for x in zip(*fresh, strict=True)), depth + 1
    dfa = DFA(
        states=set(range(len(nodes))),
        input_symbols=set(symbols),
        transitions=dict(enumerate(table)),
        initial_state=0,
        final_states={number for (_, accepts), number in nodes.items() if accepts},
    )
    return Extraction(dfa, len({key for key, _ in nodes}))


def _check_extractable(model: SequenceModel, symbols: str) -> None:
    if model.config.classes != 2:
        raise ValueError(f"expected a model with 2 classes, got {model.config.classes}")
    if len(set(symbols)) != len(symbols) or len(symbols) != model.config.vocab:
        raise ValueError(f"expected {model.config.vocab} different symbols, got {symbols!r}")
    if model.state_shapes(0) != model.state_shapes(1):
        raise ValueError(
            f"expected a state of fixed size, got {model.state_shapes(0)} and then "
            f"{model.state_shapes(1)}"
        )


def _step(model: SequenceModel, tensors: tuple[Tensor, ...], token: int, depth: int):
    """Keys, answers and states after one more token; the time must make no difference."""
    tokens = torch.full((len(tensors[0]), 1), token, device=model.device)
    with torch.no_grad():
        (logits, after), (later, after_later) = (
            model(tokens, State(t, tensors)) for t in (0, depth + 1)
        )
    keys = after.keys()
    if keys != after_later.keys() or not torch.equal(logits, later):
        raise ValueError(f"expected the same step at all times, got others at t = 0, {depth + 1}")
    return keys, logits[:, 0].argmax(-1).bool().tolist(), after.tensors


def state_profile(model: SequenceModel, N: int) -> list[int]:
    """How many states a model can be in after t = 0, ..., N symbols; it may depend on the time.

    No model can have fewer than the residuals of what it computes, at any t.
    """
    q, profile, state = model.config.vocab, [1], model.initial_state(1)
    check_int("N", N, low=0)
    for _ in range(N):
        kept = tuple(x.repeat_interleave(q, 0) for x in state.tensors)
        tokens = torch.arange(q, device=model.device).repeat(len(kept[0]) // q)[:, None]
        with torch.no_grad():
            state = model(tokens, State(state.t, kept))[1]
        rows = list({key: i for i, key in enumerate(state.keys())}.values())
        state = State(state.t, tuple(x[rows] for x in state.tensors))
        profile.append(len(rows))
    return profile


def residual_profile(table: Bool[np.ndarray, " words"], q: int = 2) -> list[int]:
    """Different residuals of the words of length t = 0, ..., N; `table` is in `all_words` order.

    Two words of one length with different residuals need different states, even in a model that
    depends on the time. So the largest entry, as bits, bounds every recurrent model from below.

    >>> x = all_words(2, 4)
    >>> residual_profile((x[:, :2] != x[:, 2:]).any(1))
    [1, 2, 4, 3, 2]
    """
    return [len(rows) for rows in _residuals(table, q)]


def strict_states(table: Bool[np.ndarray, " words"], q: int = 2) -> int:
    """States of the minimal automaton for the words in `table`, all other lengths rejected.

    Residuals of different lengths differ unless they are empty, and the empty one is the dead
    state, which words longer than N reach.

    >>> strict_states(np.array([False, True, True, False]))  # 01 and 10
    5
    """
    return 1 + sum(len({row for row in rows if any(row)}) for rows in _residuals(table, q))


def _residuals(table: np.ndarray, q: int) -> list[set[bytes]]:
    check_int("q", q, low=2)
    N = round(np.log(len(table)) / np.log(q)) if len(table) else 0
    if q**N != len(table):
        raise ValueError(f"expected a table of q^N entries with q = {q}, got {len(table)}")
    return [{row.tobytes() for row in table.reshape(q**t, -1)} for t in range(N + 1)]
