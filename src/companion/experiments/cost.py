"""What a run costs: measured on this machine, or worked out for a GPU from counted operations.

Measured: seconds of a step here, operations and multiplications of a step (counted, not modelled).
Estimated: everything said of a GPU. A step there takes as long as its slowest part, of these two:

    operations × LAUNCH        at these sizes a kernel is mostly started, hardly computing
    FLOPs / (peak × UTILISED)  what counts for wide models on long sequences

A population has the FLOPs of all its members, but hardly more operations than one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from companion.experiments.device import Device, choose_device, cpu_settings
from companion.experiments.run import Run
from companion.experiments.step import WARM_UP
from companion.experiments.training import Training

LAUNCH = 3e-6  # seconds for one operation in a CUDA graph, estimated
UTILISED = 0.3  # share of the peak that small matrices reach, estimated
PEAK = {"T4": 8.1e12, "A100": 19.5e12, "H100, H200": 67e12}  # FLOP/s in float32, makers' sheets
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

    Operations do not depend on the batch, nor on how many members a population has, and FLOPs are
    proportional to both; both grow by the same amount with every further layer, so two and three
    layers tell of all.
    """
    setting = run.replace(seed=0, learning_rate=1e-3, steps=1, heads=1, batch=1, validate=1)
    size = min(members, 2)
    if run.depth <= 3:
        counted = _count(setting, size)
    else:
        two, three = (_count(setting.replace(depth=depth), size) for depth in (2, 3))
        more = run.depth - 2
        counted = Cost(*(a + more * (b - a) for a, b in zip(two, three, strict=True)))
    return Cost(counted.operations, counted.flops * run.batch * members // size)


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
def _count(run: Run, members: int) -> Cost:
    runs = [run.replace(seed=seed) for seed in range(members)]
    training = Training(runs, Device(torch.device("cpu"), torch.float32, "operations are counted"))
    training.advance(1)  # the optimiser makes its moments at the first step
    with FlopCounterMode(display=False) as flops:
        training.advance(1)
    with _Operations() as operations:
        training.advance(1)
    steps, extra = training.task.max_len, [0, 0]
    for module in training.model.modules():
        if type(module) is nn.LSTM:  # one operation on a CPU; on a GPU one kernel a symbol
            products = 2 * 4 * module.hidden_size * (module.input_size + module.hidden_size)
            extra[0] += 3 * 2 * steps * module.num_layers
            extra[1] += 3 * products * steps * module.num_layers
    return Cost(operations.count + extra[0], flops.get_total_flops() + extra[1])
