"""One layer of attention in whole numbers of p bits, made by hand or from a trained Transformer.

======= ==========================================================================
N       positions of the input; the answer is read at the last one
x_i     (d) row at position i, a function of the symbol there and of i
A_i     logit <Q(x_N), K(x_i)>, and M the largest of them
e_i     exp(A_i - M), rounded down; Z their exact sum; a_i = e_i / Z, rounded down
psi     anything that turns x_N and the attended vector into an answer, or into a score for each
H, m    heads, and the dimension of their queries, keys and values
p, f, S bits of a number, fractional bits, scale 2^f (see `fixed_point`)
======= ==========================================================================

This is the softmax of Appendix D ("early"). Each sum is exact before it is rounded, so its order
does not matter, and rounding *down* keeps sum_i a_i <= 1, so no attended vector leaves the range.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped

from companion.models import SequenceModel, Transformer
from companion.theory._check import check_int, check_whole
from companion.theory.fixed_point import FixedPoint
from companion.theory.transformer import Layer

_MOST_FRACTIONAL = 16  # the table of exponentials has about S ln S entries
_MOST_BITS = 62  # of an exact sum in an int64


@dataclass(frozen=True, eq=False)
class IntegerTransformer:
    """One attention layer on inputs of length N in p-bit whole numbers, read at the last position.

    It is refused at construction unless *no* input over its alphabet leaves the range: all keys,
    values and logits that can occur are tried, symbol by symbol and position by position, and
    `headroom` says how much is left. What psi does afterwards is its own affair; `margin` says how
    clear its answer to an input is.

    >>> grid = FixedPoint(f=4, R=7, softmax="early")
    >>> one = np.full((1, 1, 1), grid.S)
    >>> rows = grid.encode(np.array([[[0.0]] * 3, [[1.0]] * 3]))  # symbol s is the number s
    >>> mean = IntegerTransformer(rows, 0 * one, one, one, lambda x, o: int(o[0] > 0.5), 2, grid)
    >>> mean([1, 0, 1]), mean([1, 0, 0]), mean.attend([1, 0, 1])[0].tolist()  # 2 of 3 in 16ths
    (1, 0, [[10]])

    Raises OverflowError if some input leaves the range; ValueError for another softmax or
    rounding, and for f > 16.
    """

    rows: Int[np.ndarray, "q N d"]  # x_i for every symbol at every position
    W_Q: Int[np.ndarray, "H m d"]
    W_K: Int[np.ndarray, "H m d"]
    W_V: Int[np.ndarray, "H v d"]
    psi: Callable  # of x_N (d) and the attended vector (H v), to an answer or to all scores
    answers: int  # psi answers 0, ..., answers - 1
    arithmetic: FixedPoint

    def __post_init__(self):
        a = self.arithmetic
        check_int("symbols", self.alphabet, low=1)
        check_int("N", self.N, low=1)
        check_int("answers", self.answers, low=1)
        check_int("f", a.f, low=0, high=_MOST_FRACTIONAL)
        if (a.softmax, a.rounding) != ("early", "floor"):
            raise ValueError(
                "expected the early softmax and rounding by floor (Appendix D), got "
                f"{a.softmax!r} and {a.rounding!r}"
            )
        check_int("bits of a sum", (a.R * a.S**2 * self.N).bit_length(), low=1, high=_MOST_BITS)
        if self.largest > a.R and not a.saturate:
            raise OverflowError(f"expected numbers up to R = {a.R}, got {self.largest:g}")

    @classmethod
    def from_layer(
        cls,
        layer: Layer,
        rows: Float[np.ndarray, "q N d"],
        read: Callable[[np.ndarray], int],
        answers: int,
        arithmetic: FixedPoint,
    ) -> "IntegerTransformer":
        """A layer with given weights; `rows` embeds each symbol at each position.

        psi is all that follows the attention (W_O, residual, feed-forward network), in the same
        arithmetic, and then `read`, which turns the layer's output row into an answer.
        """
        a = arithmetic

        def psi(x: np.ndarray, o: np.ndarray) -> int:
            z = a.encode(o)[None]
            z = z if layer.W_O is None else a.matmul(z, a.encode(layer.W_O.T))
            z = a.add(z, a.encode(x)) if layer.residual else z
            return read(a.decode(z if layer.ffn is None else layer.ffn(z, a))[0])

        weights = (
            a.encode(np.stack([getattr(head, name) for head in layer.heads]))
            for name in ("W_Q", "W_K", "W_V")
        )
        return cls(a.encode(rows), *weights, psi, answers, a)

    @classmethod
    def from_model(cls, model: SequenceModel, p: int, N: int | None = None) -> "IntegerTransformer":
        """A trained one-layer Transformer on inputs of N symbols, in p-bit numbers.

        What stands before the attention (embedding, layer norm) sees one position at a time, so x_i
        is a function of symbol and position and is tabulated, then rounded. What comes after it
        (residual, norms, MLP, read-out) sees the last position only: it is psi, in float64, and
        gives the scores of all classes. f is the largest for which no input leaves the range of p
        bits.

        Raises ValueError for another model, another depth, and a p too small for the weights.
        """
        check_int("p", p, low=2, high=31)
        if not isinstance(model, Transformer) or model.config.depth != 1:
            raise ValueError(
                f"expected a Transformer of depth 1, got a {type(model).__name__} of depth "
                f"{model.config.depth}"
            )
        N = model.config.max_len if N is None else N
        check_int("N", N, low=1, high=model.config.max_len)
        rows, weights, psi = _take_apart(copy.deepcopy(model).double(), N)
        for f in range(min(p - 2, _MOST_FRACTIONAL), -1, -1):
            a = FixedPoint(f, ((1 << p) - 1) >> (f + 1), softmax="early")
            try:
                encoded = [a.encode(W) for W in weights]
                return cls(a.encode(rows), *encoded, psi, model.config.classes, a)
            except OverflowError:
                continue
        raise ValueError(f"expected a p that holds the weights and logits, got p = {p}")

    @property
    def alphabet(self) -> int:
        """|Σ|, all tokens included."""
        return self.rows.shape[0]

    @property
    def N(self) -> int:
        """Length of the input."""
        return self.rows.shape[1]

    @property
    def d(self) -> int:
        """Numbers in a row x_i."""
        return self.rows.shape[2]

    @property
    def H(self) -> int:
        """Heads."""
        return self.W_V.shape[0]

    @property
    def v(self) -> int:
        """Numbers that a head reads from a position."""
        return self.W_V.shape[1]

    @property
    def m(self) -> int:
        """Width of a head: the larger of the dimensions of its keys and of its values."""
        return max(self.W_K.shape[1], self.v)

    @property
    def p(self) -> int:
        """Bits of a number."""
        return self.arithmetic.p

    def project(
        self, x: Int[np.ndarray, "n d"]
    ) -> tuple[Int[np.ndarray, "H n m"], Int[np.ndarray, "H n v"]]:
        """Keys and values of rows."""
        matmul = self.arithmetic.matmul
        return matmul(x, self.W_K.swapaxes(1, 2)), matmul(x, self.W_V.swapaxes(1, 2))

    def logits(
        self, x: Int[np.ndarray, " d"], keys: Int[np.ndarray, "H n m"]
    ) -> Int[np.ndarray, "H n"]:
        """A_i of one row x_N against keys."""
        matmul = self.arithmetic.matmul
        return matmul(matmul(x[None], self.W_Q.swapaxes(1, 2)), keys.swapaxes(1, 2))[:, 0]

    def exp(self, A: Int[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
        """Rounded exponentials of logits from which the largest has been subtracted."""
        return self._exp[np.minimum(-A, len(self._exp) - 1)]

    @cached_property
    def _exp(self) -> np.ndarray:
        """exp(-j / S) on the grid. A table, since exp may differ in its last bit between calls."""
        S = self.arithmetic.S
        return self.arithmetic.encode(np.exp(-np.arange(math.ceil(S * math.log(S)) + 2) / S))

    def attend(
        self, tokens: Sequence[int]
    ) -> tuple[Int[np.ndarray, "H v"], Int[np.ndarray, "H N"]]:
        """The undivided model at the last position: what each head reads, and its weights a_i."""
        x = self.rows[self.check(tokens), np.arange(self.N)]
        keys, values = self.project(x)
        A = self.logits(x[-1], keys)
        e = self.exp(A - A.max(-1, keepdims=True))
        weights = e * self.arithmetic.S // e.sum(-1, keepdims=True)
        return self.arithmetic.matmul(weights[:, None], values)[:, 0], weights

    def answer(self, x: Int[np.ndarray, " d"], attended: Int[np.ndarray, "H v"]) -> int:
        """What psi says of x_N and the attended vector: an answer, or the best of its scores."""
        said = self.read_out(x, attended)
        said = said.item() if said.size == 1 and said.dtype.kind != "f" else int(said.argmax())
        check_int("answer", said, low=0, high=self.answers - 1)
        return said

    def margin(self, tokens: Sequence[int]) -> float:
        """By how much the answer's score exceeds the next. Refuses a psi that says answers only."""
        x = self.rows[self.check(tokens)[-1], -1]
        scores = self.read_out(x, self.attend(tokens)[0])
        if scores.size != self.answers or self.answers < 2:
            raise ValueError(f"expected {self.answers} scores from psi, got {scores.size}")
        second, best = np.sort(scores)[-2:]
        return float(best - second)

    def read_out(
        self, x: Int[np.ndarray, " d"], attended: Int[np.ndarray, "H v"]
    ) -> Shaped[np.ndarray, " s"]:
        """psi on the real numbers that stand for x_N and the attended vector."""
        decode = self.arithmetic.decode
        said = np.atleast_1d(self.psi(decode(x), decode(attended).ravel()))
        if said.dtype.kind == "f":
            check_int("scores", said.size, low=self.answers, high=self.answers)
        return said

    def __call__(self, tokens: Sequence[int]) -> int:
        """The undivided model's answer."""
        return self.answer(self.rows[self.check(tokens)[-1], -1], self.attend(tokens)[0])

    def check(self, tokens: Sequence) -> list[int]:
        """The tokens as a list; refuses another length, and symbols outside the alphabet."""
        check_int("length", len(tokens), low=self.N, high=self.N)
        symbols = np.asarray(tokens)
        check_whole("symbol", symbols, low=0, high=self.alphabet - 1)
        return symbols.tolist()

    @cached_property
    def largest(self) -> float:
        """The largest number that any input leads to, up to and with the logits."""
        a, given = self.arithmetic, (self.rows, self.W_Q, self.W_K, self.W_V)
        top = max(int(np.abs(x).max(initial=0)) for x in given)
        if top > a.R * a.S:
            return top / a.S
        keys, values = self.project(self.rows.reshape(-1, self.d))
        queries = a.matmul(self.rows[:, -1], self.W_Q.swapaxes(1, 2))
        top = max(top, *(int(np.abs(x).max(initial=0)) for x in (keys, values, queries)))
        for query, key in zip(queries, keys, strict=True):
            # In floats, which is fast for large alphabets; one grid point is added for rounding.
            sizes = (np.abs(key.astype(float) @ q).max() for q in query.astype(float))
            top = max(top, max(sizes) / a.S + 1)
        return top / a.S

    @property
    def headroom(self) -> float:
        """What the input with the largest numbers leaves of the range R."""
        return self.arithmetic.R - self.largest


@torch.no_grad()
def _take_apart(model: Transformer, N: int) -> tuple[np.ndarray, tuple[np.ndarray, ...], Callable]:
    """Rows (q, N, D + 2), weights of the heads, and psi of a one-layer model in float64.

    With e the embedding, mu and sigma its mean and deviation over coordinates, a row is
    x = [(e - mu) / sigma, sigma / c, 1]. The norm's gain goes into the projections and its offset
    into the last column of W_Q. Keys need none: a constant there shifts all logits alike. Values
    need none either: psi adds it. psi recovers e up to mu, which the later norms remove.
    """
    block, q = model.blocks[0], model.config.vocab
    e = model.embedding(torch.arange(q)[:, None].expand(q, N))
    sigma = (e.var(-1, correction=0, keepdim=True) + block.norm_mix.eps).sqrt()
    c = float(sigma.max())
    rows = torch.cat([(e - e.mean(-1, keepdim=True)) / sigma, sigma / c, 1 + 0 * sigma], -1)
    W_Q, W_K, W_V, offset = _projections(block)

    @torch.no_grad()
    def psi(x: np.ndarray, o: np.ndarray) -> np.ndarray:
        h = torch.tensor(x[:-2]) * (x[-2] * c) + block.mix.output(torch.tensor(o) + offset)
        return model.head(model.norm(h + block.mlp(block.norm_mlp(h)))).numpy()

    return rows.numpy(), (W_Q, W_K, W_V), psi


def _projections(block: torch.nn.Module) -> tuple[np.ndarray, np.ndarray, np.ndarray, torch.Tensor]:
    """W_Q, W_K and W_V, (H, m, D + 2) each, on normed embeddings; and the offset of the values."""
    mix, gain, shift = block.mix, block.norm_mix.weight, block.norm_mix.bias
    zero = torch.zeros(mix.heads * mix.size, 1, dtype=gain.dtype)

    def by_head(linear: torch.nn.Linear, last: torch.Tensor) -> np.ndarray:
        W = torch.cat([linear.weight * gain, zero, last], -1)  # (D, D + 2)
        return W.unflatten(0, (mix.heads, mix.size)).numpy()

    W_Q = by_head(mix.query, (mix.query.weight @ shift + mix.query.bias)[:, None])
    offset = mix.value.weight @ shift + mix.value.bias
    return W_Q / math.sqrt(mix.size), by_head(mix.key, zero), by_head(mix.value, zero), offset
