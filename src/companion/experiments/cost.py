"""What a run costs: measured on this machine, or worked out for a GPU from counted operations.

Measured: seconds of a step here, operations and multiplications of a step (counted, not modelled).
Estimated: everything said of a GPU. A step there takes as long as its slowest part, of these two:

    operations × LAUNCH        at these sizes a kernel is mostly started, hardly computing
    FLOPs / (peak × UTILISED)  what counts for wide models on long sequences

A population has the FLOPs of all its members, but hardly more operations than one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from companion.experiments.device import Device, choose_device, cpu_settings
from companion.experiments.run import Run
from companion.experiments.step import WARM_UP
from companion.experiments.training import Training
from companion.models import mamba
from companion.models.scan import Scan

LAUNCH = 3e-6  # seconds for one operation in a CUDA graph, estimated
UTILISED = 0.3  # share of the peak that small matrices reach, estimated
PEAK = {"T4": 8.1e12, "A100": 19.5e12, "H100, H200": 67e12}  # FLOP/s in float32, makers' sheets
NARROW = 16  # coordinates of a model whose operations are counted
VIEWS = ("view", "reshape", "transpose", "permute", "expand", "slice", "select", "split", "t",
         "unsqueeze", "squeeze", "alias", "detach", "as_strided", "unbind", "chunk",
         "_unsafe_view")  # fmt: skip


class Cost(NamedTuple):
    """What one training step consists of."""

    operations: int  # started by forward, backward and optimiser; views are free
    flops: int  # of matrix products, two for a multiplication and an addition


def cost(run: Run, *, members: int = 1) -> Cost:
    """The cost of one step of `run`, or of `members` such runs as a population; counted on a step
    with one example.

    >>> run = Run(task="index-lookup", length=20, model="transformer")
    >>> deep = cost(run.replace(depth=3)).operations - cost(run.replace(depth=2)).operations
    >>> deep == cost(run.replace(depth=9)).operations - cost(run.replace(depth=8)).operations
    True

    Operations do not depend on width and batch, nor on how many members a population has, and FLOPs
    are proportional to batch and members; both grow by the same amount with every further layer, so
    one and two layers tell of all. Mamba's scan counts as the kernels that it is on a GPU.
    """
    setting = run.replace(seed=0, learning_rate=1e-3, steps=1, heads=1, batch=1, validate=1)
    narrow = setting if run.positions == "one-hot" else setting.replace(width=NARROW)

    def in_layers(count: Callable[[int], int]) -> int:
        if run.depth <= 2:
            return count(run.depth)
        return count(1) + (run.depth - 1) * (count(2) - count(1))

    return Cost(
        in_layers(lambda depth: _operations(narrow.replace(depth=depth), min(members, 2))),
        in_layers(lambda depth: _flops(setting.replace(depth=depth))) * run.batch * members,
    )


def gpu_hours(groups: Iterable[Sequence[Run]], gpu: str) -> float:
    """Hours that groups of runs take on a GPU of this class, one group after another and the runs
    of a group together; an estimate from above: no run stops early.

    >>> run = Run(task="index-lookup", length=20, model="transformer")
    >>> runs = [run.replace(seed=seed) for seed in range(20)]
    >>> alone, together = gpu_hours([[run] for run in runs], "A100"), gpu_hours([runs], "A100")
    >>> together < alone / 8
    True

    Raises ValueError for a class that is not in `PEAK`.
    """
    if gpu not in PEAK:
        raise ValueError(f"got gpu {gpu!r}, expected one of: {', '.join(PEAK)}")
    seconds = 0.0
    for runs in groups:
        operations, flops = cost(runs[0], members=len(runs))
        seconds += runs[0].steps * max(operations * LAUNCH, flops / (PEAK[gpu] * UTILISED))
    return seconds / 3600


def measure(runs: Sequence[Run], *, seconds: float = 0.3) -> float:
    """Seconds of one training step of a group of runs on this machine: the fastest of those that
    fit into `seconds`, after those that warm up, and of one at least.
    """
    with cpu_settings():
        training = Training([run.replace(validate=1) for run in runs], choose_device())
        training.advance(WARM_UP + 1)
        fastest, ends = float("inf"), time.perf_counter() + seconds
        while True:
            started = time.perf_counter()
            training.advance(1)
            fastest = min(fastest, time.perf_counter() - started)
            if time.perf_counter() >= ends:
                return fastest


def expected(groups: Iterable[Sequence[Run]]) -> float:
    """Seconds that groups of runs take one after another on this machine if no run stops early; a
    step of each kind of group is measured, in about a third of a second.
    """
    kinds: dict[tuple[Run, int], list[Sequence[Run]]] = {}
    for runs in groups:
        setting = runs[0].replace(seed=0, learning_rate=1e-3, schedule="constant", steps=1)
        kinds.setdefault((setting, len(runs)), []).append(runs)
    return sum(sum(g[0].steps for g in same) * measure(same[0]) for same in kinds.values())


class _Operations(TorchDispatchMode):
    """Counts the operations inside, views excepted."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().split("::")[-1].split(".")[0]
        self.count += name not in VIEWS
        return func(*args, **(kwargs or {}))


@cache
def _operations(run: Run, members: int) -> int:
    training = _warm(run, members)
    with _Operations() as operations, _scan_as_kernels():
        training.advance(1)
    symbols = training.task.max_len
    return operations.count + sum(6 * symbols * m.num_layers for m in _lstms(training.model))


@cache
def _flops(run: Run) -> int:
    training = _warm(run, 1)
    with FlopCounterMode(display=False) as flops, _scan_as_kernels():
        training.advance(1)
    symbols, total = training.task.max_len, flops.get_total_flops()
    for lstm in _lstms(training.model):
        products = 2 * 4 * lstm.hidden_size * (lstm.input_size + lstm.hidden_size)
        total += 3 * products * symbols * lstm.num_layers
    return total


def _warm(run: Run, members: int) -> Training:
    """A training that has taken a step: the optimiser makes its moments at the first."""
    runs = [run.replace(seed=seed) for seed in range(members)]
    place = Device(torch.device("cpu"), torch.float32, "operations are counted")
    training = Training(runs, place)
    with _scan_as_kernels():
        training.advance(1)
    return training


def _lstms(model: nn.Module) -> list[nn.LSTM]:
    """PyTorch's own: one operation on a CPU; on a GPU one kernel a symbol, three times for both
    directions of both products."""
    return [module for module in model.modules() if type(module) is nn.LSTM]


@contextmanager
def _scan_as_kernels() -> Iterator[None]:
    """Inside, Mamba's scan takes as many operations as it has kernels, and computes nothing."""

    def kernel(dt: Tensor, u: Tensor, A: Tensor, B: Tensor, C: Tensor, h: Tensor):
        return dt * u + (B * C).sum(-1, keepdim=True), h * A

    chosen = mamba.choose_scan
    mamba.choose_scan = lambda device: Scan(kernel, "operations are counted")
    try:
        yield
    finally:
        mamba.choose_scan = chosen
