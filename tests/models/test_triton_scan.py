"""The Triton kernels without a GPU: in Triton's interpreter, and compiled for three of them."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from companion.models import triton_scan

ORACLE = Path(__file__).with_name("triton_oracle.py")
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton has no package for this platform"
)
SIZES = {"N": 16, "FILLED": 16, "CHANNELS": 16, "SEGMENT": triton_scan.SEGMENT}
KERNELS = {"_forward": {**SIZES, "KEEP": True}, "_backward": SIZES}


@needs_triton
@pytest.mark.slow
def test_equals_the_other_scans_with_gradients():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.models.triton_oracle"],
        cwd=ORACLE.parents[2], capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    cases = re.search(r"CASES = \(\n(.*?)\n\)", ORACLE.read_text(), re.S).group(1)
    assert len(done.stdout.splitlines()) == len(cases.splitlines()) > 0


def compile_for(name, capability, constants, number):
    """The kernel as machine code, and its PTX, for a GPU of this compute capability."""
    from triton import compile
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = getattr(triton_scan, name)
    plain = {"T": "i32", "R": "i32", "E": "i32"} | dict.fromkeys(constants, "constexpr")
    signature = {x: plain.get(x, f"*{number}") for x in function.arg_names}
    aligned = {  # what Triton finds out by itself when it is called: multiples of 16
        (i,): [["tt.divisibility", 16]]
        for i, (x, kind) in enumerate(signature.items())
        if kind[0] == "*" or (x, kind) == ("E", "i32")
    }
    source = ASTSource(function, signature, constants, aligned)
    target = GPUTarget("cuda", capability, 32)
    return compile(source, target=target, options={"num_warps": 1})


@needs_triton
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("capability", [75, 80, 90])
def test_compiles_without_a_gpu_and_fits_into_registers(name, capability, monkeypatch, tmp_path):
    from triton import knobs

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    code = compile_for(name, capability, KERNELS[name], "fp32").asm
    assert code["cubin"][:4] == b"\x7fELF"
    (tmp_path / "kernel.ptx").write_text(code["ptx"])
    command = [knobs.nvidia.ptxas.path, "-v", f"--gpu-name={target(code['ptx'])}", "kernel.ptx"]
    report = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stderr
    assert target(code["ptx"]).startswith(f"sm_{capability}")
    assert "0 bytes spill stores" in report, report
    assert not re.search(r"\b(atom|red)\.", code["ptx"])  # shares are added in a fixed order


def target(ptx):
    return re.search(r"^\.target (\w+)", ptx, re.M).group(1)


@needs_triton
@pytest.mark.parametrize("number", ["fp32", "fp64"])
def test_compiles_for_awkward_sizes(number, monkeypatch, tmp_path):
    """Triton takes an argument that is 1 for a constant, of another type than a number."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    constants = {**SIZES, "N": 5, "FILLED": 8, "T": 1, "R": 1, "E": 1, "KEEP": False}
    assert compile_for("_forward", 80, constants, number).asm["cubin"]
    del constants["KEEP"]
    assert compile_for("_backward", 80, constants, number).asm["cubin"]


def test_refuses_other_numbers():
    x = torch.ones(1, 1, 1, dtype=torch.bfloat16)
    with pytest.raises(TypeError, match=r"got torch\.bfloat16, expected torch\.float32"):
        triton_scan.triton_scan(x, x, x[0], x, x, x)


def test_can_be_imported_without_triton():
    code = (
        "import sys; sys.modules['triton'] = None\n"
        "import companion.models.triton_scan, torch\n"
        "from companion.models.scan import choose_scan\n"
        "print(choose_scan(torch.device('cuda')).reason)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "a CUDA GPU, but Triton is not installed\n", done.stderr
