"""The runs of a sweep on a Ray cluster: `pip install companion[cluster]`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from companion.experiments.result import Result
from companion.experiments.run import Run
from companion.experiments.store import checkpoint_path, save
from companion.experiments.train import train

GPU_SHARE = 0.25  # of a GPU for one run: at width 64 four share it without getting in the way


def on_ray(
    runs: list[Run], folder: Path, *, address: str, workers: int, gpus: float = GPU_SHARE
) -> Iterator[tuple[Run, Result | Exception]]:
    """Train `runs` on a Ray cluster and yield each with its result, or the error it raised.

    `address`: "local" starts `workers` workers on this machine; "auto" or "host:port" joins a
    cluster, whose size then limits how many run at once. `gpus`: the share of a GPU that a run
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
        waiting = {remote.remote(json.dumps(run.to_dict()), str(folder)): run for run in runs}
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            run = waiting.pop(done)
            try:
                result = Result.from_json(ray.get(done))
            except Exception as error:
                yield run, error
                continue
            save(result, folder)
            checkpoint_path(run, folder).unlink(missing_ok=True)
            yield run, result
    finally:
        ray.shutdown()


def _train(run: str, folder: str) -> str:
    """On a worker: the result of a run, both as JSON. Its checkpoint stays till that is stored."""
    os.environ["COMPANION_THREADS"] = "1"
    asked = Run.from_dict(json.loads(run))
    return train(asked, progress=False, checkpoint=checkpoint_path(asked, folder)).result.to_json()
