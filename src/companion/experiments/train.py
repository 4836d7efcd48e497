"""Training one run: Adam, a fresh batch at every step, checks on fixed examples of length N."""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import fields
from typing import NamedTuple

import torch
import torch.nn.functional as F

from companion.experiments.device import Device, choose_device, cpu_settings
from companion.experiments.progress import Progress
from companion.experiments.provenance import provenance
from companion.experiments.result import Check, Result, Score
from companion.experiments.run import Run
from companion.experiments.task import Batch, Task
from companion.models import SequenceModel, build

AT_ONCE = 250  # examples per forward pass when nothing is learned; bounds the memory


class Trained(NamedTuple):
    """A model with the weights of its best check, and the result of its run."""

    model: SequenceModel
    result: Result


def train(run: Run, *, progress: bool = True, device: Device | None = None) -> Trained:
    """Train `run` and measure it on fresh examples of length exactly N.

    >>> run = Run(task="index-lookup", length=2, model="transformer", alphabet=2, steps=300)
    >>> model, result = train(run.replace(width=16, learning_rate=1e-2), progress=False)
    >>> result.status, result.best.accuracy > 0.99
    ('reached', True)

    `progress`: show a bar or line where there is a terminal or notebook. `device`: by default that
    of `choose_device`. The run ends early when two checks in a row reach `run.stop_at`, or when the
    loss is no longer a finite number (status "diverged"). On a CPU equal runs give equal results,
    whatever else draws random numbers meanwhile.
    """
    place = choose_device() if device is None else device
    with cpu_settings() as threads, Progress(run.steps, label(run), show=progress) as bar:
        started, cpu_started = time.perf_counter(), time.process_time()
        training = Training(run, place)
        status = training.fit(bar)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu_started
        final, best = training.scores()
        result = Result(
            run=run,
            status=status,
            steps=training.step,
            curve=training.curve,
            final=final,
            best=best,
            best_step=training.best_step,
            seconds=round(seconds, 2),
            cpu_seconds=round(cpu, 2),
            provenance=provenance(place, threads.count),
        )
        bar.finish(summary(result))
    return Trained(training.model, result)


class Training:
    """The state of a training between two steps: model, optimiser, generators, curve so far."""

    def __init__(self, run: Run, place: Device) -> None:
        self.run, self.device = run, place.device
        self.task: Task = run.build_task()
        model = build(run.model, run.model_config(), rng=generator(run.seed, "model"))
        self.model = model.to(place.device, place.dtype)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            lr=run.learning_rate,
            fused=place.device.type in ("cpu", "cuda"),
        )
        self.rng = self._generator("data")
        self.validation = self.task.sample(
            run.validate, rng=self._generator("validation"), exact=True
        )
        self.step, self.curve = 0, []
        self.best_step, self.best_accuracy, self.best_weights = 0, -1.0, self._weights()

    def fit(self, bar: Progress) -> str:
        """Take steps until the run ends; how it ended, as in `Result.status`."""
        while self.step < self.run.steps:
            loss = self.advance(min(self.run.check_every, self.run.steps - self.step))
            check = Check(self.step, round(loss, 6), self._validate())
            self.curve.append(check)
            bar.update(self.step, loss=check.loss, accuracy=check.accuracy)
            if not math.isfinite(loss):
                return "diverged"
            if check.accuracy >= self.best_accuracy:  # of equals the later, trained longer
                self.best_step, self.best_accuracy = self.step, check.accuracy
                self.best_weights = self._weights()
            last = [c.accuracy for c in self.curve[-2:]]
            if len(last) == 2 and min(last) >= self.run.stop_at:
                return "reached"
        return "finished"

    def advance(self, steps: int) -> float:
        """Take `steps` steps; their mean loss in nats."""
        total = torch.zeros((), device=self.device)
        for _ in range(steps):
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate(self.run, self.step)
            tokens, read, targets = self.task.sample(self.run.batch, rng=self.rng)
            logits, _ = self.model(tokens, read=read)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.detach()  # read once per check: a GPU is not made to wait at every step
            self.step += 1
        return total.item() / steps

    def scores(self) -> tuple[Score, Score]:
        """Accuracy on fresh examples with the last and with the best weights, which stay loaded."""
        final = self._evaluate()
        if self.best_step == self.step:
            return final, final
        self.model.load_state_dict(self.best_weights)
        return final, self._evaluate()

    def _evaluate(self) -> Score:
        return evaluate(self.model, self.task, self.run.evaluate, rng=self._generator("evaluation"))

    def _validate(self) -> float:
        return count_correct(self.model, self.validation) / self.validation.targets.numel()

    def _weights(self) -> dict[str, torch.Tensor]:
        return {name: x.detach().clone() for name, x in self.model.state_dict().items()}

    def _generator(self, purpose: str) -> torch.Generator:
        return generator(self.run.seed, purpose, self.device)


def learning_rate(run: Run, step: int) -> float:
    """The rate of step `step`, counted from 0: constant, or half a cosine down to zero."""
    if run.schedule == "constant":
        return run.learning_rate
    return run.learning_rate * (1 + math.cos(math.pi * step / run.steps)) / 2


def generator(seed: int, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
    """An independent stream of random numbers for each seed and purpose.

    >>> a, b = generator(0, "data"), generator(0, "model")
    >>> a.initial_seed() == b.initial_seed()
    False
    """
    digest = hashlib.sha256(f"{purpose} {seed}".encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:7], "little"))


def evaluate(model: SequenceModel, task: Task, examples: int, *, rng: torch.Generator) -> Score:
    """The model's answers to fresh examples of length exactly N."""
    batch = task.sample(examples, rng=rng, exact=True)
    return Score(count_correct(model, batch), batch.targets.numel())


@torch.no_grad()
def count_correct(model: SequenceModel, batch: Batch) -> int:
    """How many answers are right. An answer with a logit that is not finite is wrong."""
    correct = 0
    for part in zip(*(x.split(AT_ONCE) for x in batch), strict=True):
        tokens, read, targets = part
        logits, _ = model(tokens, read=read)
        right = (logits.argmax(-1) == targets) & logits.isfinite().all(-1)
        correct += int(right.sum())
    return correct


def label(run: Run) -> str:
    """Model, task and length, and what of the model is not as it is by default.

    >>> label(Run(task="index-lookup", length=20, model="lstm", width=8))
    'lstm (width 8) on index-lookup, N = 20'
    """
    default = {field.name: field.default for field in fields(Run)}
    sizes = {
        "width": f"width {run.width}",
        "depth": f"{run.depth} layers",
        "heads": f"{run.heads} heads",
        "positions": f"{run.positions} positions",
        "tied": "tied",
    }
    told = [text for name, text in sizes.items() if getattr(run, name) != default[name]]
    model = f"{run.model} ({', '.join(told)})" if told else run.model
    return f"{model} on {run.task}, N = {run.length}"


def summary(result: Result) -> str:
    """One line: how the run ended and how good it was."""
    ended = {"reached": "done", "finished": "all steps taken", "diverged": "DIVERGED"}
    text = f"{ended[result.status]} after {result.steps:,} steps, {result.seconds:.0f} s: "
    text += f"{result.final} of {result.final.total:,} right"
    best = next((check for check in result.curve if check.step == result.best_step), None)
    if best is not None and best.step != result.steps:
        text += f"; best on validation {100 * best.accuracy:.1f} % at step {best.step:,}"
    return text
