"""What the main paper's experiments would cost on a GPU: every run of every figure, estimated.

    .venv/bin/python benchmarks/grid.py

writes `results/performance/grid.json`. Operations and FLOPs of a step are counted; how fast a GPU
does them is estimated (`companion.experiments.cost`). The paper's authors report about 1,200 GPU
hours; their runs ended when they had succeeded, and here all take every step.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from companion.experiments import STUDIES, results_dir
from companion.experiments.cost import LAUNCH, PEAK, UTILISED, gpu_hours
from companion.experiments.groups import grouped

FIGURES = [name for name in STUDIES if name.startswith("figure-")]
SCALES = ("gpu", "paper")


def estimate(name: str, scale: str) -> dict:
    """Runs, steps and hours of a study, run by run and as populations."""
    runs = list(dict.fromkeys(STUDIES[name].plan(scale)([])))
    ways = {"runs": grouped(runs, together=False), "populations": grouped(runs, together=True)}
    hours = {way: {gpu: gpu_hours(groups, gpu) for gpu in PEAK} for way, groups in ways.items()}
    return {
        "study": name,
        "scale": scale,
        **{way: len(groups) for way, groups in ways.items()},
        "steps": sum(run.steps for run in runs),
        "hours": hours,
    }


def main() -> None:
    started, rows = time.monotonic(), []
    path: Path = results_dir() / "performance" / "grid.json"
    for scale in SCALES:
        for name in FIGURES:
            rows.append(estimate(name, scale))
            print(f"{time.monotonic() - started:6.0f} s  {name}, {scale}", flush=True)
    assumed = {"launch": LAUNCH, "utilised": UTILISED, "peak": PEAK}
    path.write_text(json.dumps({"assumed": assumed, "studies": rows}, indent=1) + "\n", "utf8")
    print(path)


if __name__ == "__main__":
    main()
