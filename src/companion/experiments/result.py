"""What a run leaves behind: learning curve, accuracy with an interval, origin."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from companion.experiments.run import Run

FORMAT = "companion-result-1"
PLAIN = ("status", "steps", "best_step", "seconds", "cpu_seconds", "provenance")
STATUSES = ("reached", "finished", "diverged")


def wilson(successes: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval for a probability of which `successes` of `n` trials are known.

    The p with |successes / n - p| ≤ z √(p (1 - p) / n). Unlike the usual ± interval it stays inside
    [0, 1] and is not empty when all trials succeed.

    >>> [round(x, 4) for x in wilson(5000, 5000)]
    [0.9992, 1.0]

    `z`: standard deviations; 1.96 for 95 %.

    Raises ValueError unless 0 ≤ successes ≤ n and n ≥ 1.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"got {successes} successes of n={n}, expected 0 to n, n at least 1")
    rate, share = successes / n, z * z / n
    center = (rate + share / 2) / (1 + share)
    half = z * math.sqrt(rate * (1 - rate) / n + share / (4 * n)) / (1 + share)
    return max(0.0, center - half), min(1.0, center + half)


@dataclass(frozen=True)
class Score:
    """`correct` of `total` answers to fresh examples.

    >>> score = Score(4990, 5000)
    >>> print(score)
    99.80 % (99.63–99.89)
    """

    correct: int
    total: int

    @property
    def accuracy(self) -> float:
        return self.correct / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval."""
        return wilson(self.correct, self.total)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.accuracy:.2%} ({100 * low:.2f}–{100 * high:.2f})".replace("%", " %", 1)


def pool(scores: Iterable[Score]) -> Score:
    """All answers of several runs together, such as the seeds of one setting.

    >>> pool([Score(9, 10), Score(7, 10)])
    Score(correct=16, total=20)
    """
    scores = list(scores)
    return Score(sum(s.correct for s in scores), sum(s.total for s in scores))


class Check(NamedTuple):
    """One point of a learning curve."""

    step: int
    loss: float  # mean training loss, nats, since the check before
    accuracy: float  # on the fixed validation set


@dataclass(frozen=True)
class Result:
    """The outcome of one run.

    `status` is "reached" (accuracy `stop_at` at two checks in a row), "finished" (steps spent) or
    "diverged" (the loss became infinite or NaN; never a success, whatever the accuracies say).
    `final` is measured with the last weights, `best` with those of the best check. `more` holds
    what else was measured with these: "examples", those of which all answers are right, where an
    example asks more than once; and the score on each further exam of the task.
    """

    run: Run
    status: str
    steps: int  # steps taken
    curve: list[Check]
    final: Score
    best: Score
    best_step: int
    seconds: float  # wall time of the training, checks included
    cpu_seconds: float  # processor time of the same; on a busy machine the better measure
    provenance: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Score] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"got status {self.status!r}, expected one of: {', '.join(STATUSES)}")

    def to_json(self) -> str:
        """One field a line, with the key of the run and a checksum of everything."""
        content = {
            "format": FORMAT,
            "key": self.run.key,
            "run": self.run.to_dict(),
            "status": self.status,
            "steps": self.steps,
            "final": asdict(self.final),
            "best": asdict(self.best),
            "best_step": self.best_step,
            **({"more": {k: asdict(v) for k, v in self.more.items()}} if self.more else {}),
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "provenance": self.provenance,
            "curve": [[c.step, _number(c.loss), c.accuracy] for c in self.curve],
        }
        content["checksum"] = _checksum(content)
        lines = (f' "{k}": {json.dumps(v, allow_nan=False)}' for k, v in content.items())
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> Result:
        """The inverse of `to_json`.

        Raises ValueError for text that is no result of this package, or one whose content was
        changed after it was stored.
        """
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"got text that is not JSON ({error}), expected a result") from error
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        if found != FORMAT:
            raise ValueError(f"got format {found!r}, expected {FORMAT!r}")
        stored, actual = content.get("checksum"), _checksum(content)
        if stored != actual:
            raise ValueError(f"got content with checksum {actual}, expected the stored {stored}")
        run = Run.from_dict(content["run"])
        if run.key != content["key"]:
            raise ValueError(f"got a run with key {run.key}, expected the stored {content['key']}")
        nan = float("nan")
        return cls(
            run=run,
            curve=[Check(s, nan if x is None else x, a) for s, x, a in content["curve"]],
            final=Score(**content["final"]),
            best=Score(**content["best"]),
            more={k: Score(**v) for k, v in content.get("more", {}).items()},
            **{k: content[k] for k in PLAIN},
        )


def _number(x: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return x if math.isfinite(x) else None


def _checksum(content: dict[str, Any]) -> str:
    rest = {k: v for k, v in content.items() if k != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
