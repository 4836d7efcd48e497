"""A run: everything that determines one training, and nothing else."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any

from companion.experiments.task import TASKS, Task, build_task
from companion.models import MODELS, ModelConfig

SCHEDULES = ("constant", "cosine")


@dataclass(frozen=True)
class Run:
    """One model trained once on one task. Equal runs give equal results on a CPU.

    >>> run = Run(task="index-lookup", length=20, model="lstm", learning_rate=5e-3, steps=1000)
    >>> run.key, run.name
    ('71d35d9c5c166295', 'index-lookup-20-lstm-s0-71d35d9c5c166295')
    >>> run.replace(seed=1).key == run.key
    False

    Raises ValueError for an unknown task, model or schedule, naming the known ones, for a length
    that the task does not have, and for a number that is not positive where it must be; TypeError
    for a fraction where a whole number is due.
    """

    task: str  # name in TASKS
    length: int  # N, symbols; paper: 20, 50, 100, 200, 400
    model: str  # name in MODELS
    alphabet: int = 64  # |Σ|, symbols; paper: 64
    width: int = 64  # D, coordinates; paper: 64, 128, 256, 512
    depth: int = 1  # layers; paper: 1, 2, 4, 6 (LSTM: up to 3)
    heads: int = 4  # H; paper: 4, 8
    positions: str = "learned"  # paper: absolute encodings
    tied: bool = False  # index tokens are position vectors, as in Theorem 1; paper: no
    embedding_std: float = 0.02  # of token and position vectors at the start; paper: not stated
    state_size: int | None = None  # numbers a channel: Mamba 16, DSS 64 by default, as the authors'
    learning_rate: float = 1e-3  # of Adam; paper: 1e-2 … 1e-6, tuned
    schedule: str = "constant"  # or "cosine", down to zero; paper: not stated
    steps: int = 2000  # optimiser steps at most; paper: 250,000
    batch: int = 64  # fresh examples per step; paper: not stated
    seed: int = 0  # of initialisation and data; paper: not stated
    stop_at: float = 0.9995  # accuracy at two checks in a row that ends the run; paper: "perfect"
    check_every: int = 100  # steps between checks
    validate: int = 1000  # fixed examples of length N in a check
    evaluate: int = 5000  # fresh examples of length N at the end; paper: 5000

    def __post_init__(self) -> None:
        self._check_whole_numbers()
        if self.model not in MODELS:
            known = ", ".join(sorted(MODELS))
            raise ValueError(f"got model {self.model!r}, expected one of: {known}")
        if self.schedule not in SCHEDULES:
            known = ", ".join(SCHEDULES)
            raise ValueError(f"got schedule {self.schedule!r}, expected one of: {known}")
        for name in ("batch", "check_every", "validate", "evaluate"):
            if getattr(self, name) < 1:
                raise ValueError(f"got {name}={getattr(self, name)}, expected at least 1")
        if self.steps < 0 or self.seed < 0:
            raise ValueError(f"got steps={self.steps}, seed={self.seed}, expected at least 0")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"got learning_rate={self.learning_rate}, expected a positive number")
        self.build_task()
        self.model_config()

    def _check_whole_numbers(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int" and (isinstance(value, bool) or not isinstance(value, int)):
                raise TypeError(f"got {field.name}={value!r}, expected a whole number")

    def build_task(self) -> Task:
        """The task at this run's length."""
        return build_task(self.task, self.length, self.alphabet)

    def model_config(self) -> ModelConfig:
        """Sizes of this run's model."""
        task = self.build_task()
        return ModelConfig(
            vocab=task.vocab,
            classes=task.classes,
            width=self.width,
            depth=self.depth,
            heads=self.heads,
            max_len=task.max_len,
            positions=self.positions,
            tied_from=self.alphabet if self.tied else None,
            embedding_std=self.embedding_std,
            state_size=self.state_size,
        )

    def replace(self, **changes: Any) -> Run:
        """The same run with some fields changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Field names and values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Run:
        """The inverse of `to_dict`.

        Raises ValueError for fields that a run does not have or needs, naming them.
        """
        names = [f.name for f in fields(cls)]
        unknown = sorted(set(values) - set(names))
        if unknown:
            raise ValueError(f"got unknown field(s) {unknown}, expected some of: {names}")
        missing = [f.name for f in fields(cls) if f.default is MISSING and f.name not in values]
        if missing:
            raise ValueError(f"got no {missing}, expected at least task, length and model")
        return cls(**values)

    @property
    def key(self) -> str:
        """16 hexadecimal digits that name this content.

        Fields at their default do not enter, so a field added later leaves old keys as they are.
        """
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        told = {f.name: given[f.name] for f in fields(self) if given[f.name] != f.default}
        text = json.dumps(told, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """Readable and unique; the name of its result's file."""
        return f"{self.task}-{self.length}-{self.model}-s{self.seed}-{self.key}"


__all__ = ["SCHEDULES", "TASKS", "Run"]
