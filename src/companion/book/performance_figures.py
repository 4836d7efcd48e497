"""Figures and tables of the stored measurements of speed: steps, memory, growth, parts, floor.

`benchmarks/compare.py` writes one file per device to `results/performance`; nothing else is read.
A time is the least of many turns: of one thread's processor on a CPU, of the wall on a GPU.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from companion.book.appearance import (
    DASHED,
    INK,
    PAPER,
    SERIES,
    legend_above,
    log2_x,
    looks,
    tick_powers,
)
from companion.experiments import results_dir

OURS = "companion"
LAST, ALL = "last", "all"  # answers asked for: one after the last symbol, or one after every symbol
PARTS = {"data": "dss", "forward": "transformer", "backward": "lstm", "optimiser": "retnet"}
Row = Mapping[str, object]


class Pair(NamedTuple):
    """Our model at one size and the fastest of its peers there."""

    ours: Row
    peer: Row

    @property
    def times(self) -> float:
        """How many of our steps fit into one of the peer's."""
        return self.peer["ms"] / self.ours["ms"]


def folder() -> Path:
    """Where measurements are stored."""
    return results_dir() / "performance"


def measured(device: str = "cpu") -> dict:
    """The measurement on one device: its facts, and rows under comparison, growth, composition.

    >>> measured("cpu")["device"]
    'cpu'

    Raises FileNotFoundError if none is stored.
    """
    path = folder() / f"{device}.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: got no measurement, expected that of make benchmark")
    return json.loads(path.read_text(encoding="utf8"))


def gpus() -> list[str]:
    """Names of the measurements on GPUs that are stored.

    >>> "cpu" in gpus()
    False
    """
    paths = sorted(folder().glob("*.json"))
    return [path.stem for path in paths if measured(path.stem).get("device") == "cuda"]


def pairs(rows: Sequence[Row], asked: str) -> dict[tuple[str, int, int], Pair]:
    """Ours and the fastest peer by (architecture, layers, length), with `asked` answers.

    >>> row = {"architecture": "lstm", "depth": 1, "length": 9, "rows": "all"}
    >>> rows = [{**row, "contender": OURS, "ms": 2.0}, {**row, "contender": "loop", "ms": 6.0},
    ...         {**row, "contender": "other", "failed": "needs a GPU"}]
    >>> pairs(rows, "all")["lstm", 1, 9].times
    3.0
    """
    found: dict[tuple[str, int, int], list[Row]] = {}
    for row in rows:
        if row["rows"] == asked and "failed" not in row:
            key = row["architecture"], row["depth"], row["length"]
            found.setdefault(key, []).append(row)
    return {
        key: Pair(ours[0], min(peers, key=lambda row: row["ms"]))
        for key, group in found.items()
        if (ours := [row for row in group if row["contender"] == OURS])
        and (peers := [row for row in group if row["contender"] != OURS])
    }


def exponent(times: Mapping[str, Row]) -> float:
    """The slope of log(time) against log(T), by least squares.

    >>> exponent({"64": {"ms": 3.0}, "128": {"ms": 12.0}, "256": {"ms": 48.0}})
    2.0
    """
    T, ms = np.array([(int(T), row["ms"]) for T, row in times.items()]).T
    return round(float(np.polyfit(np.log(T), np.log(ms), 1)[0]), 6)


def speedups(ax: Axes, rows: Sequence[Row]) -> Axes:
    """How many of our steps fit into one of the fastest peer's, a line for each architecture.

    >>> from matplotlib.figure import Figure
    >>> ax = speedups(Figure().subplots(), measured()["comparison"])
    >>> ax.get_xlabel()
    'our steps per step of the fastest peer'
    """
    found = {
        (asked, *key): pair
        for asked in (LAST, ALL)
        for key, pair in pairs(rows, asked).items()
        if key[1] == 1  # layer
    }
    names = list(dict.fromkeys(name for _, name, _, _ in found))
    lengths, marks = sorted({T for *_, T in found}), looks(names)
    for (asked, name, _, T), pair in found.items():
        y = names.index(name) + (0.17 if asked == ALL else -0.17)
        ax.plot(pair.times, y, **_point(asked, lengths.index(T), marks[name]["color"]))
    for i, T in enumerate(lengths):
        for asked, text in ((LAST, "last answer"), (ALL, "all answers")):
            ax.plot([], [], **_point(asked, i, INK), label=f"T = {T}, {text}")
    ax.axvline(1, color=INK, lw=1, ls=DASHED)
    ax.set_yticks(range(len(names)), [shown(name) for name in names])
    log2_x(ax)
    ax.set(xlabel="our steps per step of the fastest peer", ylim=(len(names) - 0.5, -0.5))
    ax.tick_params(axis="y", length=0)
    legend_above(ax, 2)
    return ax


def _point(asked: str, i: int, colour: str) -> dict:
    """A marker for the i-th length, filled if one answer is asked for."""
    fill = colour if asked == LAST else PAPER
    return {"ls": "none", "marker": "os^D"[i % 4], "ms": 7.5, "color": colour, "mfc": fill}


def growth(ax: Axes, rows: Sequence[Row]) -> Axes:
    """Milliseconds of a step against T, both in logarithms.

    >>> from matplotlib.figure import Figure
    >>> growth(Figure().subplots(), measured()["growth"]).get_xlabel()
    'length T'
    """
    rows = [row for row in rows if "failed" not in row and row["architecture"] in SERIES]
    marks = looks(shown(row["architecture"]) for row in rows)
    for row in rows:
        T, ms = zip(*((int(T), x["ms"]) for T, x in row["times"].items()), strict=True)
        name = shown(row["architecture"])
        ax.plot(T, ms, **marks[name], label=f"{name}: {exponent(row['times']):.2f}")
    lengths = sorted({int(T) for row in rows for T in row["times"]})
    log2_x(ax, lengths)
    ax.set_yscale("log", base=2)
    tick_powers(ax.yaxis)
    ax.set(xlabel="length T", ylabel="ms a step")
    legend_above(ax, 2)
    return ax


def split(ax: Axes, rows: Sequence[Row], length: int) -> Axes:
    """Parts of our step at one length, as shares of it, with the whole in ms.

    >>> from matplotlib.figure import Figure
    >>> rows = measured()["composition"]
    >>> split(Figure().subplots(), rows, length=rows[0]["length"]).get_xlabel()
    'share of a step'
    """
    rows = [row for row in rows if row["length"] == length and "failed" not in row]
    for i, row in enumerate(rows):
        whole, left = sum(row["split"].values()), 0.0
        for name, series in PARTS.items():
            share = row["split"][name] / whole
            colour = SERIES[series][0]
            ax.barh(i, share, 0.7, left, color=colour, label=None if i else name)
            left += share
        ax.text(1.01, i, f"{whole:,.1f} ms", va="center")
    ax.set_yticks(range(len(rows)), [shown(row["architecture"]) for row in rows])
    ax.set(xlabel="share of a step", xlim=(0, 1), ylim=(len(rows) - 0.5, -0.5))
    ax.tick_params(axis="y", length=0)
    legend_above(ax, 4)
    return ax


def shown(name: str) -> str:
    """An architecture's name as it is printed."""
    return name.replace("_", " ")


SPEED_HEADER = ["model", "T", "ours, steps/s", "fastest peer", "steps/s", "ratio", "all answers"]


def speed_table(rows: Sequence[Row]) -> list[tuple]:
    """Steps per second of ours and of the fastest peer, one answer asked for; the last column is
    the ratio with all answers.

    >>> len(speed_table(measured()["comparison"])[0]) == len(SPEED_HEADER)
    True
    """
    everything = pairs(rows, ALL)
    table = []
    for (name, depth, T), pair in pairs(rows, LAST).items():
        more = everything.get((name, depth, T))
        table.append(
            (
                shown(name) + (f", {depth} layers" if depth > 1 else ""), T,
                f"{1e3 / pair.ours['ms']:,.1f}", pair.peer["contender"],
                f"{1e3 / pair.peer['ms']:,.1f}", f"{pair.times:.2f}",
                None if more is None else f"{more.times:.2f}",
            )
        )  # fmt: skip
    return table


CONTEST_HEADER = ["model", "implementation", "ms", "median", "MiB", "off by"]


def contest_table(rows: Sequence[Row], length: int, asked: str, depth: int = 1) -> list[tuple]:
    """Everyone that ran at one size: least and median time, memory, difference from ours.

    >>> contest_table(measured()["comparison"], 100, "last")[0][:2]
    ('transformer', 'companion')
    """
    return [
        (
            shown(row["architecture"]), row["contender"], f"{row['ms']:,.1f}",
            f"{row['ms_median']:,.1f}", f"{row['memory_mib']:,.0f}",
            None if row["contender"] == OURS else f"{row['difference']:.0e}",
        )
        for row in rows
        if (row["length"], row["rows"], row["depth"]) == (length, asked, depth)
        and "failed" not in row
    ]  # fmt: skip


def failures(rows: Sequence[Row]) -> list[tuple]:
    """Who did not run, at which lengths, and why.

    >>> row = {"architecture": "lstm", "contender": "loop", "length": 9, "failed": "too slow"}
    >>> failures([row, {**row, "length": 5}])
    [('lstm', 'loop', '5, 9', 'too slow')]
    """
    found: dict[tuple, set[int]] = {}
    for row in rows:
        if "failed" in row:
            key = shown(row["architecture"]), row["contender"], row["failed"]
            found.setdefault(key, set()).add(row["length"])
    return [
        (name, who, ", ".join(map(str, sorted(T))), why) for (name, who, why), T in found.items()
    ]


POPULATION_HEADER = ["model", "P", "ms a step", "steps/s of all members", "times P = 1"]


def population_table(rows: Sequence[Row]) -> list[tuple]:
    """Steps of P models as one program: how many of a single member's they make in a second.

    >>> row = {"architecture": "lstm", "times": {"1": {"ms": 10.0}, "4": {"ms": 20.0}}}
    >>> population_table([row])
    [('lstm', 1, '10.0', '100', '1.0'), ('lstm', 4, '20.0', '200', '2.0')]
    """
    table = []
    for row in rows:
        times = {int(P): x["ms"] for P, x in row.get("times", {}).items()}
        for P, ms in times.items():
            gain = P * times[min(times)] / (min(times) * ms)
            table.append(
                (shown(row["architecture"]), P, f"{ms:,.1f}", f"{1e3 * P / ms:,.0f}", f"{gain:.1f}")
            )
    return table


FLOOR_HEADER = ["model", "T", "operations", "GFLOP", "MB", "floor, ms", "step, ms", "times floor"]


def floor_table(content: Mapping) -> list[tuple]:
    """Our step against the least it could take if its products ran at the peak, or if the bytes its
    operations read and write came from memory at the peak, whichever is longer.

    >>> len(floor_table(measured())[0]) == len(FLOOR_HEADER)
    True
    """
    (peaks,), table = content["peaks"], []
    for row in content["composition"]:
        if "failed" in row:
            continue
        floor = 1e3 * max(row["flops"] / peaks["flops"], row["bytes"] / peaks["bytes"])
        step = sum(row["split"].values())
        table.append(
            (
                shown(row["architecture"]), row["length"], row["operations"],
                f"{row['flops'] / 1e9:.2f}", f"{row['bytes'] / 1e6:,.0f}",
                f"{floor:,.1f}", f"{step:,.1f}", f"{step / floor:.1f}",
            )
        )  # fmt: skip
    return table


def source(content: Mapping) -> str:
    """What it was measured on, in short lines.

    >>> source(measured()).startswith(measured()["name"])
    True
    """
    loads = [x for x in content.get("load", []) if x is not None]
    busy = f", load {' to '.join(f'{x:.1f}' for x in loads)}" if loads else ""
    versions = [f"{name} {number}" for name, number in content["versions"].items()]
    lines = [", ".join(versions[i : i + 3]) for i in range(0, len(versions), 3)]
    machine = f"{content['name']}, {content['processors']} processors{busy}"
    return "\n".join([machine, *lines, f"{content['date']}, {content['threads']} thread"])


def typical(pairs: Mapping[object, Pair]) -> float:
    """The median of how many times as fast ours is."""
    return median(pair.times for pair in pairs.values())


def grid_table(scale: str) -> tuple[list[str], list[tuple]]:
    """Header and rows: hours that the main paper's figures would take on each class of GPU, run by
    run / as populations, from `benchmarks/grid.py`; the sum comes last.

    >>> [row[0] for row in grid_table("paper")[1]]
    ['figure-2-index', 'figure-2-dyck', 'figure-3', 'figure-4', 'all']
    """
    content = json.loads((folder() / "grid.json").read_text(encoding="utf8"))
    table, total = [], np.zeros((2, len(content["assumed"]["peak"])))
    for study in (s for s in content["studies"] if s["scale"] == scale):
        hours = np.array([list(way.values()) for way in study["hours"].values()])
        facts = study["study"], f"{study['runs']:,}", f"{study['steps'] / 1e6:,.0f} M"
        table.append((*facts, *map(_hours, hours.T)))
        total += hours
    table.append(("all", "", "", *map(_hours, total.T)))
    return ["study", "runs", "steps", *content["assumed"]["peak"]], table


def _hours(pair: Iterable[float]) -> str:
    return " / ".join(f"{x:,.0f}" if x >= 10 else f"{x:.1f}" for x in pair)
