"""A training between two steps: one run, or several that differ in rate and seed and share it."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from companion.experiments import checkpoint as files
from companion.experiments.adam import PopulationAdam
from companion.experiments.device import Device
from companion.experiments.progress import Progress
from companion.experiments.provenance import provenance
from companion.experiments.result import Check, Result, Score
from companion.experiments.run import Run
from companion.experiments.scoring import examine, scores
from companion.experiments.step import Step, choose_execution
from companion.experiments.task import Batch, Task, exams
from companion.models import Population, SequenceModel, build

SAVE_EVERY = 20.0  # seconds, at least, between checkpoints


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


class Member:
    """One run of a training: its curve so far, its best weights, and how it ended."""

    def __init__(self, run: Run, weights: dict[str, Tensor]) -> None:
        self.run, self.status = run, "finished"
        self.curve: list[Check] = []
        self.best_step, self.best_accuracy, self.best = 0, -1.0, weights
        self.last = weights  # once it has ended

    def has_reached(self) -> bool:
        """Whether the last two checks are as good as the run asks for."""
        last = [c.accuracy for c in self.curve[-2:]]
        return len(last) == 2 and min(last) >= self.run.stop_at


class Training:
    """Models, optimiser, generators and curves of runs that are trained together.

    A single run has a model and PyTorch's Adam; several are the members of a `Population`. Each
    draws the examples that it would draw alone. `checkpoint` as in `train`; there may also be more
    members in it than `runs`, whose results are known by now: they are left out.
    """

    def __init__(
        self, runs: Sequence[Run], place: Device, checkpoint: str | Path | None = None
    ) -> None:
        self.path, self.saved = checkpoint and Path(checkpoint), 0.0
        stored = files.read(self.path) if self.path and self.path.exists() else None
        self.place, self.device, self.clock = place, place.device, Clock()
        self.step = 0
        if stored is None:
            self._build(runs, len(runs) > 1)
        else:
            self._build(self._agreed(stored[1], runs), stored[1]["together"])
            self._resume(*stored)
            self._keep([i for i, member in enumerate(self.members) if member.run in runs])

    def _build(self, runs: Sequence[Run], together: bool) -> None:
        run = self.run = runs[0]
        self.task: Task = run.build_task()
        models = [build(r.model, r.model_config(), rng=generator(r.seed, "model")) for r in runs]
        models = [model.to(self.device, self.place.dtype) for model in models]
        self.alone = models[0]  # what members are examined with
        self.together, self.size = together, len(runs)
        self.execution = choose_execution(self.device, together=together)
        self.model: SequenceModel | Population = Population(models) if together else self.alone
        self.members = [Member(r, self._weights(i)) for i, r in enumerate(runs)]
        seeds = dict.fromkeys(r.seed for r in runs)
        self.rngs = {seed: generator(seed, "data", self.device) for seed in seeds}
        self.validations = {seed: self._fixed(seed, "validation", run.validate) for seed in seeds}
        self.optimizer = self._optimizer()
        self._prepare()

    def _optimizer(self) -> torch.optim.Optimizer | PopulationAdam:
        if not self.together and self.execution.mode != "graph":
            rate, fused = self.run.learning_rate, self.device.type in ("cpu", "cuda")
            return torch.optim.Adam(self.model.parameters(), lr=rate, fused=fused)
        rates = torch.tensor([member.run.learning_rate for member in self.members])
        rates = (rates if self.together else rates[0]).to(self.device)
        total = self.run.steps

        def cosine(taken: Tensor) -> Tensor:
            return (1 + torch.cos(math.pi * taken / total)) / 2

        schedule = cosine if self.run.schedule == "cosine" else None
        return PopulationAdam(self.model.parameters(), rates, schedule)

    def _prepare(self) -> None:
        """What depends on which members there are."""
        order = {seed: i for i, seed in enumerate(self.rngs)}
        self.owner = torch.tensor([order[m.run.seed] for m in self.members]).to(self.device)
        self.validation = self._for_each(list(self.validations.values()))
        generators = self.rngs.values()
        self.take = Step(self.model, self.optimizer, self._sample, generators, self.execution)

    def _sample(self) -> Batch:
        batch = self.run.batch
        return self._for_each([self.task.sample(batch, rng=rng) for rng in self.rngs.values()])

    def _for_each(self, batches: list[Batch]) -> Batch:
        """For each member the examples of its seed, (P, B, T); a single run has no axis P."""
        if not self.together:
            return batches[0]
        return Batch(*(torch.stack(parts)[self.owner] for parts in zip(*batches, strict=True)))

    def fit(self, bar: Progress) -> Iterator[Member]:
        """Take steps until all runs have ended; each member as soon as it has."""
        while self.members:
            if self.step == self.run.steps:
                yield from self._leave(list(range(len(self.members))))
                return
            losses = self.advance(min(self.run.check_every, self.run.steps - self.step))
            accuracies = [score.accuracy for score in self._validate()]
            bar.update(self.step, loss=min(losses), accuracy=max(accuracies))
            pairs = enumerate(zip(losses, accuracies, strict=True))
            yield from self._leave([i for i, pair in pairs if self._note(i, *pair)])
            if self.members and self.path and self.clock.wall - self.saved >= SAVE_EVERY:
                self.save(self.path)

    def _note(self, i: int, loss: float, accuracy: float) -> bool:
        """Add a check to the curve of member i; whether it ends the run."""
        member = self.members[i]
        member.curve.append(Check(self.step, round(loss, 6), accuracy))
        if not math.isfinite(loss):
            member.status = "diverged"
            return True
        if accuracy >= member.best_accuracy:  # of equals the later, trained longer
            member.best_step, member.best_accuracy = self.step, accuracy
            member.best = self._weights(i)
        if member.has_reached():
            member.status = "reached"
        return member.status == "reached"

    def _leave(self, ended: list[int]) -> list[Member]:
        """Take leave of the members that have ended; the others go on without them."""
        gone = [self.members[i] for i in ended]
        for i, member in zip(ended, gone, strict=True):
            member.last = self._weights(i)
        if ended:
            self._keep([i for i in range(len(self.members)) if i not in ended])
        return gone

    def _keep(self, chosen: list[int]) -> None:
        if len(chosen) == len(self.members):
            return
        self.members = [self.members[i] for i in chosen]
        if self.members and self.together:
            self.model.keep(chosen)
            self.optimizer.keep(chosen, self.model.parameters())
            self._prepare()

    def advance(self, steps: int) -> list[float]:
        """Take `steps` steps; the mean loss of each member in nats."""
        total = torch.zeros(len(self.members), device=self.device)
        for _ in range(steps):
            if isinstance(self.optimizer, torch.optim.Optimizer):
                for group in self.optimizer.param_groups:
                    group["lr"] = learning_rate(self.run, self.step)
            total += self.take()  # read once per check: a GPU is not made to wait at every step
            self.step += 1
        return [loss / steps for loss in total.tolist()]

    def result(self, member: Member, threads: int) -> Result:
        """Measure a member that has ended; afterwards `alone` has its best weights."""
        final, best, more = self._scores(member)
        return Result(
            run=member.run,
            status=member.status,
            steps=member.curve[-1].step if member.curve else 0,
            curve=member.curve,
            final=final,
            best=best,
            best_step=member.best_step,
            more=more,
            seconds=round(self.clock.wall, 2),
            cpu_seconds=round(self.clock.cpu, 2),
            provenance={**provenance(self.place, threads), **self._together()},
        )

    def _together(self) -> dict[str, Any]:
        """How the run was executed, where that is not one model, one operation after another."""
        told = {"members": self.size} if self.together else {}
        return told if self.execution.mode == "eager" else {**told, "step": self.execution.mode}

    def _scores(self, member: Member) -> tuple[Score, Score, dict[str, Score]]:
        """`final`, `best` and `more` of the result."""
        run, count = member.run, member.run.evaluate
        fresh = self._fixed(run.seed, "evaluation", count)
        self.alone.load_state_dict(member.last)
        final = best = examine(self.alone, fresh)
        if member.curve and member.best_step != member.curve[-1].step:
            self.alone.load_state_dict(member.best)
            best = examine(self.alone, fresh)
        more = {"examples": best[1]}
        for name, task in exams(self.task).items():
            batch = self._fixed(run.seed, "evaluation", count, task)
            more[name], more[f"{name} examples"] = examine(self.alone, batch)
        if best[0].total == best[1].total:  # one question an example
            more = {name: score for name, score in more.items() if not name.endswith("examples")}
        return final[0], best[0], more

    def save(self, path: Path) -> None:
        """Write everything that the remaining steps depend on."""
        single = isinstance(self.optimizer, torch.optim.Optimizer)
        adam = files.pack_optimizer(self.optimizer) if single else self.optimizer.tensors()
        parts = {"model": self._state(), "adam": adam}
        parts |= {f"best {i}": member.best for i, member in enumerate(self.members)}
        tensors = {f"rng.{seed}": rng.get_state() for seed, rng in self.rngs.items()}
        for name, content in parts.items():
            tensors |= {f"{name}.{k}": v for k, v in content.items()}
        self.saved = self.clock.wall
        facts = {
            "runs": [member.run.to_dict() for member in self.members],
            "together": self.together,
            "size": self.size,
            "device": self.device.type,
            "best": [[member.best_step, member.best_accuracy] for member in self.members],
            "seconds": [self.clock.wall, self.clock.cpu],
            "curves": [member.curve for member in self.members],
        }
        files.write(path, tensors, facts)

    def _agreed(self, facts: dict[str, Any], runs: Sequence[Run]) -> list[Run]:
        """The runs of a checkpoint. Raises ValueError as `train` does."""
        found = [Run.from_dict(run) for run in facts["runs"]]
        foreign = [run.to_dict() for run in runs if run not in found]
        for name, wrong, has, expected in (
            ("run", foreign, facts["runs"], foreign),
            ("device", facts["device"] != self.device.type, facts["device"], self.device.type),
        ):
            if wrong:
                raise ValueError(
                    f"{self.path}: got a checkpoint of {name} {has}, expected {expected}; "
                    "remove it to begin anew"
                )
        return found

    def _resume(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """The inverse of `save`."""
        moments = files.part(tensors, "adam")
        if isinstance(self.optimizer, torch.optim.Optimizer):
            files.unpack_optimizer(self.optimizer, moments)
        else:
            self.optimizer.load(moments)
        for name, x in self._state().items():
            x.copy_(tensors[f"model.{name}"])
        for seed, rng in self.rngs.items():
            rng.set_state(tensors[f"rng.{seed}"])
        for i, member in enumerate(self.members):
            best = files.part(tensors, f"best {i}")
            member.best = {k: v.to(self.device) for k, v in best.items()}
            member.curve = [Check(*check) for check in facts["curves"][i]]
            member.best_step, member.best_accuracy = facts["best"][i]
        self.step, self.size = self.members[0].curve[-1].step, facts["size"]
        self.clock = Clock(*facts["seconds"])
        self.saved = self.clock.wall

    def _fixed(self, seed: int, purpose: str, count: int, task: Task | None = None) -> Batch:
        """`count` examples of length exactly N that are the same whenever a seed asks for them."""
        rng = generator(seed, purpose, self.device)
        return (task or self.task).sample(count, rng=rng, exact=True)

    def _validate(self) -> list[Score]:
        return scores(self.model, self.validation)[0]

    def _state(self) -> dict[str, Tensor]:
        """The parameters themselves, without the population's own name in front of theirs."""
        return (self.model.frame if self.together else self.model).state_dict()

    def _weights(self, i: int) -> dict[str, Tensor]:
        if self.together:
            return self.model.weights(i)
        return {name: x.detach().clone() for name, x in self.model.state_dict().items()}


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
