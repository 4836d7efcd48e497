"""The same models once more, in the slowest and most literal way: one row, one head, one symbol at
a time, straight from the equations. The tests compare every fast form with its twin here.

Each twin takes a model, for its weights, and tokens (B, T), and returns the logits (B, T, classes).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from companion.models import dss as dss_form
from companion.models import retnet as retnet_form
from companion.models.linear_transformer import EPSILON
from companion.models.lstm import LSTM
from companion.models.mamba import SelectiveScan
from companion.models.stack import MultiHead, Stack


def transformer(model: Stack, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """Softmax attention with a list of the keys and values seen so far."""

    def attend(mix: MultiHead, row: Tensor, memory: list) -> Tensor:
        q, k, v = mix.query(row), mix.key(row), mix.value(row)  # (D,)
        if mix.rotary:
            pairs = mix.size // 2
            rates = [10000 ** (-i / pairs) for i in range(pairs)]
            q, k = (_turn(x, mix.heads, len(memory), rates) for x in (q, k))
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


def retnet(model: Stack, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """Retention with q and k turned by their places in the sequence, and S not turned at all."""

    def retain(mix: retnet_form.Retention, row: Tensor, memory: list) -> Tensor:
        q, k, v = mix.query(row), mix.key(row), mix.value(row)  # (D,)
        if not memory:
            memory.extend([0, [row.new_zeros(mix.size, mix.size)] * mix.heads])
        place, matrices = memory
        if mix.scales_keys:
            k = k / math.sqrt(mix.size)
        if mix.rotates:
            last = max(1, mix.size // 2 - 1)
            rates = [10000 ** (-i / last) for i in range(mix.size // 2)]
            q, k = (_turn(x, mix.heads, place, rates) for x in (q, k))
        outputs = []
        for h in range(mix.heads):
            own = slice(h * mix.size, (h + 1) * mix.size)
            matrices[h] = (1 - 2.0 ** (-5 - h)) * matrices[h] + torch.outer(k[own], v[own])
            o = q[own] @ matrices[h]
            if mix.normalises:
                o = o / torch.sqrt((o * o).mean() + retnet_form.EPSILON)
            outputs.append(o)
        memory[0] += 1
        gate = mix.gate(row)
        return mix.output(gate * gate.sigmoid() * torch.cat(outputs))

    return _stack(model, tokens, retain)


retnet_plain = retnet  # what it leaves out is read off the model


def dss(model: Stack, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """Each coordinate's modes, one step at a time, with the weights of the exponential form."""

    def step(mix: dss_form.Modes, row: Tensor, memory: list) -> Tensor:
        rates = -mix.log_decay.exp() + 1j * mix.frequency
        z = _steps(mix, rates)
        w = torch.view_as_complex(mix.W) * (z.exp() - 1) / rates
        return _modes(mix, row, memory, z, w)

    return _stack(model, tokens, step)


def dss_softmax(model: Stack, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """The same with each mode's sum over all L symbols, added up term by term."""

    def step(mix: dss_form.SoftmaxModes, row: Tensor, memory: list) -> Tensor:
        rates = torch.view_as_complex(mix.rate)
        z, L = _steps(mix, rates), mix.total
        # from the end at which the terms are largest, where the first of them is 1
        inward = torch.where(rates.real > 0, -z, z)
        total = sum((inward * i).exp() for i in range(L)) * (inward.exp() - 1) * rates
        share = (inward.exp() - 1) * total.conj() / (total.abs() ** 2 + dss_form.SMALLEST)
        first = torch.where(rates.real > 0, (-z * (L - 1)).exp(), 1)
        return _modes(mix, row, memory, z, torch.view_as_complex(mix.W) * share * first)

    return _stack(model, tokens, step)


def mamba(model: Stack, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """The selective scan, symbol by symbol, with h as (E, N)."""

    def step(mix: SelectiveScan, row: Tensor, memory: list) -> Tensor:
        if not memory:
            memory.extend([row.new_zeros(mix.channels, mix.n)] + [row.new_zeros(mix.channels)] * 3)
        u, z = mix.in_proj(row).chunk(2)
        memory.append(u)  # h, and the last four u
        u = mix.conv1d.bias + sum(mix.conv1d.weight[:, 0, i] * memory[1 + i] for i in range(4))
        u = u * u.sigmoid()
        dt, B, C = mix.x_proj(u).split([mix.rank, mix.n, mix.n])
        dt = torch.log1p(torch.exp(mix.dt_proj(dt)))
        decay = torch.exp(-dt[:, None] * torch.exp(mix.A_log))
        h = decay * memory[0] + torch.outer(dt * u, B)
        memory[:2] = [h]
        return mix.out_proj((h @ C + mix.D * u) * z * z.sigmoid())

    return _stack(model, tokens, step)


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
                if hasattr(block, "mlp"):
                    x = x + block.mlp(block.norm_mlp(x))
            rows.append(model.head(model.norm(x)))
    return torch.stack(rows).view_as(answers) if rows else answers


def _turn(x: Tensor, heads: int, place: int, rates: list[float]) -> Tensor:
    """Coordinates i and i + half of each head turned by `place`·`rates[i]`, pair by pair."""
    numbers, size, half = list(x), len(x) // heads, len(rates)
    for h in range(heads):
        for i, rate in enumerate(rates):
            a, b = h * size + i, h * size + i + half
            cos, sin = math.cos(place * rate), math.sin(place * rate)
            numbers[a], numbers[b] = x[a] * cos - x[b] * sin, x[b] * cos + x[a] * sin
    return torch.stack(numbers)


def _steps(mix: dss_form.Modes, rates: Tensor) -> Tensor:
    """λ times each coordinate's two step sizes."""
    dt = mix.log_dt.exp()
    return dt[:, :1] * rates.real + 1j * dt[:, 1:] * rates.imag


def _modes(mix: dss_form.Modes, row: Tensor, memory: list, z: Tensor, w: Tensor) -> Tensor:
    """s ← e^z s + u, and what is read from it."""
    s = z.exp() * memory.pop() + row[:, None] if memory else row[:, None] + 0 * z
    memory.append(s)
    return mix.output(F.gelu((w * s).real.sum(-1) + mix.D * row))
