"""The paper's nearest-neighbour construction (Appendix G.2), in our reading, and what it costs.

Layer 1 finds the nearest point and takes the address of its label; layer 2 fetches the label.

    z_point = [x, 0, +1, T(own), T(next), 0]      z_label = [0, y, -1, T(own), T(own), 0]
    Q.K = x.x' + c_2 sign' - c_1 <T(own), T(own')>, so that the query does not find itself

======= ==========================================================================
N       most points of an input, the query among them; 2N tokens have an address
d', k   dimension of a point, and of an address; width 3k + d' + 2
gamma   margin of the input; c_1 = 10 and addresses are orthogonal up to gamma / 100
eta     sharpness (5 / 4 gamma) ln 18N, which puts 9/10 on a point ahead by 4/5 gamma
======= ==========================================================================

The term c_1 <T, T'> disturbs every comparison, by 2 c_1 times the coherence at worst. Keeping that
below gamma / 5 needs k of order log N / (gamma^2 log 1/gamma) whatever the vectors: at every size
that one meets more than 2N, the number of exactly orthogonal ones. `welch_k` is a proof for finite
sizes. The display equations of the appendix were not available to us; c_2 and the sign coordinate
are our reading.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int, Shaped

from companion.theory._check import check_int
from companion.theory.fixed_point import EXACT, Arithmetic, FixedPoint
from companion.theory.nearest_neighbor import (
    DOUBT,
    check_addresses,
    check_input,
    check_margin,
    check_margins,
    clip_network,
    logit_error,
    surplus,
)
from companion.theory.transformer import LAST, FeedForward, Head, Layer, Stack
from companion.theory.vectors import Family

_C_2 = 6.0  # label tokens are 2 c_2 below points; the paper asks for 5 and more


def welch_k(M: int, epsilon: float) -> int:
    """Welch's bound: M unit vectors of coherence <= epsilon have at least this many dimensions.

    >>> welch_k(2 << 20, 0.5 / 100), welch_k(128, 0.5 / 100)
    (39252, 128)
    """
    check_int("M", M, low=1)
    if not 0 <= epsilon <= 1:
        raise ValueError(f"expected 0 <= epsilon <= 1, got {epsilon}")
    return math.ceil(M / (1 + epsilon**2 * (M - 1)) - 1e-9)


def disturbed_margin(points: Float[np.ndarray, "n d"], T: Family, c_1: float = 10.0) -> float:
    """What layer 1 sees of the margin: the nearest point's logit less the best of the others'.

    Below 0 it attends to a wrong point, however large eta is.
    """
    n = len(points)
    check_int("points", n, low=2, high=T.N // 2)
    rows = T.rows(2 * np.arange(n)).astype(np.float64)
    dots = points @ points[-1]
    best = int(dots[:-1].argmax())
    logits = dots - c_1 * (rows @ rows[-1]) / T.k
    return float(logits[best] - np.delete(logits, best).max())


@dataclass(frozen=True, eq=False)
class PaperNearestNeighbor:
    """The paper's two layers, in one given arithmetic.

    Refused where the tolerance is not kept, or where rounding could take the answer away; unless
    `checked=False`, which lets one see it fail.

    >>> from companion.theory.vectors import trace_code
    >>> exact = PaperNearestNeighbor(N=8, d=2, gamma=0.1, T=trace_code(16, 4, t=1))  # orthogonal
    >>> points = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> exact(points, np.array([0, 1])), exact.stack.width
    (1, 52)
    """

    N: int
    d: int
    gamma: float
    T: Family
    c_1: float = 10.0
    checked: bool = True
    arithmetic: Arithmetic = EXACT

    def __post_init__(self):
        check_int("N", self.N, low=2)
        check_int("d", self.d, low=1)
        check_margin(self.gamma)
        check_addresses(self.T, self.N)
        if self.checked:
            self.arithmetic.check_range((self.c_1 + _C_2 + 2) * self.eta)
        if self.checked and self.spare < 0:
            raise ValueError(
                f"expected addresses orthogonal up to gamma / {10 * self.c_1:g} = "
                f"{self.tolerance:.3g}, got {self.coherence:.3g} with k = {self.T.k}"
            )
        if self.checked and not self.margin >= 0:
            raise ValueError(
                f"expected a margin gamma that {self.arithmetic} resolves, got {self.gamma:g} with "
                f"logits of layer 1 off by up to {self.logit_errors[0]:.3g}"
            )

    @property
    def tolerance(self) -> float:
        """gamma / 10 c_1, the paper's gamma / 100."""
        return self.gamma / (10 * self.c_1)

    @cached_property
    def coherence(self) -> float:
        """Of the addresses."""
        return self.T.coherence().absolute

    @property
    def spare(self) -> float:
        """The tolerance less the coherence of the addresses."""
        return self.tolerance - self.coherence

    @property
    def margin(self) -> float:
        """The least of `spare` and, for either layer, of what the weight on the right token leaves
        of 2(weight - the rest) >= 1, where signs are exact."""
        return min(self.spare, *(surplus(w, 2 * self.N, self.arithmetic) for w in self.weights))

    @property
    def eta(self) -> float:
        """The paper's scale."""
        return 5 / (4 * self.gamma) * math.log(18 * self.N)

    @property
    def eta_2(self) -> float:
        """Sharpness of layer 2, where the gap is at least 1/2."""
        return 3 * math.log(6 * self.N)

    @property
    def logit_errors(self) -> tuple[float, float]:
        """Bounds on what rounding does to a logit of either layer.

        On a grid the k entries c_1 eta / k and eta_2 / k are each off by a step. In a float the
        terms of layer 1 have a total size of (1 + c_1 + c_2) eta, whatever is left of them.
        """
        a, eta, c_1, k = self.arithmetic, self.eta, self.c_1, self.T.k
        if isinstance(a, FixedPoint):
            return logit_error(eta, self.d, a) + (k + 2) / a.S, (k + 1) / a.S
        result = 1 + _C_2 + c_1 * self.coherence
        sizes = 2 + (c_1 + _C_2) / 2 + result / 2
        sums = (1 + c_1 + _C_2) * a.relative_error(self.d + k + 1)
        return (
            1.05 * eta * (sizes * a.eps + sums),
            1.05 * self.eta_2 * (5.5 * a.eps + a.relative_error(k)),
        )

    @property
    def weights(self) -> tuple[float, float]:
        """Least weight on the nearest point in layer 1, and on the right label in layer 2."""
        N, off = self.N, self.coherence
        error, error_2 = self.logit_errors

        def share(count: int, lead: float) -> float:
            return count * math.exp(min(2 * error - self.eta * lead, 700.0))

        points = share(N - 2, self.gamma - DOUBT - 2 * self.c_1 * off)
        own = share(1, self.c_1 * (1 - off) - 2)
        labels = share(N, 2 * _C_2 - 1 - 2 * self.c_1 * off)
        rest_2 = 2 * N * math.exp(min(2 * error_2 - self.eta_2 * (1 - off), 700.0))
        return 1 / (1 + points + own + labels), 1 / (1 + rest_2)

    @property
    def width(self) -> int:
        """3k + d' + 2."""
        return 3 * self.T.k + self.d + 2

    @cached_property
    def stack(self) -> Stack:
        """The weights."""
        d, k, eta = self.d, self.T.k, self.eta
        cuts = [d, d + 1, d + 2, d + 2 + k, d + 2 + 2 * k]
        x, y, sign, own, after, slot = np.split(np.eye(self.width), cuts)
        find = Head(
            W_Q=eta * np.vstack([x, _C_2 * sign, -self.c_1 / k * own]),
            W_K=np.vstack([x, sign, own]),
            W_V=2 * slot.T @ after,
        )
        # Out of the network: y and T(own) as they were, the slot clipped to signs.
        keep, clip = np.vstack([y, own]), clip_network(k)
        network = FeedForward(
            W_1=np.vstack([keep, -keep, clip.W_1 @ slot]),
            b_1=np.concatenate([np.zeros(2 * (1 + k)), clip.b_1]),
            W_2=np.block(
                [
                    [np.eye(1 + k), -np.eye(1 + k), np.zeros((1 + k, 2 * k))],
                    [np.zeros((k, 2 + 2 * k)), clip.W_2],
                ]
            ),
            b_2=np.concatenate([np.zeros(1 + k), clip.b_2]),
        )
        y, own, slot = np.split(np.eye(1 + 2 * k), [1, 1 + k])
        fetch = Head(W_Q=self.eta_2 / k * slot, W_K=own, W_V=y)
        return Stack(
            [Layer([find], ffn=network, residual=True), Layer([fetch], ffn=clip_network(gain=2.0))]
        )

    def embed(
        self, points: Float[np.ndarray, "*B n d"], labels: Shaped[np.ndarray, "*B n1"]
    ) -> Float[np.ndarray, "*B tokens width"]:
        """x_0 y_0 x_1 y_1 ... x_(n-1) as rows; labels 0, 1 become -1, 1."""
        d, k, n = self.d, self.T.k, points.shape[-2]
        z = np.zeros((*points.shape[:-2], 2 * n, self.width))
        z[..., 0::2, :d] = points
        z[..., 1:-1:2, d] = 2 * labels - 1
        z[..., d + 1] = np.where(np.arange(2 * n) % 2, -1, 1)
        z[..., d + 2 : d + 2 + k] = self.T.rows(np.arange(2 * n))
        z[..., d + 2 + k : d + 2 + 2 * k] = self.T.rows(np.arange(2 * n) // 2 * 2 + 1)
        return z[..., :-1, :]

    def __call__(self, points, labels) -> int:
        """The label that the construction gives for the last point."""
        return int(self.many(np.asarray(points)[None], np.asarray(labels)[None])[0])

    def many(
        self, points: Float[np.ndarray, "B n d"], labels: Shaped[np.ndarray, "B n1"]
    ) -> Int[np.ndarray, " B"]:
        """B inputs of one length at once, their last point the query."""
        check_input(points, labels, self.N, self.d)
        if self.checked:
            check_margins(points, slice(-1, None), self.gamma)
        out = self.stack(self.embed(points, labels), self.arithmetic, LAST)
        return (out[:, 0, 0] > 0).astype(np.int64)
