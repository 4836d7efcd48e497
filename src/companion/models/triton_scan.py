"""The selective scan on a CUDA GPU: the map of `companion.models.scan`, as two Triton kernels.

A program, which is one warp, follows one sequence through all steps and holds the states of some
channels in registers. The forward kernel keeps h at the start of each segment of `SEGMENT` steps,
N / 4 times as many numbers as y has, and nothing else; the backward kernel computes a segment
again, its states in registers too, and walks it from its end. Gradients of B and C are sums over
channels, and that of A is one over sequences: each program writes its share, no larger than y or h,
and PyTorch adds the shares, always in the same order.

| symbol | shape         | meaning                                                      |
|--------|---------------|--------------------------------------------------------------|
| G, R   |               | members of a population, sequences of each                   |
| r      | program       | the sequence: number r % R of member r // R                  |
| n, e   | (N, 1), (1, channels) | numbers of the state, channels of the program        |
| at     |               | row (r // R, t, r % R) of arrays (G, T, R, …), as a number   |

Rows and columns that do not exist count as 0. So does dt after the last step, and h stays as it is.

A kernel is compiled when it is first called, so call it once before capturing a CUDA graph. Without
the package triton this module can be imported, but nothing else.
"""

from __future__ import annotations

import math
from typing import no_type_check

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

try:
    import triton
    import triton.language as tl

    kernel, constant = triton.jit, tl.constexpr
except ImportError:
    kernel, constant = (lambda function: function), float

SEGMENT = 4  # steps computed again at a time
LARGE = 16  # the largest N with which 16 channels, not 8, fit into the registers of a warp
LOG2_E, LN_2 = constant(math.log2(math.e)), constant(math.log(2))


def triton_scan(
    dt: Float[Tensor, "T *B E"],
    u: Float[Tensor, "T *B E"],
    A: Float[Tensor, "*P N E"],
    B: Float[Tensor, "T *B N"],
    C: Float[Tensor, "T *B N"],
    h: Float[Tensor, "*B N E"],
) -> tuple[Float[Tensor, "T *B E"], Float[Tensor, "*B N E"]]:
    """All y, and h after the last step, as `seg_scan`; for tensors on a CUDA GPU.

    Raises TypeError for numbers that are neither float32 nor float64.
    """
    if h.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"got {h.dtype}, expected torch.float32 or torch.float64")
    keep = torch.is_grad_enabled() and any(x.requires_grad for x in (dt, u, A, B, C, h))
    return _TritonScan.apply(dt, u, A, B, C, h, keep)


class _TritonScan(torch.autograd.Function):
    """`triton_scan`; the states of segment starts are kept only if there will be gradients."""

    @staticmethod
    def forward(ctx, dt, u, A, B, C, h, keep):
        members, ctx.shape, ctx.rates = A.shape[:-2].numel(), h.shape, A.shape
        dt, u, B, C = (_time_inside(x, members) for x in (dt, u, B, C))
        A, h = A.contiguous(), h.contiguous()
        y, end = torch.empty_like(u), torch.empty_like(h)
        segments = triton.cdiv(dt.shape[1], SEGMENT) if keep else 0
        kept = h.new_empty(segments, *h.shape)
        with torch.cuda.device_of(h):
            grid, sizes = _layout(dt, B)
            _forward[grid](dt, u, A, B, C, h, y, end, kept, KEEP=keep, **sizes)
        ctx.save_for_backward(dt, u, A, B, C, kept)
        return _time_first(y, ctx.shape), end

    @staticmethod
    @once_differentiable
    def backward(ctx, dy, dh):
        dt, u, A, B, C, kept = ctx.saved_tensors
        dy, dh = _time_inside(dy, len(dt)), dh.contiguous()
        grid, sizes = _layout(dt, B)
        d_dt, d_u = torch.empty_like(dt), torch.empty_like(u)
        d_B, d_C = B.new_empty(2, grid[1], *B.shape).unbind()
        d_A, d_h = torch.empty_like(dh), torch.empty_like(dh)
        gradients = d_dt, d_u, d_A, d_B, d_C, d_h
        with torch.cuda.device_of(dh):
            _backward[grid](dt, u, A, B, C, kept, dy, dh, *gradients, **sizes)
        inside = (d_dt, d_u, d_B.sum(0), d_C.sum(0))
        d_dt, d_u, d_B, d_C = (_time_first(x, ctx.shape) for x in inside)
        return d_dt, d_u, d_A.sum_to_size(ctx.rates), d_B, d_C, d_h, None


def _time_inside(x: Tensor, members: int) -> Tensor:
    """(T, …, E) as (G, T, R, E), which is how a population holds it in memory anyway."""
    return x.reshape(len(x), members, -1, x.shape[-1]).transpose(0, 1).contiguous()


def _time_first(x: Tensor, state: torch.Size) -> Tensor:
    """(G, T, R, E) as (T, …, E), where h has the shape (…, N, E)."""
    return x.transpose(0, 1).reshape(x.shape[1], *state[:-2], x.shape[-1])


def _layout(dt: Tensor, B: Tensor) -> tuple[tuple[int, int], dict[str, int]]:
    """Programs, and the sizes that a kernel is told."""
    (members, steps, rows, channels), n = dt.shape, B.shape[-1]
    filled = triton.next_power_of_2(n)
    width = 16 if filled <= LARGE else 8
    sizes = {"T": steps, "R": rows, "E": channels, "N": n, "FILLED": filled}
    options = {"CHANNELS": width, "SEGMENT": SEGMENT, "num_warps": 1}
    return (members * rows, triton.cdiv(channels, width)), {**sizes, **options}


@no_type_check
@kernel
def _places(E, N: tl.constexpr, FILLED: tl.constexpr, CHANNELS: tl.constexpr):
    """n, e, their place in a state, and whether they exist."""
    n = tl.arange(0, FILLED)[:, None]
    e = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    return n, e, n * E + e, (n < N) & (e < E)


@no_type_check
@kernel
def _rows(x, at, stride, size, i, left, SEGMENT: tl.constexpr):
    """x[at + m stride, i] for the steps m of a segment, and 0 where fewer than m + 1 are left."""
    rows = ()
    for m in tl.static_range(SEGMENT):
        rows += (tl.load(x + (at + m * stride) * size + i, (i < size) & (m < left), 0.0),)
    return rows


@no_type_check
@kernel
def _read(dt, u, B, C, at, R, E, e, N: tl.constexpr, n, left, SEGMENT: tl.constexpr):
    """dt, u, B and C at the steps of a segment, all before any is used: then they come together."""
    dts, us = _rows(dt, at, R, E, e, left, SEGMENT), _rows(u, at, R, E, e, left, SEGMENT)
    Bs, Cs = _rows(B, at, R, N, n, left, SEGMENT), _rows(C, at, R, N, n, left, SEGMENT)
    return dts, us, Bs, Cs


@no_type_check
@kernel
def _forward(
    dt, u, A, B, C, h0, y, end, kept, T, R, E, N: tl.constexpr, FILLED: tl.constexpr,
    CHANNELS: tl.constexpr, SEGMENT: tl.constexpr, KEEP: tl.constexpr
):  # fmt: skip
    r, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0).to(tl.int64)
    n, e, tile, own = _places(E, N, FILLED, CHANNELS)
    rate = LOG2_E * tl.load(A + r // R * N * E + tile, own, 0.0)
    h = tl.load(h0 + r * N * E + tile, own, 0.0)
    for s in range(tl.cdiv(T, SEGMENT)):
        if KEEP:
            tl.store(kept + (s * programs + r) * N * E + tile, h, own)
        at, left = (r // R * T + s * SEGMENT) * R + r % R, T - s * SEGMENT
        dts, us, Bs, Cs = _read(dt, u, B, C, at, R, E, e, N, n, left, SEGMENT)
        for m in tl.static_range(SEGMENT):
            h = tl.exp2(dts[m] * rate) * h + Bs[m] * (dts[m] * us[m])
            y_t = tl.sum(Cs[m] * h, 0)[None, :]
            tl.store(y + (at + m * R) * E + e, y_t, (e < E) & (m < left))
    tl.store(end + r * N * E + tile, h, own)


@no_type_check
@kernel
def _backward(
    dt, u, A, B, C, kept, dy, dh, d_dt, d_u, d_A, d_B, d_C, d_h, T, R, E, N: tl.constexpr,
    FILLED: tl.constexpr, CHANNELS: tl.constexpr, SEGMENT: tl.constexpr
):  # fmt: skip
    r, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0).to(tl.int64)
    n, e, tile, own = _places(E, N, FILLED, CHANNELS)
    rate = LOG2_E * tl.load(A + r // R * N * E + tile, own, 0.0)
    g, of_A = tl.load(dh + r * N * E + tile, own, 0.0), tl.zeros_like(rate)
    share = tl.program_id(1) * programs * T
    for s in range(tl.cdiv(T, SEGMENT) - 1, -1, -1):
        at, left = (r // R * T + s * SEGMENT) * R + r % R, T - s * SEGMENT
        dts, us, Bs, Cs = _read(dt, u, B, C, at, R, E, e, N, n, left, SEGMENT)
        dys = _rows(dy, at, R, E, e, left, SEGMENT)
        hs = (tl.load(kept + (s * programs + r) * N * E + tile, own, 0.0),)
        for m in tl.static_range(SEGMENT):
            hs += (tl.exp2(dts[m] * rate) * hs[m] + Bs[m] * (dts[m] * us[m]),)
        for m in tl.static_range(SEGMENT - 1, -1, -1):
            step = (rate, dts[m], us[m], Bs[m], Cs[m], dys[m])
            g, of_dt_A, rows, columns = _undo(g, hs[m], hs[m + 1], *step)
            of_A += of_dt_A * dts[m]
            at_e, at_n = (at + m * R) * E + e, (share + at + m * R) * N + n
            tl.store(d_dt + at_e, rows[0], (e < E) & (m < left))
            tl.store(d_u + at_e, rows[1], (e < E) & (m < left))
            tl.store(d_B + at_n, columns[0], (n < N) & (m < left))
            tl.store(d_C + at_n, columns[1], (n < N) & (m < left))
    tl.store(d_h + r * N * E + tile, g, own)
    tl.store(d_A + r * N * E + tile, of_A, own)


@no_type_check
@kernel
def _undo(g, before, after, rate, dt, u, B, C, dy):
    """From the gradient g that h_t has from later steps: that of h_{t-1}, that of dt_t A, those of
    dt_t and u_t, and this program's shares of those of B_t and C_t."""
    of_C = tl.sum(after * dy, 1)[:, None]
    g += C * dy
    of_B = tl.sum(g * (dt * u), 1)[:, None]
    of_w = tl.sum(g * B, 0)[None, :]  # w = dt ∘ u
    g *= tl.exp2(dt * rate)
    of_dt_A = g * before
    of_dt = LN_2 * tl.sum(of_dt_A * rate, 0)[None, :] + u * of_w
    return g, of_dt_A, (of_dt, dt * of_w), (of_B, of_C)
