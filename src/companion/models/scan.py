"""The selective scan: a linear recurrence whose decay depends on the input, with its gradients.

    h_t = exp(dt_t A) ∘ h_{t-1} + B_t (dt_t u_t)ᵀ,   y_t = C_tᵀ h_t

| symbol | shape, time first | meaning                                            |
|--------|-------------------|----------------------------------------------------|
| h      | (…, N, E)         | state: N numbers for each of E channels            |
| dt, u  | (T, …, E)         | step size, positive; input                         |
| A      | (N, E)            | rates, negative: all decays lie between 0 and 1    |
| B, C   | (T, …, N)         | how each symbol writes to, and reads from, N       |

In a population the other arguments are (T, P, B, …), h is (P, B, N, E) and A (P, 1, N, E).

Written with torch's own operations and autograd, each step would leave several arrays of h's size
behind for the backward pass. Here the forward pass keeps h only at the start of each segment of
`SEGMENT` steps; the backward pass computes a segment again and walks it from its end. All work is
done in place, on arrays of the size of h, whose last axis is long. Decays are multiplied one after
another, never divided or summed up in logarithms: exp(dt A) can be too small for any number format.

That is hundreds of small operations. On a CUDA GPU two kernels do all of it (`triton_scan`);
`choose_scan` decides, and the environment variable `COMPANION_SCAN` (segments, triton, mamba-ssm)
overrides.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
import os
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

SEGMENT = 4  # steps computed again at a time; more keep fewer h in all, but more at a time
NEEDS = {"segments": None, "triton": "triton", "mamba-ssm": "selective_scan_cuda"}  # modules


class Scan(NamedTuple):
    """A decision and its reason, one sentence to print."""

    run: Callable[..., tuple[Tensor, Tensor]]
    reason: str


def choose_scan(device: torch.device) -> Scan:
    """Triton's kernels on a CUDA GPU if the package is there, else `seg_scan`, which runs anywhere.

    >>> choose_scan(torch.device("cpu")).reason
    'the device is no CUDA GPU'

    Raises ValueError if COMPANION_SCAN names no scan, or one that cannot run here.
    """
    wanted = os.environ.get("COMPANION_SCAN", "")
    if wanted not in ("", *NEEDS):
        raise ValueError(f"got COMPANION_SCAN={wanted!r}, expected one of: {', '.join(NEEDS)}")
    if wanted == "segments":
        return Scan(seg_scan, f"COMPANION_SCAN={wanted} is set")
    if not wanted and device.type != "cuda":
        return Scan(seg_scan, "the device is no CUDA GPU")
    if not wanted and not _installed("triton"):
        return Scan(seg_scan, "a CUDA GPU, but Triton is not installed")
    if device.type != "cuda" or not _installed(NEEDS[wanted or "triton"]):
        need = f"expected cuda and the module {NEEDS[wanted]}, or COMPANION_SCAN=segments"
        raise ValueError(f"got COMPANION_SCAN={wanted} on {device.type}, {need}")
    reason = f"COMPANION_SCAN={wanted} is set" if wanted else "a CUDA GPU, and Triton is installed"
    if wanted == "mamba-ssm":
        return Scan(published_scan, reason)
    from companion.models.triton_scan import triton_scan  # only now: importing Triton takes time

    return Scan(triton_scan, reason)


@functools.cache
def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def seg_scan(
    dt: Float[Tensor, "T *B E"],
    u: Float[Tensor, "T *B E"],
    A: Float[Tensor, "*P N E"],
    B: Float[Tensor, "T *B N"],
    C: Float[Tensor, "T *B N"],
    h: Float[Tensor, "*B N E"],
) -> tuple[Float[Tensor, "T *B E"], Float[Tensor, "*B N E"]]:
    """All y, and h after the last step.

    >>> half, one = torch.full((3, 1, 1), math.log(2)), torch.ones(3, 1, 1)
    >>> y, h = seg_scan(half, one / half, -one[0], one, one, 8 * one[:1])  # h ← h / 2 + 1
    >>> y.flatten().tolist(), h.item()
    ([5.0, 3.5, 2.75], 2.75)
    """
    return _SegmentScan.apply(dt, dt * u, A.contiguous(), B, C, h)


def causal_conv(
    x: Float[Tensor, "seen *B E"], weight: Float[Tensor, "K *P E"], bias: Float[Tensor, "*P E"]
) -> Float[Tensor, "T *B E"]:
    """y_t = bias + Σ_i weight_i ∘ x_{t+i}, one y less than K short of x: each channel convolved
    with its own K weights. In a population x is (…, P, B, E) and the weights (K, P, 1, E).

    >>> x, weight = torch.tensor([[5.0], [1.0], [2.0]]), torch.tensor([[1.0], [10.0]])
    >>> causal_conv(x, weight, torch.zeros(1)).tolist()
    [[15.0], [21.0]]
    """
    return _Convolution.apply(x, weight.contiguous(), bias)


def plain_scan(
    dt: Float[Tensor, "T *B E"],
    u: Float[Tensor, "T *B E"],
    A: Float[Tensor, "*P N E"],
    B: Float[Tensor, "T *B N"],
    C: Float[Tensor, "T *B N"],
    h: Float[Tensor, "*B N E"],
) -> tuple[Float[Tensor, "T *B E"], Float[Tensor, "*B N E"]]:
    """The same, literally; its gradients are those of autograd."""
    rows = []
    for dt_t, u_t, B_t, C_t in zip(dt, u, B, C, strict=True):
        h = torch.exp(dt_t[..., None, :] * A) * h + B_t[..., None] * (dt_t * u_t)[..., None, :]
        rows.append((C_t[..., None] * h).sum(-2))
    return torch.stack(rows) if rows else u, h


def published_scan(
    dt: Float[Tensor, "T *B E"],
    u: Float[Tensor, "T *B E"],
    A: Float[Tensor, "*P N E"],
    B: Float[Tensor, "T *B N"],
    C: Float[Tensor, "T *B N"],
    h: Float[Tensor, "*B N E"],
) -> tuple[Float[Tensor, "T *B E"], Float[Tensor, "*B N E"]]:
    """The same by the CUDA kernels of mamba-ssm, in float32, member by member in a population.

    They take no first state and give no gradient of the last one, so it comes back detached.

    Raises ValueError if h is not zero. To know, the CPU waits for the GPU; this is left out only
    while a CUDA graph is captured, which repeats what has run before.
    """
    kernel = importlib.import_module("mamba_ssm.ops.selective_scan_interface").selective_scan_fn
    captured = h.is_cuda and torch.cuda.is_current_stream_capturing()
    if not captured and bool(h.any()):
        raise ValueError("got a first state that is not zero, expected zeros for mamba-ssm's scan")
    members = A.shape[:-2].numel()

    def last_to_first(x: Tensor) -> Tensor:  # (T, …, E) to (P, B, E, T)
        return x.reshape(len(x), members, -1, x.shape[-1]).permute(1, 2, 3, 0).contiguous()

    rates = A.reshape(members, *A.shape[-2:]).mT.contiguous()  # (P, E, N)
    each = zip(*map(last_to_first, (u, dt)), rates, *map(last_to_first, (B, C)), strict=True)
    ys, ends = zip(*(kernel(*member, return_last_state=True) for member in each), strict=True)
    y = torch.stack(ys).permute(3, 0, 1, 2)  # (T, P, B, E)
    return y.reshape(u.shape), torch.stack(ends).mT.reshape(h.shape).detach()


class _SegmentScan(torch.autograd.Function):
    """`seg_scan` with w = dt ∘ u in the place of u."""

    @staticmethod
    def forward(ctx, dt, w, A, B, C, h):
        kept = h.new_empty(-(-len(dt) // SEGMENT), *h.shape)
        y, h, decay = torch.empty_like(w), h.clone(), torch.empty_like(h)
        rate = _rate(A)
        for t, (dt_t, w_t, y_t, B_t, C_t) in enumerate(_steps((dt, w, y), (B, C))):
            if t % SEGMENT == 0:
                kept[t // SEGMENT] = h
            _decay(dt_t, rate, decay)
            h.mul_(decay).addcmul_(B_t, w_t)
            torch.matmul(C_t.mT, h, out=y_t)
        ctx.save_for_backward(dt, w, A, B, C, kept)
        return y, h

    @staticmethod
    @once_differentiable
    def backward(ctx, dy, dh):
        """With g the gradient of h_t: ∂C_t = h_t dy_t, ∂B_t = g w_t, ∂w_t = B_tᵀ g. Of dt_t A it is
        decay ∘ g ∘ h_{t-1}, and of h_{t-1} it is decay ∘ g."""
        dt, w, A, B, C, kept = ctx.saved_tensors
        d_dt, d_w, d_B, d_C = (torch.empty_like(x) for x in (dt, w, B, C))
        g, d_A, product = dh.clone(), torch.zeros_like(dh), torch.empty_like(dh)
        steps = list(_steps((dt, w, dy, d_dt, d_w), (B, C, d_B, d_C)))
        decays, hs = kept.new_empty(2, SEGMENT, *dh.shape).unbind()
        for k in reversed(range(len(kept))):
            segment = steps[k * SEGMENT : (k + 1) * SEGMENT]
            h = [kept[k], *hs]
            _again(segment, _rate(A), decays, h)
            for i, step in reversed(list(enumerate(segment))):
                dt_t, w_t, dy_t, d_dt_t, d_w_t, B_t, C_t, d_B_t, d_C_t = step
                torch.matmul(h[i + 1], dy_t.mT, out=d_C_t)
                g.addcmul_(C_t, dy_t)
                torch.matmul(g, w_t.mT, out=d_B_t)
                torch.matmul(B_t.mT, g, out=d_w_t)
                g.mul_(decays[i])
                torch.mul(g, h[i], out=product)
                d_A.addcmul_(product, dt_t)
                torch.sum(product.mul_(A), -2, keepdim=True, out=d_dt_t)
        return d_dt, d_w, d_A.sum_to_size(A.shape), d_B, d_C, g


class _Convolution(torch.autograd.Function):
    """`causal_conv`: one pass over memory for each of the K weights, and two more backward."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        ctx.bias = bias.shape
        length, first = len(x) - len(weight) + 1, weight[0]
        y = torch.addcmul(bias, x[:length], first)
        for i, w in enumerate(weight[1:], start=1):
            y.addcmul_(x[i : i + length], w)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dx, d_weight, product = torch.zeros_like(x), torch.empty_like(weight), torch.empty_like(dy)
        for i, w in enumerate(weight):
            dx[i : i + len(dy)].addcmul_(dy, w)
            torch.mul(dy, x[i : i + len(dy)], out=product)
            d_weight[i] = product.sum_to_size(w.shape)
        return dx, d_weight, dy.sum_to_size(ctx.bias)


def _steps(rows: tuple[Tensor, ...], columns: tuple[Tensor, ...]) -> zip:
    """Views of every step: (…, 1, E) of `rows`, then (…, N, 1) of `columns`."""
    views = [x.unsqueeze(-2).unbind() for x in rows] + [x.unsqueeze(-1).unbind() for x in columns]
    return zip(*views, strict=True)


def _again(segment: list, rate: Tensor, decays: Tensor, h: list[Tensor]) -> None:
    """Fill in the decays of a segment and, from h[0], the states after its steps."""
    for i, (dt_t, w_t, _, _, _, B_t, *_) in enumerate(segment):
        _decay(dt_t, rate, decays[i])
        torch.mul(decays[i], h[i], out=h[i + 1]).addcmul_(B_t, w_t)


def _rate(A: Tensor) -> Tensor:
    """A for powers of two, which cost half as much as powers of e on a CPU."""
    return A * math.log2(math.e)


def _decay(dt_t: Tensor, rate: Tensor, out: Tensor) -> None:
    """exp(dt_t A)."""
    torch.mul(dt_t, rate, out=out)
    torch.exp2(out, out=out)
