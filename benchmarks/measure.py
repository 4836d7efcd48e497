"""One training step, measured: in turns with others, in parts, its memory, and what it consists of.

Processor time of one thread, since other processes lengthen the wall's; both are kept.
"""

from __future__ import annotations

import itertools
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import machine
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from companion.experiments import build_task
from companion.experiments.adam import PopulationAdam
from companion.experiments.cost import VIEWS
from companion.experiments.step import Step, choose_execution
from companion.experiments.task import Batch
from companion.models import ModelConfig, Population, SequenceModel, build

BOUT = 0.08  # seconds that one contender steps before the next has its turn
LONG = 0.4  # seconds; longer steps are repeated in fewer rounds, but in
FEWEST = 3  # at least
PATIENT = 2.0  # seconds of a first step after which no second one is waited for
LAST, ALL = "last", "all"  # rows whose answers are asked for


class Sizes(NamedTuple):
    """What a step is made of."""

    length: int  # T, tokens of a sequence
    depth: int = 1
    width: int = 64
    batch: int = 64
    heads: int = 4

    def task(self):
        """Index Lookup: T - 1 symbols and a query."""
        return build_task("index-lookup", self.length - 1, 64)

    def model(self, name: str, device: str, seed: int = 0) -> SequenceModel:
        task = self.task()
        config = ModelConfig(
            vocab=task.vocab, classes=task.classes, width=self.width, depth=self.depth,
            heads=self.heads, max_len=self.length,
        )  # fmt: skip
        return build(name, config, rng=torch.Generator().manual_seed(seed)).to(device)

    def data(self, device: str) -> Batch:
        rng = torch.Generator(device).manual_seed(0)
        return self.task().sample(self.batch, rng=rng, exact=True)


class Training:
    """A model, its Adam and a batch. `rows`: whether the task's question is answered, after the
    last symbol, or one after every symbol, for which each symbol is its own answer."""

    def __init__(self, module: nn.Module, data: Batch, rows: str) -> None:
        self.module, self.data, self.rows = module, data, rows
        self.optimizer = torch.optim.Adam(module.parameters(), lr=1e-3, fused=True)

    def loss(self) -> Tensor:
        tokens, read, targets = self.data
        if self.rows == ALL:
            logits = self.module(tokens)
            targets = tokens % logits.shape[-1]
        elif getattr(self.module, "reads", False):
            logits = self.module(tokens, read)
        else:
            logits = self.module(tokens)
            logits = logits.gather(1, read[..., None].expand(*read.shape, logits.shape[-1]))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def step(self) -> None:
        loss = self.loss()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def together(name: str, sizes: Sizes, device: str, members: int) -> Step:
    """A step of so many of our models as one program, as `companion sweep` takes it: on a GPU from
    a CUDA graph."""
    models = [sizes.model(name, device, seed) for seed in range(members)]
    model = models[0] if members == 1 else Population(models)
    alone = sizes.data(device)
    data = alone if members == 1 else Batch(*(torch.stack([x] * members) for x in alone))
    rates = torch.full(() if members == 1 else (members,), 1e-3, device=device)
    optimizer = PopulationAdam(model.parameters(), rates)
    return Step(
        model, optimizer, lambda: data, [], choose_execution(torch.device(device), together=True)
    )


def in_turns(steps: dict[str, Callable], device: str, rounds: int) -> dict[str, dict]:
    """Milliseconds of each step, least and median; every round is a turn for each of `steps`."""
    counts, last = {}, {}
    for name, step in steps.items():
        step()
        start = machine.clock(device)
        step()
        seconds = max(1e-6, machine.clock(device) - start)
        counts[name] = max(1, min(200, int(BOUT / seconds)))
        last[name] = max(FEWEST, int(rounds * LONG / seconds))
    found = {name: [] for name in steps}
    for turn in range(rounds):
        for name, step in steps.items():
            if turn < last[name]:
                found[name].append(_bout(step, counts[name], device))
    return {name: summary(times) for name, times in found.items()}


def _bout(step: Callable, many: int, device: str) -> tuple[float, float, int]:
    start, wall = machine.clock(device), time.perf_counter()
    for _ in range(many):
        step()
    own = machine.clock(device) - start
    return own / many, (time.perf_counter() - wall) / many, many


def summary(times: list[tuple[float, float, int]]) -> dict:
    """Least and median of (seconds, seconds of the wall, steps), in ms."""
    own, wall, many = zip(*times, strict=True)
    summary = {"steps": sum(many)}
    for name, values in (("ms", own), ("wall_ms", wall)):
        summary[name] = round(1e3 * min(values), 4)
        summary[f"{name}_median"] = round(1e3 * statistics.median(values), 4)
    return summary


def parts(name: str, sizes: Sizes, device: str, steps: int) -> dict[str, float]:
    """Milliseconds of each part of our training step, least of `steps`."""
    model, task, times = sizes.model(name, device), sizes.task(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    rng = torch.Generator(device).manual_seed(0)
    for _ in range(steps + 1):
        marks = [machine.clock(device)]
        tokens, read, targets = task.sample(sizes.batch, rng=rng)
        marks.append(machine.clock(device))
        logits, _ = model(tokens, read=read)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        marks.append(machine.clock(device))
        optimizer.zero_grad()
        loss.backward()
        marks.append(machine.clock(device))
        optimizer.step()
        marks.append(machine.clock(device))
        times.append([1e3 * (b - a) for a, b in itertools.pairwise(marks)])
    least = [round(min(column), 4) for column in zip(*times[1:], strict=True)]
    return dict(zip(("data", "forward", "backward", "optimiser"), least, strict=True))


class Traffic(TorchDispatchMode):
    """Counts operations, and the bytes they read and write; views are free."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = self.bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func.name().split("::")[-1].split(".")[0] not in VIEWS:
            self.operations += 1
            # a place counts once as read and once as written, an expanded one as it lies there
            for side in ((args, kwargs or {}), result):
                self.bytes += sum({x.data_ptr(): _held(x) for x in _tensors(side)}.values())
        return result


def _held(x: Tensor) -> int:
    return min(x.numel() * x.itemsize, x.untyped_storage().nbytes())


def _tensors(tree) -> list[Tensor]:
    return [x for x in torch.utils._pytree.tree_leaves(tree) if isinstance(x, Tensor)]


def contents(training: Training, sizes: Sizes) -> dict[str, int]:
    """Operations, FLOPs of matrix products, and bytes read and written, of one step."""
    training.step()  # Adam makes its moments at the first
    with FlopCounterMode(display=False) as flops:
        training.step()
    with Traffic() as traffic:
        training.step()
    total = flops.get_total_flops()
    for module in training.module.modules():
        if isinstance(module, nn.LSTM):  # one operation, whose products are not seen
            products = 8 * module.hidden_size * (module.input_size + module.hidden_size)
            total += 3 * products * module.num_layers * sizes.batch * sizes.length
    return {"operations": traffic.operations, "flops": total, "bytes": traffic.bytes}


def memory(make: Callable[[], Training], device: str) -> dict[str, float]:
    """MiB that making a contender and two steps add at their peak, to be called in a process of
    its own; seconds of the last step, and the parameters."""
    _a_step(device)  # what the first step of any model loads is not this one's
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    before = _forget_peak()
    training = make()
    for _ in range(2):
        start = machine.clock(device)
        training.step()
        seconds = machine.clock(device) - start
        if seconds > PATIENT:
            break
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else _peak() - before
    count = sum(p.numel() for p in training.module.parameters())
    return {"memory_mib": round(peak / 2**20, 1), "seconds": seconds, "parameters": count}


def _a_step(device: str) -> None:
    lstm = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.LSTM(8, 8)).to(device)
    y, _ = lstm(torch.ones(4, 4, 8, device=device))
    F.cross_entropy(y[0], torch.zeros(4, dtype=torch.int64, device=device)).backward()
    torch.optim.Adam(lstm.parameters(), fused=True).step()


def _forget_peak() -> int:
    """Set the peak of this process to what it holds now, where the system can; the peak, bytes."""
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")
    return _peak()


def _peak() -> int:
    """The most that this process has held, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return 1024 * int(lines[0].split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Failed(Exception):
    """A measurement that did not come about; the reason in one line."""


def alone(act: Callable[[], dict], device: str, patience: float) -> dict:
    """What `act` returns, in a process of its own; on CUDA, which bears no fork, in this one.

    Raises Failed if it raises an error, dies, or takes longer than `patience` seconds.
    """
    if device == "cuda":
        return _tried(act)[1]
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=lambda: there.send(_tried(act, raises=False)), daemon=True)
    child.start()
    there.close()
    try:
        if not here.poll(patience):
            raise Failed(f"did not end within {patience:.0f} s")
        good, found = here.recv()
    except EOFError:
        child.join()
        raise Failed(f"its process ended with {child.exitcode}") from None
    finally:
        child.kill()
        child.join()
    if not good:
        raise Failed(found)
    return found


def _tried(act: Callable[[], dict], raises: bool = True) -> tuple[bool, dict | str]:
    try:
        return True, act()
    except Exception as error:  # whatever a peer may raise is a reason to report
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        reason = f"{kind}{error}".splitlines()[0][:200]
        if raises:
            raise Failed(reason) from error
        return False, reason
