"""The same models once more, in the slowest and most literal way: one row, one head, one symbol at
a time, straight from the equations. The tests compare every fast form with its twin here.

Each twin takes a model, for its weights, and tokens (B, T), and returns the logits (B, T, classes).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from companion.models.linear_transformer import EPSILON
from companion.models.lstm import LSTM
from companion.models.stack import MultiHead, Stack


def transformer(model: Stack, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """Softmax attention with a list of the keys and values seen so far."""

    def attend(mix: MultiHead, row: Tensor, memory: list) -> Tensor:
        q, k, v = mix.query(row), mix.key(row), mix.value(row)  # (D,)
        memory.append((k, v))
        outputs = []
        for h in range(mix.heads):
            own = slice(h * mix.size, (h + 1) * mix.size)
            score = [q[own] @ k[own] / mix.size**0.5 for k, _ in memory]
            weight = torch.stack(score).softmax(0)
            outputs.append(sum(w * v[own] for w, (_, v) in zip(weight, memory, strict=True)))
        return mix.output(torch.cat(outputs))

    return _stack(model, tokens, attend)


def linear_transformer(model: Stack, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """Linear attention as a recurrence on S (one matrix per head) and z (one vector per head)."""

    def attend(mix: MultiHead, row: Tensor, memory: list) -> Tensor:
        q, k, v = F.elu(mix.query(row)) + 1, F.elu(mix.key(row)) + 1, mix.value(row)  # (D,)
        if not memory:
            memory.extend((row.new_zeros(mix.size, mix.size), row.new_zeros(mix.size))
                          for _ in range(mix.heads))  # fmt: skip
        outputs = []
        for h in range(mix.heads):
            own = slice(h * mix.size, (h + 1) * mix.size)
            S, z = memory[h]
            S, z = S + torch.outer(k[own], v[own]), z + k[own]
            memory[h] = S, z
            outputs.append(q[own] @ S / (q[own] @ z + EPSILON))
        return mix.output(torch.cat(outputs))

    return _stack(model, tokens, attend)


def lstm(model: LSTM, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """The four gates of Hochreiter and Schmidhuber, with forget gate, cell by cell."""
    batch, length = tokens.shape
    zero = torch.zeros(batch, model.config.width, dtype=model.dtype)
    h, c = [zero] * model.config.depth, [zero] * model.config.depth
    rows = []
    for t in range(length):
        x = model.embedding(tokens[:, t])
        for layer in range(model.config.depth):
            w = {name: getattr(model.lstm, f"{name}_l{layer}") for name in
                 ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}  # fmt: skip
            gates = (
                x @ w["weight_ih"].mT + w["bias_ih"] + h[layer] @ w["weight_hh"].mT + w["bias_hh"]
            )
            i, f, g, o = gates.chunk(4, dim=-1)
            c[layer] = f.sigmoid() * c[layer] + i.sigmoid() * g.tanh()
            x = h[layer] = o.sigmoid() * c[layer].tanh()
        rows.append(model.head(x))
    return torch.stack(rows, dim=1) if rows else tokens.new_zeros(batch, 0, 0).to(model.dtype)


def _stack(model: Stack, tokens: Tensor, attend) -> Tensor:
    """The frame: `attend(mix, row, memory)` mixes one row with those it has seen before."""
    answers = torch.zeros(*tokens.shape, model.config.classes, dtype=model.dtype)
    rows = []
    for b in range(tokens.shape[0]):
        memories = [[] for _ in model.blocks]
        for t in range(tokens.shape[1]):
            x = model.embedding(tokens[b : b + 1, t : t + 1], t)[0, 0]
            for block, memory in zip(model.blocks, memories, strict=True):
                x = x + attend(block.mix, block.norm_mix(x), memory)
                x = x + block.mlp(block.norm_mlp(x))
            rows.append(model.head(model.norm(x)))
    return torch.stack(rows).view_as(answers) if rows else answers
