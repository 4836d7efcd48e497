"""Device, number format and threads are decided in one place, with a reason."""

import platform
import resource

import pytest
import torch

from companion.experiments.device import (
    choose_device,
    choose_threads,
    cpu_settings,
    keep_memory,
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


def test_memory_that_is_freed_is_used_again_where_the_system_can_be_told():
    assert keep_memory() == (platform.libc_ver()[0] == "glibc")

    def cleared_pages():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.ones(2**24)  # 64 MB, 16,384 pages
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    if keep_memory():  # one of the first may still not fit into what has been freed
        assert min(cleared_pages() for _ in range(5)) < 1_000
