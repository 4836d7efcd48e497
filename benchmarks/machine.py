"""Where a measurement was made: machine, versions, date, load, and the speed of its floor."""

from __future__ import annotations

import datetime
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from companion.experiments.provenance import commit

PACKAGES = "torch", "triton", "transformers", "mambapy", "mamba-ssm", "fla-core", "causal-conv1d"
SIDE = 1024  # of the matrices in the largest product, a few MB each
COPIED = 2**26  # numbers copied at a time: 256 MiB, larger than any cache


def facts(device: str) -> dict:
    """Everything that may explain why another machine gives other numbers."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "device": device,
        "name": torch.cuda.get_device_name() if device == "cuda" else processor(),
        "processor": processor(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": versions,
        "commit": commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
    }


def processor() -> str:
    """The processor's name, where the system tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def load() -> float | None:
    """Processes that wanted to run in the last minute, where the system tells."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def peaks(device: str, seconds: float = 1.0) -> dict[str, float]:
    """FLOP/s of a large product and bytes/s of a large copy, each the best of several."""
    rng = torch.Generator(device).manual_seed(0)
    side = 8 * SIDE if device == "cuda" else SIDE
    a, b = (torch.randn(side, side, generator=rng, device=device) for _ in range(2))
    c, x = torch.empty_like(a), torch.ones(COPIED, device=device)
    y = torch.zeros_like(x)  # written once, so that its pages are there
    product = _least(lambda: torch.mm(a, b, out=c), device, seconds)
    copy = _least(lambda: y.copy_(x), device, seconds)
    return {"flops": 2 * side**3 / product, "bytes": 2 * x.numel() * x.itemsize / copy}


def _least(act: Callable[[], object], device: str, seconds: float) -> float:
    act()
    least, ends = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < ends:
        start = clock(device)
        act()
        least = min(least, clock(device) - start)
    return least


def clock(device: str) -> float:
    """Seconds of this process on a CPU, which other processes do not lengthen; on a GPU those of
    the wall, once it has done all it was asked to."""
    if device != "cuda":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()
