"""Bounded brackets, and why they are hard for two parties (Lemma 1, Definition 1, Appendix E).

Dyck-(n, k): well-matched words over n kinds of bracket that never hold more than k open ones.
Symbol 2c opens kind c and 2c + 1 closes it, so s ^ 1 is the partner of s; "()[]" are 0, 1, 2, 3.

======= ==========================================================================
N       length of a word; positions count from 0 here, from 1 in the paper
x, y    Alice's symbols, at positions 0, 2, ... and Bob's, at 1, 3, ...
S       the fooling set: the pairs (x, y) that form a member of Dyck-(n, 2)
M       the matrix of the problem, M[x, y] = 1 for members
D       exact deterministic complexity: bits until both know the answer
======= ==========================================================================

With depth at most 2, whoever knows x knows y: M is a permutation matrix, filled up with rows and
columns of zeros. So the problem is Equality in disguise, on N - 1 bits if n = 2. It is just as easy
with a little error allowed (fingerprints), and its bounds are for exact models only.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from automata.fa.dfa import DFA
from jaxtyping import Bool, Int, Shaped

from companion.models.quantized import pack_levels, unpack_levels
from companion.theory._check import check_even, check_int, check_whole
from companion.theory.automata import all_words
from companion.theory.communication import Channel

BRACKETS = "()[]{}<>"
_LARGEST_LIST = 1 << 22  # members that are listed at once


@dataclass(frozen=True)
class Dyck:
    """The language Dyck-(n, k).

    >>> dyck = Dyck(2, 2)
    >>> "([])[]" in dyck, "([[]])" in dyck, "(]" in dyck
    (True, False, False)
    >>> dyck.count(20) == 2**19
    True
    """

    n: int = 2
    k: int = 2

    def __post_init__(self):
        check_int("n", self.n, low=1)
        check_int("k", self.k, low=1)

    @property
    def symbols(self) -> str:
        """The brackets as characters, symbol i at index i; up to four kinds have them."""
        check_int("n", self.n, low=1, high=len(BRACKETS) // 2)
        return BRACKETS[: 2 * self.n]

    def encode(self, word: str) -> Int[np.ndarray, " N"]:
        """Characters to symbols."""
        symbols = self.symbols
        unknown = set(word) - set(symbols)
        if unknown:
            raise ValueError(f"expected brackets of {symbols!r}, got {min(unknown)!r}")
        return np.array([symbols.index(c) for c in word], dtype=np.int64)

    def decode(self, word: Int[np.ndarray, " N"]) -> str:
        """Symbols to characters."""
        symbols = self.symbols
        return "".join(symbols[s] for s in word)

    def __contains__(self, word: str) -> bool:
        """Membership, with a stack."""
        stack: list[int] = []
        for s in self.encode(word).tolist():
            if s % 2 == 0 and len(stack) < self.k:
                stack.append(s)
            elif s % 2 == 0 or not stack or stack.pop() != s - 1:
                return False
        return not stack

    def many(self, words: Int[np.ndarray, "B N"]) -> Bool[np.ndarray, " B"]:
        """Membership of B words at once; a stack is a number in base n + 1, its top digit lowest.

        >>> Dyck(2, 2).many(np.array([[0, 2, 3, 1], [0, 2, 1, 3]])).tolist()  # ([]) and ([)]
        [True, False]
        """
        self._check(words)
        alive, stack = np.ones(len(words), bool), np.zeros(len(words), np.int64)
        for s in words.T:
            alive, stack = self._read(alive, stack, s)
        return alive & (stack == 0)

    def count(self, N: int) -> int:
        """Members of length N, by dynamic programming over the depth; for n = k = 2, 2^(N - 1)."""
        check_int("N", N, low=0)
        ways = [1] + [0] * self.k  # ways[d]: prefixes that hold d open brackets
        for _ in range(N):
            opened, closed = [0, *(self.n * w for w in ways[:-1])], [*ways[1:], 0]
            ways = [a + b for a, b in zip(opened, closed, strict=True)]
        return ways[0]

    def members(self, N: int) -> Int[np.ndarray, "count N"]:
        """All members of length N in the order of the alphabet, by growing prefixes.

        >>> [Dyck().decode(word) for word in Dyck().members(2)]
        ['()', '[]']
        """
        check_int("number of members", self.count(N), low=0, high=_LARGEST_LIST)
        words, stack = np.zeros((1, 0), np.int64), np.zeros(1, np.int64)
        for left in reversed(range(N)):
            words = np.repeat(words, 2 * self.n, axis=0)
            s = np.tile(np.arange(2 * self.n), len(stack))
            alive, stack = self._read(np.ones(len(s), bool), np.repeat(stack, 2 * self.n), s)
            alive &= stack < (self.n + 1) ** min(left, self.k)  # closable in time
            words, stack = np.column_stack([words, s])[alive], stack[alive]
        return words

    def automaton(self) -> DFA:
        """The minimal automaton: a state for each stack, and "dead".

        (n^(k+1) - 1) / (n - 1) stacks: 7 for Dyck-(2, 2), so 8 states. The paper's O(2^k) is right
        for two kinds of bracket, its 7 for the stacks alone.

        >>> sorted(Dyck(1, 2).automaton().states)
        ['', '(', '((', 'dead']
        """
        table, todo = {"dead": dict.fromkeys(self.symbols, "dead")}, [""]
        for stack in todo:
            table[stack] = {}
            for opening, closing in zip(self.symbols[::2], self.symbols[1::2], strict=True):
                room, top = len(stack) < self.k, stack[-1:] == opening
                table[stack][opening] = stack + opening if room else "dead"
                table[stack][closing] = stack[:-1] if top else "dead"
                todo.extend([stack + opening] * room)
        return DFA(
            states=set(table),
            input_symbols=set(self.symbols),
            transitions=table,
            initial_state="",
            final_states={""},
        )

    def _read(self, alive, stack, s):
        """One symbol more for each word: which are still well formed, and their stacks."""
        base, kind = self.n + 1, s // 2 + 1
        opens = s % 2 == 0
        alive = alive & np.where(opens, stack < base ** (self.k - 1), stack % base == kind)
        return alive, np.where(alive, np.where(opens, stack * base + kind, stack // base), 0)

    def _check(self, words: np.ndarray) -> None:
        check_int("(n + 1)^k", (self.n + 1) ** self.k, low=1, high=1 << 62)  # stacks are int64
        check_whole("symbol", words, low=0, high=2 * self.n - 1)


def split(
    words: Int[np.ndarray, "*B N"],
) -> tuple[Int[np.ndarray, "*B h"], Int[np.ndarray, "*B h"]]:
    """Alice's and Bob's symbols."""
    if words.shape[-1] % 2:
        raise ValueError(f"expected an even length, got {words.shape[-1]}")
    return words[..., 0::2], words[..., 1::2]


def join(x: Int[np.ndarray, "*B h"], y: Int[np.ndarray, "*B h"]) -> Int[np.ndarray, "*B N"]:
    """The word that they share."""
    return np.stack([x, y], axis=-1).reshape(*x.shape[:-1], 2 * x.shape[-1])


def partner(x: Iterable[int]) -> Iterator[int]:
    """Bob's symbols from Alice's: one pass, and one bracket to remember (Lemma 1's decoder).

    At her positions a bracket opens from level 0 or closes from level 2. What lies before a closing
    one is its opening; what lies before an opening one, or at the end, closes her last open one.

    >>> list(partner([0, 3]))  # Alice holds ( and ], so the word is ([])
    [2, 1]
    """
    outer = None
    for s in x:
        check_int("symbol", s, low=0)
        if outer is not None:
            yield s ^ 1 if s % 2 else outer ^ 1
        elif s % 2:
            raise ValueError(f"expected an opening bracket first, got symbol {s}")
        outer = s if s % 2 == 0 else outer
    if outer is not None:
        yield outer ^ 1


def partners(x: Int[np.ndarray, "B h"]) -> Int[np.ndarray, "B h"]:
    """`partner` for B halves at once."""
    check_whole("symbol", x, low=0)
    if x.shape[1] == 0:
        return x
    if (x[:, 0] % 2).any():
        raise ValueError("expected an opening bracket first, got a closing one")
    at = np.maximum.accumulate(np.where(x % 2 == 0, np.arange(x.shape[1]), 0), axis=1)
    y = np.take_along_axis(x, at, axis=1) ^ 1
    y[:, :-1] = np.where(x[:, 1:] % 2, x[:, 1:] ^ 1, y[:, :-1])
    return y


def partners_back(y: Int[np.ndarray, "B h"]) -> Int[np.ndarray, "B h"]:
    """Alice's symbols from Bob's: a member read backwards, brackets turned, is a member again."""
    return partners(y[:, ::-1] ^ 1)[:, ::-1] ^ 1


def fooling_set(N: int, n: int = 2) -> tuple[Int[np.ndarray, "S h"], Int[np.ndarray, "S h"]]:
    """S: every x that opens with an opening bracket, and its one y. So |S| = 2^(N/2 - 1) n^(N/2).

    >>> x, y = fooling_set(6)
    >>> len(x) == 2**5, bool(Dyck().many(join(x, y)).all())
    (True, True)
    """
    h = _half(N)
    x = all_words(2 * n, h)
    x = x[x[:, 0] % 2 == 0]
    return x, partners(x)


def sample(N: int, size: int, *, n: int = 2, rng: np.random.Generator) -> Int[np.ndarray, "size N"]:
    """Members of Dyck-(n, 2), all equally likely: x is free but for its first symbol."""
    check_int("size", size, low=0)
    x = rng.integers(0, 2 * n, size=(size, _half(N)))
    x[:, 0] &= ~1
    return join(x, partners(x))


def matrix(N: int, n: int = 2) -> Bool[np.ndarray, "X Y"]:
    """M, by deciding membership of every pair; rows and columns in `all_words` order."""
    check_int("entries of M", (2 * n) ** (2 * _half(N)), low=1, high=_LARGEST_LIST)
    half = all_words(2 * n, N // 2)
    q = len(half)
    words = join(np.repeat(half, q, axis=0), np.tile(half, (q, 1)))
    return Dyck(n, 2).many(words).reshape(q, q)


def exact_complexity(N: int, n: int = 2) -> int:
    """D = 1 + ceil(log2(|S| + 1)): for n = 2, N + 1; the paper states D >= N - 1.

    Every member is a leaf of its own in a protocol, and the other leaves are at least
    rank(1 - M) = |S| + 1. So 2 |S| + 1 leaves, and Alice can name her x, or say that there is none.

    >>> [exact_complexity(N) for N in (2, 4, 400)]
    [3, 5, 401]
    """
    h = _half(N)
    return 1 + (2 ** (h - 1) * n**h).bit_length()


def play(word: Int[np.ndarray, " N"], channel: Channel) -> bool:
    """A protocol for Dyck-(2, 2) that meets D: Alice sends her N bits, Bob the answer.

    >>> wire = Channel()
    >>> play(Dyck().encode("([])"), wire), wire.bits
    (True, 5)
    """
    Dyck()._check(word)
    x, y = split(word)
    x = _send(channel, "Alice", x, 2, "her symbols")
    right = bool(len(y) == 0 or (x[0] % 2 == 0 and (partners(x[None])[0] == y).all()))
    return bool(_send(channel, "Bob", np.array([right]), 1, "the answer")[0])


def _send(
    channel: Channel, sender: str, numbers: Shaped[np.ndarray, " m"], bits: int, meaning: str
) -> Int[np.ndarray, " m"]:
    """Numbers of so many bits each, as they arrive."""
    levels = torch.as_tensor(numbers.astype(np.int64))[None]
    cost = bits * len(numbers)
    data = channel.send(sender, pack_levels(levels, bits), bits=cost, meaning=meaning)
    return unpack_levels(data, 1, len(numbers), bits)[0].numpy()


def _half(N: int) -> int:
    check_even(N)
    return N // 2
