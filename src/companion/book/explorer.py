"""Explorers: pictures that the reader moves, with a kernel or without one.

Python computes all data when an explorer is made; its JavaScript only chooses, draws and, for sign
vectors, adds up integers. So an explorer behaves the same in Jupyter, in Colab and in a saved page
that is opened from disk. Its choices are traits: set `explorer.N = 32` and the picture follows.
For readers without JavaScript `figure` and `table` say the same, and belong in the next cells.
"""

import math
from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import anywidget
import numpy as np
import torch
import traitlets
from jaxtyping import Int
from matplotlib.axes import Axes
from torch import Tensor

from companion.book import figures
from companion.book.tables import Table, table
from companion.models import SequenceModel
from companion.theory import bounds, dimensions, vectors
from companion.theory.communication import alice, solve_index
from companion.theory.communication import bob as ask
from companion.theory.recurrent import Machine

_SOURCE = Path(__file__).parent / "explorers"
_LARGEST_N, _LARGEST_K, _SEEDS = 64, 256, 4
_BYTES_SHOWN = 64  # of a message
_NUMBERS_DRAWN = 4096  # of a state


def source(*names: str) -> str:
    """The files of the explorers, one after the other, as one module.

    >>> "export default" in source("base.js", "vectors.js")
    True

    Raises ValueError for text that would end or blank the page it is saved in.
    """
    text = "\n".join((_SOURCE / name).read_text(encoding="utf8") for name in names)
    for forbidden in ("<!--", "</script"):
        if forbidden in text.lower():
            raise ValueError(f"expected no {forbidden!r} in {', '.join(names)}, got one")
    return text


class _Meta(ABCMeta, type(anywidget.AnyWidget)):
    """Abstract methods on a widget class."""


class Explorer(anywidget.AnyWidget, metaclass=_Meta):
    """A widget with a static figure and a static table that say the same."""

    _css = source("explorer.css")

    @abstractmethod
    def figure(self, ax: Axes) -> Axes:
        """What the explorer shows now, as a figure."""

    @abstractmethod
    def table(self) -> Table:
        """What the explorer can show, as numbers."""


class VectorsExplorer(Explorer):
    """Nearly orthogonal sign vectors: a family, N and k; the Gram matrix and the worst pair.

    >>> explorer = VectorsExplorer(family="trace", N=64, k=32)
    >>> explorer.chosen
    TraceCode(N=64, k=32, m=5, t=2)

    `family`: "random", "linear hash", "trace" or "binary". `N`: 4 to 64 vectors. `k`: up to 256
    dimensions, a multiple of 4; a trace code takes the nearest power of two from 16 to 128, and the
    binary code has k = ceil(log2 N). `seed`: 0 to 3. Source: Lemma 2, Appendix B.3.
    """

    _esm = source("base.js", "vectors.js")
    family = traitlets.Enum(["random", "linear hash", "trace", "binary"], "random").tag(sync=True)
    N = traitlets.Int(32, min=4, max=_LARGEST_N).tag(sync=True)
    k = traitlets.Int(64, min=1, max=_LARGEST_K).tag(sync=True)
    seed = traitlets.Int(0, min=0, max=_SEEDS - 1).tag(sync=True)
    signs = traitlets.Bytes(read_only=True).tag(sync=True)  # a set bit is -1, lowest bit first
    blocks = traitlets.List(read_only=True).tag(sync=True)  # where each family lies in `signs`
    paper_k = traitlets.List(read_only=True).tag(sync=True)  # Lemma 2's k for gamma = 1/4, by N

    def __init__(self, **choices):
        data, blocks = _pack_families()
        super().__init__(**choices)
        self.set_trait("signs", data)
        self.set_trait("blocks", blocks)
        sizes = range(1, _LARGEST_N + 1)
        self.set_trait("paper_k", [0, *(dimensions.paper_k(N, 0.25) for N in sizes)])

    @staticmethod
    def family_of(name: str, N: int, k: int, seed: int) -> vectors.Family:
        """A family by its name here, with k rounded to what the family allows."""
        if name == "random":
            return vectors.random(N, k, seed=seed)
        if name == "linear hash":
            return vectors.linear_hash(N, k, seed=seed)
        if name == "binary":
            return vectors.binary(N)
        return vectors.trace_code(N, min((4, 5, 6, 7), key=lambda m: abs(2**m - k)))

    @property
    def chosen(self) -> vectors.Family:
        """The family that is shown."""
        return self.family_of(self.family, self.N, self.k, self.seed)

    def figure(self, ax: Axes) -> Axes:
        """The Gram matrix of the family that is shown."""
        return figures.gram(ax, self.chosen)

    def table(self) -> Table:
        """Coherence of every family at this N, against the two curves."""
        rows = []
        for block in self.blocks:
            if block["seed"] not in (None, self.seed):
                continue
            for k in [k for k in block["ks"] if k & (k - 1) == 0 and k >= 16] or [self.k]:
                family = self.family_of(block["family"], self.N, k, self.seed)
                typical = [math.sqrt(c * math.log(self.N) / family.k) for c in (2, 4)]
                rows.append((block["label"], family.k, family.coherence().absolute, *typical))
        header = ["family", "k", "coherence γ", "√(2 ln N / k)", "√(4 ln N / k)"]
        return table(rows, header, f"Coherence of N = {self.N} sign vectors over all pairs.")


def _pack_families() -> tuple[bytes, list[dict]]:
    """Signs of 64 vectors of each family, and where they lie.

    The first N vectors and k coordinates of a block *are* the family (N, k): random signs are drawn
    for each vector and coordinate by itself, and the linear families read the bits of an index.
    """
    free, data, blocks = list(range(4, _LARGEST_K + 1, 4)), b"", []
    plan = [("random", "Random signs", seed, _LARGEST_K, free) for seed in range(_SEEDS)]
    plan += [("linear hash", "Linear hash", seed, _LARGEST_K, free) for seed in range(_SEEDS)]
    plan += [("trace", "Trace code", None, k, [k]) for k in (16, 32, 64, 128)]
    plan += [("binary", "Binary code", None, 6, [])]
    for name, label, seed, k, ks in plan:
        bits = VectorsExplorer.family_of(name, _LARGEST_N, k, seed or 0).table() < 0
        packed = np.packbits(bits, axis=-1, bitorder="little")
        blocks.append(
            {"family": name, "label": label, "seed": seed, "offset": len(data),
             "width": 8 * packed.shape[1], "ks": ks}
        )  # fmt: skip
        data += packed.tobytes()
    return data, blocks


class Run(NamedTuple):
    """One model's part in the protocol, as the page gets it."""

    name: str
    bits: list[int]  # of the state after t symbols, t = 0, ..., N
    counts: list[int]  # numbers in that state
    starts: list[int]  # where the picture of that state begins
    end: int  # where the last one ends
    hex: str  # first bytes of the message
    bytes: int  # in the whole message
    answers: list[int]  # Bob's, for each position
    probability: list[float]  # that he gives them
    enough: bool  # whether the bits can tell all strings apart


class OneWayExplorer(Explorer):
    """Alice reads a string with a real model and sends its state; Bob answers from it.

    >>> from companion.theory.recurrent import ShiftRegister
    >>> a = torch.tensor([1, 0, 0, 1, 1])
    >>> explorer = OneWayExplorer.of({"shift register": ShiftRegister(5, 2)}, a, alphabet=2)
    >>> explorer.runs[0]["bits"][-1], explorer.runs[0]["answers"], explorer.needed
    (5, [1, 0, 0, 1, 1], 5.0)

    `model`: the name of the run shown. `step`: symbols read, N + 1 when the state is sent. `i`: the
    position Bob is asked for. Source: Theorem 3.
    """

    _esm = source("base.js", "one_way.js")
    model = traitlets.Unicode().tag(sync=True)
    step = traitlets.Int(0, min=0).tag(sync=True)
    i = traitlets.Int(0, min=0).tag(sync=True)
    symbols = traitlets.List(read_only=True).tag(sync=True)
    alphabet = traitlets.Int(2, read_only=True).tag(sync=True)
    needed = traitlets.Float(read_only=True).tag(sync=True)  # N log2 |Σ|
    runs = traitlets.List(read_only=True).tag(sync=True)
    picture = traitlets.Bytes(read_only=True).tag(sync=True)  # int8, 127 the largest magnitude

    @classmethod
    def of(
        cls, models: Mapping[str, SequenceModel], a: Int[Tensor, " N"], alphabet: int
    ) -> "OneWayExplorer":
        """Play the protocol with each model on the string `a`; index token i is |Σ| + i.

        Raises ValueError for no models, an empty string, or symbols outside the alphabet.
        """
        if not models or not len(a):
            raise ValueError(f"expected models and symbols, got {len(models)} and {len(a)}")
        explorer, runs, picture = cls(model=next(iter(models))), [], b""
        for name, model in models.items():
            run, drawn = _play(name, model, a, alphabet, len(picture))
            runs.append(run._asdict())
            picture += drawn
        for trait, value in (
            ("symbols", a.tolist()), ("alphabet", alphabet), ("runs", runs), ("picture", picture),
            ("needed", bounds.lookup_bits(len(a), alphabet)),
        ):  # fmt: skip
            explorer.set_trait(trait, value)
        return explorer

    def right(self) -> dict[str, list[bool]]:
        """Which positions Bob answers, by model."""
        return {
            run["name"]: [x == y for x, y in zip(run["answers"], self.symbols, strict=True)]
            for run in self.runs
        }

    def figure(self, ax: Axes) -> Axes:
        """Which positions Bob can and cannot answer, a row for each model."""
        return figures.answers(ax, self.right())

    def table(self) -> Table:
        """Bits sent, bits needed, right answers, by model."""
        right = self.right()
        rows = [
            (run["name"], run["bits"][-1], run["enough"], sum(right[run["name"]]))
            for run in self.runs
        ]
        N = len(self.symbols)
        return table(
            rows,
            ["model", "bits sent", "enough bits", f"right of {N}"],
            f"One message about N = {N} symbols, which take {self.needed:g} bits.",
        )


def _play(
    name: str, model: SequenceModel, a: Tensor, alphabet: int, offset: int
) -> tuple[Run, bytes]:
    """The protocol by one model, and the pictures of its states from byte `offset` on."""
    played = solve_index(model, a, alphabet)
    bits, states = [], []
    for t in range(len(a) + 1):
        bits.append(alice(model, a[None, :t])[1])
        with torch.no_grad():
            tensors = model.steps(a[None, :t])[1].tensors
        states.append(np.concatenate([x.flatten().double().numpy() for x in tensors]))
    largest = max((np.abs(x).max(initial=0.0) for x in states), default=0.0) or 1.0
    drawn = [np.rint(127 * x[:_NUMBERS_DRAWN] / largest).astype(np.int8) for x in states]
    starts = offset + np.cumsum([0, *map(len, drawn)])
    message = played.channel.messages[0]
    run = Run(
        name=name,
        bits=bits,
        counts=[len(x) for x in states],
        starts=starts[:-1].tolist(),
        end=int(starts[-1]),
        hex=message.data[:_BYTES_SHOWN].hex(),
        bytes=len(message.data),
        answers=played.answers.tolist(),
        probability=_probabilities(model, message.data, a, alphabet),
        enough=2 ** bits[-1] >= alphabet ** len(a),
    )
    return run, b"".join(x.tobytes() for x in drawn)


def _probabilities(model: SequenceModel, data: bytes, a: Tensor, alphabet: int) -> list[float]:
    """Bob's probability of what he says, for each position; a machine says it outright."""
    if isinstance(model, Machine):
        return [1.0] * len(a)
    asked = (torch.tensor([[alphabet + i]]) for i in range(len(a)))
    logits = [ask(model, data, len(a), token)[0, 0, :alphabet] for token in asked]
    return [round(float(x.softmax(-1).max()), 3) for x in logits]
