"""DeltaNet on a CPU: chunks and one triangular solve beside the loop over symbols.

    .venv/bin/python benchmarks/deltanet.py

writes `benchmarks/deltanet.md`. Both are the delta rule alone, forward and backward, on the same
numbers, and take turns, so a change in the machine's load meets both. The loop is as fast as we
can write one: batched, two products and one outer product a symbol. Outputs, last states and
gradients are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from machine import processor
from torch import Tensor

from companion.models.deltanet import CHUNK, delta_rule, features

RESULT = Path(__file__).with_suffix(".md")
TOLERANCE = 1e-4  # of outputs and gradients, relative to the largest, in float32


def loop(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, S: Tensor) -> tuple[Tensor, Tensor]:
    """The same map symbol by symbol."""
    outputs = []
    for q_t, k_t, v_t, beta_t in zip(*(x.unbind(-2) for x in (q, k, v, beta)), strict=True):
        change = beta_t * (v_t - (k_t[..., None, :] @ S).squeeze(-2))
        S = S + k_t[..., None] * change[..., None, :]
        outputs.append((q_t[..., None, :] @ S).squeeze(-2))
    return torch.stack(outputs, dim=-2), S


FORMS = {"chunks": delta_rule, "loop over symbols": loop}


def arguments(batch: int, heads: int, length: int, d: int) -> list[Tensor]:
    """Queries, keys, values, rates, and a state to start from."""
    rng = torch.Generator().manual_seed(0)
    q, k = (features(torch.randn(batch, heads, length, d, generator=rng), 1) for _ in range(2))
    v = torch.randn(batch, heads, length, d, generator=rng)
    beta = torch.rand(batch, heads, length, 1, generator=rng)
    S = torch.randn(batch, heads, d, d, generator=rng)
    return [x.requires_grad_() for x in (q, k, v, beta, S)]


def run(form: Callable, given: list[Tensor]) -> list[Tensor]:
    """Outputs, last state and all gradients of a sum of squares."""
    o, S = form(*given)
    return [o.detach(), S.detach(), *torch.autograd.grad((o * o).sum() + (S * S).sum(), given)]


def difference(given: list[Tensor]) -> float:
    """The largest between both forms, relative to the largest number in its tensor."""
    pairs = zip(*(run(form, given) for form in FORMS.values()), strict=True)
    worst = max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)
    if worst > TOLERANCE:
        raise SystemExit(f"got a difference of {worst:.1e}, expected at most {TOLERANCE:.0e}")
    return worst


def measure(given: list[Tensor], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of processor time of every run; the first round warms up."""
    times = {name: [] for name in FORMS}
    for turn in range(rounds + 1):
        for name, form in FORMS.items():
            start = time.process_time()
            run(form, given)
            if turn:
                times[name].append(1e3 * (time.process_time() - start))
    return times


def row(sizes: tuple[int, int, int, int], rounds: int) -> str:
    """One line of the table."""
    batch, heads, length, d = sizes
    given = arguments(*sizes)
    worst, times = difference(given), measure(given, rounds)
    chunks, steps = times.values()
    print(f"length {length}, d {d}: {min(steps) / min(chunks):.1f} times as fast", flush=True)
    return (
        f"| {length} | {heads} × {d} | {batch} | {min(chunks):,.0f} | {min(steps):,.0f} | "
        f"{min(steps) / min(chunks):.1f} | "
        f"{statistics.median(steps) / statistics.median(chunks):.1f} | {worst:.0e} |"
    )


def report(rows: list[str], rounds: int) -> str:
    """The table and what it was measured on."""
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    versions = f"torch {torch.__version__}, Python {platform.python_version()}"
    return "\n".join(
        [
            "# The delta rule on one CPU thread",
            "",
            f"Forward and backward, chunks of at most {CHUNK} rows; processor time of one thread,",
            f"least of {rounds} runs. Written by `benchmarks/deltanet.py` on",
            f"{datetime.date.today()}: {processor()}, {load}; {versions}.",
            "",
            "| length | heads × d | batch | chunks, ms | loop, ms | times as fast | median "
            "| difference |",
            "|---:|---:|---:|---:|---:|---:|---:|---:|",
            *rows,
            "",
            "Difference: the largest of outputs, states and gradients, over the largest number.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    torch.set_num_threads(1)
    sizes = [(64, 4, length, 16) for length in (50, 100, 200, 400)] + [(16, 4, 100, 64)]
    rows = [row(size, args.rounds) for size in sizes]
    RESULT.write_text(report(rows, args.rounds), encoding="utf8")
    print(RESULT.read_text(encoding="utf8"))


if __name__ == "__main__":
    main()
