"""From sources to pages: the steps behind ``make book`` and ``make test``."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from . import check, execute, hygiene, ledger, picture, readme, vendor
from .steps import StepFailed, StepSkipped, run_logged, run_steps
from .workspace import Workspace, digest

STRICT = ["-W", "--keep-going", "-n"]
PARALLEL = ["-n", "2", "--dist", "loadfile"]
UNIT = "not browser and not chapters"
CODE = ["src", "tests", "notebooks", "tools", "benchmarks"]


def pages_key(workspace: Workspace) -> str:
    """Hash of everything that the pages are made from."""
    root, package = workspace.root, Path(__file__).parent
    named = ("_config.yml", "_toc.yml", "requirements.txt", "vendor/stamp.txt")
    files = [root / name for name in named] + [workspace.twin(n) for n in workspace.notebooks()]
    for folder in ("book", "notebooks"):
        files += [p for p in (root / folder).rglob("*") if p.is_file()]
    own = digest(
        package, [p for p in package.rglob("*") if p.suffix in {".py", ".js", ".css", ".svg"}]
    )
    return digest(root, [p for p in files if p.is_file()], own, execute.environment_key(workspace))


def build_pages(workspace: Workspace) -> str:
    """Run Jupyter Book from nothing, unless the last good build had the same inputs."""
    good, key = workspace.build / "html.stamp", pages_key(workspace)
    if good.exists() and good.read_text() == key and (workspace.html / "index.html").exists():
        return "unchanged since the last good build"
    good.unlink(missing_ok=True)
    # an incremental build would not repeat the warnings of pages that did not change
    for folder in (
        workspace.html,
        workspace.build / ".doctrees",
        workspace.build / "jupyter_execute",
    ):
        shutil.rmtree(folder, ignore_errors=True)
    program = Path(sys.executable).with_name("jupyter-book")
    command = [str(program), "build", str(workspace.root), *STRICT]
    try:
        run_logged(command, workspace.logs / "pages.log", workspace.root)
    except StepFailed as failure:
        lines = (workspace.logs / "pages.log").read_text(encoding="utf8").splitlines()
        warnings = [line for line in lines if "WARNING" in line or "ERROR" in line]
        raise StepFailed("\n".join(warnings) or str(failure)) from None
    good.write_text(key)
    return f"{len(list(workspace.html.glob('*/*.html')))} pages"


def check_pages(workspace: Workspace) -> str:
    if problems := check.site_problems(workspace.html, workspace.root):
        raise StepFailed("\n".join(problems))
    return "nothing remote, nothing missing, every figure described"


def book_steps(workspace: Workspace, options: execute.Options) -> list:
    return [
        ("browser files", lambda: vendor.fetch(workspace.vendor)),
        ("claims", lambda: ledger.update(workspace)),
        ("notebooks", lambda: execute.execute(workspace, options)),
        ("pages", lambda: build_pages(workspace)),
        ("page check", lambda: check_pages(workspace)),
    ]


def build(workspace: Workspace, options: execute.Options) -> int:
    """``make book``; returns an exit status."""
    status = run_steps("book", book_steps(workspace, options))
    if status == 0:
        print(f"book: open {workspace.html / 'index.html'}")
    return status


def chromium() -> str | None:
    """Path of an installed Chromium, if there is one."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


def check_sources(workspace: Workspace) -> str:
    if problems := hygiene.problems(workspace.root):
        raise StepFailed("\n".join(problems))
    return f"{len(workspace.notebooks())} notebooks clean"


def run_pytest(workspace: Workspace, name: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", *arguments]
    output = run_logged(command, workspace.logs / f"{name}.log", workspace.root, live=True)
    return output.strip().splitlines()[-1].strip("= ")


def rerun_chapters(workspace: Workspace) -> str:
    """Execute every chapter twice in one kernel, unless that was done with the same inputs."""
    good, key = workspace.build / "chapters.stamp", pages_key(workspace)
    if good.exists() and good.read_text() == key:
        return "unchanged since they last ran twice"
    outcome = run_pytest(workspace, "chapters", "-n", "2", "-m", "chapters", "tests/book")
    good.write_text(key)
    return outcome


def browse(workspace: Workspace) -> str:
    if chromium() is None and not os.environ.get("CI"):
        raise StepSkipped("no Chromium found; install chromium to test the pages in a browser")
    return run_pytest(workspace, "browser", "-m", "browser", "tests/book")


def verify(workspace: Workspace, options: execute.Options) -> int:
    """``make test``; returns an exit status."""
    root, logs = workspace.root, workspace.logs
    ruff = [sys.executable, "-m", "ruff"]
    code = [folder for folder in CODE if (root / folder).exists()]

    def lint(*command: str) -> str:
        return run_logged([*ruff, *command, *code], logs / "ruff.log", root).splitlines()[-1]

    steps = [
        ("lint", lambda: lint("check")),
        ("format", lambda: lint("format", "--check")),
        ("hygiene", lambda: check_sources(workspace)),
        ("unit tests", lambda: run_pytest(workspace, "tests", *PARALLEL, "-m", UNIT)),
        *book_steps(workspace, options),
        ("chapters", lambda: rerun_chapters(workspace)),
        ("browser", lambda: browse(workspace)),
    ]
    return run_steps("test", steps)


def tidy(workspace: Workspace) -> int:
    """``make tidy``; returns an exit status."""
    root, ruff = workspace.root, [sys.executable, "-m", "ruff"]
    code = [folder for folder in CODE if (root / folder).exists()]
    log = workspace.logs / "tidy.log"

    def rewrite() -> str:
        changed = [str(path.relative_to(root)) for path in hygiene.tidy(root)]
        drawn = [*picture.draw(root), *readme.draw(root)]
        changed += [str(path.relative_to(root)) for path in drawn]
        return "rewrote " + ", ".join(changed) if changed else "nothing to rewrite"

    def fix() -> str:
        return run_logged([*ruff, "check", "--fix", *code], log, root).splitlines()[-1]

    def layout() -> str:
        return run_logged([*ruff, "format", *code], log, root).splitlines()[-1]

    return run_steps("tidy", [("sources", rewrite), ("lint", fix), ("format", layout)])
