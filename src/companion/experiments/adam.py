"""Adam for a population: one learning rate a member, all parameters in one piece of memory.

However many parameters and members there are, a step starts a dozen operations, and nothing in it
is decided by the host, so that it can be part of a CUDA graph: the number of steps taken, and with
it the schedule, is a tensor too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

BETAS, EPSILON = (0.9, 0.999), 1e-8  # as in PyTorch's Adam
Schedule = Callable[[Tensor], Tensor]  # from the steps already taken to a factor of the rates


class PopulationAdam:
    """Adam (Kingma and Ba 2015) on parameters (P, …), those of member i with rate `rates[i]`.

    A single model, without the axis P, has `rates` of no axis.

    >>> p = nn.Parameter(torch.zeros(2, 3))
    >>> optimizer = PopulationAdam([p], torch.tensor([0.1, 0.01]))
    >>> p.sum().backward()
    >>> optimizer.step()
    >>> [round(x, 4) for x in p[:, 0].tolist()]
    [-0.1, -0.01]

    Afterwards the parameters share one piece of memory. `schedule`: constant if None.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        rates: Float[Tensor, "*P"],
        schedule: Schedule | None = None,
    ) -> None:
        self.rates, self.schedule = rates, schedule
        self.count = torch.zeros((), device=rates.device)
        self._gather(parameters)
        self.first, self.second = torch.zeros_like(self.memory), torch.zeros_like(self.memory)

    def zero_grad(self) -> None:
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self) -> None:
        factor = 1.0 if self.schedule is None else self.schedule(self.count)
        self.count += 1
        # 1 - β^count, exact also where it is small
        unbias_1, unbias_2 = (-torch.expm1(self.count * math.log(beta)) for beta in BETAS)
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        gradient = torch.cat([part.flatten() for part in parts])
        self.first.lerp_(gradient, 1 - BETAS[0])
        self.second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        size = (self.second / unbias_2).sqrt_().add_(EPSILON)
        rates = self.rate_of_each * (factor / unbias_1)
        self.memory.addcdiv_(rates.mul_(self.first), size, value=-1)

    def keep(self, chosen: Sequence[int], parameters: Iterable[nn.Parameter]) -> None:
        """Go on with the members `chosen`, whose parameters are now `parameters`."""
        shapes = [p.shape for p in self.parameters]

        def select(flat: Tensor) -> Tensor:
            parts = flat.split([shape.numel() for shape in shapes])
            pairs = zip(parts, shapes, strict=True)
            return torch.cat([x.view(shape)[list(chosen)].flatten() for x, shape in pairs])

        self.first, self.second = select(self.first), select(self.second)
        self.rates = self.rates[list(chosen)]
        self._gather(parameters)

    def tensors(self) -> dict[str, Tensor]:
        """What the next steps depend on beside parameters, gradients and rates."""
        return {"first": self.first, "second": self.second, "count": self.count}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`."""
        for name, x in self.tensors().items():
            x.copy_(tensors[name])

    def _gather(self, parameters: Iterable[nn.Parameter]) -> None:
        """Move the parameters into one piece of memory and lay out their rates beside it."""
        self.parameters = list(parameters)
        sizes = [p.numel() for p in self.parameters]
        self.memory = torch.cat([p.detach().flatten() for p in self.parameters])
        for p, part in zip(self.parameters, self.memory.split(sizes), strict=True):
            p.data = part.view_as(p)
        members = max(1, self.rates.numel())
        each = [self.rates.repeat_interleave(size // members) for size in sizes]
        self.rate_of_each = torch.cat(each)
