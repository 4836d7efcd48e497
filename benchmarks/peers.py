"""Published implementations: installed beside the environment, and loaded so that they run here.

What is imported here stays in the process. mamba-ssm, loaded without its kernels, looks usable to
others, so transformers comes first where both are wanted.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
from torch import nn

PINS = Path(__file__).with_suffix(".txt")
FOLDER = Path(__file__).parents[1] / "_build" / "peers"


def install(folder: Path = FOLDER, *, fetch: bool = True) -> str | None:
    """Make `folder`, with what `peers.txt` pins, importable; the reason if that failed.

    It comes last on the path, so the environment's own packages win. Without `fetch` what lies in
    the folder is used as it is.
    """
    stamp, reason = folder / "peers.txt", None
    pins = PINS.read_text(encoding="utf8")
    if fetch and (not stamp.exists() or stamp.read_text(encoding="utf8") != pins):
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        pip += ["--retries", "1", "--timeout", "5"]  # without a network, say so soon
        target = ["--no-deps", "--no-compile", "--upgrade", "--target", str(folder)]
        done = subprocess.run([*pip, *target, "-r", str(PINS)], capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        else:
            stamp.write_text(pins, encoding="utf8")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return reason


def mamba_ssm() -> type[nn.Module]:
    """`Mamba` of the package mamba-ssm, with its reference scan in the place of its CUDA kernels.

    Instances map (B, T, D) to (B, T, D); parameters have the names and shapes of
    `companion.models.mamba.SelectiveScan`. The package imports compiled kernels, Triton and
    transformers as soon as it is imported. So that none of them is needed, its top level is passed
    over and two of its modules are stood in for by empty ones.

    Raises ImportError if the package is not installed.
    """
    spec = importlib.util.find_spec("mamba_ssm")
    if spec is None:
        raise ImportError(
            "got no package mamba_ssm, expected it beside torch: make book installs it"
        )
    if not hasattr(sys.modules.get("mamba_ssm"), "Mamba"):  # else it is there, kernels and all
        top = ModuleType("mamba_ssm")
        top.__path__ = list(spec.submodule_search_locations)
        norms = ModuleType("mamba_ssm.ops.triton.layer_norm")
        norms._layer_norm_fwd = norms.RMSNorm = norms.layer_norm_fn = norms.rms_norm_fn = None
        kernels = ModuleType("selective_scan_cuda")
        sys.modules.update({module.__name__: module for module in (top, norms, kernels)})
    scan = importlib.import_module("mamba_ssm.ops.selective_scan_interface")
    return _with_scan(scan.selective_scan_ref, use_fast_path=False)


def mamba_kernels() -> type[nn.Module]:
    """The same with its CUDA kernels. Raises ImportError where there are none."""
    _need_cuda()
    importlib.import_module("mamba_ssm")
    scan = importlib.import_module("mamba_ssm.ops.selective_scan_interface")
    return _with_scan(scan.selective_scan_fn)


def _with_scan(scan: Callable, **options) -> type[nn.Module]:
    """mamba-ssm's `Mamba` with this scan; the module that defines it has one for all."""
    simple = importlib.import_module("mamba_ssm.modules.mamba_simple")
    if not torch.cuda.is_available():
        simple.selective_state_update = None  # `step` then takes the path without a kernel

    class Mamba(simple.Mamba):
        def __init__(self, width: int, **more) -> None:
            super().__init__(width, **options, **more)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            simple.selective_scan_fn = scan
            return super().forward(x)

    return Mamba


def mambapy() -> type[nn.Module]:
    """`MambaBlock` of the package mambapy, made from a width alone."""
    module = importlib.import_module("mambapy.mamba")

    class MambaBlock(module.MambaBlock):
        def __init__(self, width: int) -> None:
            super().__init__(module.MambaConfig(d_model=width, n_layers=1))

    return MambaBlock


def transformers() -> ModuleType:
    """Hugging Face's package, without its advice on what else to install."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    return importlib.import_module("transformers")


def fla_naive(name: str) -> ModuleType:
    """`fla/ops/NAME/naive.py` of flash-linear-attention: its definitions in plain PyTorch.

    Loaded by its path, since the package itself needs Triton and a GPU to be imported.
    """
    spec = importlib.util.find_spec("fla")
    if spec is None:
        raise ImportError("got no package fla, expected fla-core in _build/peers")
    path = Path(spec.submodule_search_locations[0]) / "ops" / name / "naive.py"
    spec = importlib.util.spec_from_file_location(f"fla_naive_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fla_kernels(name: str) -> ModuleType:
    """`fla.ops.NAME` with its Triton kernels. Raises ImportError where there is no GPU."""
    _need_cuda()
    return importlib.import_module(f"fla.ops.{name}")


def _need_cuda() -> None:
    if not torch.cuda.is_available():
        raise ImportError("needs a CUDA GPU")
