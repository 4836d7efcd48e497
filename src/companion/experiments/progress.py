"""Progress that suits the place: a bar in a terminal, a line in a notebook, else nothing.

In a notebook (Jupyter, Colab, VS Code, papermill) a single display is created and updated in place,
so that the page keeps one line, the summary: no widget, no carriage returns, nothing on stderr.
"""

from __future__ import annotations

import html
import sys
import time
from types import TracebackType
from typing import Any

from tqdm import tqdm

INTERVAL = 1.0  # seconds between updates of a notebook's line


class Progress:
    """Counts up to `total` steps under a `label`.

    >>> with Progress(2, "sums") as progress:  # neither terminal nor notebook: silent
    ...     for step in (1, 2):
    ...         progress.update(step, loss=1.0 / step)
    ...     progress.finish("2 sums")

    `show`: False for silence everywhere.
    """

    def __init__(self, total: int, label: str, *, show: bool = True) -> None:
        self.total, self.label = total, label
        self.started, self.shown = time.monotonic(), float("-inf")
        self.bar = self.display = None
        if not show:
            return
        if in_notebook():
            self._draw(f"{label}: starting")
        elif sys.stderr.isatty():
            self.bar = tqdm(total=total, desc=label, file=sys.stderr, leave=False)

    def update(self, step: int, **metrics: float) -> None:
        """Step `step` is done; show it with the metrics."""
        values = ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
        if self.bar is not None:
            self.bar.set_postfix_str(values, refresh=False)
            self.bar.update(step - self.bar.n)
        if self.display is not None and time.monotonic() - self.shown >= INTERVAL:
            passed = time.monotonic() - self.started
            left = passed * (self.total / step - 1) if step else 0.0
            line = f"{self.label}: step {step:,} of {self.total:,}, {values}, {left:.0f} s left"
            self._draw(line, step)

    def finish(self, summary: str) -> None:
        """Leave one line, `summary`, in place of all that was shown."""
        if self.bar is not None:
            self.bar.close()
            print(f"{self.label}: {summary}", file=sys.stderr)
            self.bar = None
        if self.display is not None:
            self._draw(f"{self.label}: {summary}")
            self.display = None

    def _draw(self, line: str, step: int | None = None) -> None:
        from IPython.display import display

        meter = "" if step is None else f'<progress value="{step}" max="{self.total}"></progress> '
        content = {"text/plain": line, "text/html": f"<div>{meter}{html.escape(line)}</div>"}
        if self.display is None:
            self.display = display(content, raw=True, display_id=True)
        else:
            self.display.update(content, raw=True)
        self.shown = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if self.bar is not None or self.display is not None:
            self.finish("stopped" if kind is None else f"stopped by {kind.__name__}")


def in_notebook() -> bool:
    """Whether this process is a notebook's kernel. IPython in a terminal is not."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
