"""Naive twins of the fast weight programmers: number by number, straight from the equations.

Vectors and matrices are lists here and every sum is a loop, so nothing of the fast forms is used
but their weights. The frame around the mixers is that of `companion.models.naive`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.models.deltanet import DeltaRule
from companion.models.naive import _stack
from companion.models.quasi_lstm import QuasiLSTM
from companion.models.recurrent_delta import RecurrentDeltaRule
from companion.models.srwm import SelfReferential
from companion.models.stack import MultiHead, Stack

Vector = list[Tensor]  # numbers, each a tensor without axes
Matrix = list[Vector]


def linear_unnormalised(model: Stack, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """Additive fast weights: S ← S + φ(k) vᵀ, o = Sᵀ φ(q)."""

    def attend(mix: MultiHead, row: Tensor, memory: list) -> Tensor:
        q, k, v = (_heads(mix, x) for x in (mix.query(row), mix.key(row), mix.value(row)))
        outputs = []
        for h, S in enumerate(_memory(memory, mix, row)):
            keys, queries = ([_elu_plus_one(x) for x in part[h]] for part in (k, q))
            for i, j in _pairs(S):
                S[i][j] = S[i][j] + keys[i] * v[h][j]
            outputs += _read(S, queries)
        return mix.output(torch.stack(outputs))

    return _stack(model, tokens, attend)


def deltanet(model: Stack, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """The delta rule, symbol by symbol."""

    def attend(mix: DeltaRule, row: Tensor, memory: list) -> Tensor:
        q, k, v = (_heads(mix, x) for x in (mix.query(row), mix.key(row), mix.value(row)))
        rate = mix.largest_rate * torch.sigmoid(mix.rate(row))
        outputs = []
        for h, S in enumerate(_memory(memory, mix, row)):
            _write(S, _of_size_one(k[h], mix.order), v[h], rate[h])
            outputs += _read(S, _of_size_one(q[h], mix.order))
        return mix.output(torch.stack(outputs))

    return _stack(model, tokens, attend)


deltanet_negative = deltanet  # largest rate and size of keys are read off the model


def recurrent_delta(model: Stack, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """The delta rule, with feedback from the last output to all that it is made of."""

    def attend(mix: RecurrentDeltaRule, row: Tensor, memory: list) -> Tensor:
        d, rate = mix.size, mix.rate(row)
        parts = (_heads(mix, x) for x in (mix.query(row), mix.key(row), mix.value(row)))
        outputs = []
        heads = enumerate(zip(_memory(memory, mix, row, extra=1), *parts, strict=True))
        for h, (S, *own) in heads:
            z = [x for part in own for x in part] + [rate[h]]  # q̃, k̃, ṽ, b̃
            s, R = [torch.tanh(x) for x in S.pop()], mix.feedback[h]
            z = [x + sum(s[i] * R[i, j] for i in range(d)) for j, x in enumerate(z)]
            _write(S, _softmax(z[d : 2 * d]), z[2 * d : 3 * d], torch.sigmoid(z[3 * d]))
            o = _read(S, _softmax(z[:d]))
            S.append(o)  # the row below S holds the last output
            outputs += o
        return mix.output(torch.stack(outputs))

    return _stack(model, tokens, attend)


def srwm(model: Stack, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """One matrix W per head, held as it is and not as a change."""

    def attend(mix: SelfReferential, row: Tensor, memory: list) -> Tensor:
        d, x = mix.size, _heads(mix, row)
        if not memory:
            memory.extend([list(weights) for weights in matrix] for matrix in mix.initial)
        outputs = []
        for h, W in enumerate(memory):
            z = _read(W, x[h])
            q, k, rate = _softmax(z[d : 2 * d]), _softmax(z[2 * d : 3 * d]), z[3 * d :]
            new, old = _read(W, q), _read(W, k)
            for i, j in _pairs(W):
                W[i][j] = W[i][j] + k[i] * torch.sigmoid(rate[min(j // d, 3)]) * (new[j] - old[j])
            outputs += z[:d]
        return mix.output(torch.stack(outputs))

    return _stack(model, tokens, attend)


def quasi_lstm(model: QuasiLSTM, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T classes"]:
    """Cell by cell."""
    width, rows = model.config.width, []
    answers = torch.zeros(*tokens.shape, model.config.classes, dtype=model.dtype)
    for sequence in tokens:
        cells = [[torch.zeros((), dtype=model.dtype)] * width for _ in model.layers]
        for token in sequence:
            x = model.embedding(token)
            for layer, c in zip(model.layers, cells, strict=True):
                before, (w_z, w_f) = layer.input(x), layer.own
                for i in range(width):
                    z = torch.tanh(before[i] + w_z[i] * c[i])
                    f = torch.sigmoid(before[width + i] + w_f[i] * c[i])
                    c[i] = f * c[i] + (1 - f) * z
                gate = torch.sigmoid(layer.gate(torch.cat([x, torch.stack(c)])))
                x = torch.stack([c[i] * gate[i] for i in range(width)])
            rows.append(model.head(x))
    return torch.stack(rows).view_as(answers) if rows else answers


def _heads(mix, row: Tensor) -> list[Vector]:
    """The numbers of each head."""
    return [list(x) for x in row.view(mix.heads, mix.size)]


def _memory(memory: list, mix: MultiHead, row: Tensor, extra: int = 0) -> list[Matrix]:
    """The S of each head, zero at first, and `extra` more rows of zeros below it."""
    if not memory:
        zero, d = row.new_zeros(()), mix.size
        memory.extend([[zero] * d for _ in range(d + extra)] for _ in range(mix.heads))
    return memory


def _pairs(S: Matrix) -> list[tuple[int, int]]:
    return [(i, j) for i in range(len(S)) for j in range(len(S[i]))]


def _write(S: Matrix, k: Vector, v: Vector, rate: Tensor) -> None:
    """S ← S + β k (v - Sᵀk)ᵀ, in place."""
    old = _read(S, k)
    for i, j in _pairs(S):
        S[i][j] = S[i][j] + rate * k[i] * (v[j] - old[j])


def _read(S: Matrix, q: Vector) -> Vector:
    """Sᵀ q."""
    return [sum(q[i] * S[i][j] for i in range(len(S))) for j in range(len(S[0]))]


def _elu_plus_one(x: Tensor) -> Tensor:
    return x + 1 if x > 0 else torch.exp(x)


def _of_size_one(x: Vector, order: int) -> Vector:
    features = [_elu_plus_one(number) for number in x]
    size = sum(number**order for number in features) ** (1 / order)
    return [number / size for number in features]


def _softmax(x: Vector) -> Vector:
    powers = [torch.exp(number - max(x).detach()) for number in x]
    return [power / sum(powers) for power in powers]
