"""Trained models with their weights replaced: what the constructions of chapter 9 share.

They run on the classes of `companion.models` as these are, with norms, residuals and read-out. So
symbols are sign vectors: a LayerNorm turns a vector of entries +A and -A, as many of each, into one
of entries exactly +1 and -1, where A is so large that the epsilon in it is rounded away. Answers
are read in directions orthogonal to all symbols.

======= ==========================================================================
A       size of the entries of a symbol's vector, `loud(dtype)`
SURE    size of what goes into a sigmoid or a softmax, so that exactly 0 or 1 comes out
======= ==========================================================================
"""

from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from companion.models import ModelConfig
from companion.models.stack import Stack

SURE = 1024.0
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
Model = TypeVar("Model", bound=Stack)


def loud(dtype: torch.dtype) -> float:
    """A power of two A with A^2 + 1e-5 = A^2; 16-bit floats are normalised in single precision.

    >>> loud(torch.float64), loud(torch.bfloat16)
    (1048576.0, 16.0)
    """
    return 2.0**20 if dtype == torch.float64 else 2.0**4


def sign_vectors(n: int) -> Int[np.ndarray, "n n"]:
    """Sylvester's matrix for n a power of two: orthogonal rows of signs, of sum 0 but for row 0.

    >>> sign_vectors(4).tolist()
    [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]
    """
    rows = np.ones((1, 1), int)
    while len(rows) < n:
        rows = np.block([[rows, rows], [rows, -rows]])
    return rows


def silent(
    kind: type[Model], symbols: Int[np.ndarray, "vocab D"], classes: int, dtype: torch.dtype
) -> Model:
    """One layer with one head and no positions, reading these sign vectors; all else is 0.

    Only the norms keep their weights of 1.
    """
    if dtype not in FLOATS:
        raise ValueError(f"expected a dtype of {FLOATS}, got {dtype}")
    vocab, width = symbols.shape
    config = ModelConfig(vocab, classes, width=width, heads=1, positions="none")
    with torch.random.fork_rng(devices=[]):  # layers draw weights, which are replaced
        model = kind(config).to(dtype).requires_grad_(False)
    for module in model.modules():
        if not isinstance(module, nn.LayerNorm):
            for p in module.parameters(recurse=False):
                p.zero_()
    write(model.embedding.token.weight, loud(dtype) * symbols)
    return model


def write(weight: torch.Tensor, values: np.ndarray | float) -> None:
    """Put numbers into a weight, or into a part of one."""
    weight.copy_(torch.as_tensor(values))


def use_one_key(model: Stack) -> None:
    """Let the key and the query of every symbol be the first basis vector, exactly."""
    for layer in (model.blocks[0].mix.key, model.blocks[0].mix.query):
        layer.bias[1:] = -SURE
