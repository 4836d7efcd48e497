"""Inputs of a selective scan and what is compared, for `test_scan` and `triton_oracle`."""

import torch
import torch.nn.functional as F


def draw(length, *, batch=(2,), population=False, channels=3, n=2, dtype=torch.float64, seed=0):
    """dt, u, A, B, C, h of a scan that forgets quickly at some steps and hardly at others.

    The first axis of a batch may be that of a population, each member with its own A.
    """
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=rng, dtype=dtype)

    dt = F.softplus(3 * normal(length, *batch, channels))
    A = -normal(*((batch[0], 1) if population else ()), n, channels).exp()
    parts = [normal(length, *batch, size) for size in (channels, n, n)]
    tensors = (dt, parts[0], A, *parts[1:], normal(*batch, n, channels))
    return [x.requires_grad_() for x in tensors]


def results(form, inputs):
    """y, the last h, and the gradients of a generic function of both."""
    y, h = form(*inputs)
    rng = torch.Generator().manual_seed(7)
    weights = [torch.randn(x.shape, generator=rng, dtype=x.dtype) for x in (y, h)]
    loss = (y * weights[0]).sum() + (h * weights[1]).sum()
    return [y, h, *torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)]
