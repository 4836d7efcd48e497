"""Two argument checks that every construction shares: early, and with both values named."""

from numbers import Integral


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


def check_open_unit(name: str, value: float) -> None:
    """Raise unless 0 < value < 1.

    >>> check_open_unit("gamma", 1.0)
    Traceback (most recent call last):
    ...
    ValueError: expected 0 < gamma < 1, got 1.0
    """
    if not 0 < value < 1:
        raise ValueError(f"expected 0 < {name} < 1, got {value}")
