"""Who is measured: for each of our models, what one would use instead, with the same weights.

A contender is made from one of our models and is called as `logits = contender(tokens)`, all rows,
as one would call it. Ours is asked for the wanted rows only, if that is what is measured.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import peers
import plain
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.models import Mamba, SequenceModel, Transformer
from companion.models.linear_transformer import LinearAttention
from companion.models.retnet import Retention, log_decay
from companion.models.stack import Mixer, merge_heads

OURS = "companion"
Make = Callable[[SequenceModel], nn.Module]


class Ours(nn.Module):
    """One of our models, asked for the rows `read` if they are given."""

    reads = True  # it can compute some rows only

    def __init__(self, model: SequenceModel) -> None:
        super().__init__()
        self.model = model

    @property
    def embedded(self) -> Tensor:
        """Where all gradients end up: the vectors of the symbols."""
        embedding = self.model.embedding
        return getattr(embedding, "token", embedding).weight

    def forward(self, tokens: Tensor, read: Tensor | None = None) -> Tensor:
        return self.model(tokens, read=read)[0]


class Framed(Ours):
    """Our model with each mixer replaced, asked for all rows."""

    reads = False

    def __init__(self, model: SequenceModel, mixer: Callable[[Mixer], nn.Module]) -> None:
        super().__init__(copy.deepcopy(model))
        for block in self.model.blocks:
            block.mix = Stateless(mixer(block.mix))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.model(tokens)[0]


class Stateless(Mixer):
    """Any map from (B, T, D) to (B, T, D)."""

    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def state_shapes(self, t: int) -> tuple[tuple[int, ...], ...]:
        return ()

    def forward(self, x, state, rows):
        return self.inside(x), ()


class Form(nn.Module):
    """A function of a mixer's weights and x."""

    def __init__(self, form: Callable[[Mixer, Tensor], Tensor], mix: Mixer) -> None:
        super().__init__()
        self.form, self.mix = form, mix

    def forward(self, x: Tensor) -> Tensor:
        return self.form(self.mix, x)


def written(form: Callable[[Mixer, Tensor], Tensor]) -> Make:
    """`form` in the place of our mixer."""
    return partial(Framed, mixer=partial(Form, form))


def mixer_of(published: Callable[[], type[nn.Module]]) -> Make:
    """A published mixer in the place of ours, whose parameters have the same names."""

    def make(ours: SequenceModel) -> nn.Module:
        kind = published()

        def exchange(mix: Mixer) -> nn.Module:
            other = kind(ours.config.width)
            other.load_state_dict(mix.state_dict(), strict=True)
            return other

        return Framed(ours, exchange)

    return make


class GPT2(nn.Module):
    """Hugging Face's GPT-2, with our read-out."""

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        c, library = ours.config, peers.transformers()
        config = library.GPT2Config(
            vocab_size=c.vocab, n_positions=c.max_len, n_embd=c.width, n_layer=c.depth,
            n_head=c.heads, activation_function="gelu", resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0, use_cache=False, bos_token_id=None, eos_token_id=None,
        )  # fmt: skip
        self.inside, self.head = library.GPT2Model(config), copy.deepcopy(ours.head)
        self.inside.wte.load_state_dict(ours.embedding.token.state_dict())
        self.inside.wpe.weight.data.copy_(ours.embedding.position.table)
        self.inside.ln_f.load_state_dict(ours.norm.state_dict())
        for layer, block in zip(self.inside.h, ours.blocks, strict=True):
            layer.ln_1.load_state_dict(block.norm_mix.state_dict())
            layer.ln_2.load_state_dict(block.norm_mlp.state_dict())
            mix = block.mix
            _transposed(layer.attn.c_attn, mix.query, mix.key, mix.value)
            _transposed(layer.attn.c_proj, mix.output)
            _transposed(layer.mlp.c_fc, block.mlp[0])
            _transposed(layer.mlp.c_proj, block.mlp[2])

    @property
    def embedded(self) -> Tensor:
        return self.inside.wte.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.inside(input_ids=tokens).last_hidden_state)


class HuggingFaceMamba(nn.Module):
    """Hugging Face's Mamba, with our read-out."""

    def __init__(self, ours: Mamba, **options) -> None:
        super().__init__()
        c, library = ours.config, peers.transformers()
        config = library.MambaConfig(
            vocab_size=c.vocab, hidden_size=c.width, num_hidden_layers=c.depth, use_cache=False,
            **options,
        )  # fmt: skip
        self.inside, self.head = library.MambaModel(config), copy.deepcopy(ours.head)
        self.inside.embeddings.load_state_dict(ours.embedding.token.state_dict())
        self.inside.norm_f.load_state_dict(ours.norm.state_dict())
        for layer, block in zip(self.inside.layers, ours.blocks, strict=True):
            layer.norm.load_state_dict(block.norm_mix.state_dict())
            layer.mixer.load_state_dict(block.mix.state_dict())

    @property
    def embedded(self) -> Tensor:
        return self.inside.embeddings.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.inside(input_ids=tokens).last_hidden_state)


def _transposed(layer: nn.Module, *parts: nn.Linear) -> None:
    layer.weight.data.copy_(torch.cat([part.weight for part in parts]).mT)
    layer.bias.data.copy_(torch.cat([part.bias for part in parts]))


def attention(mix: LinearAttention, x: Tensor, *, form: str, kernels: bool = False) -> Tensor:
    """Linear attention, with its quotient or without, by flash-linear-attention."""
    q, k, v = _time_first(mix.project(x, None))
    q, k = F.elu(q) + 1, F.elu(k) + 1
    source = (peers.fla_kernels if kernels else peers.fla_naive)("linear_attn")
    fill = -x.shape[1] % 64 if form.endswith("chunk_linear_attn") else 0
    q, k, v = (F.pad(part, (0, 0, 0, 0, 0, fill)) for part in (q, k, v))
    normalize = len(mix.state_shapes(0)) == 2
    o = getattr(source, form)(q, k, v, scale=1.0, normalize=normalize)
    o = o[0] if isinstance(o, tuple) else o  # its naive chunks give no state
    return mix.output(o[:, : x.shape[1]].flatten(-2))


def retention(mix: Retention, x: Tensor, *, form: str) -> Tensor:
    """Retention by flash-linear-attention, between our rotation, norm and gate."""
    place = torch.arange(x.shape[1], device=x.device)
    q, k, v = mix.project(x, None)
    q, k = mix.turn(q, place), mix.turn(k, place)
    scale = mix.size**-0.5 if mix.scales_keys else 1.0
    if form == "naive_retention":  # always scales
        o = peers.fla_naive("retention").naive_retention(q * (scale * mix.size**0.5), k, v)
    elif form == "chunk_retention":
        source = peers.fla_kernels("retention")
        o = source.chunk_retention(*_time_first((q, k, v)), scale=scale)[0].transpose(1, 2)
    else:
        source = peers.fla_naive("simple_gla")
        decay = log_decay(mix.heads, x).flatten().expand(*x.shape[:2], -1)
        o = getattr(source, form)(*_time_first((q, k, v)), decay, scale=scale)[0].transpose(1, 2)
    o = F.rms_norm(o, (mix.size,), eps=1e-6) if mix.normalises else o
    return mix.output(F.silu(mix.gate(x)) * merge_heads(o))


def delta(mix: nn.Module, x: Tensor, *, form: str) -> Tensor:
    """The delta rule by flash-linear-attention."""
    q, k, v = mix.project(x, None)
    q, k = plain.features(q, mix.order), plain.features(k, mix.order)
    beta = (mix.largest_rate * mix.rate(x).sigmoid()).mT  # (B, H, T)
    if form == "chunk_delta_rule":
        source = peers.fla_kernels("delta_rule")
        o = source.chunk_delta_rule(*_time_first((q, k, v)), beta.transpose(1, 2), scale=1.0)
        return mix.output(o[0].flatten(-2))
    q = q * mix.size**0.5  # its plain forms divide by that
    fill = -x.shape[1] % 32 if form == "delta_rule_chunkwise" else 0
    q, k, v = (F.pad(part, (0, 0, 0, fill)) for part in (q, k, v))
    o, _ = getattr(peers.fla_naive("delta_rule"), form)(q, k, v, F.pad(beta, (0, fill)))
    return mix.output(merge_heads(o[..., : x.shape[1], :]))


def _time_first(parts: tuple[Tensor, ...]) -> list[Tensor]:
    """(B, H, T, d) as (B, T, H, d)."""
    return [part.transpose(1, 2) for part in parts]


_LINEAR = {
    "fla, naive chunks": written(partial(attention, form="naive_chunk_linear_attn")),
    "fla, naive loop": written(partial(attention, form="naive_recurrent_linear_attn")),
    "fla, kernels": written(partial(attention, form="chunk_linear_attn", kernels=True)),
}
_RETENTION = {
    "fla, naive": written(partial(retention, form="naive_retention")),
    "fla, naive chunks": written(partial(retention, form="naive_chunk_simple_gla")),
    "fla, kernels": written(partial(retention, form="chunk_retention")),
}
_DELTA = {
    "loop over symbols": written(plain.delta),
    "fla, naive chunks": written(partial(delta, form="delta_rule_chunkwise")),
    "fla, naive loop": written(partial(delta, form="delta_rule_recurrence")),
    "fla, kernels": written(partial(delta, form="chunk_delta_rule")),
}
CONTENDERS: dict[str, dict[str, Make]] = {
    "transformer": {"nn.TransformerEncoder": plain.Encoder, "Hugging Face GPT-2": GPT2},
    "lstm": {"nn.LSTM": plain.Recurrent},
    "mamba": {
        "Hugging Face Mamba": HuggingFaceMamba,
        "Hugging Face Mamba, by mambapy": partial(HuggingFaceMamba, use_mambapy=True),
        "mambapy": mixer_of(peers.mambapy),
        "mamba-ssm, reference scan": mixer_of(peers.mamba_ssm),
        "mamba-ssm, kernels": mixer_of(peers.mamba_kernels),
    },
    "dss": {"complex numbers and FFT": written(plain.dss)},
    "dss_softmax": {"complex numbers and FFT": written(plain.dss_softmax)},
    "linear_transformer": _LINEAR,
    "linear_unnormalised": _LINEAR,
    "retnet": _RETENTION,
    "retnet_plain": _RETENTION,
    "deltanet": _DELTA,
    "deltanet_negative": _DELTA,
    "recurrent_delta": {"loop over symbols": written(plain.recurrent_delta)},
    "srwm": {"loop over symbols": written(plain.srwm)},
    "quasi_lstm": {"loop over symbols": plain.QuasiLoop},
}


def contender(ours: SequenceModel, make: Make | None) -> nn.Module:
    """Ours, or the peer that `make` makes with the weights of ours, on the same device."""
    found = Ours(ours) if make is None else make(ours)
    return found.to(ours.device).train()
