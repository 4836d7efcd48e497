"""The paper's transformer layer with weights that we set by hand (Section 2).

    Att(X) = softmax(X W_Q^T W_K X^T) X W_V^T          no 1/sqrt(m), no mask unless asked for

======= ==========================================================================
X       (N, d) inputs, one row a position
m       dimension of queries and keys
H       heads; their outputs are concatenated and multiplied by W_O where it is given
psi     the position-wise feed-forward network, here ReLU: W_2 relu(W_1 z + b_1) + b_2
======= ==========================================================================

The paper reads the output at the *last* position. That matters: averaging over positions instead
would be a second attention layer, and with two layers the lower bounds of Section 4 are gone.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from companion.theory.fixed_point import EXACT, Arithmetic

_LARGEST_BLOCK = 1 << 23  # attention weights that a stack holds at once


@dataclass(frozen=True)
class Head:
    """One attention head: W_Q and W_K are (m, d), W_V is (v, d)."""

    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray

    def __post_init__(self):
        if self.W_Q.shape != self.W_K.shape:
            raise ValueError(
                f"expected W_Q and W_K of one shape, got {self.W_Q.shape}, {self.W_K.shape}"
            )
        if self.W_V.shape[1] != self.W_Q.shape[1]:
            raise ValueError(f"expected d = {self.W_Q.shape[1]} in W_V, got {self.W_V.shape[1]}")


@dataclass(frozen=True)
class FeedForward:
    """psi(z) = W_2 relu(W_1 z + b_1) + b_2, applied at every position."""

    W_1: Float[np.ndarray, "h z"]
    b_1: Float[np.ndarray, " h"]
    W_2: Float[np.ndarray, "o h"]
    b_2: Float[np.ndarray, " o"]

    def __call__(self, Z, arithmetic: Arithmetic):
        """Rows of Z, already encoded, through the network."""
        a = arithmetic
        hidden = a.relu(a.add(a.matmul(Z, a.encode(self.W_1.T)), a.encode(self.b_1)))
        return a.add(a.matmul(hidden, a.encode(self.W_2.T)), a.encode(self.b_2))


@dataclass(frozen=True)
class Layer:
    """Attention, then the feed-forward network, in any `Arithmetic`.

    >>> one = np.eye(1)
    >>> layer = Layer([Head(0 * one, one, one)])  # all logits 0: a plain average
    >>> layer(np.array([[1.0], [2.0], [6.0]]))[-1]
    array([3.])
    """

    heads: list[Head]
    W_O: Float[np.ndarray, "o v"] | None = None
    ffn: FeedForward | None = None
    causal: bool = False
    residual: bool = False

    def __call__(
        self,
        X: Float[np.ndarray, "*b N d"],
        arithmetic: Arithmetic = EXACT,
        rows: slice = slice(None),
    ) -> Float[np.ndarray, "*b r o"]:
        """Real inputs to real outputs; `rows` names the positions whose output is wanted."""
        a = arithmetic
        encoded = a.encode(X)
        Z = a.concatenate([self._attend(head, encoded, a, rows)[0] for head in self.heads])
        if self.W_O is not None:
            Z = a.matmul(Z, a.encode(self.W_O.T))
        if self.residual:
            Z = a.add(Z, encoded[..., rows, :])
        return a.decode(Z if self.ffn is None else self.ffn(Z, a))

    def attention(
        self,
        X: Float[np.ndarray, "*b N d"],
        arithmetic: Arithmetic = EXACT,
        rows: slice = slice(None),
    ) -> list[Float[np.ndarray, "*b r N"]]:
        """The attention weights of every head: the very ones the output is made of."""
        a, encoded = arithmetic, arithmetic.encode(X)
        return [a.decode(self._attend(head, encoded, a, rows)[1]) for head in self.heads]

    def _attend(self, head: Head, X, a: Arithmetic, rows: slice):
        Q = a.matmul(X[..., rows, :], a.encode(head.W_Q.T))
        K, V = (a.matmul(X, a.encode(W.T)) for W in (head.W_K, head.W_V))
        n = X.shape[-2]
        past = np.arange(n) <= np.arange(n)[rows, None] if self.causal else None  # (r, N)
        return a.attend(Q, K, V, past)


@dataclass(frozen=True)
class Stack:
    """Layers one after another; `rows` names the positions that the last one is asked for.

    Earlier layers are computed for all positions, a block of rows at a time, so that memory grows
    with N d and not with N^2.

    >>> one = np.eye(1)
    >>> average = Layer([Head(0 * one, one, one)], residual=True)
    >>> Stack([average, average])(np.array([[1.0], [3.0]]))[:, 0]  # 1 + 2, 3 + 2; then + 4
    array([7., 9.])
    """

    layers: list[Layer]

    def __post_init__(self):
        if not self.layers:
            raise ValueError("expected at least one layer, got none")

    def __call__(
        self,
        X: Float[np.ndarray, "*b N d"],
        arithmetic: Arithmetic = EXACT,
        rows: slice = slice(None),
    ) -> Float[np.ndarray, "*b r o"]:
        """Real inputs to real outputs."""
        return self.layers[-1](self.before_last(X, arithmetic), arithmetic, rows)

    def before_last(self, X: Float[np.ndarray, "*b N d"], arithmetic: Arithmetic = EXACT):
        """What the last layer reads: the output of all others, at every position."""
        n = X.shape[-2]
        size = max(1, _LARGEST_BLOCK // max(1, X[..., 0].size))
        for layer in self.layers[:-1]:
            blocks = [slice(i, min(i + size, n)) for i in range(0, n, size)]
            X = np.concatenate([layer(X, arithmetic, rows) for rows in blocks], axis=-2)
        return X

    @property
    def width(self) -> int:
        """max(m, d) over all heads."""
        return max(max(*h.W_Q.shape, len(h.W_V)) for layer in self.layers for h in layer.heads)

    @property
    def heads(self) -> int:
        """H, the most heads that a layer has."""
        return max(len(layer.heads) for layer in self.layers)

    @property
    def parameters(self) -> int:
        """Numbers in all matrices, feed-forward networks included."""
        arrays = [W for y in self.layers for h in y.heads for W in (h.W_Q, h.W_K, h.W_V)]
        arrays += [y.W_O for y in self.layers if y.W_O is not None]
        nets = [y.ffn for y in self.layers if y.ffn is not None]
        arrays += [W for net in nets for W in (net.W_1, net.b_1, net.W_2, net.b_2)]
        return sum(W.size for W in arrays)

    def bits(self, arithmetic: Arithmetic) -> int:
        """The same in bits: all numbers at the precision of `arithmetic`."""
        return self.parameters * arithmetic.p


LAST = slice(-1, None)  # the position at which the paper reads the answer


def stream_attention(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
) -> Float[np.ndarray, " v"]:
    """One row of attention over any number of keys, from blocks of logits (r,) and values (r, v).

    Only a running maximum, denominator and numerator are kept, so memory does not grow with N.

    >>> logits, values = np.log([1.0, 3.0]), np.array([[0.0], [4.0]])
    >>> stream_attention([(logits[:1], values[:1]), (logits[1:], values[1:])])
    array([3.])
    """
    top, total, weighted = -math.inf, 0.0, 0.0
    for logits, values in blocks:
        new = max(top, float(logits.max(initial=-math.inf)))
        if new == -math.inf:
            continue
        e = np.exp(logits - new)
        fade = math.exp(top - new)
        total, weighted, top = total * fade + e.sum(), weighted * fade + e @ values, new
    if top == -math.inf:
        raise ValueError("expected at least one key, got none")
    return weighted / total
