"""Stored runs on formal languages: every model on every language, within and beyond training."""

from collections.abc import Iterable
from statistics import median

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MultipleLocator

from companion.book.appearance import POSITIVE, legend_above, looks, percent
from companion.book.results_figures import seeds_and_median
from companion.experiments.result import Result, Score
from companion.experiments.studies import LANGUAGE_MODELS, LANGUAGES

HEADER = ["language", "model", "seeds", "steps", "Bin0", "Bin1 (range)"]
SHADES = LinearSegmentedColormap.from_list("share", [POSITIVE + "00", POSITIVE])


def by_language(results: Iterable[Result]) -> dict[tuple[str, str], list[Result]]:
    """Results by (model, language), in the order of the study; others come last.

    >>> by_language([])
    {}
    """
    found: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        found.setdefault((result.run.model, result.run.task), []).append(result)
    known = [(m, t) for m in LANGUAGE_MODELS for t in LANGUAGES]
    order = sorted(found, key=lambda key: known.index(key) if key in known else len(known))
    return {key: found[key] for key in order}


def whole_strings(result: Result) -> tuple[float, float]:
    """Shares of strings with every answer right: as long as in training (Bin0), and longer (Bin1).

    Raises ValueError for the result of a task that has no Bin1.
    """
    if "bin1 examples" not in result.more:
        raise ValueError(f"got the scores {list(result.more)}, expected those of a language")
    return result.more["examples"].accuracy, result.more["bin1 examples"].accuracy


def bins(ax: Axes, results: Iterable[Result]) -> Axes:
    """Whole strings right, median over seeds: Bin0 above, Bin1 below and as the shade.

    >>> from matplotlib.figure import Figure
    >>> bins(Figure().subplots(), []).get_title()
    'whole strings right, in %: Bin0 above Bin1'
    """
    groups = by_language(results)
    models = list(dict.fromkeys(model for model, _ in groups))
    tasks = sorted({task for _, task in groups}, key=list(LANGUAGES).index)
    shade = np.full((len(models), len(tasks)), np.nan)
    for (model, task), runs in groups.items():
        i, j = models.index(model), tasks.index(task)
        low, high = (median(x) for x in zip(*map(whole_strings, runs), strict=True))
        shade[i, j] = high
        ax.text(j, i, f"{100 * low:.0f}\n{100 * high:.0f}", ha="center", va="center", fontsize=9)
    if groups:
        ax.imshow(shade, cmap=SHADES, vmin=0, vmax=1.6, interpolation="none", aspect="auto")
    ax.spines[["top", "right"]].set_visible(True)
    ax.tick_params(length=0)
    ax.set_yticks(range(len(models)), [name.replace("_", " ") for name in models])
    ax.set_xticks(range(len(tasks)), tasks, rotation=40, ha="right")
    ax.set_title("whole strings right, in %: Bin0 above Bin1")
    return ax


def by_length(ax: Axes, results: Iterable[Result]) -> Axes:
    """Whole strings right on one language against their length: a point for each bin and seed, at
    the longest strings of the bin, and a line through the medians.

    >>> from matplotlib.figure import Figure
    >>> by_length(Figure().subplots(), []).get_xlabel()
    'length of the strings, up to'
    """
    scores: dict[str, dict[int, list[Score]]] = {}
    for result in results:
        name, N = result.run.model.replace("_", " "), result.run.length
        for i, exam in enumerate(("examples", "bin1 examples", "bin2 examples", "bin3 examples")):
            if exam in result.more:
                lengths = scores.setdefault(name, {})
                lengths.setdefault((i + 1) * N, []).append(result.more[exam])
    for name, mark in looks(scores).items():
        seeds_and_median(ax, scores[name], mark, name)
    percent(ax)
    ax.set(xlabel="length of the strings, up to", ylabel="strings right")
    ax.xaxis.set_major_locator(MultipleLocator(50))
    legend_above(ax, 3)
    return ax


def rows(results: Iterable[Result]) -> list[tuple]:
    """Each model on each language, for a table with `HEADER`: medians, and the range over seeds."""
    lines = []
    for (model, task), runs in by_language(results).items():
        bin0, bin1 = zip(*map(whole_strings, runs), strict=True)
        steps = int(median(result.steps for result in runs))
        spread = f"{100 * min(bin1):.1f}–{100 * max(bin1):.1f}"
        scores = (f"{median(bin0):.1%}", f"{median(bin1):.1%} ({spread})")
        lines.append((task, model.replace("_", " "), len(runs), steps, *scores))
    return sorted(lines, key=lambda line: list(LANGUAGES).index(line[0]))
