"""A population: P models of one architecture that run as one program.

All axes have P in front: tokens are (P, B, T), activations (P, B, T, D), a weight matrix (P, o, i),
and a linear layer of all members is one batched product. At width 64 a GPU spends most of a step
starting operations, and a population starts hardly more of them than one model. On a CPU, where
arithmetic takes the time, nothing is gained.

Models are written so that a leading axis passes through: they address axes from the right. Only
PyTorch's own layers do not; a population exchanges each for its twin below, with the same names of
parameters, each of which has gained the axis P.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.models.base import SequenceModel, State
from companion.models.positions import Positions
from companion.models.stack import linear, lookup


class Population(nn.Module):
    """P models as one, whose weights are those of `members` when it is made.

    >>> from companion.models import ModelConfig, build
    >>> config = ModelConfig(vocab=3, classes=2)
    >>> members = [build("lstm", config, rng=torch.Generator().manual_seed(i)) for i in range(2)]
    >>> population, tokens = Population(members), torch.tensor([[[0, 1, 2]], [[2, 2, 2]]])
    >>> logits, state = population(tokens)
    >>> alone = torch.stack([m(own)[0] for m, own in zip(members, tokens)])
    >>> bool(torch.allclose(logits, alone, atol=1e-6))
    True

    Raises ValueError for no members, or members of different architectures or sizes, in different
    number formats, or on different devices.
    """

    def __init__(self, members: Sequence[SequenceModel]) -> None:
        super().__init__()
        kinds = {(type(m).__name__, m.config, m.dtype, m.device) for m in members}
        if len(kinds) != 1:
            raise ValueError(
                f"got {len(kinds)} kinds of members, expected 1: {sorted(map(str, kinds))}"
            )
        frame = _stack(members)
        frame.members = (len(members),)
        self.frame: SequenceModel = frame

    def __len__(self) -> int:
        return self.frame.members[0]

    def forward(
        self,
        tokens: Int[Tensor, "P B T"],
        state: State | None = None,
        read: Int[Tensor, "P B R"] | None = None,
    ) -> tuple[Float[Tensor, "P B rows classes"], State]:
        """Each member's logits of its own tokens, as `SequenceModel.forward`."""
        return self.frame(tokens, state, read)

    def weights(self, i: int) -> dict[str, Tensor]:
        """Copies of the parameters of member i, to be loaded by a model of its kind."""
        return {name: x[i].detach().clone() for name, x in self.frame.state_dict().items()}

    def keep(self, chosen: Sequence[int]) -> None:
        """Go on with the members `chosen` only. Parameters are new tensors afterwards.

        Raises ValueError if none is chosen.
        """
        if not chosen:
            raise ValueError(f"got no member of {len(self)} to keep, expected at least 1")
        for module in self.frame.modules():
            for name, p in module.named_parameters(recurse=False):
                setattr(module, name, nn.Parameter(p.detach()[list(chosen)]))
            if isinstance(module, _Positions) and "table" in module._buffers:
                module.table = module.table[list(chosen)]
        self.frame.members = (len(chosen),)


class _Linear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class _Embedding(nn.Embedding):
    def forward(self, tokens: Tensor) -> Tensor:
        return lookup(self.weight, tokens)


class _Positions(Positions):
    def forward(self, place: Tensor) -> Tensor:
        """`place` is (P, B, T), or (T,) if it is the same for all."""
        if place.ndim == 1:
            return self.table.index_select(1, place)[:, None]
        return lookup(self.table, place)


class _LayerNorm(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        normal = F.layer_norm(x, self.normalized_shape, eps=self.eps)
        return torch.addcmul(_across(self.bias, x), normal, _across(self.weight, x))


class _RMSNorm(nn.RMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, eps=self.eps) * _across(self.weight, x)


class _LSTM(nn.LSTM):
    """Symbol by symbol: PyTorch's fast LSTM takes a single set of weights."""

    def forward(
        self, x: Tensor, before: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        after = []
        for i, (h, c) in enumerate(zip(*before, strict=True)):  # each (P, B, D)
            names = (f"{kind}_l{i}" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
            W, R, b, b_own = (getattr(self, name) for name in names)
            gates, R, outputs = linear(x, W, b + b_own), R.mT, []
            for given in gates.unbind(-2):  # (P, B, 4D)
                enter, forget, new, leave = torch.baddbmm(given, h, R).chunk(4, -1)
                c = forget.sigmoid() * c + enter.sigmoid() * new.tanh()
                h = leave.sigmoid() * c.tanh()
                outputs.append(h)
            x = torch.stack(outputs, dim=-2)
            after.append((h, c))
        return x, tuple(torch.stack(part) for part in zip(*after, strict=True))


TWINS = {
    nn.Linear: _Linear,
    nn.Embedding: _Embedding,
    Positions: _Positions,
    nn.LayerNorm: _LayerNorm,
    nn.RMSNorm: _RMSNorm,
    nn.LSTM: _LSTM,
}


def _across(parameter: Tensor, x: Tensor) -> Tensor:
    """A parameter (P, D) in the shape in which it meets x, (P, …, D)."""
    return parameter.view(len(parameter), *[1] * (x.ndim - 2), -1)


def _stack(members: Sequence[SequenceModel]) -> SequenceModel:
    """A copy of the first whose parameters, and whose layers, are those of all."""
    frame = copy.deepcopy(members[0])
    for name, module in frame.named_modules():
        same = [member.get_submodule(name) for member in members]
        for key, p in list(module.named_parameters(recurse=False)):
            stacked = torch.stack([getattr(m, key).detach() for m in same])
            setattr(module, key, nn.Parameter(stacked, requires_grad=p.requires_grad))
        if isinstance(module, Positions) and "table" in module._buffers:
            module.table = torch.stack([m.table for m in same])
        module.__class__ = TWINS.get(type(module), type(module))
    return frame
