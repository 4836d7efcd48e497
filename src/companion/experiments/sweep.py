"""Many runs: skip what is stored, train the rest here or in worker processes, store each."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import chain, count, groupby
from pathlib import Path
from statistics import median

from companion.experiments.cluster import on_ray
from companion.experiments.cost import expected
from companion.experiments.device import choose_device
from companion.experiments.groups import Outcomes, grouped, outcomes
from companion.experiments.result import Result
from companion.experiments.run import Run
from companion.experiments.store import load_file
from companion.experiments.train import summary

Plan = Callable[[list[Result]], list[Run]]


def sweep(
    runs: Iterable[Run] | Plan,
    folder: str | Path,
    *,
    workers: int = 1,
    ray: str | None = None,
    together: bool | None = None,
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
    `workers` workers on this machine, "auto" to join the one it belongs to. `together`: train runs
    that differ in learning rate and seed only as one `Population`, as is done on a CUDA GPU unless
    told otherwise; on a CPU it saves no time. `report` receives what is to be done and how long
    that may take, one line per run, and a table at the end.

    Raises ValueError, before anything is trained, for a stored file that is corrupted or foreign,
    and RuntimeError at the end if runs raised an error; the others are stored.
    """
    if workers < 1:
        raise ValueError(f"got workers={workers}, expected at least 1")
    folder, results, failed = Path(folder), {}, []
    together = choose_device().device.type == "cuda" if together is None else together
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
            groups = grouped(todo, together=together)
            report(expectation(groups, workers) if ray is None else f"on Ray, {ray}")
            failed += _train_all(groups, folder, results, workers, ray, report)
    finished = [results[run] for run in wanted if run in results]
    report(table(finished))
    if failed:
        names = ", ".join(run.name for run in failed)
        raise RuntimeError(f"{len(failed)} of {len(wanted)} runs failed: {names}")
    return finished


def expectation(groups: list[list[Run]], workers: int) -> str:
    """How long `groups` take here, from a step of each, as a line to read before they start."""
    seconds = expected(groups) / workers
    time = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    return f"expected: at most {time} with {workers} worker(s); runs that succeed stop earlier"


def _always(runs: Iterable[Run]) -> Plan:
    listed = list(runs)
    return lambda results: listed


def _train_all(
    groups: list[list[Run]],
    folder: Path,
    results: dict[Run, Result],
    workers: int,
    ray: str | None,
    report: Callable[[str], None],
) -> list[Run]:
    """Train and store `groups`, adding to `results`; return the runs that raised an error."""
    failed, started, total = [], time.perf_counter(), sum(map(len, groups))
    if ray is not None:
        found = on_ray(groups, folder.absolute(), address=ray, workers=workers)
    elif workers > 1:
        found = _in_processes(groups, folder, workers)
    else:
        found = chain.from_iterable(outcomes(group, folder) for group in groups)
    for done, (run, outcome) in enumerate(found, 1):
        if isinstance(outcome, Result):
            results[run] = outcome
            text = summary(outcome)
        else:
            failed.append(run)
            text = f"FAILED, {type(outcome).__name__}: {outcome}"
        minutes = (time.perf_counter() - started) / 60
        report(f"[{done}/{total}, {minutes:.1f} min] {run.name}: {text}")
    return failed


def table(results: Iterable[Result]) -> str:
    """One line for each setting: accuracy at exactly N of the median seed, and the range.

    Runs that differ in more than the seed are kept apart. A diverged run counts with the accuracy
    that it ended with, and is marked.
    """
    lines = [f"{'task':20} {'N':>4} {'model':20} {'rate':>8} {'seeds':>5} {'median':>8}   range"]
    for _, group in groupby(sorted(results, key=_setting), key=_setting):
        same = list(group)
        run, accuracy = same[0].run, sorted(r.final.accuracy for r in same)
        diverged = sum(r.status == "diverged" for r in same)
        lines.append(
            f"{run.task:20} {run.length:4} {f'{run.model}-({run.depth},{run.width})':20} "
            f"{run.learning_rate:8g} {len(same):5} {median(accuracy):8.2%}   "
            f"{accuracy[0]:.2%} to {accuracy[-1]:.2%}"
            + (f", {diverged} diverged" if diverged else "")
        )
    return "\n".join(lines)


def _setting(result: Result) -> tuple:
    """Everything but the seed, the most telling fields first."""
    run = result.run
    return run.task, run.model, run.length, str(run.replace(seed=0))


def _train(group: list[Run], folder: Path) -> list[tuple[Run, Result | Exception]]:
    return list(outcomes(group, folder))


def _in_processes(groups: list[list[Run]], folder: Path, workers: int) -> Outcomes:
    # Forking a process that has used threads or a GPU is unsafe, so workers start afresh.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_one_thread) as pool:
        futures = {pool.submit(_train, group, folder): group for group in groups}
        for future in as_completed(futures):
            try:
                yield from future.result()
            except Exception as error:  # the process itself broke down
                yield from ((run, error) for run in futures[future])


def _leave_one_thread() -> None:
    os.environ["COMPANION_THREADS"] = "1"
