"""DeltaNet: linear attention that corrects what it has stored instead of adding to it.

    S_t = S_{t-1} + β_t k_t (v_t - S_{t-1}ᵀ k_t)ᵀ = (I - β_t k_t k_tᵀ) S_{t-1} + β_t k_t v_tᵀ
    o_t = S_tᵀ q_t

(Schlag, Irie, Schmidhuber 2021). With a unit key and β = 1 the value stored at k_t is replaced by
v_t. State: S alone, D²/H numbers per layer.

Over a chunk, let u_t = β_t (v_t - S_{t-1}ᵀ k_t) be what is written at t. What was written before t
in the same chunk changes u_t linearly, so all u of a chunk solve one triangular system

    (I + tril₋₁(diag(β) K Kᵀ)) U = diag(β) (V - K S)

and, as it is linear in S too, one solve for V and for K serves all chunks at once.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from companion.models.base import ModelConfig, State, register
from companion.models.stack import MultiHead, Stack, merge_heads, take_rows

CHUNK = 20  # at most so many rows in one triangular system; measured, for d from 8 to 64
SMALLEST = 1e-6  # of the size that features are divided by


def features(x: Float[Tensor, "*B d"], order: int) -> Float[Tensor, "*B d"]:
    """Positive features φ(x) = elu(x) + 1, divided by their sum (order 1) or length (order 2).

    >>> features(torch.tensor([0.0, -1000.0]), 1).tolist()
    [1.0, 0.0]
    >>> features(torch.tensor([2.0, 3.0]), 2).tolist()  # (3, 4) / 5
    [0.6000000238418579, 0.800000011920929]
    """
    return F.normalize(F.elu(x) + 1, p=order, dim=-1, eps=SMALLEST)


class DeltaRule(MultiHead):
    """Attention that writes by the delta rule; state: S (B, H, d, d)."""

    largest_rate: ClassVar[float] = 1.0  # of β; I - βkkᵀ has its eigenvalues in [1 - β|k|², 1]
    order: ClassVar[int] = 1  # keys of sum 1, |k| ≤ 1; 2: of length 1

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.rate = nn.Linear(config.width, config.heads)

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return ((self.heads, self.size, self.size),)

    def forward(
        self, x: Tensor, state: State, rows: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        q, k, v = self.project(x, None)  # a row's output needs all that was written before
        beta = self.largest_rate * self.rate(x).sigmoid().mT[..., None]  # (B, H, T, 1)
        q, k = (features(part, self.order) for part in (q, k))
        o, S = delta_rule(q, k, v, beta, state.tensors[0])
        return self.output(take_rows(merge_heads(o), rows)), (S,)


def delta_rule(
    q: Float[Tensor, "*B T d"],
    k: Float[Tensor, "*B T d"],
    v: Float[Tensor, "*B T e"],
    beta: Float[Tensor, "*B T 1"],
    S: Float[Tensor, "*B d e"],
) -> tuple[Float[Tensor, "*B T e"], Float[Tensor, "*B d e"]]:
    """All outputs and the last S, chunk by chunk, after a single triangular solve.

    >>> one = torch.ones(1, 2, 1)
    >>> o, S = delta_rule(one, one, torch.tensor([[[3.0], [5.0]]]), one, torch.zeros(1, 1, 1))
    >>> o.flatten().tolist(), S.item()  # 5 replaces 3
    ([3.0, 5.0], 5.0)
    """
    length = k.shape[-2]
    count = -(-length // CHUNK)
    size = -(-length // count)  # chunks of equal size, the last filled up with rates of zero
    fill = (0, 0, 0, count * size - length)
    q, k, v, beta = (F.pad(x, fill).unflatten(-2, (count, size)) for x in (q, k, v, beta))
    past = (beta * k @ k.mT).tril(-1)  # (B, H, chunks, size, size)
    own, seen = _solve(past, beta * torch.cat([v, k], -1)).split((v.shape[-1], k.shape[-1]), -1)
    weight = (q @ k.mT).tril()
    q, k, own, seen, weight = (x.unbind(-3) for x in (q, k, own, seen, weight))
    outputs = []
    for c in range(count):
        u = own[c] - seen[c] @ S  # (B, H, size, e): what is written
        outputs.append(q[c] @ S + weight[c] @ u)
        S = S + k[c].mT @ u
    return torch.cat(outputs, dim=-2)[..., :length, :], S


def _solve(past: Tensor, right: Tensor) -> Tensor:
    """(I + past)⁻¹ right, in single precision where the numbers have half of it: PyTorch has no
    triangular solve for those."""
    dtype = right.dtype if right.dtype.itemsize > 2 else torch.float32
    past, wide = past.to(dtype), right.to(dtype)
    solved = torch.linalg.solve_triangular(past, wide, upper=False, unitriangular=True)
    return solved.to(right.dtype)


class SignedDeltaRule(DeltaRule):
    """The same with β up to 2 and keys of length 1: along the key S is multiplied by 1 - β, which
    may be negative. Keys of sum 1 are mostly too short for that: 1 - β|k|² < 0 takes |k|² > 1/2."""

    largest_rate = 2.0
    order = 2


@register("deltanet")
class DeltaNet(Stack):
    """`depth` layers of the delta rule and GELU MLP.

    >>> from companion.models import ModelConfig
    >>> model = DeltaNet(ModelConfig(vocab=85, classes=64))
    >>> _, state = model(torch.zeros(1, 10, dtype=torch.int64))
    >>> model.state_bits(state) == 64 * 64 // 4 * 32
    True
    """

    mixer = DeltaRule


@register("deltanet_negative")
class DeltaNetNegative(Stack):
    """DeltaNet with β in [0, 2] and unit keys, so that I - βkkᵀ may have any eigenvalue from -1 on
    (Grazzi et al. 2024, later than the second paper).

    >>> DeltaNetNegative.mixer.largest_rate
    2.0
    """

    mixer = SignedDeltaRule
