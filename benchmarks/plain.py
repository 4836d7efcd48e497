"""What one would write oneself, in a few lines of PyTorch, for each architecture.

The first two are whole models on PyTorch's own layers. The others stand in the place of one of our
mixers, use its weights, and map (B, T, D) to (B, T, D): complex numbers and Fourier transforms for
DSS, and loops over the symbols, batched and as short as the equations, for the rest. Nobody
publishes the recurrent fast weights in plain PyTorch, so the loop is the fastest peer they have.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.models import LSTM, Transformer
from companion.models.deltanet import DeltaRule, features
from companion.models.dss import SMALLEST, Modes, SoftmaxModes
from companion.models.quasi_lstm import QuasiLSTM
from companion.models.recurrent_delta import RecurrentDeltaRule
from companion.models.srwm import SelfReferential
from companion.models.stack import merge_heads, split_heads


class Encoder(nn.Module):
    """`nn.TransformerEncoder` with a causal mask between embeddings and a linear read-out."""

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        c, width = ours.config, ours.config.width
        self.token, self.place = nn.Embedding(c.vocab, width), nn.Embedding(c.max_len, width)
        layer = nn.TransformerEncoderLayer(
            width, c.heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, c.depth, nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.head = nn.Linear(width, c.classes)
        self._copy(ours)

    def _copy(self, ours: Transformer) -> None:
        self.token.load_state_dict(ours.embedding.token.state_dict())
        self.place.weight.data.copy_(ours.embedding.position.table)
        self.encoder.norm.load_state_dict(ours.norm.state_dict())
        self.head.load_state_dict(ours.head.state_dict())
        for layer, block in zip(self.encoder.layers, ours.blocks, strict=True):
            parts, mix = (block.mix.query, block.mix.key, block.mix.value), layer.self_attn
            mix.in_proj_weight.data.copy_(torch.cat([part.weight for part in parts]))
            mix.in_proj_bias.data.copy_(torch.cat([part.bias for part in parts]))
            for own, other in (
                (mix.out_proj, block.mix.output), (layer.linear1, block.mlp[0]),
                (layer.linear2, block.mlp[2]), (layer.norm1, block.norm_mix),
                (layer.norm2, block.norm_mlp),
            ):  # fmt: skip
                own.load_state_dict(other.state_dict())

    @property
    def embedded(self) -> Tensor:
        return self.token.weight

    def forward(self, tokens: Tensor) -> Tensor:
        length, device = tokens.shape[-1], tokens.device
        mask = nn.Transformer.generate_square_subsequent_mask(length, device)
        x = self.token(tokens) + self.place.weight[:length]
        return self.head(self.encoder(x, mask=mask, is_causal=True))


class Recurrent(nn.Module):
    """`nn.LSTM` between an embedding and a linear read-out."""

    def __init__(self, ours: LSTM) -> None:
        super().__init__()
        c = ours.config
        self.embedding = nn.Embedding(c.vocab, c.width)
        self.lstm = nn.LSTM(c.width, c.width, c.depth, batch_first=True)
        self.head = nn.Linear(c.width, c.classes)
        self.load_state_dict(ours.state_dict())

    @property
    def embedded(self) -> Tensor:
        return self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.lstm(self.embedding(tokens))[0])


class QuasiLoop(nn.Module):
    """The Quasi-LSTM, symbol by symbol, with the weights of ours."""

    def __init__(self, ours: QuasiLSTM) -> None:
        super().__init__()
        self.ours = ours

    @property
    def embedded(self) -> Tensor:
        return self.ours.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.ours.embedding(tokens)
        for layer in self.ours.layers:
            c, rows = torch.zeros_like(x[:, 0]), []
            for row in x.unbind(1):
                z, f = layer.input(row).chunk(2, -1)
                z, f = torch.tanh(z + layer.own[0] * c), torch.sigmoid(f + layer.own[1] * c)
                c = f * c + (1 - f) * z
                rows.append(c * torch.sigmoid(layer.gate(torch.cat([row, c], -1))))
            x = torch.stack(rows, 1)
        return self.ours.head(x)


def dss(mix: Modes, x: Tensor) -> Tensor:
    """The exponential form: the whole kernel from complex powers, one long convolution."""
    rates = torch.complex(-mix.log_decay.exp(), mix.frequency)
    z = _per_step(mix, rates)
    w = torch.view_as_complex(mix.W) * (z.exp() - 1) / rates
    place = torch.arange(x.shape[1], device=x.device)
    return _convolved(mix, torch.einsum("dn,dnl->dl", w, (z[..., None] * place).exp()).real, x)


def dss_softmax(mix: SoftmaxModes, x: Tensor) -> Tensor:
    """The softmax form: each mode's powers divided by their sum."""
    rates = torch.view_as_complex(mix.rate)
    z = _per_step(mix, rates)
    place = torch.arange(mix.total, device=x.device)
    inward = torch.where(z.real > 0, -z, z)  # a growing mode is summed from its other end
    total = ((inward * mix.total).exp() - 1) * rates
    w = torch.view_as_complex(mix.W) * (inward.exp() - 1) * total.conj()
    w = w / (total.abs() ** 2 + SMALLEST)
    start = torch.where(z.real > 0, z * (mix.total - 1), 0)
    power = (z[..., None] * place - start[..., None]).exp()
    return _convolved(mix, torch.einsum("dn,dnl->dl", w, power).real[:, : x.shape[1]], x)


def delta(mix: DeltaRule, x: Tensor) -> Tensor:
    """The delta rule, one product with S to read, one to correct, one to write."""
    q, k, v = mix.project(x, None)
    q, k = features(q, mix.order), features(k, mix.order)
    beta = mix.largest_rate * mix.rate(x).sigmoid().mT[..., None]
    S, rows = x.new_zeros(len(x), mix.heads, mix.size, mix.size), []
    for q_t, k_t, v_t, beta_t in zip(*(part.unbind(-2) for part in (q, k, v, beta)), strict=True):
        S = S + k_t[..., None] * (beta_t * (v_t - (k_t[..., None, :] @ S)[..., 0, :]))[..., None, :]
        rows.append((q_t[..., None, :] @ S)[..., 0, :])
    return mix.output(merge_heads(torch.stack(rows, -2)))


def recurrent_delta(mix: RecurrentDeltaRule, x: Tensor) -> Tensor:
    """The delta rule with feedback of the last output."""
    d = mix.size
    S, o, rows = x.new_zeros(len(x), mix.heads, d, d), x.new_zeros(len(x), mix.heads, d), []
    to_q, to_k, to_v, to_beta = mix.feedback.split((d, d, d, 1), -1)
    q, k, v = (split_heads(part(x), mix.heads) for part in (mix.query, mix.key, mix.value))
    beta = mix.rate(x).mT[..., None]
    for q_t, k_t, v_t, b_t in zip(*(part.unbind(-2) for part in (q, k, v, beta)), strict=True):
        s = torch.tanh(o)[..., None, :]
        q_t = torch.softmax(q_t + (s @ to_q)[..., 0, :], -1)
        k_t = torch.softmax(k_t + (s @ to_k)[..., 0, :], -1)
        v_t, b_t = v_t + (s @ to_v)[..., 0, :], torch.sigmoid(b_t + (s @ to_beta)[..., 0, :])
        S = S + k_t[..., None] * (b_t * (v_t - (k_t[..., None, :] @ S)[..., 0, :]))[..., None, :]
        o = (q_t[..., None, :] @ S)[..., 0, :]
        rows.append(o)
    return mix.output(merge_heads(torch.stack(rows, -2)))


def srwm(mix: SelfReferential, x: Tensor) -> Tensor:
    """One matrix that maps each symbol and rewrites itself."""
    d, rows = mix.size, []
    W = mix.initial.expand(len(x), *mix.initial.shape)
    for row in split_heads(x, mix.heads).unbind(-2):
        y, q, k, b = (row[..., None, :] @ W)[..., 0, :].split((d, d, d, 4), -1)
        q, k, b = torch.softmax(q, -1), torch.softmax(k, -1), torch.sigmoid(b)
        rate = torch.cat([b[..., :3].repeat_interleave(d, -1), b[..., 3:].expand(*b.shape)], -1)
        W = W + k[..., None] * (rate * ((q - k)[..., None, :] @ W)[..., 0, :])[..., None, :]
        rows.append(y)
    return mix.output(merge_heads(torch.stack(rows, -2)))


def _per_step(mix: Modes, rates: Tensor) -> Tensor:
    dt = mix.log_dt.exp()
    return torch.complex(dt[:, :1] * rates.real, dt[:, 1:] * rates.imag)


def _convolved(mix: Modes, kernel: Tensor, x: Tensor) -> Tensor:
    twice = 2 * x.shape[1]
    spectrum = torch.fft.rfft(x.mT, twice) * torch.fft.rfft(kernel, twice)
    y = torch.fft.irfft(spectrum, twice)[..., : x.shape[1]].mT + mix.D * x
    return mix.output(F.gelu(y))
