"""Runs the Triton kernels in Triton's interpreter, and compares with `seg_scan` in float64.

    .venv/bin/python -m tests.models.triton_oracle

In a process of its own, since Triton reads the variable below when it is imported. An interpreted
step of one program takes 40 ms, so there are few rows.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"

import torch

from companion.models.scan import plain_scan, seg_scan
from companion.models.triton_scan import triton_scan

from .scan_cases import draw, results

# steps, leading axes of h, whether the first is a population's, channels, N
CASES = (
    (1, (2,), False, 3, 16),
    (2, (), False, 19, 5),
    (7, (1, 2), True, 16, 16),
    (7, (3, 2), True, 5, 5),
    (33, (1,), False, 17, 16),
    (4, (2, 2), False, 1, 1),
    (5, (1,), False, 9, 33),
)


def main():
    torch.set_num_threads(1)
    for case in CASES:
        steps, batch, population, channels, n = case
        inputs = draw(steps, batch=batch, population=population, channels=channels, n=n, seed=steps)
        found = results(triton_scan, inputs)
        for form in (seg_scan, plain_scan):
            for x, y in zip(found, results(form, inputs), strict=True):
                assert x.shape == y.shape
                torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-12)
        with torch.no_grad():
            assert all(map(torch.equal, triton_scan(*inputs), found))
        print(*case)


if __name__ == "__main__":
    main()
