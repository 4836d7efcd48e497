"""Training one run: Adam, a fresh batch at every step, checks on fixed examples of length N."""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F

from companion.experiments import checkpoint as files
from companion.experiments.device import Device, choose_device, cpu_settings
from companion.experiments.progress import Progress
from companion.experiments.provenance import provenance
from companion.experiments.result import Check, Result, Score
from companion.experiments.run import Run
from companion.experiments.task import NOTHING, Batch, Task, exams
from companion.models import SequenceModel, build

SAVE_EVERY = 20.0  # seconds, at least, between checkpoints
AT_ONCE = 250  # examples per forward pass when nothing is learned; bounds the memory


class Trained(NamedTuple):
    """A model with the weights of its best check, and the result of its run."""

    model: SequenceModel
    result: Result


def train(
    run: Run,
    *,
    progress: bool = True,
    device: Device | None = None,
    checkpoint: str | Path | None = None,
) -> Trained:
    """Train `run` and measure it on fresh examples of length exactly N.

    >>> run = Run(task="index-lookup", length=2, model="transformer", alphabet=2, steps=300)
    >>> model, result = train(run.replace(width=16, learning_rate=1e-2), progress=False)
    >>> result.status, result.best.accuracy > 0.99
    ('reached', True)

    `progress`: show a bar or line where there is a terminal or notebook. `device`: by default that
    of `choose_device`. The run ends early when two checks in a row reach `run.stop_at`, or when the
    loss is no longer a finite number (status "diverged"). On a CPU equal runs give equal results,
    whatever else draws random numbers meanwhile.

    `checkpoint`: a safetensors file in which the training is kept at its checks. If it exists, the
    training goes on from there, with the same result on a CPU as if it had never stopped. Raises
    ValueError for a file that is damaged, of another run, or from another kind of device.
    """
    place = choose_device() if device is None else device
    with cpu_settings() as threads, Progress(run.steps, label(run), show=progress) as bar:
        training = Training(run, place, checkpoint)
        status = training.fit(bar)
        final, best, more = training.scores()
        result = Result(
            run=run,
            status=status,
            steps=training.step,
            curve=training.curve,
            final=final,
            best=best,
            best_step=training.best_step,
            more=more,
            seconds=round(training.clock.wall, 2),
            cpu_seconds=round(training.clock.cpu, 2),
            provenance=provenance(place, threads.count),
        )
        bar.finish(summary(result))
    return Trained(training.model, result)


class Clock:
    """Time spent on a training, those before an interruption included."""

    def __init__(self, wall: float = 0.0, cpu: float = 0.0) -> None:
        self._wall, self._cpu = time.perf_counter() - wall, time.process_time() - cpu

    @property
    def wall(self) -> float:
        return time.perf_counter() - self._wall

    @property
    def cpu(self) -> float:
        return time.process_time() - self._cpu


class Training:
    """The state of a training between two steps: model, optimiser, generators, curve so far."""

    def __init__(self, run: Run, place: Device, checkpoint: str | Path | None = None) -> None:
        self.run, self.device, self.clock = run, place.device, Clock()
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
        self.path, self.saved = checkpoint and Path(checkpoint), 0.0
        if self.path and self.path.exists():
            self.resume(self.path)

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
            if self.has_reached():
                return "reached"
            if self.path and self.clock.wall - self.saved >= SAVE_EVERY:
                self.save(self.path)
        return "finished"

    def has_reached(self) -> bool:
        """Whether the last two checks are as good as the run asks for."""
        last = [c.accuracy for c in self.curve[-2:]]
        return len(last) == 2 and min(last) >= self.run.stop_at

    def save(self, path: Path) -> None:
        """Write everything that the remaining steps depend on."""
        tensors = {"rng": self.rng.get_state()}
        for name, content in (
            ("model", self.model.state_dict()),
            ("best", self.best_weights),
            ("adam", files.pack_optimizer(self.optimizer)),
        ):
            tensors |= {f"{name}.{k}": v for k, v in content.items()}
        self.saved = self.clock.wall
        facts = {
            "run": self.run.to_dict(),
            "device": self.device.type,
            "best": [self.best_step, self.best_accuracy],
            "seconds": [self.clock.wall, self.clock.cpu],
            "curve": self.curve,
        }
        files.write(path, tensors, facts)

    def resume(self, path: Path) -> None:
        """The inverse of `save`. Raises ValueError, naming the file, as `train` does."""
        tensors, facts = files.read(path)
        for name, found, expected in (
            ("run", facts["run"], self.run.to_dict()),
            ("device", facts["device"], self.device.type),
        ):
            if found != expected:
                raise ValueError(
                    f"{path}: got a checkpoint of {name} {found}, expected {expected}; "
                    "remove it to begin anew"
                )
        self.model.load_state_dict(files.part(tensors, "model"))
        self.best_weights = {k: v.to(self.device) for k, v in files.part(tensors, "best").items()}
        files.unpack_optimizer(self.optimizer, files.part(tensors, "adam"))
        self.rng.set_state(tensors["rng"])
        self.curve = [Check(*check) for check in facts["curve"]]
        self.step = self.curve[-1].step
        self.best_step, self.best_accuracy = facts["best"]
        self.clock = Clock(*facts["seconds"])
        self.saved = self.clock.wall

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

    def scores(self) -> tuple[Score, Score, dict[str, Score]]:
        """`final`, `best` and `more` of the result; the best weights stay loaded."""
        final = best = self._examine(self.task)
        if self.best_step != self.step:
            self.model.load_state_dict(self.best_weights)
            best = self._examine(self.task)
        more = {"examples": best[1]}
        for name, task in exams(self.task).items():
            more[name], more[f"{name} examples"] = self._examine(task)
        if best[0].total == best[1].total:  # one question an example
            more = {name: score for name, score in more.items() if not name.endswith("examples")}
        return final[0], best[0], more

    def _examine(self, task: Task) -> tuple[Score, Score]:
        rng = self._generator("evaluation")
        return examine(self.model, task.sample(self.run.evaluate, rng=rng, exact=True))

    def _validate(self) -> float:
        return examine(self.model, self.validation)[0].accuracy

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
    return examine(model, task.sample(examples, rng=rng, exact=True))[0]


@torch.no_grad()
def examine(model: SequenceModel, batch: Batch) -> tuple[Score, Score]:
    """How many answers are right, and in how many examples all of them.

    An answer with a logit that is not finite is wrong.
    """
    right, wrong, spoiled = 0, 0, 0
    for tokens, read, targets in zip(*(x.split(AT_ONCE) for x in batch), strict=True):
        logits, _ = model(tokens, read=read)
        good = (logits.argmax(-1) == targets) & logits.isfinite().all(-1)
        bad = ~good & (targets != NOTHING)
        right, wrong = right + int((good & (targets != NOTHING)).sum()), wrong + int(bad.sum())
        spoiled += int(bad.any(1).sum())
    examples = len(batch.tokens)
    return Score(right, right + wrong), Score(examples - spoiled, examples)


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
        "positions": f"{run.positions} positions".replace("none", "no"),
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
