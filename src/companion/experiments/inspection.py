"""What a trained model has learned: where it looks, and what it remembers.

Three questions, each with its counterpart in `companion.theory`: does a trained layer point as
Theorem 1's does (`pointing`, `pointing_of_theorem_1`); are learned position vectors as far apart as
vectors can be (`cosines`, with `dimensions.welch`); and does a trained recogniser keep apart the
states of the minimal automaton (`accepts`, for `observation.observe`)? And one without: which
places has a model of Index Lookup not learned (`right_by_place`)?

| symbol | meaning                                  |
|--------|------------------------------------------|
| N      | symbols before the index token           |
| p      | position that the index token asks for   |
| H      | heads                                    |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from companion.experiments.index_lookup import IndexLookup
from companion.experiments.scoring import AT_ONCE, evaluating
from companion.models import SequenceModel
from companion.models.stack import Stack, merge_heads, visible
from companion.models.transformer import Attention
from companion.theory import index_lookup


class Pointing(NamedTuple):
    """Where the index tokens look: a row for each position that is asked for."""

    weights: Float[np.ndarray, "N H N1"]  # on each symbol and, last, on the index token itself

    @property
    def right(self) -> Float[np.ndarray, "N H"]:
        """q_p of each head: the weight on the position asked for."""
        place = np.arange(len(self.weights))
        return self.weights[place, :, place]

    @property
    def best(self) -> Float[np.ndarray, " N"]:
        """q_p of the head that has the most of it, at each p."""
        return self.right.max(1)


@torch.no_grad()
def attention_weights(
    model: Stack, tokens: Int[Tensor, "B T"], read: Int[Tensor, "B R"]
) -> Float[Tensor, "B H R T"]:
    """Softmax weights of the rows `read` in the last layer of a Transformer.

    Computed from the very input that the layer gets in this forward pass, and compared with what it
    makes of it. Raises ValueError for a layer without attention, or one whose output these weights
    do not explain, such as one with rotary positions.
    """
    mix, seen = model.blocks[-1].mix, []
    if not isinstance(mix, Attention):
        raise ValueError(f"got a layer of {type(mix).__name__}, expected one of Attention")
    handle = mix.register_forward_hook(lambda _, inputs, outputs: seen.append((inputs, outputs)))
    try:
        model(tokens, read=read)
    finally:
        handle.remove()
    ((x, _, rows), (output, _)) = seen[0]
    q, k, v = mix.project(x, rows)
    logits = q @ k.mT / q.shape[-1] ** 0.5
    mask = visible(rows, x.shape[-2], 0, x.device)
    weights = torch.softmax(logits.masked_fill(~mask, -torch.inf), -1)
    if not torch.allclose(mix.output(merge_heads(weights @ v)), output, atol=1e-4):
        raise ValueError("got an output that these weights do not give, expected plain attention")
    return weights


def pointing(
    model: Stack, task: IndexLookup, strings: int = 20, *, rng: torch.Generator
) -> Pointing:
    """Weights of a trained one-layer Transformer for every p, averaged over random strings."""
    N, device = task.N, model.device
    symbols = torch.randint(task.alphabet, (strings, N), generator=rng, device=rng.device)
    p = torch.arange(N, device=device)[:, None]
    read = torch.full((N, 1), N, device=device)
    total = sum(
        attention_weights(model, torch.cat([row.expand(N, -1), task.alphabet + p], 1), read)
        for row in symbols.to(device)
    )
    return Pointing((total[:, :, 0] / strings).double().cpu().numpy())


def pointing_of_theorem_1(N: int, alphabet: int) -> Pointing:
    """The same for the construction, whose weights depend on no symbol and whose head is one.

    >>> found = pointing_of_theorem_1(N=8, alphabet=4)
    >>> found.weights.shape, bool(found.best.min() > 0.75)
    ((8, 1, 9), True)
    """
    built = index_lookup.IndexLookup.build(N, alphabet)
    string = np.zeros(N, dtype=np.int64)
    return Pointing(np.stack([built.attention(string, p)[None] for p in range(N)]))


def right_by_place(
    model: SequenceModel, task: IndexLookup, strings: int = 50, *, rng: torch.Generator
) -> Float[np.ndarray, " N"]:
    """Share of right answers for every p, each asked of the same random strings of length N."""
    N, device = task.N, model.device
    symbols = torch.randint(task.alphabet, (strings, N), generator=rng, device=rng.device)
    p = torch.arange(task.alphabet, task.alphabet + N, device=device)[:, None]
    read = torch.full((N, 1), N, device=device)
    right = torch.zeros(N, dtype=torch.int64, device=device)
    with evaluating(model):
        for row in symbols.to(device):
            logits, _ = model(torch.cat([row.expand(N, -1), p], 1), read=read)
            right += logits[:, 0].argmax(-1) == row
    return (right.double() / strings).cpu().numpy()


def position_vectors(model: Stack, N: int) -> Float[np.ndarray, "N D"]:
    """The first N rows of the position table. Raises ValueError for a model that has none."""
    if model.embedding.position is None:
        raise ValueError("got a model without a position table, expected one with")
    return model.embedding.position.table[:N].detach().double().cpu().numpy()


def cosines(vectors: Float[np.ndarray, "N D"]) -> Float[np.ndarray, " pairs"]:
    """Of all pairs of different vectors; the largest in absolute value is their coherence.

    >>> cosines(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])).round(3).tolist()
    [0.0, 0.707, 0.707]
    """
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return (unit @ unit.T)[np.triu_indices(len(unit), 1)]


def accepts(model: SequenceModel, words: Int[np.ndarray, "B N"]) -> Bool[np.ndarray, " B"]:
    """Whether the model says 1 after the last symbol of each word."""
    tokens = torch.from_numpy(words).to(model.device)
    last = torch.full((len(words), 1), words.shape[1] - 1, device=model.device)
    with evaluating(model):
        said = [
            model(part, read=at)[0][:, 0].argmax(-1) == 1
            for part, at in zip(tokens.split(AT_ONCE), last.split(AT_ONCE), strict=True)
        ]
    return torch.cat(said).cpu().numpy()
