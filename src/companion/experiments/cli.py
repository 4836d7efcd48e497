"""The command `companion sweep`."""

from __future__ import annotations

import argparse
from pathlib import Path

from companion.experiments.presets import PRESETS
from companion.experiments.store import results_dir
from companion.experiments.sweep import sweep


def add_sweep_command(subparsers: argparse._SubParsersAction) -> None:
    """Add `sweep` to a command line; parsed arguments then have `run(arguments)`.

    >>> parser = argparse.ArgumentParser()
    >>> add_sweep_command(parser.add_subparsers())
    >>> parser.parse_args(["sweep", "figure-2-index", "--workers", "2"]).workers
    2
    """
    parser = subparsers.add_parser("sweep", help="train the runs of a figure and store the results")
    parser.add_argument("figure", help=f"which runs: {', '.join(PRESETS)}")
    parser.add_argument("--preset", default="laptop", help="smoke, laptop (default) or paper")
    parser.add_argument("--workers", type=int, default=1, help="processes of one thread each")
    parser.add_argument("--folder", type=Path, help="where to store; default results/FIGURE")
    parser.set_defaults(run=run_sweep)


def run_sweep(arguments: argparse.Namespace) -> int:
    """Run the sweep that the arguments describe; the exit status.

    Raises ValueError for a figure or preset that does not exist, naming those that do.
    """
    if arguments.figure not in PRESETS:
        raise ValueError(f"got figure {arguments.figure!r}, expected one of: {', '.join(PRESETS)}")
    runs = PRESETS[arguments.figure](arguments.preset)
    folder = arguments.folder or results_dir() / arguments.figure
    sweep(runs, folder, workers=arguments.workers, report=lambda line: print(line, flush=True))
    return 0
