"""Device, number format and threads are decided in one place, with a reason."""

import platform
import subprocess
import sys

import pytest
import torch

from companion.experiments.device import (
    choose_device,
    choose_threads,
    cpu_settings,
)


@pytest.fixture(autouse=True)
def no_override(monkeypatch):
    monkeypatch.delenv("COMPANION_DEVICE", raising=False)
    monkeypatch.delenv("COMPANION_THREADS", raising=False)


def pretend_gpu(monkeypatch, name, capability):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: name)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_: capability >= (8, 0))


def test_no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    device, dtype, reason = choose_device()
    assert (device.type, dtype) == ("cpu", torch.float32)
    assert "no CUDA GPU" in reason


@pytest.mark.parametrize(("name", "capability"), [("Tesla T4", (7, 5)), ("H200", (9, 0))])
def test_gpu_computes_in_float32_old_or_new(monkeypatch, name, capability):
    pretend_gpu(monkeypatch, name, capability)
    device, dtype, reason = choose_device()
    assert (device.type, dtype) == ("cuda", torch.float32)
    assert name in reason


def test_environment_overrides(monkeypatch):
    pretend_gpu(monkeypatch, "Tesla T4", (7, 5))
    monkeypatch.setenv("COMPANION_DEVICE", "cpu")
    device, _, reason = choose_device()
    assert device.type == "cpu"
    assert reason == "COMPANION_DEVICE=cpu is set"


@pytest.mark.parametrize("wanted", ["gpu", "cuda:99"])
def test_device_that_is_not_there_is_refused(monkeypatch, wanted):
    monkeypatch.setenv("COMPANION_DEVICE", wanted)
    with pytest.raises(ValueError, match=f"COMPANION_DEVICE='{wanted}'"):
        choose_device()


def test_threads(monkeypatch):
    before = torch.get_num_threads()
    with cpu_settings() as threads:
        assert threads.count == torch.get_num_threads() == 1
        assert (torch.tensor([1e-39]) * 1).item() == 0  # denormals are flushed
    assert torch.get_num_threads() == before
    monkeypatch.setenv("COMPANION_THREADS", "2")
    assert choose_threads() == (2, "COMPANION_THREADS=2 is set")
    torch.set_flush_denormal(False)


@pytest.mark.parametrize("wanted", ["0", "-1", "two"])
def test_impossible_number_of_threads_is_refused(monkeypatch, wanted):
    monkeypatch.setenv("COMPANION_THREADS", wanted)
    with pytest.raises(ValueError, match=f"'{wanted}', expected a positive integer"):
        choose_threads()


FREED = """
import resource
import torch
from companion.experiments.device import keep_memory

def cleared_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(2**24)  # 64 MB, 16,384 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(keep_memory(), min(cleared_pages() for _ in range(5)))
"""


def test_memory_that_is_freed_is_used_again_where_the_system_can_be_told():
    """In a process of its own, whose memory nothing else has divided up."""
    printed = subprocess.run([sys.executable, "-c", FREED], capture_output=True, check=True)
    told, pages = printed.stdout.split()
    assert (told == b"True") == (platform.libc_ver()[0] == "glibc")
    assert told == b"False" or int(pages) < 1_000
