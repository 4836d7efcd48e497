"""Make the environment in .venv from a bare Python: ``python3 tools/environment.py``.

Standard library only.  Does nothing when requirements.txt and pyproject.toml are unchanged
since the last run.  Every step says what it does and how long it took; one that fails names
itself and its log.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "companion.stamp"
LOGS = ROOT / "_build" / "logs"
OLDEST = (3, 11)  # the oldest Python that every pin of requirements.txt supports
PIP = [PYTHON, "-m", "pip", "--disable-pip-version-check"]
MAMBA_CUDA = {"MAMBA_KEEP_CUDA_BUILD": "TRUE", "MAMBA_FORCE_BUILD": "TRUE"}
MAMBA_BARE = {"MAMBA_SKIP_CUDA_BUILD": "TRUE", "MAMBA_FORCE_BUILD": "TRUE"}


def key() -> str:
    """What the environment depends on: the lock, the package's metadata, the interpreter."""
    digest = hashlib.sha256(sys.version.encode() + str(ROOT).encode())
    for name in ("requirements.txt", "pyproject.toml", "tools/environment.py"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def succeeds(log: Path, *command: object, **variables: str) -> bool:
    """Run a command with its output in ``log``."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf8") as out:
        print("$", *command, file=out, flush=True)
        environment = {**os.environ, **variables}
        return (
            subprocess.run(map(str, command), stdout=out, stderr=out, env=environment).returncode
            == 0
        )


def step(name: str, doing: str, *command: object) -> None:
    """Run one step or stop, naming it and its log."""
    log = LOGS / f"environment-{name}.log"
    log.unlink(missing_ok=True)
    print(f"environment: {name}: {doing} …", flush=True)
    start = time.monotonic()
    if not succeeds(log, *command):
        tail = "\n".join(log.read_text(encoding="utf8", errors="replace").splitlines()[-15:])
        sys.exit(f"{tail}\nenvironment: FAILED in step '{name}'; all of it is in {log}")
    print(f"environment: {name}: done in {time.monotonic() - start:.0f} s", flush=True)


def mamba() -> None:
    """Install mamba-ssm: with kernels where CUDA and nvcc are, without elsewhere, never fatal."""
    lock = (ROOT / "requirements.txt").read_text(encoding="utf8")
    pin = re.search(r"^# (mamba-ssm==\S+)$", lock, re.M).group(1)
    log = LOGS / "environment-mamba.log"
    log.unlink(missing_ok=True)
    start = time.monotonic()
    install = [*PIP, "install", "--no-build-isolation", "--no-deps", pin]
    cuda = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    if shutil.which("nvcc") and succeeds(log, PYTHON, "-c", cuda):
        print(f"environment: mamba: compiling {pin} for CUDA, this takes minutes …", flush=True)
        if succeeds(log, *install, **MAMBA_CUDA):
            kind = "with its CUDA kernels"
        else:
            print(f"environment: mamba: the CUDA build failed, see {log}", flush=True)
            kind = None
    else:
        kind = None
    if kind is None and succeeds(log, *install, **MAMBA_BARE):
        kind = "without CUDA kernels"
    outcome = f"{pin} {kind}" if kind else f"{pin} not installed, going on without it, see {log}"
    print(f"environment: mamba: {outcome}, {time.monotonic() - start:.0f} s", flush=True)


def check_dependencies() -> None:
    """Refuse an environment whose packages do not fit together."""
    report = subprocess.run([*map(str, PIP), "check"], capture_output=True, text=True).stdout
    # mamba-ssm declares GPU packages that nothing here uses
    broken = [s for s in report.splitlines() if "requires" in s or " has " in s]
    broken = [s for s in broken if not s.startswith("mamba-ssm ")]
    if broken:
        sys.exit("\n".join(broken) + "\nenvironment: FAILED in step 'check': pins do not fit")


def newer_python() -> str | None:
    """The first interpreter on PATH that the lock supports."""
    return next(filter(None, (shutil.which(f"python3.{m}") for m in (13, 12, 11, 14))), None)


def main() -> None:
    if sys.version_info < OLDEST:
        want = ".".join(map(str, OLDEST))
        if other := newer_python():
            os.execv(other, [other, *sys.argv])
        sys.exit(
            f"environment: got Python {sys.version.split()[0]}, the lock needs {want} or newer"
        )
    if STAMP.exists() and STAMP.read_text() == key():
        return
    start = time.monotonic()
    STAMP.unlink(missing_ok=True)
    step("venv", "creating .venv", sys.executable, "-m", "venv", VENV)
    lock = ["-r", ROOT / "requirements.txt"]
    step("packages", "installing requirements.txt", *PIP, "install", "--no-compile", *lock)
    editable = ["--no-deps", "--no-build-isolation", "--editable", ROOT]
    step("package", "installing companion from src/", *PIP, "install", *editable)
    mamba()
    check_dependencies()
    STAMP.write_text(key())
    print(f"environment: ready in {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
