"""What a run costs: measured on this machine, or worked out for a GPU from counted operations.

Measured: seconds of a step here, operations and multiplications of a step (counted, not modelled).
Estimated: everything said of a GPU. A step there takes as long as its slowest part, of these two:

    operations × LAUNCH        at these sizes a kernel is mostly started, hardly computing
    FLOPs / (peak × UTILISED)  what counts for wide models on long sequences
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from companion.experiments.device import choose_device, cpu_settings
from companion.experiments.run import Run
from companion.experiments.train import Training

LAUNCH = 6e-6  # seconds for one operation started from Python, estimated
UTILISED = 0.3  # share of the peak that small matrices reach, estimated
PEAK = {"T4": 8.1e12, "A100": 19.5e12, "H100": 67e12}  # FLOP/s in float32, from the makers' sheets
VIEWS = ("view", "reshape", "transpose", "permute", "expand", "slice", "select", "split", "t",
         "unsqueeze", "squeeze", "alias", "detach", "as_strided", "unbind", "chunk",
         "_unsafe_view")  # fmt: skip


class Cost(NamedTuple):
    """What one training step consists of."""

    operations: int  # started by forward, backward and optimiser; views are free
    flops: int  # of matrix products, two for a multiplication and an addition


def cost(run: Run) -> Cost:
    """The cost of one step of `run`, counted on a step with one example.

    >>> run = Run(task="index-lookup", length=20, model="transformer")
    >>> deep = cost(run.replace(depth=3)).operations - cost(run.replace(depth=2)).operations
    >>> deep == cost(run.replace(depth=9)).operations - cost(run.replace(depth=8)).operations
    True

    Operations do not depend on the batch and FLOPs are proportional to it; both grow by the same
    amount with every further layer, so two and three layers tell of all.
    """
    setting = run.replace(seed=0, learning_rate=1e-3, steps=1, heads=1, batch=1, validate=1)
    if run.depth <= 3:
        counted = _count(setting)
    else:
        two, three = _count(setting.replace(depth=2)), _count(setting.replace(depth=3))
        more = run.depth - 2
        counted = Cost(*(a + more * (b - a) for a, b in zip(two, three, strict=True)))
    return Cost(counted.operations, counted.flops * run.batch)


def gpu_hours(runs: Iterable[Run], gpu: str) -> float:
    """Hours that `runs` take one after another on a GPU of this class, an estimate from above: no
    run stops early.

    >>> runs = [Run(task="index-lookup", length=20, model="transformer", steps=n) for n in (1, 2)]
    >>> gpu_hours(runs, "A100") == 3 * gpu_hours(runs[:1], "A100")
    True

    Raises ValueError for a class that is not in `PEAK`.
    """
    if gpu not in PEAK:
        raise ValueError(f"got gpu {gpu!r}, expected one of: {', '.join(PEAK)}")
    seconds = 0.0
    for run in runs:
        operations, flops = cost(run)
        seconds += run.steps * max(operations * LAUNCH, flops / (PEAK[gpu] * UTILISED))
    return seconds / 3600


def measure(run: Run, *, seconds: float = 0.3) -> float:
    """Seconds of one training step of `run` on this machine: the fastest of those that fit into
    `seconds`, after one that warms up, and of one at least.
    """
    with cpu_settings():
        training = Training(run.replace(validate=1), choose_device())
        training.advance(1)
        fastest, ends = float("inf"), time.perf_counter() + seconds
        while True:
            started = time.perf_counter()
            training.advance(1)
            fastest = min(fastest, time.perf_counter() - started)
            if time.perf_counter() >= ends:
                return fastest


def expected(runs: Iterable[Run]) -> float:
    """Seconds that `runs` take one after another on this machine if none stops early; one step of
    each setting is measured, in about a third of a second.
    """
    steps: dict[Run, int] = {}
    for run in runs:
        setting = run.replace(seed=0, learning_rate=1e-3, schedule="constant", steps=1)
        steps[setting] = steps.get(setting, 0) + run.steps
    return sum(n * measure(setting) for setting, n in steps.items())


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
def _count(run: Run) -> Cost:
    training = Training(run, choose_device())
    training.advance(1)  # the optimiser makes its moments at the first step
    with FlopCounterMode(display=False) as flops:
        training.advance(1)
    with _Operations() as operations:
        training.advance(1)
    steps, extra = training.task.max_len, [0, 0]
    for module in training.model.modules():
        if isinstance(module, nn.LSTM):  # one operation on a CPU; on a GPU one kernel a symbol
            products = 2 * 4 * module.hidden_size * (module.input_size + module.hidden_size)
            extra[0] += 3 * 2 * steps * module.num_layers
            extra[1] += 3 * products * steps * module.num_layers
    return Cost(operations.count + extra[0], flops.get_total_flops() + extra[1])
