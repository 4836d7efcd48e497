"""Many runs: skip what is stored, train the rest here or in worker processes, store each."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import count, groupby
from pathlib import Path
from statistics import median

from companion.experiments.cluster import on_ray
from companion.experiments.cost import expected
from companion.experiments.result import Result
from companion.experiments.run import Run
from companion.experiments.store import checkpoint_path, load_file, save
from companion.experiments.train import summary, train

Outcomes = Iterator[tuple[Run, Result | Exception]]
Plan = Callable[[list[Result]], list[Run]]


def sweep(
    runs: Iterable[Run] | Plan,
    folder: str | Path,
    *,
    workers: int = 1,
    ray: str | None = None,
    report: Callable[[str], None] = print,
) -> list[Result]:
    """The results of `runs`, in their order, each stored in `folder` as soon as it is there.

    Runs whose result lies in `folder` are not repeated, and one that was interrupted goes on from
    its last checkpoint, so a sweep that was killed loses the last seconds only. `runs` may also be
    a function from the results so far to the runs wanted, such as `Study.plan`, which first tries
    learning rates and then repeats the best with other seeds: it is asked again until nothing that
    it wants is missing.

    `workers`: 1 trains in this process, one run after another; n > 1 starts n processes of one
    thread each. `ray`: the address of a Ray cluster that trains instead, "local" to start one with
    `workers` workers on this machine, "auto" to join the one it belongs to. `report` receives what
    is to be done and how long that may take, one line per run, and a table at the end.

    Raises ValueError, before anything is trained, for a stored file that is corrupted or foreign,
    and RuntimeError at the end if runs raised an error; the others are stored.
    """
    if workers < 1:
        raise ValueError(f"got workers={workers}, expected at least 1")
    folder, results, failed = Path(folder), {}, []
    plan = runs if callable(runs) else _always(runs)
    for turn in count():
        wanted = list(dict.fromkeys(plan(list(results.values()))))
        paths = {run: folder / f"{run.name}.json" for run in wanted if run not in results}
        stored = {run: load_file(path) for run, path in paths.items() if path.exists()}
        results |= stored
        todo = [run for run in wanted if run not in results and run not in failed]
        if turn and not todo and not stored:
            break
        known = sum(run in results for run in wanted)
        report(f"{len(wanted)} runs: {known} stored in {folder}, {len(todo)} to train")
        if todo:
            report(expectation(todo, workers) if ray is None else f"on Ray, {ray}")
            failed += _train_all(todo, folder, results, workers, ray, report)
    finished = [results[run] for run in wanted if run in results]
    report(table(finished))
    if failed:
        names = ", ".join(run.name for run in failed)
        raise RuntimeError(f"{len(failed)} of {len(wanted)} runs failed: {names}")
    return finished


def expectation(runs: list[Run], workers: int) -> str:
    """How long `runs` take here, from a step of each, as a line to read before they start."""
    seconds = expected(runs) / workers
    time = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    return f"expected: at most {time} with {workers} worker(s); runs that succeed stop earlier"


def _always(runs: Iterable[Run]) -> Plan:
    listed = list(runs)
    return lambda results: listed


def _train_all(
    todo: list[Run],
    folder: Path,
    results: dict[Run, Result],
    workers: int,
    ray: str | None,
    report: Callable[[str], None],
) -> list[Run]:
    """Train and store `todo`, adding to `results`; return the runs that raised an error."""
    failed, started = [], time.perf_counter()
    if ray is not None:
        outcomes = on_ray(todo, folder.absolute(), address=ray, workers=workers)
    elif workers > 1:
        outcomes = _in_processes(todo, folder, workers)
    else:
        outcomes = _here(todo, folder)
    for done, (run, outcome) in enumerate(outcomes, 1):
        if isinstance(outcome, Result):
            results[run] = outcome
            text = summary(outcome)
        else:
            failed.append(run)
            text = f"FAILED, {type(outcome).__name__}: {outcome}"
        minutes = (time.perf_counter() - started) / 60
        report(f"[{done}/{len(todo)}, {minutes:.1f} min] {run.name}: {text}")
    return failed


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


def _train(run: Run, folder: Path) -> Result:
    path = checkpoint_path(run, folder)
    result = train(run, progress=False, checkpoint=path).result
    save(result, folder)
    path.unlink(missing_ok=True)
    return result


def _here(runs: list[Run], folder: Path) -> Outcomes:
    for run in runs:
        yield run, _attempt(lambda run=run: _train(run, folder))


def _in_processes(runs: list[Run], folder: Path, workers: int) -> Outcomes:
    # Forking a process that has used threads or a GPU is unsafe, so workers start afresh.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_one_thread) as pool:
        futures = {pool.submit(_train, run, folder): run for run in runs}
        for future in as_completed(futures):
            yield futures[future], _attempt(future.result)


def _leave_one_thread() -> None:
    os.environ["COMPANION_THREADS"] = "1"


def _attempt(call: Callable[[], Result]) -> Result | Exception:
    try:
        return call()
    except Exception as error:
        return error
