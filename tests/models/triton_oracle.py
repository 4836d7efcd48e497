"""Runs the Triton kernels in Triton's interpreter, and compares with `seg_scan` in float64.

    .venv/bin/python tests/models/triton_oracle.py

In a process of its own, since Triton reads the variable below when it is imported. An interpreted
step of one program takes 40 ms, so there are few rows.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"

import torch

from companion.models.scan import plain_scan, seg_scan
from companion.models.triton_scan import triton_scan

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
        inputs = draw(*case)
        found = results(triton_scan, inputs)
        for form in (seg_scan, plain_scan):
            for x, y in zip(found, results(form, inputs), strict=True):
                assert x.shape == y.shape
                torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-12)
        with torch.no_grad():
            assert all(map(torch.equal, triton_scan(*inputs), found))
        print(*case)


def draw(steps, batch, population, channels, n):
    """dt, u, A, B, C, h of a scan that forgets quickly at some steps and hardly at others."""
    rng = torch.Generator().manual_seed(steps)

    def normal(*shape):
        return torch.randn(shape, generator=rng, dtype=torch.float64)

    dt = torch.nn.functional.softplus(3 * normal(steps, *batch, channels))
    A = -normal(*((batch[0], 1) if population else ()), n, channels).exp()
    parts = [normal(steps, *batch, size) for size in (channels, n, n)]
    tensors = (dt, parts[0], A, *parts[1:], normal(*batch, n, channels))
    return [x.requires_grad_() for x in tensors]


def results(form, inputs):
    """y, the last h, and the gradients of a generic function of both."""
    y, h = form(*inputs)
    rng = torch.Generator().manual_seed(7)
    weights = [torch.randn(x.shape, generator=rng, dtype=x.dtype) for x in (y, h)]
    loss = (y * weights[0]).sum() + (h * weights[1]).sum()
    return [y, h, *torch.autograd.grad(loss, inputs)]


if __name__ == "__main__":
    main()
