"""Making the environment: one lock, pinned archives, a wheel that is complete."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import zipfile
from types import ModuleType

import pytest

import companion
from companion.__main__ import main
from companion.book import vendor
from companion.book.steps import StepFailed

from .conftest import REPOSITORY

LOCK = (REPOSITORY / "requirements.txt").read_text()


@pytest.fixture
def environment() -> ModuleType:
    """tools/environment.py as a module."""
    spec = importlib.util.spec_from_file_location(
        "environment", REPOSITORY / "tools/environment.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lock_pins_each_package_once():
    pins = re.findall(r"^(?:# )?([A-Za-z0-9_.-]+)==", LOCK, re.M)
    names = [re.sub(r"[-_.]+", "-", name).lower() for name in pins]
    assert "jupyter-book" in names and "mamba-ssm" in names
    assert sorted(names) == sorted(set(names))


def test_lock_is_the_only_list_of_pins():
    pin = re.compile(r"[A-Za-z0-9_-]{3,}==\d")
    others = ["pyproject.toml", "Makefile", ".ci/run", "tools/environment.py", "_config.yml"]
    assert [name for name in others if pin.search((REPOSITORY / name).read_text())] == []


def test_lock_stays_on_the_first_jupyter_book():
    assert re.search(r"^jupyter-book==1\.", LOCK, re.M)


def test_mamba_never_fails_the_environment(environment, monkeypatch, capsys, tmp_path):
    commands = []

    def refuse(log, *command, **variables) -> bool:
        commands.append((command, variables))
        return False

    monkeypatch.setattr(environment, "succeeds", refuse)
    monkeypatch.setattr(environment, "LOGS", tmp_path)
    environment.mamba()
    command, variables = commands[-1]
    assert command[-1].startswith("mamba-ssm==")
    assert variables == {"MAMBA_SKIP_CUDA_BUILD": "TRUE", "MAMBA_FORCE_BUILD": "TRUE"}
    assert "not installed, going on without it" in capsys.readouterr().out


def test_mamba_is_compiled_where_cuda_and_nvcc_are(environment, monkeypatch, capsys, tmp_path):
    tried = []

    def accept(log, *command, **variables) -> bool:
        tried.append(variables)
        return True

    monkeypatch.setattr(environment, "succeeds", accept)
    monkeypatch.setattr(environment, "LOGS", tmp_path)
    monkeypatch.setattr(environment.shutil, "which", lambda name: f"bin/{name}")
    environment.mamba()
    assert tried == [{}, {"MAMBA_KEEP_CUDA_BUILD": "TRUE", "MAMBA_FORCE_BUILD": "TRUE"}]
    assert "with its CUDA kernels" in capsys.readouterr().out


def test_failing_step_names_itself_and_its_log(environment, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(environment, "LOGS", tmp_path)
    with pytest.raises(SystemExit, match=r"(?s)oops.*FAILED in step 'demo'.*environment-demo\.log"):
        environment.step("demo", "failing", sys.executable, "-c", "raise SystemExit('oops')")


def test_environment_is_made_once_per_lock(environment, monkeypatch, tmp_path):
    for name in ("requirements.txt", "pyproject.toml", "tools/environment.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a==1")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    before = environment.key()
    assert environment.key() == before
    (tmp_path / "requirements.txt").write_text("a==2")
    assert environment.key() != before


def test_archive_that_is_not_the_pinned_one_is_refused(tmp_path):
    archive = tmp_path / "x.tgz"
    archive.write_bytes(b"something else")
    with pytest.raises(StepFailed, match=r"mathjax@3\.2\.2: got sha512-.*, expected sha512-Bt"):
        vendor.unpack(vendor.PACKAGES[0], archive, tmp_path)


@pytest.mark.slow
def test_wheel_is_complete(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, check=True, cwd=REPOSITORY, capture_output=True)
    (wheel,) = tmp_path.glob("companion-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    tree = REPOSITORY / "src" / "companion"
    wanted = {".py", ".js", ".css", ".svg"}
    source = {
        f"companion/{p.relative_to(tree).as_posix()}" for p in tree.rglob("*") if p.suffix in wanted
    }
    assert source <= names
    stored = REPOSITORY / "results"
    results = {f"companion/results/{p.relative_to(stored).as_posix()}" for p in stored.rglob("*.*")}
    assert results and results <= names
    assert not any(name.startswith("tests/") for name in names)


def test_import_is_light():
    code = "import sys, companion; print(sorted({'torch', 'numpy', 'sphinx'} & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "[]\n"


def test_command_line_reports_a_wrong_folder(tmp_path, capsys):
    assert main(["book", "build", "--root", str(tmp_path)]) == 2
    assert "expected a folder with _config.yml in it" in capsys.readouterr().err


def test_command_line_knows_its_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.strip() == companion.__version__
