"""The explorer of chapter 9: feed symbols to a model and watch its fast weights change."""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
import traitlets
from matplotlib.axes import Axes

from companion.book.explorer import Explorer, source
from companion.book.fast_weights_figures import matrix
from companion.book.tables import Table, table
from companion.models import SRWM, LinearUnnormalised, RecurrentDelta, State
from companion.models.deltanet import features
from companion.models.stack import Stack
from companion.theory import fast_weights
from companion.theory.additive import counter

LONGEST = 24  # symbols that the page takes
_PARITY = {"symbols": list(fast_weights.PARITY), "answers": ["odd", "even"]}
_MEMORY = {
    "symbols": fast_weights.memory_symbols(3, 2), "answers": ["nothing", "1", "2"],
    "rows": list("abc"), "columns": list("12"), "example": [0, 0, 3, 6, 1],
}  # fmt: skip
_ROWS = ["now", "even", "odd", "sum"]
_COLUMNS = [f"{part}{i}" for part in "yqkβ" for i in range(1, 5)]
MODELS: dict[str, tuple[Stack, dict]] = {
    "linear Transformer, a memory": (fast_weights.memory(LinearUnnormalised), _MEMORY),
    "DeltaNet, a memory": (fast_weights.memory(), _MEMORY),
    "linear Transformer, a counter": (counter(2, depth=LONGEST), {
        "symbols": list("()[]"), "answers": ["none open", "( open", "[ open", "( and [ open"],
        "rows": ["key"], "columns": ["(", "["], "example": [0, 0, 2, 1, 3, 1]}),
    "DeltaNet with rates to 2, parity": (fast_weights.reflection(), {
        **_PARITY, "rows": ["key"], "columns": ["value"], "example": [1, 0, 1, 1]}),
    "Recurrent Delta, parity": (fast_weights.feedback(), {
        **_PARITY, "rows": ["key"], "columns": ["value"], "example": [1, 0, 1, 1]}),
    "SRWM, parity": (fast_weights.self_copy(), {
        **_PARITY, "rows": _ROWS, "columns": _COLUMNS, "example": [1, 0, 1, 1]}),
}  # fmt: skip


class Step(NamedTuple):
    """What one symbol does: after = before - forgotten + written, in the part that is shown."""

    forgotten: np.ndarray
    written: np.ndarray
    after: np.ndarray
    answer: str


class FastWeightsExplorer(Explorer):
    """Models with given weights, and what each symbol writes into them and makes them forget.

    >>> explorer = FastWeightsExplorer(model="DeltaNet, a memory")
    >>> explorer.word = [0, 1]  # a1, then a2
    >>> step = explorer.trail[-1]
    >>> step.forgotten[0].tolist(), step.written[0].tolist(), step.answer
    ([1.0, 0.0], [0.0, 1.0], '2')

    `model`: one of `MODELS`; a new choice comes with a word of its own. `word`: numbers of at most
    24 of its symbols. `step`: how many of them have been read. Source: Irie et al. 2023, executed.
    """

    _esm = source("base.js", "fast_weights.js")
    _css = source("explorer.css", "fast_weights.css")
    model = traitlets.Enum(list(MODELS), "DeltaNet, a memory").tag(sync=True)
    word = traitlets.List(traitlets.Int()).tag(sync=True)
    step = traitlets.Int(0, min=0).tag(sync=True)
    longest = traitlets.Int(LONGEST, read_only=True).tag(sync=True)
    models = traitlets.List(read_only=True).tag(sync=True)

    def __init__(self, model: str = "DeltaNet, a memory", **choices):
        super().__init__(model=model)
        self.set_trait("models", [page_data(name) for name in MODELS])
        self._begin()
        for name, value in choices.items():
            setattr(self, name, value)

    @traitlets.observe("model")
    def _begin(self, _change=None) -> None:
        self.word = MODELS[self.model][1]["example"]

    @traitlets.observe("word")
    def _end(self, _change) -> None:
        self.step = len(self.word)

    @traitlets.validate("word")
    def _symbols(self, proposal) -> list[int]:
        word, count = proposal["value"], len(MODELS[self.model][1]["symbols"])
        if len(word) > LONGEST:
            raise ValueError(f"expected at most {LONGEST} symbols, got {len(word)}")
        if any(not 0 <= c < count for c in word):
            raise ValueError(f"expected symbols 0 to {count - 1}, got {word}")
        return word

    @property
    def trail(self) -> list[Step]:
        """What each symbol of `word` did, from the model itself."""
        model, shown = MODELS[self.model]
        state, steps = model.initial_state(1), []
        for c in self.word:
            logits, after = model(torch.tensor([[c]]), state)
            parts = written_and_forgotten(model, c, state)
            written, forgotten, now = (_part(x, shown) for x in (*parts, fast(model, after)))
            close = (logits[0, 0] > logits.max() - 1e-6).tolist()  # a sum may leave two equal
            best = [text for text, yes in zip(shown["answers"], close, strict=True) if yes]
            steps.append(Step(forgotten, written, now, " or ".join(best)))
            state = after
        return steps

    def figure(self, ax: Axes) -> Axes:
        """The fast weights after `step` symbols."""
        model, shown = MODELS[self.model]
        steps = self.trail[: self.step]
        now = steps[-1].after if steps else _part(fast(model, model.initial_state(1)), shown)
        return matrix(ax, now, shown["rows"], shown["columns"])

    def table(self) -> Table:
        """The word, symbol by symbol: what is written, what is forgotten, what is said."""
        shown, rows = MODELS[self.model][1], []
        for i, (c, step) in enumerate(zip(self.word, self.trail, strict=True), start=1):
            parts = (self._told(x) for x in (step.written, step.forgotten))
            rows.append((i, shown["symbols"][c], *parts, step.answer))
        header = ["position", "symbol", "written", "forgotten", "it says"]
        return table(rows, header, f"{self.model}: {len(rows)} symbols.")

    def _told(self, x: np.ndarray) -> str:
        """The numbers that are not 0, with their rows and columns."""
        shown = MODELS[self.model][1]
        told = [f"{shown['rows'][i]} {shown['columns'][j]}: {x[i, j]:g}" for i, j in np.argwhere(x)]
        return ", ".join(told) if len(told) <= 4 else f"a row of {len(told)} numbers"


def fast(model: Stack, state: State) -> torch.Tensor:
    """The fast weights of the only head: S, or W of an SRWM."""
    S = state.tensors[0][0, 0]
    return S + model.blocks[0].mix.initial[0] if isinstance(model, SRWM) else S


def written_and_forgotten(
    model: Stack, token: int, state: State
) -> tuple[torch.Tensor, torch.Tensor]:
    """What `token` adds to the fast weights, and what it takes away.

    Without an S before, nothing is forgotten; keys, values and rates do not depend on it.
    """
    tokens = torch.tensor([[token]])
    if isinstance(model, SRWM):
        return _self_written(model, tokens, fast(model, state))
    blank = State(state.t, (torch.zeros_like(state.tensors[0]), *state.tensors[1:]))
    written, after = (fast(model, model(tokens, before)[1]) for before in (blank, state))
    return written, fast(model, state) + written - after


def _self_written(model: SRWM, tokens: torch.Tensor, W: torch.Tensor):
    """The same where W makes keys, queries and rates itself."""
    d = model.blocks[0].mix.size
    _, q, k, b = (_inputs(model)[int(tokens)] @ W).split(model.blocks[0].mix.parts)
    q, k, rate = (
        q.softmax(0),
        k.softmax(0),
        b.sigmoid().repeat_interleave(torch.tensor([d] * 3 + [4])),
    )
    return torch.outer(k, rate * (q @ W)), torch.outer(k, rate * (k @ W))


def _inputs(model: Stack) -> torch.Tensor:
    """What the mixer reads at each symbol."""
    return model.blocks[0].norm_mix(model.embedding.token.weight)


def _part(x: torch.Tensor, shown: dict) -> np.ndarray:
    return x[: len(shown["rows"]), : len(shown["columns"])].numpy()


def page_data(name: str) -> dict:
    """A model as the page gets it: per symbol what goes into the fast weights, and the read-out.

    Only the rows and columns that are shown; the others stay 0, or, in a softmax, weigh nothing.
    The norm at the end divides all logits by one number, so the page leaves it out.
    """
    model, shown = MODELS[name]
    read, head = model.blocks[0].mix.output, model.head.weight
    R, C = len(shown["rows"]), len(shown["columns"])
    data = {
        "weigh": (head @ read.weight)[:, : model.config.width if isinstance(model, SRWM) else C],
        "plain": (model.embedding.token.weight + read.bias) @ head.T,
        **_inputs_for(model, R, C),
    }
    return {"name": name, **shown, **{k: x.tolist() for k, x in data.items()}, "kind": kind(model)}


def kind(model: Stack) -> str:
    """By which rule the page changes the fast weights."""
    rules = {SRWM: "self", RecurrentDelta: "feedback", LinearUnnormalised: "sum"}
    return rules.get(type(model), "delta")


def _inputs_for(model: Stack, R: int, C: int) -> dict[str, torch.Tensor]:
    """What each rule needs: queries, keys, values and rates, or what these are made of."""
    mix, x = model.blocks[0].mix, _inputs(model)
    if kind(model) == "self":
        return {"x": x, "start": mix.initial[0]}
    q, k, v = (part(x) for part in (mix.query, mix.key, mix.value))
    if kind(model) == "sum":
        return {"q": F.elu(q[:, :R]) + 1, "k": F.elu(k[:, :R]) + 1, "v": v[:, :C]}
    rate = mix.rate(x)
    if kind(model) == "feedback":
        d = mix.size
        at = [*range(R), *range(d, d + R), *range(2 * d, 2 * d + C), 3 * d]
        return {"x": torch.cat([q, k, v, rate], 1)[:, at], "back": mix.feedback[0, :C][:, at]}
    q, k = (features(part, mix.order)[:, :R] for part in (q, k))
    return {"q": q, "k": k, "v": v[:, :C], "rate": mix.largest_rate * rate[:, 0].sigmoid()}
