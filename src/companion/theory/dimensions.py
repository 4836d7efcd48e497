"""How many dimensions N nearly orthogonal vectors take: the paper's k, the true one, measured ones.

N and k as in `vectors`; gamma is the coherence asked for (Lemma 2; Lemma 3 is at the end).
"""

import math

import numpy as np
from jaxtyping import Float

from companion.theory._check import check_int, check_open_unit
from companion.theory.vectors import random


def paper_k(N: int, gamma: float) -> int:
    """Dimension in the proof of Lemma 2: k = (8 / gamma^2) ln 2N.

    >>> paper_k(1024, 0.25)
    976
    """
    _check(N, gamma)
    return math.ceil(8 / gamma**2 * math.log(2 * N))


def random_k(N: int, gamma: float) -> int:
    """Smallest k for which Hoeffding and a union over all pairs leave random signs a chance.

    Hoeffding gives 2 exp(-k gamma^2 / 2), an exponent twice the paper's, and existence needs a
    failure probability below 1 only: k > (2 / gamma^2) ln N(N - 1).

    >>> random_k(1024, 0.25)
    444
    """
    _check(N, gamma)
    return math.floor(2 / gamma**2 * math.log(max(2, N * (N - 1)))) + 1


def linear_k(N: int, gamma: float) -> int:
    """The same for a random *linear* code: the union is over N - 1 differences, not N^2 pairs.

    >>> linear_k(1024, 0.25)
    244
    """
    _check(N, gamma)
    return math.floor(2 / gamma**2 * math.log(max(2, 2 * (N - 1)))) + 1


def first_k(N: int, gamma: float, *, seed: int = 0) -> int:
    """Measured: the first k at which N random sign vectors have all |inner products| <= gamma k.

    Coordinates are added one at a time to the same vectors, so this is the k that a lucky or
    unlucky draw really needs, to be set against `random_k` and `paper_k`.

    >>> first_k(16, 0.25) <= paper_k(16, 0.25)
    True
    """
    _check(N, gamma)
    check_int("N", N, low=2, high=4096)
    T = random(N, 2 * paper_k(N, gamma), seed=seed).table().astype(np.int16)
    G = np.zeros((N, N), dtype=np.int16)
    own = np.arange(N)
    for k in range(1, T.shape[1] + 1):
        G += T[:, k - 1, None] * T[None, :, k - 1]
        if k % 4 == 0:  # k a multiple of 4 makes gamma k = k / 4 a whole number
            G[own, own] = 0
            if np.abs(G).max() <= gamma * k:
                return k
    raise ValueError(f"coherence {gamma} not reached by k = {T.shape[1]} for N = {N}")


def welch(N: int, k: int) -> float:
    """Welch's bound: N unit vectors of dimension k have a coherence of sqrt((N - k) / (k (N - 1))).

    At least, and 0 where N <= k. Their Gram matrix has rank k, so its entries cannot all be small.

    >>> welch(64, 64), round(welch(1024, 32), 3)
    (0.0, 0.174)
    """
    check_int("N", N, low=2)
    check_int("k", k, low=1)
    return math.sqrt(max(0, N - k) / (k * (N - 1)))


def johnson_lindenstrauss(
    vectors: Float[np.ndarray, "N d"], k: int, *, rng: np.random.Generator
) -> Float[np.ndarray, "N k"]:
    """Lemma 3: v -> A v / sqrt(k) with A in {+-1}^(k x d) keeps all inner products within epsilon.

    >>> rng = np.random.default_rng(0)
    >>> johnson_lindenstrauss(np.eye(3), 100, rng=rng).shape
    (3, 100)
    """
    check_int("k", k, low=1)
    A = rng.integers(0, 2, size=(k, vectors.shape[1])) * 2.0 - 1
    return vectors @ A.T / math.sqrt(k)


def _check(N: int, gamma: float) -> None:
    check_int("N", N, low=1)
    check_open_unit("gamma", gamma)
