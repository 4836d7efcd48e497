"""Presets: functions that return the runs of a figure, at three scales.

| scale  | for                                                      |
|--------|----------------------------------------------------------|
| smoke  | tests and live cells: seconds per run                    |
| laptop | the stored results: three seeds, minutes per run         |
| paper  | the grid of Appendix H, for a cluster                    |
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from companion.experiments.run import Run

SEEDS = (0, 1, 2)
MODELS_OF_FIGURE_2 = ("transformer", "lstm", "linear_transformer")

# Steps at most, by length. Every architecture gets the same; a run that succeeds stops early.
LAPTOP_STEPS = {20: 3000, 50: 4000, 100: 8000, 200: 6000}

# The values that Appendix H tunes over.
PAPER_LENGTHS = (20, 50, 100, 200, 400)
PAPER_RATES = (1e-2, 5e-3, 1e-3, 5e-4, 1e-4, 5e-5, 1e-6)
PAPER_WIDTHS = (64, 128, 256, 512)
PAPER_DEPTHS = {"transformer": (1, 2, 4, 6), "linear_transformer": (1, 2, 4, 6), "lstm": (1, 2, 3)}
PAPER_HEADS = {"transformer": (4, 8), "linear_transformer": (4, 8), "lstm": (4,)}


def figure_2_index(scale: str) -> list[Run]:
    """Figure 2, left and middle: Index Lookup, accuracy of each architecture against N.

    >>> [(run.model, run.length) for run in figure_2_index("smoke")]
    [('transformer', 20), ('lstm', 20), ('linear_transformer', 20), ('transformer', 50)]

    Raises ValueError for a scale that is none of smoke, laptop, paper.
    """
    scales = {"smoke": _smoke, "laptop": _laptop, "paper": _paper}
    if scale not in scales:
        raise ValueError(f"got preset {scale!r}, expected one of: {', '.join(scales)}")
    return scales[scale]()


def rate(model: str, N: int) -> float:
    """The learning rate that worked at width 64, from short trials at lengths 20 to 200."""
    if model == "lstm":
        return 5e-3
    return 5e-4 if model == "transformer" and N > 20 else 1e-3


def _index(model: str, N: int, steps: int, **more) -> Run:
    more = {"learning_rate": rate(model, N), **more}
    return Run(task="index-lookup", length=N, model=model, steps=steps, **more)


def _smoke() -> list[Run]:
    first = [_index("transformer", 20, 600)]
    rivals = [_index(model, 20, 1000) for model in MODELS_OF_FIGURE_2[1:]]
    return [*first, *rivals, _index("transformer", 50, 2500)]


def _laptop() -> list[Run]:
    """Seed by seed, so that a sweep cut short leaves whole figures of fewer seeds."""
    runs = []
    for seed in SEEDS:
        for N, steps in LAPTOP_STEPS.items():
            runs += [_index(model, N, steps, seed=seed) for model in MODELS_OF_FIGURE_2]
            if N >= 100:  # Theorem 1's embedding of the query, where it makes a difference
                runs.append(_index("transformer", N, steps, tied=True, seed=seed))
    return runs


def _paper() -> list[Run]:
    return [
        _index(model, N, 250_000, learning_rate=lr, width=width, depth=depth, heads=heads)
        for model in MODELS_OF_FIGURE_2
        for N, lr, width in product(PAPER_LENGTHS, PAPER_RATES, PAPER_WIDTHS)
        for depth, heads in product(PAPER_DEPTHS[model], PAPER_HEADS[model])
    ]


PRESETS: dict[str, Callable[[str], list[Run]]] = {"figure-2-index": figure_2_index}
