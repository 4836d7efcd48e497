"""Training steps of Mamba on a CPU: this package beside mamba-ssm's reference scan and mambapy.

    .venv/bin/python benchmarks/mamba.py

writes `benchmarks/mamba.md`. All three sit in the same model (embedding, norms, read-out), start
from the same weights and take turns, so a change in the machine's load meets all of them. Answers
and gradients are compared before anything is timed. mambapy is fetched into a temporary folder.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import peers
import torch
import torch.nn.functional as F
from machine import processor
from torch import nn

from companion.models import Mamba, ModelConfig, build
from companion.models.stack import Mixer

MAMBAPY = "1.2.0"
RESULT = Path(__file__).with_suffix(".md")
OURS, REFERENCE = "companion", "mamba-ssm, reference scan"
TOLERANCE = 1e-4  # of answers and gradients, relative to the largest, in float32


class Peer(Mixer):
    """A published mixer in the place of ours. It reads whole sequences only and keeps no state."""

    def __init__(self, mixer: nn.Module, weights: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.mixer = mixer
        self.mixer.load_state_dict(weights, strict=True)

    def state_shapes(self, t):
        return ()

    def forward(self, x, state, rows):
        return self.mixer(x), ()


def contenders(config: ModelConfig, folder: Path) -> dict[str, Mamba]:
    """The same model with each implementation of its mixer."""
    ours = build("mamba", config, rng=torch.Generator().manual_seed(0))
    models = {OURS: ours}
    peer = {REFERENCE: peers.mamba_ssm(), f"mambapy {MAMBAPY}": peers.mambapy(folder)}
    for name, make in peer.items():
        models[name] = copy.deepcopy(ours)
        for block in models[name].blocks:
            block.mix = Peer(make(config.width), block.mix.state_dict())
    return models


def compare(models: dict[str, Mamba], tokens: torch.Tensor) -> dict[str, float]:
    """The largest difference of answers and gradients from ours, relative to the largest number."""
    found = {}
    for name, model in models.items():
        logits, _ = model(tokens)
        F.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
        gradients = {key.replace(".mixer.", "."): p.grad for key, p in model.named_parameters()}
        found[name] = {"answers": logits.detach(), **gradients}
    ours = found[OURS]
    differences = {
        name: max(float((x[key] - ours[key]).abs().max() / ours[key].abs().max()) for key in ours)
        for name, x in found.items()
    }
    worst = max(differences.values())
    if worst > TOLERANCE:
        raise SystemExit(f"got a difference of {worst:.1e}, expected at most {TOLERANCE:.0e}")
    return differences


def step(model: Mamba, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> None:
    logits, _ = model(tokens)
    loss = F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def measure(models: dict[str, Mamba], tokens: torch.Tensor, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of processor time of every step; the fast take more steps in each round."""
    optimizers = {name: torch.optim.Adam(m.parameters(), fused=True) for name, m in models.items()}
    times = {name: [] for name in models}
    for turn in range(rounds + 1):
        for name, model in models.items():
            for _ in range({OURS: 20, REFERENCE: 1}.get(name, 4)):
                start = time.process_time()
                step(model, optimizers[name], tokens)
                if turn:  # the first round warms up
                    times[name].append(1e3 * (time.process_time() - start))
            print(f"round {turn} of {rounds}: {name}", flush=True)
    return times


def report(times: dict[str, list[float]], differences: dict[str, float], sizes: str) -> str:
    """The table, with how many times as long as ours each takes."""
    least = {name: min(values) for name, values in times.items()}
    middle = {name: statistics.median(values) for name, values in times.items()}
    rows = [
        f"| {name} | {least[name]:,.0f} | {middle[name]:,.0f} | {least[name] / least[OURS]:.1f} | "
        f"{middle[name] / middle[OURS]:.1f} | {differences[name]:.0e} | {len(values)} |"
        for name, values in times.items()
    ]
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    versions = f"torch {torch.__version__}, mamba-ssm {version('mamba-ssm')}, mambapy {MAMBAPY}"
    return "\n".join(
        [
            "# Training steps of Mamba on one CPU thread",
            "",
            f"{sizes}. Forward, backward and Adam; processor time of one thread.",
            f"Written by `benchmarks/mamba.py` on {datetime.date.today()}: {processor()}, {load};",
            f"{versions}, Python {platform.python_version()}.",
            "",
            "| implementation | least ms | median ms | times ours | median | difference | steps |",
            "|---|---:|---:|---:|---:|---:|---:|",
            *rows,
            "",
            "Difference: the largest of answers and gradients from ours, over the largest number.",
            "",
        ]
    )


def fetch_mambapy(folder: str) -> None:
    """Install mambapy in `folder`, without its dependencies: it needs torch alone."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder]
    subprocess.run([*pip, f"mambapy=={MAMBAPY}"], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    defaults = {"width": 64, "depth": 2, "length": 100, "batch": 64, "rounds": 4}
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    config = ModelConfig(vocab=64, classes=64, width=args.width, depth=args.depth)
    shape = (args.batch, args.length)
    tokens = torch.randint(64, shape, generator=torch.Generator().manual_seed(1))
    with tempfile.TemporaryDirectory() as folder:
        fetch_mambapy(folder)
        models = contenders(config, Path(folder))
        differences = compare(models, tokens[:2])
        times = measure(models, tokens, args.rounds)
    sizes = f"Width {args.width}, {args.depth} layers, length {args.length}, batch {args.batch}"
    RESULT.write_text(report(times, differences, sizes), encoding="utf8")
    print(RESULT.read_text(encoding="utf8"))


if __name__ == "__main__":
    main()
