"""A papermill engine whose cells cannot stall.

nbclient sends on the kernel's shell socket while it polls that socket for a reply.  Now and then
the reply's wake-up is lost and the poll sleeps until the cell's time-out.  Polling in short slices
wakes it up again.
"""

from __future__ import annotations

import queue
import time

from jupyter_core.utils import run_sync
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.log import logger

NAME = "sliced"
SLICE = 0.25  # seconds


def in_slices(receive):
    """The coroutine function ``receive(timeout=None)``, waiting at most SLICE seconds at a time."""

    async def sliced(timeout: float | None = None):
        end = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            left = max(0.0, min(SLICE, end - time.monotonic()))
            try:
                return await receive(timeout=left)
            except queue.Empty:
                if time.monotonic() >= end:
                    raise

    return sliced


class SlicedClient(PapermillNotebookClient):
    """papermill's client with a sliced shell channel."""

    async def async_start_new_kernel_client(self):
        client = await super().async_start_new_kernel_client()
        client.shell_channel.get_msg = in_slices(client.shell_channel.get_msg)
        return client

    start_new_kernel_client = run_sync(async_start_new_kernel_client)


class SlicedEngine(NBClientEngine):
    """papermill's own engine on a ``SlicedClient``."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man, kernel_name, log_output=False, start_timeout=60, execution_timeout=None, **_
    ):
        client = SlicedClient(
            nb_man,
            kernel_name=kernel_name,
            timeout=execution_timeout,
            startup_timeout=start_timeout,
            log_output=log_output,
            log=logger,
        )
        return client.execute()


def register() -> str:
    """Make the engine known to papermill in this process; return its name."""
    papermill_engines.register(NAME, SlicedEngine)
    return NAME
