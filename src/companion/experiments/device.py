"""Where a run computes, in which number format, with how many threads, and why: decided here only.

Environment: `COMPANION_DEVICE` (cpu, cuda, cuda:1, mps) and `COMPANION_THREADS` override.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of malloc.h


class Device(NamedTuple):
    """A decision and its reason, one sentence to print.

    >>> print(Device(torch.device("cpu"), torch.float32, "PyTorch finds no CUDA GPU"))
    cpu, float32: PyTorch finds no CUDA GPU
    """

    device: torch.device
    dtype: torch.dtype
    reason: str

    def __str__(self) -> str:
        return f"{self.device}, {str(self.dtype).removeprefix('torch.')}: {self.reason}"


def choose_device() -> Device:
    """CUDA if PyTorch finds it, else the CPU; float32 on both, by the same code.

    Half precision is not chosen: a T4 has no bfloat16, and at width 64 it saves no time.

    Raises ValueError if COMPANION_DEVICE names no device, or one that is not there.
    """
    wanted = os.environ.get("COMPANION_DEVICE", "")
    if wanted:
        return Device(_named(wanted), torch.float32, f"COMPANION_DEVICE={wanted} is set")
    if torch.cuda.is_available():
        name = torch.cuda.get_device_name()
        return Device(torch.device("cuda"), torch.float32, f"PyTorch finds a GPU, {name}")
    return Device(torch.device("cpu"), torch.float32, "PyTorch finds no CUDA GPU")


def _named(wanted: str) -> torch.device:
    try:
        device = torch.device(wanted)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"got COMPANION_DEVICE={wanted!r}, expected cpu or a device that is here"
        ) from error
    return device


class Threads(NamedTuple):
    """Threads of one training run and the reason for their number."""

    count: int
    reason: str


def choose_threads() -> Threads:
    """One thread per run, unless COMPANION_THREADS says otherwise.

    Raises ValueError if COMPANION_THREADS is not a positive integer.
    """
    wanted = os.environ.get("COMPANION_THREADS", "")
    if not wanted:
        return Threads(
            1,
            "a step at width 64 is too short to share, and one thread adds in the same order on "
            "every machine",
        )
    if not wanted.isdigit() or int(wanted) < 1:
        raise ValueError(f"got COMPANION_THREADS={wanted!r}, expected a positive integer")
    return Threads(int(wanted), f"COMPANION_THREADS={wanted} is set")


@contextmanager
def cpu_settings() -> Iterator[Threads]:
    """Inside: the threads of `choose_threads`, denormal numbers flushed to zero, memory kept.

    Gradients of an LSTM fade over a long sequence into denormals, with which a CPU computes several
    times slower. Flushing and keeping remain on afterwards, since earlier settings cannot be read.
    """
    threads, before = choose_threads(), torch.get_num_threads()
    torch.set_num_threads(threads.count)
    torch.set_flush_denormal(True)
    keep_memory()
    try:
        yield threads
    finally:
        torch.set_num_threads(before)


def keep_memory() -> bool:
    """Let this process keep the memory that it frees, for its next arrays; whether it does now.

    The GNU C library gives arrays of many MB back to the system at once, which then clears every
    page of the next one: on sequences of 1,000 symbols up to half of a step. It is told not to;
    other libraries are left as they are.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # no such library, or not on this system
        return False
    return bool(mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, 2**31 - 1))
