"""One training step: draw examples, forward, backward, Adam. As it is, or as one CUDA graph.

At width 64 a GPU computes a step in less time than Python takes to start its operations. A graph
holds them all, the drawing of the examples included, and is started at once; for that, no shape may
depend on the data and nothing in a step may wait for the host.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.experiments.adam import PopulationAdam
from companion.experiments.task import NOTHING, Batch

MODES = ("eager", "graph", "compile")
WARM_UP = 3  # steps taken before a graph is captured: kernels are chosen and memory is laid out


class Execution(NamedTuple):
    """How steps are executed, and why: one sentence to print.

    >>> print(choose_execution(torch.device("cpu"), together=True))
    eager: on a CPU arithmetic takes the time, and compiling more than it saves
    """

    mode: str
    reason: str

    def __str__(self) -> str:
        return f"{self.mode}: {self.reason}"


def choose_execution(device: torch.device, *, together: bool) -> Execution:
    """A CUDA graph for populations on a CUDA GPU, which `together` says, else one operation after
    another; COMPANION_STEP overrides.

    "compile" hands the model to `torch.compile`; it is never chosen by itself, since it takes half
    a minute or more for each model and length.

    Raises ValueError if COMPANION_STEP is not one of eager, graph, compile, or asks for a graph
    where there is no CUDA GPU.
    """
    wanted, graphs = os.environ.get("COMPANION_STEP", ""), device.type == "cuda"
    if wanted and wanted not in MODES:
        raise ValueError(f"got COMPANION_STEP={wanted!r}, expected one of: {', '.join(MODES)}")
    if wanted == "graph" and not graphs:
        raise ValueError(f"got COMPANION_STEP='graph' on {device.type}, expected a CUDA GPU")
    if wanted:
        return Execution(wanted, f"COMPANION_STEP={wanted} is set")
    if graphs and together:
        return Execution("graph", "on a GPU starting the operations one by one takes the time")
    if graphs:
        return Execution("eager", "a single run is short; populations take a CUDA graph")
    reason = "on a CPU arithmetic takes the time, and compiling more than it saves"
    return Execution("eager", reason)


class Step:
    """Called once a step; returns the loss before it in nats, (P,) for a population, else ().

    `sample` draws the examples, with `generators`. The tensor returned may be overwritten by the
    next call.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: PopulationAdam | torch.optim.Optimizer,
        sample: Callable[[], Batch],
        generators: Iterable[torch.Generator],
        execution: Execution,
    ) -> None:
        self.model = torch.compile(model) if execution.mode == "compile" else model
        self.optimizer, self.sample, self.generators = optimizer, sample, list(generators)
        self.execution, self.taken = execution, 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> Tensor:
        self.taken += 1
        if self.execution.mode != "graph":
            return self.take()
        if self.taken <= WARM_UP:
            return self._beside()
        if self.graph is None:
            self._capture()
        self.graph.replay()
        return self.loss

    def take(self) -> Tensor:
        """The step itself."""
        batch = self.sample()
        logits, _ = self.model(batch.tokens, read=batch.read)
        losses = cross_entropy(logits, batch.targets)
        self.optimizer.zero_grad()
        losses.sum().backward()  # members share no parameter, so each gets its own gradient
        self.optimizer.step()
        return losses.detach()

    def _beside(self) -> Tensor:
        """The step on a stream of its own, as those before a capture must be."""
        own, stream = torch.cuda.current_stream(), torch.cuda.Stream()
        stream.wait_stream(own)
        with torch.cuda.stream(stream):
            loss = self.take()
        own.wait_stream(stream)
        return loss

    def _capture(self) -> None:
        """Record the operations of a step; none is executed."""
        self.graph = torch.cuda.CUDAGraph()
        for rng in self.generators:
            self.graph.register_generator_state(rng)
        try:
            with torch.cuda.graph(self.graph):
                self.loss = self.take()
        except RuntimeError as error:
            raise RuntimeError(
                f"got a step that no CUDA graph can hold ({error}); COMPANION_STEP=eager trains "
                "without one"
            ) from error


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean over the answers that are due; one for each member if there is an axis P in front.

    >>> targets = torch.tensor([[[0], [1]], [[0], [NOTHING]]])
    >>> [round(x, 3) for x in cross_entropy(torch.zeros(2, 2, 1, 2), targets).tolist()]
    [0.693, 0.693]
    """
    if targets.ndim == 2:
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    each = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none")
    due = (targets != NOTHING).flatten(1).sum(1)
    return each.view(len(targets), -1).sum(1) / due
