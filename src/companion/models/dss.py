"""DSS: each coordinate runs through its own linear system, diagonal and complex, with N modes.

    s_t = e^z s_{t-1} + u_t,   y_t = Re Σ_n w_n s_{t,n} + D u_t,   out = W gelu(y)

(Gupta, Gu, Berant 2022). How long a symbol is remembered does not depend on what it is: y is u
convolved with the kernel K_l = Re Σ_n w_n e^{z_n l}. Training works with K; what Alice sends is s,
2·N·D numbers per layer.

"dss" has the exponential weights w = W (e^z - 1) / λ and only modes that decay, Re λ < 0. In
"dss_softmax" λ is free and a mode's kernel is divided by its sum over L symbols, as in a softmax:
w = W / (λ Σ_{l < L} e^{z l}). So both parties must know L before they start: it is `max_len`, and
longer sequences are refused. A growing mode's state is Σ_j e^{-z j} u_j, over all symbols read, so
that only numbers below one are ever raised to a power.

| symbol | shape        | meaning                                                        |
|--------|--------------|----------------------------------------------------------------|
| λ      | (N,)         | modes, shared by all coordinates                               |
| z      | (1, D, N)    | λ times each coordinate's step size, one for Re and one for Im |
| w      | (1, D, N)    | weight of each mode in the output                              |
| s      | (B, D, N)    | state                                                          |
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float
from torch import Tensor, nn

from companion.models.base import ModelConfig, State, register
from companion.models.stack import Mixer, Stack, lookup, take_rows

STATE = 64  # N unless told otherwise
DT_MIN, DT_MAX = 1e-3, 1e-1  # step sizes before training, evenly spread in the logarithm
FEW = 4  # up to so many rows are summed up one by one; for more the whole convolution is faster
SMALLEST = 1e-7  # keeps quotients finite


def hippo_modes(n: int) -> Complex[Tensor, " n"]:
    """λ before training: -1/2 + the n eigenvalues with positive imaginary part, largest first, of
    the skew-symmetric part of the HiPPO matrix of size 2n.

    >>> [round(x, 3) for x in hippo_modes(2).imag.tolist()]
    [4.603, 0.557]
    """
    side = (2 * torch.arange(2 * n, dtype=torch.float64) + 1).sqrt()
    lower = torch.outer(side, side).tril(-1) / 2
    frequency = torch.linalg.eigvalsh(1j * (lower - lower.mT)).flip(-1)[:n]  # 1j × skew: Hermitian
    return torch.complex(torch.full_like(frequency, -0.5), frequency)


class Modes(Mixer):
    """The exponential form; state: s (B, D, N, 2), real and imaginary parts."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, n = config.width, config.state_size or STATE
        self.width, self.n, self.total = width, n, config.max_len
        log_dt = nn.init.uniform_(torch.empty(width, 1), math.log(DT_MIN), math.log(DT_MAX))
        self.log_dt = nn.Parameter(log_dt.repeat(1, 2))  # for Re λ and for Im λ
        rates = hippo_modes(n).to(torch.complex64)
        self.log_decay = nn.Parameter((-rates.real).log())
        self.frequency = nn.Parameter(rates.imag.clone())
        self.W = nn.Parameter(torch.empty(width, n, 2).normal_())
        self.D = nn.Parameter(torch.empty(width).normal_())
        self.output = nn.Linear(width, width)

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return ((self.width, self.n, 2),)

    def system(self) -> tuple[Tensor, Tensor]:
        """z and w. Of a mode that grows, w is what its largest power is weighted with."""
        rates = torch.complex(-exact(self.log_decay).exp(), exact(self.frequency))
        rates = rates[..., None, None, :]
        z = self.per_step(rates)
        return z, as_complex(self.W)[..., None, :, :] * (exp(z) - 1) / rates

    def per_step(self, rates: Tensor) -> Tensor:
        """z. Its angle is reduced: angles of hundreds, times l, would lose their last digits."""
        dt = exact(self.log_dt).exp()[..., None, :, :]
        angle = torch.remainder(dt[..., 1:] * rates.imag, 2 * math.pi)
        return torch.complex(dt[..., :1] * rates.real, angle)

    def forward(
        self, x: Tensor, state: State, rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        z, w = self.system()
        u, length, t = exact(x), x.shape[-2], state.t
        kernel = response(w, *powers(z, length, self.total - 1))[..., :length]
        y, s = convolve(u, kernel, rows), respond(u, *powers(z, length, t + length - 1))
        if t:  # else there is no past
            before, grows = as_complex(state.tensors[0]), z.real > 0
            weight = w * before * exp(torch.where(grows, 0, z))
            past = response(weight, *powers(z, length, self.total - 1 - t))[..., :length]
            y = y + take_rows(past.mT, rows)
            s = s + before * exp(torch.where(grows, 0, z * length))
        y = y.to(x.dtype) + self.D[..., None, None, :] * take_rows(x, rows)
        return self.output(F.gelu(y)), (torch.view_as_real(s).to(x.dtype),)


class SoftmaxModes(Modes):
    """The softmax form over `max_len` symbols, with λ as it is."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        decay = self.log_decay.detach().exp()
        self.rate = nn.Parameter(torch.stack([-decay, self.frequency.detach()], dim=-1))
        del self.log_decay, self.frequency

    def system(self) -> tuple[Tensor, Tensor]:
        rates = as_complex(self.rate)[..., None, None, :]
        z = self.per_step(rates)
        inward = torch.where(z.real > 0, -z, z)  # the sum over a growing mode, from its other end
        total = (exp(inward * self.total) - 1) * rates
        inverse = total.conj() / (total.abs().square() + SMALLEST)
        return z, as_complex(self.W)[..., None, :, :] * (exp(inward) - 1) * inverse

    def forward(
        self, x: Tensor, state: State, rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        end = state.t + x.shape[-2]
        if end > self.total:
            raise ValueError(
                f"got {end} symbols ({state.t} read before), expected max_len={self.total}"
            )
        return super().forward(x, state, rows)


def exact(x: Tensor) -> Tensor:
    """x in float32 at least: nothing narrower has complex numbers."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def as_complex(x: Tensor) -> Tensor:
    """(…, 2) as complex numbers."""
    return torch.view_as_complex(exact(x).contiguous())


def exp(z: Tensor) -> Tensor:
    """e^z from real functions, which torch computes several times faster than its complex one."""
    return torch.polar(z.real.exp(), z.imag)


def as_real(x: Tensor) -> Tensor:
    """Complex (…, N) as (…, 2N)."""
    return torch.view_as_real(x.resolve_conj()).flatten(-2)


def powers(z: Complex[Tensor, "*B D N"], length: int, last: int) -> tuple[Tensor, Tensor]:
    """e^{z l}, or e^{z (l - last)} where that grows, for l = 0, …, length - 1 in two factors: those
    of i and of j, (…, D, √T, N), if l = step·i + j. Most uses need no more of the T·N·D numbers."""
    step = math.isqrt(length - 1) + 1
    j = torch.arange(step, dtype=z.real.dtype, device=z.device)[:, None]
    i = step * j[: -(-length // step)]
    z = z[..., None, :]
    return exp(z * torch.where(z.real > 0, i - last, i)), exp(z * j)


def response(
    w: Complex[Tensor, "*B D N"],
    coarse: Complex[Tensor, "*#B D I N"],
    fine: Complex[Tensor, "*#B D J N"],
) -> Float[Tensor, "*B D IJ"]:
    """Re Σ_n w_n e^{z_n l} for l = 0, 1, …: a matrix product of the two factors.

    >>> one, half = torch.ones(1, 1) + 0j, torch.full((1, 1), math.log(0.5)) + 0j
    >>> response(one, *powers(half, 4, last=3)).tolist()
    [[1.0, 0.5, 0.25, 0.125]]
    """
    return (as_real(w[..., None, :] * coarse) @ as_real(fine.conj()).mT).flatten(-2)


def respond(
    u: Float[Tensor, "*P B T D"],
    coarse: Complex[Tensor, "*P 1 D I N"],
    fine: Complex[Tensor, "*P 1 D J N"],
) -> Complex[Tensor, "*P B D N"]:
    """The state Σ_j e^{z (T-1-j)} u_j that a chunk leaves behind."""
    falling = coarse.flip(-2)[..., :, None, :] * fine.flip(-2)[..., None, :, :]  # (…, D, I, J, N)
    falling = as_real(falling.flatten(-3, -2)[..., 0, :, -u.shape[-2] :, :])  # (…, D, T, 2N)
    s = (u.movedim(-1, -3).contiguous() @ falling).transpose(-3, -2)  # (…, B, D, 2N)
    return torch.view_as_complex(s.unflatten(-1, (-1, 2)).contiguous())


def convolve(
    u: Float[Tensor, "*P B T D"], kernel: Float[Tensor, "*P 1 D T"], rows: Tensor | None
) -> Float[Tensor, "*P B R D"]:
    """Σ_{j ≤ r} K_{r-j} u_j for each wanted row r, by Fourier transforms unless they are few."""
    length = u.shape[-2]
    if rows is None or rows.shape[-1] > FEW:
        twice = 2 * length  # no wrap-around
        spectrum = torch.fft.rfft(u.mT, twice) * torch.fft.rfft(kernel, twice)
        return take_rows(torch.fft.irfft(spectrum, twice)[..., :length].mT, rows)
    lag = rows[..., None] - torch.arange(length, device=u.device)  # (…, R, T)
    lag = torch.where(lag < 0, length, lag)  # the kernel's last row is one of zeros
    weight = lookup(F.pad(kernel, (0, 1))[..., 0, :, :].mT, lag)  # (…, R, T, D)
    return (weight * u[..., None, :, :]).sum(-2)


@register("dss")
class DSS(Stack):
    """`depth` layers of N modes per coordinate and GELU MLP; `heads`, `positions` and `tied_from`
    have no effect.

    >>> from companion.models import ModelConfig
    >>> DSS(ModelConfig(vocab=85, classes=64)).state_shapes(10)
    ((64, 64, 2),)
    """

    mixer, ordered = Modes, True


@register("dss_softmax")
class DSSSoftmax(Stack):
    """The same in the softmax form, for sequences of at most `max_len` symbols."""

    mixer, ordered = SoftmaxModes, True
