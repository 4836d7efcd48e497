"""The compared architectures behind one interface: `logits, state = model(tokens, state)`."""

from companion.models.base import MODELS, ModelConfig, SequenceModel, State, build, register
from companion.models.contract import Contract, contract
from companion.models.deltanet import DeltaNet, DeltaNetNegative
from companion.models.dss import DSS, DSSSoftmax
from companion.models.linear_transformer import LinearTransformer, LinearUnnormalised
from companion.models.lstm import LSTM
from companion.models.mamba import Mamba
from companion.models.population import Population
from companion.models.positions import POSITIONS
from companion.models.quantized import Quantized
from companion.models.quasi_lstm import QuasiLSTM
from companion.models.recurrent_delta import RecurrentDelta
from companion.models.retnet import RetNet, RetNetPlain
from companion.models.srwm import SRWM
from companion.models.transformer import Transformer

__all__ = [
    "DSS",
    "LSTM",
    "MODELS",
    "POSITIONS",
    "SRWM",
    "Contract",
    "DSSSoftmax",
    "DeltaNet",
    "DeltaNetNegative",
    "LinearTransformer",
    "LinearUnnormalised",
    "Mamba",
    "ModelConfig",
    "Population",
    "Quantized",
    "QuasiLSTM",
    "RecurrentDelta",
    "RetNet",
    "RetNetPlain",
    "SequenceModel",
    "State",
    "Transformer",
    "build",
    "contract",
    "register",
]
