"""What only a GPU can tell: same answers as the CPU, how fast, and real training. See device.sh.

Each part runs in a process of its own with a time limit, so that one that breaks down or hangs
costs nothing but itself:

| part      | writes to $OUT  | what                                                              |
|-----------|-----------------|-------------------------------------------------------------------|
| agreement | agreement.json  | GPU against CPU in double precision, graph against eager, scans   |
| speed     | speed.json      | `compare.py`: against peers, growth with T and P                  |
| training  | results.jsonl   | Figure 2 at 200 and 400 symbols, all rates and seeds at once      |

`device.py unpack FILE` stores the results of a results.jsonl among those of the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from torch import Tensor, nn

from companion.experiments import STUDIES, Result, Run, choose_device, results_dir, save, sweep
from companion.experiments.cost import measure
from companion.experiments.groups import grouped
from companion.experiments.step import WARM_UP, Step, choose_execution
from companion.experiments.study import SEEDS
from companion.experiments.training import Training
from companion.models import MODELS, Population, build, scan

LIMIT = 460.0  # seconds for everything
SHARES = {"agreement": 90.0, "speed": 150.0}  # seconds at most; training gets what is left
TOLERANCE = 2e-3  # of float32 on a GPU, relative to the largest number: its kernels use fast exp
SIZES = {"width": 64, "depth": 2, "batch": 16}
STUDY, PRESET = "figure-2-index", "gpu"


def write(name: str, content: object) -> None:
    """Write a file to $OUT, whole or not at all."""
    path = Path(os.environ["OUT"]) / name
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf8")
    os.replace(draft, path)


def environment() -> dict[str, str]:
    """Machine and versions."""
    found = {"python": platform.python_version(), "torch": torch.__version__}
    for package in ("triton", "mamba-ssm", "transformers", "flash-linear-attention"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        found["gpu"] = properties.name
        found["memory"] = f"{properties.total_memory / 2**30:.0f} GiB"
        found["cuda"] = torch.version.cuda
    return found


def relative(found: Tensor, expected: Tensor) -> float:
    """The largest difference, over the largest number expected."""
    found, expected = found.detach().cpu().double(), expected.detach().cpu().double()
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-30))


def answers(model: nn.Module, tokens: Tensor, read: Tensor, *, P: int = 1) -> list[list[Tensor]]:
    """For each of P members its logits, and the gradients of a smooth function of them as one
    vector: some of them are zero by themselves, such as those of the biases of keys."""
    logits, _ = model(tokens, read=read)
    logits.sin().sum().backward()
    given = [p.grad for p in model.parameters() if p.grad is not None]
    gradients = torch.cat([x.reshape(P, -1) for x in given], dim=1)
    return [[a, b] for a, b in zip(logits.view(P, -1), gradients, strict=True)]


def agreement_of_model(name: str, device: torch.device) -> dict[str, float]:
    """A model, and a population, in single precision here against double precision on the CPU."""
    run = Run(task="index-lookup", length=50, model=name, **SIZES)
    config = run.model_config()
    seeds = [torch.Generator().manual_seed(i) for i in range(3)]
    members = [build(name, config, rng=rng).double() for rng in seeds]
    tokens = torch.randint(config.vocab, (3, run.batch, 51), generator=seeds[0])
    read = torch.randint(51, (3, run.batch, 1), generator=seeds[0])
    here = Population(members).to(device, torch.float32)
    alone = build(name, config, rng=seeds[0])
    alone.load_state_dict(members[0].state_dict())
    found = answers(here, tokens.to(device), read.to(device), P=len(members))
    single = answers(alone.to(device), tokens[0].to(device), read[0].to(device))
    expected = [answers(m, tokens[i], read[i])[0] for i, m in enumerate(members)]

    def worst(found: list[list[Tensor]]) -> float:
        members = zip(found, expected[: len(found)], strict=True)
        return max(relative(a, b) for pair in members for a, b in zip(*pair, strict=True))

    return {"model": worst(single), "population": worst(found)}


def agreement_of_steps(name: str) -> dict[str, float]:
    """Losses of steps as they are, and of the same from a graph where there can be one."""
    run = Run(task="index-lookup", length=20, model=name, steps=50, validate=4)
    runs, losses = [run.replace(seed=seed) for seed in SEEDS], {}
    chosen = choose_execution(choose_device().device, together=True)
    for mode in ("eager", chosen.mode):
        training = Training(runs, choose_device())
        execution = chosen._replace(mode=mode)
        training.take = Step(training.model, training.optimizer, training._sample,
                             training.rngs.values(), execution)  # fmt: skip
        losses[mode] = [training.advance(1) for _ in range(WARM_UP + 5)]
    eager, other = (torch.tensor(x) for x in (losses["eager"], losses[chosen.mode]))
    return {f"{chosen.mode} against eager": relative(other, eager)}


def agreement_of_scans(device: torch.device) -> dict[str, float]:
    """Each selective scan that runs here against the literal loop in double precision.

    That of mamba-ssm starts from zeros and gives no gradient of the last state, so all do here.
    """
    rng = torch.Generator().manual_seed(0)
    T, P, B, E, N = 100, 3, 4, 128, 16
    dt = torch.rand(T, P, B, E, generator=rng, dtype=torch.float64) / 10
    u, b, c = (torch.randn(T, P, B, n, generator=rng, dtype=torch.float64) for n in (E, N, N))
    A = -torch.rand(P, 1, N, E, generator=rng, dtype=torch.float64) * 16
    h = torch.zeros(P, B, N, E, dtype=torch.float64)

    def run(form: Callable, kind: torch.dtype, place: torch.device | str) -> list[Tensor]:
        own = [x.to(place, kind).requires_grad_() for x in (dt, u, A, b, c)]
        y, last = form(*own, h.to(place, kind))
        return [y, last, *torch.autograd.grad(y.sin().sum(), own)]

    expected, found = run(scan.plain_scan, torch.float64, "cpu"), {}
    for name in scan.NEEDS:
        os.environ["COMPANION_SCAN"] = name
        try:
            form = scan.choose_scan(device).run
        except ValueError as error:
            print(f"{name} scan left out: {error}")
            continue
        pairs = zip(run(form, torch.float32, device), expected, strict=True)
        found[name] = max(relative(a, b) for a, b in pairs)
    del os.environ["COMPANION_SCAN"]
    return found


def agreement() -> None:
    """Compare and write after every comparison; the exit status tells whether all agree."""
    torch.set_num_threads(1)  # the CPU's part is small, and the machine may be busy
    torch.backends.cudnn.allow_tf32 = False  # which an LSTM's products take otherwise
    device = choose_device().device
    content = {"environment": environment(), "tolerance": TOLERANCE, "differences": {}}
    found = content["differences"]
    checks = [("scan", lambda: agreement_of_scans(device))]
    for name in sorted(MODELS):
        checks.append((name, lambda name=name: agreement_of_model(name, device)))
    for name in ("transformer", "lstm", "mamba", "deltanet"):
        checks.append((f"{name}, steps", lambda name=name: agreement_of_steps(name)))
    for what, check in checks:
        try:
            found[what] = check()
        except Exception as error:
            found[what] = {"failed": f"{type(error).__name__}: {error}"}
        print(what, found[what])
        write("agreement.json", content)
    numbers = [x for values in found.values() for x in values.values()]
    wrong = [x for x in numbers if not (isinstance(x, float) and x <= TOLERANCE)]
    sys.exit(f"{len(wrong)} of {len(numbers)} comparisons failed" if wrong else 0)


def training(seconds: float, quick: bool) -> None:
    """Train populations, the most telling first, for which there is time."""
    ends = time.monotonic() + seconds
    plan = STUDIES[STUDY].trials("smoke" if quick else PRESET)
    runs = [run.replace(seed=seed) for run, _ in plan for seed in SEEDS]
    if quick:
        runs = [run.replace(steps=10, check_every=5, evaluate=100, validate=50) for run in runs]
    with tempfile.TemporaryDirectory() as folder:
        stored: list[Result] = []
        for group in grouped(runs, together=True):
            expected = measure(group) * group[0].steps
            left = ends - time.monotonic()
            print(f"{group[0].name}: {len(group)} members, {expected:.0f} s of {left:.0f} s left")
            if expected > left:
                continue
            stored += sweep(group, folder, together=True)
            lines = [json.dumps(json.loads(result.to_json())) for result in stored]
            path = Path(os.environ["OUT"]) / "results.jsonl"
            path.with_suffix(".tmp").write_text("\n".join(lines) + "\n", encoding="utf8")
            os.replace(path.with_suffix(".tmp"), path)


def unpack(path: Path) -> None:
    """Store the results of a file that `training` wrote."""
    for line in path.read_text(encoding="utf8").splitlines():
        print(save(Result.from_json(line), results_dir() / STUDY))


def parts(quick: bool, started: float) -> Iterator[tuple[str, float, list[str]]]:
    """Name, time limit and command of each part."""
    here = Path(__file__).parent
    kind = choose_device().device.type
    own = [sys.executable, str(here / "device.py")]
    yield "agreement", SHARES["agreement"], [*own, "agreement"]
    speed = [sys.executable, str(here / "compare.py"), "--device", kind]
    speed += ["--seconds", str(SHARES["speed"] - 20), "--out", f"{os.environ['OUT']}/speed.json"]
    yield "speed", SHARES["speed"], [*speed, *(["--quick"] if quick else [])]
    left = LIMIT - (time.monotonic() - started)
    yield "training", left, [*own, "training", str(left - 15), *(["--quick"] if quick else [])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=("agreement", "training", "unpack"))
    parser.add_argument("argument", nargs="?", help="seconds of training, or a file to unpack")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, also without a GPU")
    args = parser.parse_args()
    if args.part == "agreement":
        agreement()
    elif args.part == "training":
        training(float(args.argument), args.quick)
    elif args.part == "unpack":
        unpack(Path(args.argument))
    else:
        run_all(args.quick)


def run_all(quick: bool) -> None:
    """Every part in a process of its own; what became of each."""
    print(json.dumps(environment(), indent=1))
    if not (quick or torch.cuda.is_available()):
        sys.exit("got no CUDA GPU, expected one; --quick tries the same code on a CPU")
    started, outcome = time.monotonic(), {}
    for name, limit, command in parts(quick, started):
        begun = time.monotonic()
        try:
            status = subprocess.run(command, timeout=limit).returncode
        except subprocess.TimeoutExpired:
            status = "ran out of time"
        seconds = round(time.monotonic() - begun, 1)
        outcome[name] = {"status": status, "seconds": seconds, "limit": limit}
        print(f"{name}: {outcome[name]}")
        write("outcome.json", {"environment": environment(), "parts": outcome})
    sys.exit(any(part["status"] != 0 for part in outcome.values()))


if __name__ == "__main__":
    main()
