"""The compared architectures behind one interface: `logits, state = model(tokens, state)`."""

from companion.models.base import MODELS, ModelConfig, SequenceModel, State, build, register
from companion.models.linear_transformer import LinearTransformer
from companion.models.lstm import LSTM
from companion.models.positions import POSITIONS
from companion.models.quantized import Quantized
from companion.models.transformer import Transformer

__all__ = [
    "LSTM",
    "MODELS",
    "POSITIONS",
    "LinearTransformer",
    "ModelConfig",
    "Quantized",
    "SequenceModel",
    "State",
    "Transformer",
    "build",
    "register",
]
