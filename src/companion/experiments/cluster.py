"""The runs of a sweep on a Ray cluster: `pip install companion[cluster]`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from companion.experiments.groups import outcomes
from companion.experiments.result import Result
from companion.experiments.run import Run
from companion.experiments.store import save

GPU_SHARE = 0.25  # of a GPU for one group: at width 64 four share it without getting in the way


def on_ray(
    groups: list[list[Run]], folder: Path, *, address: str, workers: int, gpus: float = GPU_SHARE
) -> Iterator[tuple[Run, Result | Exception]]:
    """Train groups of runs on a Ray cluster; each run with its result, or the error it raised.

    `address`: "local" starts `workers` workers on this machine; "auto" or "host:port" joins a
    cluster, whose size then limits how many run at once. `gpus`: the share of a GPU that a group
    takes where the cluster has any. Checkpoints go to `folder` as the worker's machine sees it; the
    results come back here.

    Raises ModuleNotFoundError if Ray is not installed, with the command that installs it.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "got no ray, expected: pip install 'companion[cluster]'"
        ) from error
    options = {"num_cpus": workers} if address == "local" else {}
    ray.init(address, include_dashboard=False, log_to_driver=False, **options)
    try:
        share = gpus if ray.cluster_resources().get("GPU", 0) else 0
        remote = ray.remote(num_cpus=1, num_gpus=share, max_retries=3)(_train)
        waiting = {}
        for group in groups:
            runs = json.dumps([run.to_dict() for run in group])
            waiting[remote.remote(runs, str(folder))] = group
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            group = waiting.pop(done)
            try:
                found = ray.get(done)
            except Exception as error:  # the worker itself broke down
                found = [error] * len(group)
            for run, outcome in zip(group, found, strict=True):
                if isinstance(outcome, Exception):
                    yield run, outcome
                else:
                    save(Result.from_json(outcome), folder)
                    yield run, Result.from_json(outcome)
    finally:
        ray.shutdown()


def _train(runs: str, folder: str) -> list[str | Exception]:
    """On a worker: of each of the runs, given as JSON, the result as JSON or the error."""
    os.environ["COMPANION_THREADS"] = "1"
    group = [Run.from_dict(run) for run in json.loads(runs)]
    found = dict(outcomes(group, Path(folder)))
    return [found[run].to_json() if isinstance(found[run], Result) else found[run] for run in group]
