"""The command `companion sweep`."""

from __future__ import annotations

import argparse
from pathlib import Path

from companion.experiments.cost import PEAK, gpu_hours
from companion.experiments.groups import grouped
from companion.experiments.store import load, results_dir
from companion.experiments.studies import STUDIES
from companion.experiments.study import SCALES, Study
from companion.experiments.sweep import sweep


def add_sweep_command(subparsers: argparse._SubParsersAction) -> None:
    """Add `sweep` to a command line; parsed arguments then have `run(arguments)`.

    >>> parser = argparse.ArgumentParser()
    >>> add_sweep_command(parser.add_subparsers())
    >>> parser.parse_args(["sweep", "figure-2-index", "--workers", "2"]).workers
    2
    """
    parser = subparsers.add_parser("sweep", help="train the runs of a figure and store the results")
    parser.add_argument(
        "study", help=f"which runs: {', '.join(STUDIES)}; figure-2 and all mean several"
    )
    parser.add_argument("--preset", default="laptop", help=f"{', '.join(SCALES)}; default laptop")
    parser.add_argument("--workers", type=int, default=1, help="processes of one thread each")
    parser.add_argument("--ray", metavar="ADDRESS", help="train on Ray: local, auto or host:port")
    parser.add_argument("--folder", type=Path, help="where to store; default results/STUDY")
    parser.add_argument("--dry-run", action="store_true", help="say what it would cost, and stop")
    parser.set_defaults(run=run_sweep)


def run_sweep(arguments: argparse.Namespace) -> int:
    """Run the sweep that the arguments describe; the exit status.

    Raises ValueError for a study or preset that does not exist, naming those that do.
    """
    for study in named(arguments.study):
        plan = study.plan(arguments.preset)
        folder = arguments.folder or results_dir() / study.name
        print(f"{study.title}, {arguments.preset}", flush=True)
        if arguments.dry_run:
            print(price(study, arguments.preset, folder))
            continue
        sweep(
            plan,
            folder,
            workers=arguments.workers,
            ray=arguments.ray,
            report=lambda line: print(line, flush=True),
        )
    return 0


def named(name: str) -> list[Study]:
    """The studies whose name is `name` or begins with it; all of them for "all".

    >>> [study.name for study in named("figure-2")]
    ['figure-2-index', 'figure-2-dyck']

    Raises ValueError if there is none.
    """
    if name in STUDIES:
        return [STUDIES[name]]
    found = [s for s in STUDIES.values() if name == "all" or s.name.startswith(f"{name}-")]
    if not found:
        raise ValueError(f"got study {name!r}, expected one of: {', '.join(STUDIES)}, all")
    return found


def price(study: Study, scale: str, folder: Path) -> str:
    """What the runs of a study that are not stored would cost on GPUs of three classes."""
    stored = load(folder) if folder.is_dir() else []
    done = {result.run for result in stored}
    todo = [run for run in dict.fromkeys(study.plan(scale)(stored)) if run not in done]
    alone, groups = grouped(todo, together=False), grouped(todo, together=True)
    lines = [
        f"{len(todo)} runs, {sum(run.steps for run in todo):,} steps at most",
        f"{'GPU hours':>12}  one by one  {len(groups)} populations",
    ]
    for gpu in PEAK:
        hours = gpu_hours(alone, gpu), gpu_hours(groups, gpu)
        lines.append(f"{gpu:>12}  {hours[0]:10.2f}  {hours[1]:10.2f}")
    lines.append("Counted: operations and FLOPs of a step. Estimated: how fast a GPU does them.")
    return "\n".join(lines)
