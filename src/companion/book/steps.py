"""Named steps that say how long they took and stop at the first failure."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path


class StepFailed(Exception):
    """A step could not do its work; the message says why and where to look."""


class StepSkipped(Exception):
    """A step has nothing to work with on this machine; the message says what is missing."""


def run_steps(title: str, steps: Iterable[tuple[str, Callable[[], str | None]]]) -> int:
    """Run ``(name, work)`` pairs in order; return an exit status.

    ``work`` returns a line that sums up what it did.

    >>> run_steps("demo", [("count", lambda: "3 things")])  # doctest: +ELLIPSIS
    demo: count …
    demo: count: 3 things (0.0 s)
    demo: done in 0.0 s
    0
    """
    begin = time.monotonic()
    for name, work in steps:
        print(f"{title}: {name} …", flush=True)
        start = time.monotonic()
        try:
            outcome = work() or "done"
        except StepSkipped as why:
            outcome = f"SKIPPED: {why}"
        except StepFailed as why:
            print(why, flush=True)
            print(f"{title}: FAILED in step '{name}' after {time.monotonic() - start:.1f} s")
            return 1
        print(f"{title}: {name}: {outcome} ({time.monotonic() - start:.1f} s)", flush=True)
    print(f"{title}: done in {time.monotonic() - begin:.1f} s", flush=True)
    return 0


def run_logged(command: list[str], log: Path, cwd: Path, *, live: bool = False) -> str:
    """Run a command with its output in ``log``, and on the terminal too if ``live``.

    Returns the output; raises StepFailed with its last lines and the log's path.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    with (
        log.open("w", encoding="utf8") as file,
        subprocess.Popen(
            command,
            cwd=cwd,
            env={"OMP_NUM_THREADS": "1", **os.environ, "PYTHONUNBUFFERED": "1"},
            text=True,
            encoding="utf8",
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        for line in process.stdout:
            file.write(line)
            lines.append(line)
            if live:
                sys.stdout.write(line)
                sys.stdout.flush()
    if process.returncode != 0:
        tail = "" if live else "".join(lines[-40:])
        raise StepFailed(f"{tail}'{Path(command[0]).name}' exited {process.returncode}; log: {log}")
    return "".join(lines)
