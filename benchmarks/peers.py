"""Published Mamba implementations, loaded so that they run on a CPU.

Each function returns a class whose instances map (B, T, D) to (B, T, D) and whose parameters have
the names and shapes of `companion.models.mamba.SelectiveScan`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from torch import nn


def mamba_ssm() -> type[nn.Module]:
    """`Mamba` of the package mamba-ssm, with its reference scan in the place of its CUDA kernels.

    The package imports compiled kernels, Triton and transformers as soon as it is imported. So that
    none of them is needed, its top level is passed over and two of its modules are stood in for by
    empty ones. Other packages may take mamba-ssm for usable after this: call it in a process of its
    own.

    Raises ImportError if the package is not installed.
    """
    spec = importlib.util.find_spec("mamba_ssm")
    if spec is None:
        raise ImportError(
            "got no package mamba_ssm, expected it beside torch: make book installs it"
        )
    top = ModuleType("mamba_ssm")
    top.__path__ = list(spec.submodule_search_locations)
    norms = ModuleType("mamba_ssm.ops.triton.layer_norm")
    norms._layer_norm_fwd = norms.RMSNorm = norms.layer_norm_fn = norms.rms_norm_fn = None
    kernels = ModuleType("selective_scan_cuda")
    sys.modules.update({module.__name__: module for module in (top, norms, kernels)})
    simple = importlib.import_module("mamba_ssm.modules.mamba_simple")
    scan = importlib.import_module("mamba_ssm.ops.selective_scan_interface")
    simple.selective_scan_fn = scan.selective_scan_ref
    simple.selective_state_update = None  # `step` then takes the path without a kernel
    return simple.Mamba


def mambapy(folder: Path) -> type[nn.Module]:
    """`MambaBlock` of the package mambapy, installed in `folder`, made from a width alone."""
    sys.path.insert(0, str(folder))
    module = importlib.import_module("mambapy.mamba")

    class MambaBlock(module.MambaBlock):
        def __init__(self, width: int) -> None:
            super().__init__(module.MambaConfig(d_model=width, n_layers=1))

    return MambaBlock
