"""Many runs: skip what is stored, train the rest here or in worker processes, store each."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import groupby
from pathlib import Path
from statistics import median

from companion.experiments.result import Result
from companion.experiments.run import Run
from companion.experiments.store import load_file, save
from companion.experiments.train import summary, train


def sweep(
    runs: Iterable[Run],
    folder: str | Path,
    *,
    workers: int = 1,
    report: Callable[[str], None] = print,
) -> list[Result]:
    """The results of `runs`, in their order, each stored in `folder` as soon as it is there.

    Runs whose result lies in `folder` are not repeated, so a sweep that was killed goes on where it
    was. `workers`: 1 trains in this process, one run after another; n > 1 starts n processes of one
    thread each. `report` receives one line per run and a table at the end.

    Raises ValueError, before anything is trained, for a stored file that is corrupted or foreign,
    and RuntimeError at the end if runs raised an error; the others are stored.
    """
    if workers < 1:
        raise ValueError(f"got workers={workers}, expected at least 1")
    runs, folder = list(dict.fromkeys(runs)), Path(folder)
    paths = {run: folder / f"{run.name}.json" for run in runs}
    results = {run: load_file(path) for run, path in paths.items() if path.exists()}
    todo = [run for run in runs if run not in results]
    report(f"{len(runs)} runs: {len(results)} stored in {folder}, {len(todo)} to train")
    failed, started = [], time.perf_counter()
    outcomes = _here(todo, folder) if workers == 1 else _in_processes(todo, folder, workers)
    for done, (run, outcome) in enumerate(outcomes, 1):
        if isinstance(outcome, Result):
            results[run] = outcome
            text = summary(outcome)
        else:
            failed.append(run.name)
            text = f"FAILED, {type(outcome).__name__}: {outcome}"
        minutes = (time.perf_counter() - started) / 60
        report(f"[{done}/{len(todo)}, {minutes:.1f} min] {run.name}: {text}")
    finished = [results[run] for run in runs if run in results]
    report(table(finished))
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(todo)} runs failed: {', '.join(failed)}")
    return finished


def table(results: Iterable[Result]) -> str:
    """One line for each setting: accuracy at exactly N of the median seed, and the range.

    Runs that differ in more than the seed are kept apart. A diverged run counts with the accuracy
    that it ended with, and is marked.
    """
    lines = [f"{'task':20} {'N':>4} {'model':20} {'rate':>7} {'seeds':>5} {'median':>8}   range"]
    for _, group in groupby(sorted(results, key=_setting), key=_setting):
        same = list(group)
        run, accuracy = same[0].run, sorted(r.final.accuracy for r in same)
        diverged = sum(r.status == "diverged" for r in same)
        lines.append(
            f"{run.task:20} {run.length:4} {f'{run.model}-({run.depth},{run.width})':20} "
            f"{run.learning_rate:7.0e} {len(same):5} {median(accuracy):8.2%}   "
            f"{accuracy[0]:.2%} to {accuracy[-1]:.2%}"
            + (f", {diverged} diverged" if diverged else "")
        )
    return "\n".join(lines)


def _setting(result: Result) -> tuple:
    """Everything but the seed, the most telling fields first."""
    run = result.run
    return run.task, run.model, run.length, str(run.replace(seed=0))


def _train_and_save(run: Run, folder: Path) -> Result:
    result = train(run, progress=False).result
    save(result, folder)
    return result


def _here(runs: list[Run], folder: Path) -> Iterator[tuple[Run, Result | Exception]]:
    for run in runs:
        yield run, _attempt(lambda run=run: _train_and_save(run, folder))


def _in_processes(
    runs: list[Run], folder: Path, workers: int
) -> Iterator[tuple[Run, Result | Exception]]:
    # Forking a process that has used threads or a GPU is unsafe, so workers start afresh.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_one_thread) as pool:
        futures = {pool.submit(_train_and_save, run, folder): run for run in runs}
        for future in as_completed(futures):
            yield futures[future], _attempt(future.result)


def _leave_one_thread() -> None:
    os.environ["COMPANION_THREADS"] = "1"


def _attempt(call: Callable[[], Result]) -> Result | Exception:
    try:
        return call()
    except Exception as error:
        return error
