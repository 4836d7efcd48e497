"""Training steps of our models beside what one would use instead, side by side in one run.

    .venv/bin/python benchmarks/compare.py            # all, 15 minutes on one quiet core
    .venv/bin/python benchmarks/compare.py --quick    # a look, in a minute, not stored

writes `results/performance/cpu.json`, or that of a GPU under its name, after every measurement.
Everything takes the same tokens, starts from the same weights and does forward, backward and Adam.
Contenders for one architecture take turns, so a change in the machine's load meets all of them;
their answers and gradients are compared before anything is timed. Memory is that of a process of
its own. What does not install or run is stored with its reason.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import contenders
import machine
import measure
import peers
import torch
from contenders import CONTENDERS, OURS
from measure import ALL, LAST, Failed, Sizes, Training
from torch import Tensor

from companion.experiments import results_dir
from companion.experiments.device import cpu_settings

PATIENCE = 60.0  # seconds after which a contender that has not made a step is left out
# of answers and gradients, relative to the largest; kernels on a GPU round products to TF32
TOLERANCE = {"cpu": 2e-4, "cuda": 1e-2}
ROOT = Path(__file__).parents[1]
PARTS = "comparison", "population", "growth", "peaks", "composition"


class Report:
    """The JSON file, written whole after every addition, and the time that is left."""

    def __init__(self, path: Path, content: dict, seconds: float) -> None:
        self.path, self.content, self.starts = path, content, time.monotonic()
        self.ends = self.starts + seconds
        self.write()

    def add(self, part: str, rows: list[dict]) -> None:
        self.content.setdefault(part, []).extend(rows)
        self.write()

    def goes_on(self, what: str) -> bool:
        """Whether there is time for more; what there is none for is noted."""
        if time.monotonic() < self.ends:
            return True
        self.content.setdefault("left_out", []).append(what)
        self.write()
        return False

    def write(self) -> None:
        self.content["load"] = [*self.content.get("load", [])[:1], machine.load()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".tmp")
        draft.write_text(json.dumps(self.content, indent=1) + "\n", encoding="utf8")
        os.replace(draft, self.path)


def contests(name: str, sizes: Sizes, device: str, rounds: int) -> list[dict]:
    """Both comparisons at one size. Who fails in the first is not waited for in the second."""
    table = contest(name, sizes, LAST, device, rounds, {})
    failed = {row["contender"]: row["failed"] for row in table if "failed" in row}
    return table + contest(name, sizes, ALL, device, rounds, failed)


def contest(
    name: str, sizes: Sizes, rows: str, device: str, rounds: int, failed: dict[str, str]
) -> list[dict]:
    """Our model and its peers: a row for each, with its times or why there are none."""
    where = {"architecture": name, **sizes._asdict(), "rows": rows}
    table = {c: {**where, "contender": c} for c in (OURS, *CONTENDERS[name])}
    for contender, row in table.items():
        if contender in failed:
            row["failed"] = failed[contender]
            continue
        try:
            make = partial(trained, name, contender, sizes, rows, device)
            row |= measure.alone(partial(measure.memory, make, device), device, PATIENCE)
        except Failed as failure:
            row["failed"] = str(failure)
    fit = {c: row.pop("seconds") for c, row in table.items() if "failed" not in row}
    if OURS in fit:
        try:
            act = partial(race, name, fit, sizes, rows, device, rounds)
            for contender, found in measure.alone(act, device, 20 * PATIENCE).items():
                table[contender] |= found
        except Failed as failure:
            for contender in fit:
                table[contender]["failed"] = str(failure)
    return list(table.values())


def trained(name: str, contender: str, sizes: Sizes, rows: str, device: str) -> Training:
    """A contender with the weights of our model `name`, ready for a step."""
    ours = sizes.model(name, device)
    module = contenders.contender(ours, CONTENDERS[name].get(contender))
    return Training(module, sizes.data(device), rows)


def race(
    name: str, fit: dict[str, float], sizes: Sizes, rows: str, device: str, rounds: int
) -> dict[str, dict]:
    """Times of all in turns, but those whose answers or gradients are not ours. `fit`: seconds of a
    step that each has taken alone; for one that took long that is the measurement."""
    trainings = {c: trained(name, c, sizes, rows, device) for c in fit}
    tokens = sizes.data(device).tokens[:2]
    expected, found = answers(trainings[OURS].module, tokens), {}
    for contender, training in trainings.items():
        pairs = zip(answers(training.module, tokens), expected, strict=True)
        worst = max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)
        found[contender] = {"difference": worst}
        if not worst <= TOLERANCE[device]:
            found[contender]["failed"] = f"differs by {worst:.0e} from ours"
        elif fit[contender] > measure.PATIENT:
            found[contender] |= measure.summary([(fit[contender], fit[contender], 1)])
    steps = {c: t.step for c, t in trainings.items() if set(found[c]) == {"difference"}}
    times = measure.in_turns(steps, device, rounds)
    return {c: row | times.get(c, {}) for c, row in found.items()}


def answers(module: torch.nn.Module, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Logits of all rows, and what reaches the vectors of the symbols from a sum of squares."""
    logits = module(tokens)
    return logits.detach(), torch.autograd.grad((logits * logits).sum(), module.embedded)[0]


def composition(name: str, sizes: Sizes, device: str, steps: int) -> list[dict]:
    """What our step consists of, in time and in operations."""

    def act() -> dict:
        split = measure.parts(name, sizes, device, steps)
        return {"split": split, **measure.contents(trained(name, OURS, sizes, LAST, device), sizes)}

    return _row({"architecture": name, **sizes._asdict()}, act, device)


def growth(name: str, lengths: list[int], sizes: Sizes, device: str, rounds: int) -> list[dict]:
    """Our step with all rows asked for, at each length, in turns."""

    def act() -> dict:
        given = [sizes._replace(length=T) for T in lengths]
        steps = {str(s.length): trained(name, OURS, s, ALL, device).step for s in given}
        return {"times": measure.in_turns(steps, device, rounds)}

    return _row({"architecture": name, "lengths": lengths}, act, device)


def population(name: str, members: list[int], sizes: Sizes, device: str, rounds: int) -> list[dict]:
    """A step of several of our models as one program, one answer asked for, in turns."""

    def act() -> dict:
        steps = {str(P): measure.together(name, sizes, device, P) for P in members}
        times = measure.in_turns(steps, device, rounds)
        return {"execution": str(steps[str(members[0])].execution), "times": times}

    return _row({"architecture": name, **sizes._asdict(), "members": members}, act, device)


def _row(where: dict, act: Callable[[], dict], device: str) -> list[dict]:
    try:
        return [where | measure.alone(act, device, 10 * PATIENCE)]
    except Failed as failure:
        return [{**where, "failed": str(failure)}]


def work(args: argparse.Namespace) -> Iterator[tuple[str, str, Callable[[], list[dict]]]]:
    """All measurements in the order of their importance: which, in what part, and how."""
    names = [name for name in CONTENDERS if not args.only or name in args.only]
    device, sizes, few = args.device, Sizes(args.lengths[0], batch=args.batch), args.rounds // 3
    for T in args.lengths:
        for name in names:
            for depth in (1, 2) if name == "mamba" and T == args.lengths[0] else (1,):
                one = sizes._replace(length=T, depth=depth)
                act = partial(contests, name, one, device, args.rounds)
                yield f"{name}, T = {T}, layers: {depth}", "comparison", act
        if T == args.lengths[0]:
            for name in names:
                act = partial(population, name, args.members, sizes, device, max(2, few))
                yield f"{name}, population", "population", act
    for name in names:
        act = partial(growth, name, args.growth, sizes, device, max(2, few))
        yield f"{name}, growth", "growth", act
    yield "peaks", "peaks", partial(_row, {}, partial(machine.peaks, device), device)
    for T in args.lengths:
        for name in names:
            one = sizes._replace(length=T)
            act = partial(composition, name, one, device, 3 * args.rounds)
            yield f"{name}, T = {T}, composition", "composition", act


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--lengths", type=int, nargs="+", default=[100, 400], help="T, tokens of a sequence")
    add("--growth", type=int, nargs="+", default=[64, 128, 256, 512, 1024], help="T again")
    add("--members", type=int, nargs="+", help="P; by default 1 and 4, on a GPU also 21")
    add("--batch", type=int, default=64)
    add("--rounds", type=int, default=12, help="turns of each contender")
    add("--seconds", type=float, default=3600.0, help="start nothing after so long")
    add("--only", nargs="+", choices=sorted(CONTENDERS), metavar="MODEL", help="of our models")
    add("--parts", nargs="+", choices=PARTS, default=PARTS, help="of the report")
    add("--quick", action="store_true", help="short sequences, few turns; stored in _build")
    add("--peers", type=Path, default=peers.FOLDER, help="where published packages are put")
    add("--offline", action="store_true", help="use what lies there, install nothing")
    add("--out", type=Path, help="the JSON file")
    args = parser.parse_args()
    if args.quick:
        args.lengths, args.growth, args.batch, args.rounds = [32], [32, 64], 16, 2
    args.members = args.members or ([1, 4, 21] if args.device == "cuda" else [1, 4])
    if args.out is None:
        folder = ROOT / "_build" / "performance" if args.quick else results_dir() / "performance"
        args.out = folder / f"{file_name(args.device)}.json"
    return args


def file_name(device: str) -> str:
    """cpu, or what the GPU is called: nvidia-h200."""
    name = torch.cuda.get_device_name() if device == "cuda" else device
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def prepare() -> None:
    """Import here what every process would import for itself, which takes longer than its work."""
    p = torch.nn.Parameter(torch.zeros(1))
    p.grad = torch.zeros(1)
    torch.optim.Adam([p], fused=True).step()
    try:
        library = peers.transformers()
        _ = library.GPT2Model, library.MambaModel
    except ImportError:
        return  # said where they are wanted


def main() -> None:
    args = arguments()
    with cpu_settings():
        run(args)


def run(args: argparse.Namespace) -> None:
    """Measure everything under the settings of our training, peers included."""
    missing = peers.install(args.peers, fetch=not args.offline)
    prepare()
    content = {
        **machine.facts(args.device),
        "settings": {"rounds": args.rounds, "batch": args.batch, "quick": args.quick},
        "not_installed": missing,
    }
    report = Report(args.out, content, args.seconds)
    for what, part, act in work(args):
        if part in args.parts and report.goes_on(what):
            report.add(part, act())
            print(f"{time.monotonic() - report.starts:6.0f} s  {what}", flush=True)
    print(args.out)


if __name__ == "__main__":
    main()
