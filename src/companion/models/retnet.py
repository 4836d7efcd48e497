"""RetNet: attention without softmax whose weights decay with the distance, so that it factors.

    o_r = Σ_{j ≤ r} γ^{r-j} ⟨q_r, R^{r-j} k_j⟩ v_j   (one γ per head; R turns pairs of coordinates)

(Sun et al. 2023). A past symbol enters every later answer through S_t = γ R S_{t-1} + k_t v_tᵀ,
D²/H numbers per layer whatever the length, so Theorem 3 binds it. As S is turned at each symbol, q
and k are not turned by their places, and S alone, without t, is all that Bob needs.

"retnet" normalises each head's output and has values as wide as keys (the original's are twice as
wide, with twice the state). "retnet_plain" is the form in earlier experiments of the separations'
authors: no rotation, no normalisation, keys not scaled. Neither scales the embedding by √D, which
`embedding_std` does here.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.models.base import ModelConfig, State, register
from companion.models.positions import rotate
from companion.models.stack import MultiHead, Stack, merge_heads, take_rows

CHUNK = 64  # rows compared pairwise at a time; between chunks only S is passed on
EPSILON = 1e-6  # of the norm of a head's output


class Retention(MultiHead):
    """Decaying linear attention with a gate; state: S (B, H, d, d)."""

    rotates: ClassVar[bool] = True
    normalises: ClassVar[bool] = True
    scales_keys: ClassVar[bool] = True
    gain: ClassVar[float] = 2**-2.5  # of the Xavier initialisation of all but the output

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, bias=not self.normalises)
        self.gate = nn.Linear(config.width, config.width, bias=not self.normalises)
        for part in (self.query, self.key, self.value, self.gate):
            nn.init.xavier_uniform_(part.weight, self.gain)
        nn.init.xavier_uniform_(self.output.weight)

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return ((self.heads, self.size, self.size),)

    def forward(
        self, x: Tensor, state: State, rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        q, k, v = self.project(x, rows)
        k = k * self.size**-0.5 if self.scales_keys else k
        S, place = state.tensors[0], torch.arange(x.shape[-2], device=x.device)
        # Turned by its place in this chunk, a row meets the others at the right angle. S stands at
        # the symbol before the first, place -1.
        q = self.turn(q, place if rows is None else rows[..., None, :])
        k, S = self.turn(k, place), self.turn(S.mT, place[:1] - 1).mT
        o, S = retain(q, k, v, S, log_decay(self.heads, x), rows)
        S = self.turn(S.mT, -place[-1:]).mT  # seen from the last symbol
        o = F.rms_norm(o, (self.size,), eps=EPSILON) if self.normalises else o
        return self.output(F.silu(self.gate(take_rows(x, rows))) * merge_heads(o)), (S,)

    def turn(self, x: Tensor, place: Tensor) -> Tensor:
        """R^place for each row of x, at rates from 1 down to 1/10000."""
        if not self.rotates:
            return x
        rate = 10000.0 ** -torch.linspace(0, 1, x.shape[-1] // 2, dtype=x.dtype, device=x.device)
        return rotate(x, place, rate)


class PlainRetention(Retention):
    """Retention without rotation, norm, or scale."""

    rotates = normalises = scales_keys = False
    gain = 1.0


def log_decay(heads: int, like: Tensor) -> Tensor:
    """ln γ of each head, (H, 1, 1): γ = 1 - 2⁻⁵, 1 - 2⁻⁶, …"""
    h = torch.arange(heads, dtype=like.dtype, device=like.device)
    return torch.log1p(-(2.0 ** (-5 - h)))[:, None, None]


def retain(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, log_gamma: Tensor, rows: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Outputs of the rows q, and S after all k and v; nothing is turned here."""
    place = torch.arange(k.shape[-2], device=k.device)
    if rows is not None:
        return attend(q, k, v, S, log_gamma, rows[..., None, :]), remember(k, v, S, log_gamma)
    outputs = []
    for chunk in zip(*(part.split(CHUNK, dim=-2) for part in (q, k, v)), strict=True):
        q, k, v = chunk  # (B, H, at most CHUNK, d)
        outputs.append(attend(q, k, v, S, log_gamma, place[: k.shape[-2]]))
        S = remember(k, v, S, log_gamma)
    return torch.cat(outputs, dim=-2), S


def attend(q: Tensor, k: Tensor, v: Tensor, S: Tensor, log_gamma: Tensor, row: Tensor) -> Tensor:
    """Outputs of q, which stands at places `row`: this chunk pair by pair, the past through S."""
    distance = row[..., None] - torch.arange(k.shape[-2], device=k.device)  # (…, R, T)
    decay = torch.exp(log_gamma * distance.clamp(min=0)).masked_fill(distance < 0, 0.0)
    return (q @ k.mT * decay) @ v + torch.exp(log_gamma * (row[..., None] + 1)) * (q @ S)


def remember(k: Tensor, v: Tensor, S: Tensor, log_gamma: Tensor) -> Tensor:
    """S after the keys and values of a chunk."""
    length = k.shape[-2]
    left = torch.arange(length - 1, -1, -1, device=k.device)[:, None]  # symbols still to come
    return torch.exp(log_gamma * length) * S + (torch.exp(log_gamma * left) * k).mT @ v


@register("retnet")
class RetNet(Stack):
    """`depth` layers of retention and GELU MLP; `positions` and `tied_from` have no effect.

    >>> from companion.models import ModelConfig
    >>> RetNet(ModelConfig(vocab=85, classes=64)).state_shapes(10)
    ((4, 16, 16),)
    """

    mixer, ordered = Retention, True


@register("retnet_plain")
class RetNetPlain(Stack):
    """The same with plain retention."""

    mixer, ordered = PlainRetention, True
