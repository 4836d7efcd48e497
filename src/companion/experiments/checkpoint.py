"""A training put on disk between two steps, so that a run that is killed goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

FORMAT = "companion-checkpoint-2"


def write(path: str | Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and JSON facts to one safetensors file, whole or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(f"{folder}/a.safetensors", {"w": torch.ones(2)}, {"step": 3})
    ...     tensors, facts = read(f"{folder}/a.safetensors")
    >>> tensors["w"].tolist(), facts
    ([1.0, 1.0], {'step': 3})
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    metadata = {"format": FORMAT, "facts": json.dumps(facts)}
    # A copy of each: tensors that share their memory, such as tied weights, are refused otherwise.
    save_file({k: v.detach().cpu().clone() for k, v in tensors.items()}, draft, metadata)
    with draft.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(draft, path)


def read(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and facts of a file that `write` made.

    Raises ValueError, naming the file, for one that is damaged or that something else wrote.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            found = metadata.get("format")
            if found != FORMAT:
                raise ValueError(f"{path}: got format {found!r}, expected {FORMAT!r}")
            return {k: file.get_tensor(k) for k in file.keys()}, json.loads(metadata["facts"])
    except SafetensorError as error:
        raise ValueError(f"{path}: got no whole safetensors file ({error})") from error


def pack_optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The moments of every parameter, as tensors named "parameter number.moment"."""
    state = optimizer.state_dict()["state"]
    return {f"{i}.{name}": x for i, moments in state.items() for name, x in moments.items()}


def unpack_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """The inverse of `pack_optimizer`, into an optimizer of the same parameters."""
    content = optimizer.state_dict()
    content["state"] = {}
    for name, x in tensors.items():
        i, moment = name.split(".")
        content["state"].setdefault(int(i), {})[moment] = x
    optimizer.load_state_dict(content)


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names start with `prefix` and a dot, without these.

    >>> part({"a.b.c": torch.zeros(1), "x.b": torch.ones(1)}, "a")
    {'b.c': tensor([0.])}
    """
    cut = len(prefix) + 1
    return {k[cut:]: v for k, v in tensors.items() if k.startswith(f"{prefix}.")}
