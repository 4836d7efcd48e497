"""Arithmetic for networks with given weights: p-bit fixed point (Appendix B.2) and floats.

A transformer layer encodes numbers, multiplies matrices, adds, takes ReLUs and softmax averages.
`FixedPoint` and `Floating` both offer these, so that one layer runs in either.

======= =======================================================================
f       fractional bits: the grid is the multiples of Delta = 2^-f
R       range: every value lies in [-R, R]
S       scale 2^f; inside, the integer a stands for a / S
p       bits of one number, enough for the 2 R S + 1 values
K_c     the paper's constant: Delta = N^-K_c and R = N^K_c, for N a power of two
======= =======================================================================

The paper clamps what leaves the range. Here such a value is *refused* unless `saturate=True`, since
an answer from a clamped logit may be silently wrong.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.theory._check import check_int

_MAX_BITS = 61  # of an int64 that a sum of products may use: rounding to nearest doubles it


class TooWide(OverflowError, ValueError):
    """A number that its format would hold, but not the 64-bit integers that we compute in."""


@dataclass(frozen=True)
class FixedPoint:
    """Numbers a / 2^f with |a / 2^f| <= R, held as integers.

    `softmax` names one of the two orders of rounding that the paper uses:

    - "late" (Appendices C.2, F.2, G.2): the exact softmax, then every weight is rounded;
    - "early" (Appendix D): each exponential exp(A - max A) is rounded first, then summed exactly,
      divided and rounded. Logits more than ln S below the largest then weigh *exactly* nothing.

    >>> q = FixedPoint(f=4, R=8)
    >>> q.decode(q.encode(np.array([0.99, -0.99])))  # rounded down to multiples of 1/16
    array([ 0.9375, -1.    ])
    >>> q.p
    9
    """

    f: int
    R: int
    rounding: Literal["floor", "nearest"] = "floor"
    softmax: Literal["late", "early"] = "late"
    saturate: bool = False

    def __post_init__(self):
        check_int("f", self.f, low=0, high=40)
        check_int("R", self.R, low=1)
        if self.p > _MAX_BITS - 2:
            raise TooWide(f"expected numbers of at most {_MAX_BITS - 2} bits, got {self.p}")
        for name, allowed in (("rounding", ("floor", "nearest")), ("softmax", ("late", "early"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"expected {name} in {allowed}, got {getattr(self, name)!r}")

    @classmethod
    def paper(cls, N: int, K_c: int, **options) -> "FixedPoint":
        """The paper's grid for inputs of length N: Delta = N^-K_c, R = N^K_c.

        N must be a power of two: with an odd N, not even 1/2 lies on the grid.

        >>> FixedPoint.paper(256, 2).p  # 2 K_c log2 N + 2 bits
        34
        """
        check_int("N", N, low=2)
        check_int("K_c", K_c, low=1)
        if N & (N - 1):
            raise ValueError(f"expected N to be a power of two, got {N}")
        return cls(f=K_c * (N.bit_length() - 1), R=N**K_c, **options)

    @property
    def S(self) -> int:
        """Scale: the integer that stands for 1."""
        return 1 << self.f

    @property
    def p(self) -> int:
        """Bits of one number."""
        return (2 * self.R * self.S).bit_length()

    def encode(self, x: Float[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
        """Round real numbers to the grid."""
        x = np.asarray(x, dtype=np.float64) * self.S
        if not np.isfinite(x).all():
            raise ValueError(f"expected finite numbers, got {x[~np.isfinite(x)][0]}")
        x = np.floor(x + 0.5 * (self.rounding == "nearest"))
        return self._clamp(x).astype(np.int64)  # checked as floats: an int64 may not hold them

    def decode(self, a: Int[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The real numbers that the integers stand for."""
        return np.asarray(a) / self.S

    def matmul(
        self, a: Int[np.ndarray, "..."], b: Int[np.ndarray, "..."]
    ) -> Int[np.ndarray, "..."]:
        """a @ b: products summed exactly at 2f bits, then rounded once."""
        self._fits(a, b)
        return self._clamp(self._divide(a @ b, self.S))

    def times(self, n: Int[np.ndarray, "..."], a: Int[np.ndarray, "1"]) -> Int[np.ndarray, "..."]:
        """Whole multiples n of one encoded number."""
        return self._clamp(n * a)

    def multiply(
        self, a: Int[np.ndarray, "..."], b: Int[np.ndarray, "..."]
    ) -> Int[np.ndarray, "..."]:
        """Number by number, each product rounded."""
        self._fits(a[..., None], b[..., None])
        return self._clamp(self._divide(a * b, self.S))

    def sum_error(self, n: int, size: float) -> float:
        """0: a sum of products is exact before it is rounded."""
        return 0.0

    def average_error(self, n: int, rest: float) -> float:
        """0 for numbers -1, 0 and 1, whose weighted sums are on the grid."""
        return 0.0

    def add(self, a: Int[np.ndarray, "..."], b: Int[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
        """Exact sum."""
        return self._clamp(a + b)

    def relu(self, a: Int[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
        """max(a, 0)."""
        return np.maximum(a, 0)

    def concatenate(self, parts: list[np.ndarray]) -> np.ndarray:
        """Side by side along the last axis."""
        return np.concatenate(parts, axis=-1)

    def attend(
        self,
        Q: Int[np.ndarray, "... q m"],
        K: Int[np.ndarray, "... n m"],
        V: Int[np.ndarray, "... n v"],
        mask: np.ndarray | None = None,
    ) -> tuple[Int[np.ndarray, "... q v"], Int[np.ndarray, "... q n"]]:
        """Values attended to, and the weights; mask[i, j] = query i may read key j."""
        A = self.matmul(Q, np.swapaxes(K, -1, -2))
        weights = self.weights(A, mask)
        return self.matmul(weights, V), weights

    def weights(
        self, A: Int[np.ndarray, "... q n"], mask: np.ndarray | None = None
    ) -> Int[np.ndarray, "... q n"]:
        """Softmax over the last axis, rounded in the order that `softmax` names.

        >>> q = FixedPoint(f=3, R=64, softmax="early")
        >>> q.weights(q.encode(np.array([[4.0, 1.0, 1.0]]))).tolist()  # e^-3 < 1/8: rounded to 0
        [[8, 0, 0]]
        """
        allowed = np.ones(A.shape, bool) if mask is None else np.broadcast_to(mask, A.shape)
        if not allowed.any(-1).all():
            raise ValueError("expected every query to read some key, got a fully masked row")
        top = np.where(allowed, A, np.iinfo(np.int64).min).max(-1, keepdims=True)
        e = np.where(allowed, np.exp(np.minimum(A - top, 0) / self.S), 0.0)
        if self.softmax == "late":
            return self.encode(e / e.sum(-1, keepdims=True))
        if 2 * self.f + 1 > _MAX_BITS:  # e S is a number of 2f bits
            raise TooWide(f"expected f <= {_MAX_BITS // 2} for early rounding, got {self.f}")
        e = self.encode(e)
        return self._divide(e * self.S, e.sum(-1, keepdims=True))

    def _divide(self, a: np.ndarray, b) -> np.ndarray:
        """a / b on integers, rounded down or to nearest."""
        return (2 * a + b) // (2 * b) if self.rounding == "nearest" else a // b

    def _clamp(self, a: np.ndarray) -> np.ndarray:
        limit = self.R * self.S
        largest = np.abs(a).max(initial=0)
        if largest <= limit:
            return a
        if not self.saturate:
            raise OverflowError(f"expected |value| <= R = {self.R}, got {largest / self.S:g}")
        return np.clip(a, -limit, limit)

    def _fits(self, a: np.ndarray, b: np.ndarray) -> None:
        """Refuse a product of matrices whose exact sum might not fit an int64."""
        size = int(np.abs(a).max(initial=0)) * int(np.abs(b).max(initial=0)) * a.shape[-1]
        if size.bit_length() > _MAX_BITS:  # it would if all were largest; so look at the sums
            size = int((np.abs(a).astype(float) @ np.abs(b).astype(float)).max(initial=0))
        self._check_sum(size)

    def check_range(self, size: float) -> None:
        """Refuse if numbers up to `size`, or sums as large before they are rounded, do not fit."""
        if size > self.R:
            raise ValueError(f"expected a range R >= {math.ceil(size)}, got {self.R} in {self}")
        self._check_sum(math.ceil(size) * self.S**2)

    def _check_sum(self, size: int) -> None:
        if size.bit_length() > _MAX_BITS:
            raise TooWide(
                f"expected exact sums of at most {_MAX_BITS} bits, got {size.bit_length()}; "
                f"lower f = {self.f} or R = {self.R}"
            )


@dataclass(frozen=True)
class Floating:
    """The same operations in a torch float type, as matrix units do them.

    Sums of products, and those in softmax, are formed in float32 if the type has 16 bits, else in
    the type itself, in whatever order; then the result is rounded to the type. `sum_error` bounds
    what the order may change.

    >>> half = Floating(torch.float16)
    >>> float(half.encode(np.array(1 / 3)))
    0.333251953125
    """

    dtype: torch.dtype = torch.float64

    def __post_init__(self):
        if not self.dtype.is_floating_point:
            raise TypeError(f"expected a floating dtype, got {self.dtype}")

    @property
    def p(self) -> int:
        """Bits of one number."""
        return torch.finfo(self.dtype).bits

    @property
    def eps(self) -> float:
        """Distance from 1 to the next number."""
        return float(torch.finfo(self.dtype).eps)

    @property
    def wide(self) -> torch.dtype:
        """The type in which sums are formed."""
        return torch.float32 if self.p < 32 else self.dtype

    def check_range(self, size: float) -> None:
        """Refuse if numbers up to `size` do not fit."""
        top = torch.finfo(self.dtype).max
        if size > top:
            raise ValueError(f"expected a range R >= {math.ceil(size)}, got {top:g} in {self}")

    @property
    def _unit(self) -> float:
        """Largest relative error of an operation in the wide type."""
        return float(torch.finfo(self.wide).eps) / 2

    def sum_error(self, n: int, size: float) -> float:
        """How far a sum of n products of absolute value `size` may be from their true sum, rounded.

        0 if all whole multiples of `size` up to n are numbers of the type in which sums are formed;
        else each of n - 1 additions, and each product, may be rounded, and the end the other way.

        >>> tenth = float(np.float16(0.1))
        >>> Floating(torch.float16).sum_error(1000, tenth)  # all partial sums are in float32
        0.0
        >>> 4e-7 < Floating(torch.float32).sum_error(8, 0.1) < 5e-7
        True
        """
        odd = abs(size).as_integer_ratio()[0]
        odd //= max(1, odd & -odd)
        if n * odd * self._unit <= 1:
            return 0.0
        return n * abs(size) * (self.relative_error(n) + self.eps)

    def relative_error(self, n: int) -> float:
        """Bound for a sum of any n products before the last rounding, by the sum of their sizes."""
        return n * self._unit / (1 - n * self._unit) if n * self._unit < 1 else math.inf

    def average_error(self, n: int, rest: float) -> float:
        """What rounding may do to an average of n numbers in [-1, 1], weights but one being `rest`.

        Softmax and average are sums of n terms, off by n roundings each. But a term never moves
        a sum further off than its own size, since the sum without it is a number of the type; so
        neither is off by more than about `rest`. Then both are rounded to the type.
        """
        lost = min(self.relative_error(n), rest * (1 + 2 * n * self._unit))
        return 2 * lost + (1 + rest) * self.eps

    def encode(self, x: np.ndarray) -> Tensor:
        """Round real numbers to this type."""
        return torch.as_tensor(np.asarray(x, dtype=np.float64, order="C")).to(self.dtype)

    def decode(self, a: Tensor) -> np.ndarray:
        """Back to float64, exactly. Refuses what has left the range on the way."""
        x = a.double().numpy()
        if not np.isfinite(x).all():
            raise OverflowError(f"expected finite numbers, got {x[~np.isfinite(x)][0]} in {self}")
        return x

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """a @ b: products summed in a wide type, then rounded once."""
        return (a.to(self.wide) @ b.to(self.wide)).to(self.dtype)

    def times(self, n: np.ndarray, a: Tensor) -> Tensor:
        """Whole multiples n of one encoded number, each rounded once."""
        return self.encode(n * self.decode(a))

    def multiply(self, a: Tensor, b: Tensor) -> Tensor:
        """Number by number, each product rounded."""
        return a * b

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        """a + b."""
        return a + b

    def relu(self, a: Tensor) -> Tensor:
        """max(a, 0)."""
        return a.relu()

    def concatenate(self, parts: list[Tensor]) -> Tensor:
        """Side by side along the last axis."""
        return torch.cat(parts, dim=-1)

    def attend(
        self, Q: Tensor, K: Tensor, V: Tensor, mask: np.ndarray | None = None
    ) -> tuple[Tensor, Tensor]:
        """Values attended to, and the weights; mask[i, j] = query i may read key j."""
        weights = self.weights(self.matmul(Q, K.transpose(-1, -2)), mask)
        return self.matmul(weights, V), weights

    def weights(self, A: Tensor, mask: np.ndarray | None = None) -> Tensor:
        """Softmax over the last axis."""
        if not A.isfinite().all():
            raise OverflowError(f"expected finite logits in {self.dtype}, got {A.abs().max():g}")
        if mask is not None:
            allowed = torch.as_tensor(mask)
            if not allowed.any(-1).all():
                raise ValueError("expected every query to read some key, got a fully masked row")
            A = A.masked_fill(~allowed, -math.inf)
        return torch.softmax(A.to(self.wide), dim=-1).to(self.dtype)


Arithmetic = FixedPoint | Floating
EXACT = Floating(torch.float64)
