"""Where a result came from: versions, commit, machine."""

from __future__ import annotations

import platform
import subprocess
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import torch

import companion
from companion.experiments.device import Device


def checkout() -> Path | None:
    """The repository this package is imported from, or None if it was installed from a wheel."""
    root = Path(companion.__file__).resolve().parents[2]
    return root if (root / "pyproject.toml").is_file() else None


@cache
def commit() -> str | None:
    """The commit of the checkout, "+" added if the package has changed since; None if unknown."""
    root = checkout()
    if root is None:
        return None
    try:
        head = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "src", "pyproject.toml")
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+" if changed else "")


def provenance(place: Device, threads: int) -> dict[str, Any]:
    """All that is needed to explain a number that differs elsewhere."""
    cuda = place.device.type == "cuda"
    return {
        "companion": companion.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(place.device) if cuda else place.device.type,
        "machine": f"{platform.system()} {platform.machine()}",
        "dtype": str(place.dtype).removeprefix("torch."),
        "threads": threads,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
    }


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()
