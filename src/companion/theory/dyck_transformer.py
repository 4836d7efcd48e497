"""Dyck-(2, 2) by two causal layers of width 7 + 2 log2 N; one layer needs Omega(N / p) (Theorem 5).

With depth at most 2 the parity of a position tells the level: brackets at even positions open from
level 0 or close from level 2. So a word is a member exactly if (positions count from 0)

    (1) at even i > 0, s_{i-1} s_i is a closing and an opening bracket, or a matching pair;
        s_0 opens
    (2) at odd i, if s_i closes, it has the kind of the last opening bracket at an even position
    (3) the last position is odd and its bracket closes

Layer 1 fetches s_{i-1} by its binary code, and the kind wanted in (2) by recency; its network
computes an error e_i, exactly 0 or at least 1. Layer 2 looks for an error anywhere.

======= ==========================================================================
N       longest word; n = ceil(log2 N) bits of a position, B(i) its signs
a, b    signs of a symbol: +1 opens, -1 closes; +1 round, -1 square
c       1, but 0 at position 0
r       recency: i + offset at even positions that open, else 0; the offset is about ln 40N
eta     logit per error in layer 2
nu      distance of a fetched sign from the true one, in the worst word
======= ==========================================================================

Layer 2 does not average the errors as 1 / N each, which 16-bit floats lose: it attends to them.
What needs precision is recency. r is even, so a float with a significand of t bits holds it up to
2^(t + 1): N = 504 in bfloat16, 4084 in float16.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from companion.theory._check import check_int, check_whole
from companion.theory.fixed_point import EXACT, Arithmetic, FixedPoint
from companion.theory.transformer import LAST, FeedForward, Head, Layer, Stack
from companion.theory.vectors import Binary, binary

_LARGEST_N = 1 << 12  # longest words for which the worst ones are run, N^2 / 2 weights
_TOLERANCE = 0.5  # room that the error network leaves for fetched signs
_BATCH = 1 << 16  # symbols that go through the layers at once
A, B, BEFORE_A, BEFORE_B, WANTED, C, R, CODE = range(8)  # coordinates; codes from CODE on


@dataclass(frozen=True)
class DyckTransformer:
    """A recogniser of Dyck-(2, 2) for all words of length 1 to N, in one given arithmetic.

    It refuses to be built where its worst word would come too close to a wrong answer.

    >>> recogniser = DyckTransformer(64)
    >>> recogniser([0, 2, 3, 1]), recogniser([0, 2, 1, 3])  # ([]) and ([)]
    (True, False)
    >>> recogniser.width, round(recogniser.margin, 2)
    (19, 0.23)
    """

    N: int
    arithmetic: Arithmetic = EXACT

    def __post_init__(self):
        check_int("N", self.N, low=1, high=_LARGEST_N)
        if not self.margin > 0:
            raise ValueError(
                f"expected a positive margin, got {self.margin:.3f} with N = {self.N} in "
                f"{self.arithmetic}: fetched signs are off by {self.nu_before:.3f} and "
                f"{self.nu_wanted:.3f}, an error is read as {self.share:.3f}"
            )

    @property
    def codes(self) -> Binary:
        """B(i)."""
        return binary(self.N)

    @property
    def width(self) -> int:
        """The width of the model: seven coordinates and two codes."""
        return self.stack.width

    @property
    def eta_before(self) -> float:
        """Sharpness of the head that fetches s_{i-1}, per bit: ln(16 n) / 2, up to an eighth."""
        return math.ceil(4 * math.log(16 * self.codes.k)) / 8

    @property
    def offset(self) -> int:
        """An even number >= ln 40N, so that all other positions together weigh at most 1 / 40."""
        return 2 * math.ceil(math.log(40 * self.N) / 2)

    @property
    def eta(self) -> int:
        """ln 3N, rounded up: one error outweighs N - 1 others three to one or more."""
        return math.ceil(math.log(3 * self.N))

    @cached_property
    def stack(self) -> Stack:
        """The two layers."""
        k = self.codes.k
        d = CODE + 2 * k
        one, own, last = np.eye(d), slice(CODE, CODE + k), slice(CODE + k, d)
        before = Head(self.eta_before * one[last], one[own], one[[A, B]])
        wanted = Head(one[[C]], one[[R]], one[[B]])
        first = Layer(
            [before, wanted],
            W_O=one[:, [BEFORE_A, BEFORE_B, WANTED]],
            ffn=error_network(d),
            causal=True,
            residual=True,
        )
        unit = np.eye(4)  # (error, may end here, 1, error anywhere)
        anywhere = Head(self.eta * unit[[2]], unit[[0]], unit[[0]])
        decide = FeedForward(np.array([[0.0, 1, 0, -2]]), np.zeros(1), np.eye(1), np.zeros(1))
        second = Layer([anywhere], W_O=unit[:, [3]], ffn=decide, causal=True, residual=True)
        return Stack([first, second])

    def embed(self, words: Int[np.ndarray, "B n"]) -> Float[np.ndarray, "B n d"]:
        """A row for each symbol: a function of the symbol and its position only."""
        i = np.arange(words.shape[1])
        x = np.zeros((*words.shape, CODE + 2 * self.codes.k))
        x[..., A], x[..., B] = 1 - 2.0 * (words % 2), 1 - 2.0 * (words // 2)
        x[..., C] = i > 0
        x[..., R] = np.where((words % 2 == 0) & (i % 2 == 0), i + self.offset, 0)
        codes = [self.codes.rows(i), self.codes.rows(np.maximum(i - 1, 0))]
        x[..., CODE:] = np.concatenate(codes, axis=1)
        return x

    def __call__(self, word) -> bool:
        """Membership of one word, symbols 0 to 3 for the brackets ( ) [ ]."""
        return bool(self.many(np.asarray(word)[None])[0])

    def many(self, words: Int[np.ndarray, "B n"]) -> Bool[np.ndarray, " B"]:
        """Membership of B words of one length."""
        check_int("length", words.shape[1], low=1, high=self.N)
        check_whole("symbol", words, low=0, high=3)
        size = max(1, _BATCH // words.shape[1])
        parts = [self._score(words[i : i + size]) for i in range(0, len(words), size)]
        return np.concatenate([np.zeros(0), *parts]) > 0.5

    def _score(self, words: np.ndarray) -> np.ndarray:
        return self.stack(self.embed(words), self.arithmetic, rows=LAST)[:, 0, 0]

    @cached_property
    def nu_before(self) -> float:
        """For s_{i-1}: if all other symbols differ from it. Measured on the weights."""
        x = self.embed(np.zeros((1, self.N), int))
        nu = 0.0
        for start in range(0, self.N, 256):
            rows = slice(start, min(start + 256, self.N))
            w = self.stack.layers[0].attention(x, self.arithmetic, rows)[0][0]
            i = np.arange(rows.start, rows.stop)
            right = w[np.arange(len(i)), np.maximum(i - 1, 0)]
            nu = max(nu, float((1 - right + w.sum(1) - right).max()))
        return nu

    @cached_property
    def nu_wanted(self) -> float:
        """For the kind in (2): if the last opener at an even position is all alone of its kind.

        For each place of it the worst word, read at the last position, has openers at all even
        positions before.
        """
        a, nu, at = self.arithmetic, 0.0, np.arange(self.N)
        for start in range(0, self.N, 512):
            last = np.arange(start, min(start + 512, self.N), 2)[:, None]
            r = np.where((at % 2 == 0) & (at <= last), at + self.offset, 0)
            ones = a.encode(np.ones((1, 1)))
            logits = a.matmul(a.encode(r[..., None].astype(float)), ones)[..., 0]
            w = a.decode(a.weights(logits))
            right = np.take_along_axis(w, last, axis=1)[:, 0]
            nu = max(nu, float((1 - right + w.sum(1) - right).max()))
        return nu

    @cached_property
    def share(self) -> float:
        """What layer 2 reads of an error of size 1, at any number of errors: 1 without rounding."""
        a, at = self.arithmetic, np.arange(self.N)
        counts = sorted({min(1 << i, self.N) for i in range(self.N.bit_length() + 1)})
        e = a.encode((at < np.array(counts)[:, None])[..., None] * 1.0)
        ones = a.encode(np.full((len(counts), 1, 1), float(self.eta)))
        read = float(a.decode(a.attend(ones, e, e)[0]).min())
        return read - self.N * self._step if isinstance(a, FixedPoint) else read

    @property
    def margin(self) -> float:
        """The least of three distances, each less a dozen roundings and what sums of N may lose.

        Of the fetched signs from the room that the error network leaves, 2 nu_before and nu_wanted
        from 1/2; of the final score of a word with an error, 1 - 2 share, from 1/2.
        """
        rest = _TOLERANCE - max(2 * self.nu_before, self.nu_wanted), 2 * self.share - 0.5
        a = self.arithmetic
        sums = 0.0 if isinstance(a, FixedPoint) else 2 * a.relative_error(self.N)
        return min(rest) - 12 * self._step - sums

    @property
    def _step(self) -> float:
        """Rounding error of a number near 1."""
        a = self.arithmetic
        return 1 / a.S if isinstance(a, FixedPoint) else torch.finfo(a.dtype).eps / 2


def error_network(d: int) -> FeedForward:
    """psi of layer 1: from (a, b, fetched signs, c, r, codes) to (error, may end here, 1, 0).

    An AND of m signs is relu(their sum - (m - 2) - 1/2): 0 up to noise 1/2 if one is wrong, and at
    least 1 if all are right. The last unit has exact signs only, so it needs no such room.
    """
    even, odd = {CODE: 1}, {CODE: -1}  # the lowest bit of B(i) is the parity
    opens, closes = {A: 1}, {A: -1}
    patterns = [even | opens | {BEFORE_A: 1, C: 2}, even | closes | {BEFORE_A: -1}]  # (1)
    for kind in (1, -1):
        patterns.append(even | closes | {BEFORE_A: 1, BEFORE_B: kind, B: -kind})  # (1)
        patterns.append(odd | closes | {WANTED: kind, B: -kind})  # (2)
    patterns.append(odd | closes)  # (3)
    W_1 = np.zeros((len(patterns), d))
    for row, pattern in zip(W_1, patterns, strict=True):
        row[list(pattern)] = list(pattern.values())
    signs = np.array([sum(1 for at in pattern if at != C) for pattern in patterns])
    b_1 = 2 - signs - _TOLERANCE
    b_1[0] -= 2  # at position 0, where c = 0, the symbol before is the symbol itself
    b_1[-1] = -1
    W_2 = np.zeros((4, len(patterns)))
    W_2[0, :-1], W_2[1, -1] = 1, 1
    return FeedForward(W_1, b_1, W_2, np.eye(4)[2])
