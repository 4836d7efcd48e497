"""Argument checks that the constructions share: early, and with both values named."""

from numbers import Integral

import numpy as np
from jaxtyping import Shaped


def check_int(name: str, value: object, *, low: int, high: int | None = None) -> None:
    """Raise unless `value` is a whole number in [low, high].

    >>> check_int("N", 0, low=1)
    Traceback (most recent call last):
    ...
    ValueError: expected N >= 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"expected {name} to be a whole number, got {value!r}")
    if high is None and value < low:
        raise ValueError(f"expected {name} >= {low}, got {value}")
    if high is not None and not low <= value <= high:
        raise ValueError(f"expected {low} <= {name} <= {high}, got {value}")


def check_whole(
    name: str, values: Shaped[np.ndarray, "..."], *, low: int, high: int | None = None
) -> None:
    """Raise unless all `values` are whole numbers in [low, high]; there may be none.

    >>> check_whole("symbol", np.array([0, 4]), low=0, high=3)
    Traceback (most recent call last):
    ...
    ValueError: expected 0 <= symbol <= 3, got 4
    """
    if not np.issubdtype(values.dtype, np.integer):
        raise TypeError(f"expected whole numbers for {name}, got {values.dtype}")
    for extreme in (values.min(initial=low), values.max(initial=low)):
        check_int(name, int(extreme), low=low, high=high)


def check_even(N: object) -> None:
    """Raise unless N is an even number, at least 2.

    >>> check_even(7)
    Traceback (most recent call last):
    ...
    ValueError: expected an even N, got 7
    """
    check_int("N", N, low=2)
    if N % 2:
        raise ValueError(f"expected an even N, got {N}")


def check_open_unit(name: str, value: float) -> None:
    """Raise unless 0 < value < 1.

    >>> check_open_unit("gamma", 1.0)
    Traceback (most recent call last):
    ...
    ValueError: expected 0 < gamma < 1, got 1.0
    """
    if not 0 < value < 1:
        raise ValueError(f"expected 0 < {name} < 1, got {value}")
