"""Execute notebooks with papermill into ``_build/executed``, in parallel and cached.

A notebook runs again when anything its outputs depend on has changed: its own bytes, the source
of the package, the stored results, the versions of what the package requires, its parameters.
It runs in an empty folder, as it would on a machine that has only the package.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from . import notebook as nb
from .steps import StepFailed
from .workspace import Workspace, digest

SOURCES = {".py", ".js", ".css", ".json"}
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Options:
    """How to execute."""

    jobs: int = 0  # notebooks at a time; 0: one per core
    timeout: int = 600  # seconds for one cell
    parameters: tuple[tuple[str, object], ...] = ()  # for notebooks that declare them
    force: bool = False  # execute even what is up to date


@dataclass(frozen=True)
class Job:
    """One notebook to execute, and the stamp its twin will carry."""

    notebook: Path
    twin: Path
    failed: Path
    log: Path
    stamp: dict
    timeout: int


def parse_parameter(text: str) -> tuple[str, object]:
    """``name=value`` with a Python literal, or else plain text, as the value.

    >>> parse_parameter("N=64"), parse_parameter("family=trace")
    (('N', 64), ('family', 'trace'))
    """
    name, separator, value = text.partition("=")
    if not separator or not name.isidentifier():
        raise ValueError(f"got parameter {text!r}, expected name=value")
    with contextlib.suppress(ValueError, SyntaxError):
        return name, ast.literal_eval(value)
    return name, value


def environment_key(workspace: Workspace) -> str:
    """Hash of everything that every notebook depends on besides its own cells."""
    root = workspace.root
    files = [p for p in (root / "src").rglob("*") if p.suffix in SOURCES]
    files += [p for p in (root / "results").rglob("*") if p.is_file()]
    required = (Requirement(text) for text in importlib.metadata.requires("companion") or ())
    names = {r.name for r in required if r.marker is None} | {"papermill", "ipykernel"}
    versions = [f"{name}=={importlib.metadata.version(name)}" for name in sorted(names)]
    return digest(root, files, sys.version, *versions)


def stamp(notebook: Path, environment: str, parameters: dict) -> dict:
    """What a twin must carry to count as fresh."""
    source = digest(notebook.parent, [notebook])
    return {"source": source, "environment": environment, "parameters": parameters}


def stored_stamp(twin: Path) -> dict | None:
    """The stamp of an executed twin; None if there is no readable one."""
    try:
        return nb.load(twin)["metadata"].get("companion")
    except (OSError, ValueError):
        return None


def chosen_parameters(path: Path, options: Options) -> dict:
    """The parameters to inject into one notebook: those that it declares.

    Raises ValueError for a parameter that the notebook declares and does not read.
    """
    notebook = nb.load(path)
    declared = nb.parameters(notebook)
    if unread := nb.unread_parameters(notebook):
        raise ValueError(
            f"{path.name}: got unread parameters {unread}, expected a later cell to read each"
        )
    return {name: value for name, value in options.parameters if name in declared}


def plan(workspace: Workspace, options: Options) -> list[Job]:
    """The notebooks to execute now; StepFailed for parameters that do not fit."""
    key, jobs, problems = environment_key(workspace), [], []
    unknown = {name for name, _ in options.parameters}
    for path in workspace.notebooks():
        try:
            chosen = chosen_parameters(path, options)
        except ValueError as error:
            problems.append(str(error))
            continue
        unknown -= set(chosen)
        want, twin = stamp(path, key, chosen), workspace.twin(path)
        if options.force or stored_stamp(twin) != want:
            failed = workspace.executed / "failed" / path.name
            log = workspace.logs / f"{path.stem}.log"
            jobs.append(Job(path, twin, failed, log, want, options.timeout))
    if unknown and not problems:
        problems = [f"got parameters {sorted(unknown)}, expected names that a notebook declares"]
    if problems:
        raise StepFailed("\n".join(problems))
    return jobs


def bad_outputs(notebook: dict) -> list[str]:
    """Cells that wrote to standard error or ended in an error."""
    found = []
    for number, cell in enumerate(notebook["cells"]):
        for output in cell.get("outputs", ()):
            if output["output_type"] == "error":
                found.append(f"cell {number} raised {output['ename']}: {output['evalue']}")
            elif output.get("name") == "stderr":
                text = "".join(output["text"]).strip()
                found.append(f"cell {number} wrote to standard error: {text[:500]}")
    return found


def prepare_worker() -> None:
    """Settings that a worker process hands on to its kernels."""
    os.environ["OMP_NUM_THREADS"] = "1"  # kernels times threads would thrash
    os.environ["PYTHONHASHSEED"] = "0"


def run(job: Job) -> tuple[str, float, str]:
    """Execute one notebook (in a worker process); return its name, seconds and error or ''."""
    import papermill

    from . import engine

    for path in (job.log, job.failed, job.twin):
        path.parent.mkdir(parents=True, exist_ok=True)
    with job.log.open("w") as log:  # what the kernel prints outside of cells
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    start, error = time.monotonic(), ""
    with tempfile.TemporaryDirectory() as empty:
        try:
            executed = papermill.execute_notebook(
                str(job.notebook),
                str(job.failed),
                parameters=job.stamp["parameters"],
                engine_name=engine.register(),
                kernel_name="python3",
                cwd=empty,
                progress_bar=False,
                request_save_on_cell_execute=False,
                execution_timeout=job.timeout,
            )
        except Exception as exception:
            error = _ANSI.sub("", f"{type(exception).__name__}: {exception}").strip()
        else:
            error = "\n".join(bad_outputs(executed))
    seconds = time.monotonic() - start
    if not error:
        job.failed.unlink()
        save(executed, job)
    return job.notebook.stem, seconds, error


def join_streams(outputs: list[dict]) -> list[dict]:
    """One block for what a cell printed in a row, however the kernel cut it into messages.

    >>> part = {"output_type": "stream", "name": "stdout"}
    >>> join_streams([{**part, "text": "a"}, {**part, "text": "b"}])[0]["text"]
    'ab'
    """
    joined: list[dict] = []
    for output in outputs:
        if joined and "name" in output and joined[-1].get("name") == output["name"]:
            joined[-1] = {**joined[-1], "text": joined[-1]["text"] + output["text"]}
        else:
            joined.append(output)
    return joined


def save(executed: dict, job: Job) -> None:
    """Write a twin, without the timestamps that would make it differ each time."""
    executed["metadata"].pop("papermill", None)
    executed["metadata"]["companion"] = job.stamp
    for cell in executed["cells"]:
        for noise in ("papermill", "execution"):
            cell["metadata"].pop(noise, None)
        if "outputs" in cell:
            cell["outputs"] = join_streams(cell["outputs"])
    job.twin.write_text(json.dumps(executed, indent=1, ensure_ascii=False), encoding="utf8")


def read_times(workspace: Workspace) -> dict[str, float]:
    """Seconds that each notebook's last execution took."""
    path = workspace.executed / "times.json"
    return json.loads(path.read_text(encoding="utf8")) if path.exists() else {}


def execute(workspace: Workspace, options: Options) -> str:
    """Execute what is not up to date; StepFailed if a notebook fails."""
    jobs, times, errors = plan(workspace, options), read_times(workspace), []
    cached = len(workspace.notebooks()) - len(jobs)
    jobs.sort(key=lambda job: -times.get(job.notebook.stem, float("inf")))  # longest first
    workers = min(options.jobs or os.cpu_count() or 1, max(len(jobs), 1))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawn, initializer=prepare_worker) as pool:
        for future in as_completed([pool.submit(run, job) for job in jobs]):
            name, seconds, error = future.result()
            print(f"  {'FAILED' if error else 'executed'} {name} ({seconds:.1f} s)", flush=True)
            if error:
                errors.append(f"{name}: {error}")
            else:
                times[name] = round(seconds, 1)
    workspace.executed.mkdir(parents=True, exist_ok=True)
    (workspace.executed / "times.json").write_text(json.dumps(times, indent=1), encoding="utf8")
    if errors:
        where = f"failed copies: {workspace.executed / 'failed'}; logs: {workspace.logs}"
        raise StepFailed("\n\n".join([*errors, where]))
    return f"{len(jobs)} executed, {cached} up to date"
