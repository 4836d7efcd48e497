"""The two-way protocol as an explorer: deal the positions, and read what crosses the wire.

What a player sends is a maximum or a sum over the positions held, in whole numbers. So the page
needs one column of numbers a position, and adds up in JavaScript exactly what `two_way` adds up,
for every one of the 2^N ways to deal them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import traitlets
from matplotlib.axes import Axes

from companion.book import two_way_figures
from companion.book.explorer import Explorer, source
from companion.book.tables import Table, table
from companion.theory._check import check_int
from companion.theory.bounds import two_way_bits
from companion.theory.integer_transformer import IntegerTransformer
from companion.theory.two_way import VARIANTS, Exchange, Player, formats, two_way

_LARGEST_N = 16


class TwoWayExplorer(Explorer):
    """Theorem 4 on a real model: choose Alice's positions and a variant, step through the wire.

    >>> from companion.theory.fixed_point import FixedPoint
    >>> grid = FixedPoint(f=4, R=7, softmax="early")
    >>> one = np.full((1, 1, 1), grid.S)
    >>> rows = grid.encode(np.array([[[0.0]] * 3, [[1.0]] * 3]))
    >>> mean = IntegerTransformer(rows, 0 * one, one, one, lambda x, o: int(o[0] > 0.5), 2, grid)
    >>> explorer = TwoWayExplorer.of(mean, {"101": [1, 0, 1]}, alice=[1])
    >>> explorer.played().answer, explorer.played().channel.bits
    (1, 42)

    `alice`: her positions, bit i set for position i. `variant`: "lean" or "literal". `input`: the
    number of the input shown. `step`: messages sent so far. Source: Theorem 4, Appendix D.
    """

    _esm = source("base.js", "two_way.js")
    _css = source("explorer.css", "two_way.css")
    alice = traitlets.Int(0, min=0).tag(sync=True)
    variant = traitlets.Enum(VARIANTS, "lean").tag(sync=True)
    input = traitlets.Int(0, min=0).tag(sync=True)
    step = traitlets.Int(0, min=0).tag(sync=True)
    inputs = traitlets.List(read_only=True).tag(sync=True)
    protocol = traitlets.Dict(read_only=True).tag(sync=True)

    @classmethod
    def of(
        cls,
        model: IntegerTransformer,
        inputs: Mapping[str, Sequence[int]],
        *,
        alice: Iterable[int],
        show: Callable[[int], str] = str,
    ) -> "TwoWayExplorer":
        """Inputs by name, Alice's positions to begin with, and how a symbol is written.

        Raises ValueError for no inputs, more than 16 positions, and a position that is not one.
        """
        check_int("inputs", len(inputs), low=1)
        check_int("N", model.N, low=1, high=_LARGEST_N)
        mine = set(alice)
        for i in mine:
            check_int("position", i, low=0, high=model.N - 1)
        explorer = cls(alice=sum(1 << i for i in mine))
        explorer.model, explorer.tokens = model, [model.check(x) for x in inputs.values()]
        columns = [_columns(model, name, tokens, show) for name, tokens in inputs.items()]
        explorer.set_trait("inputs", columns)
        explorer.set_trait("protocol", _protocol(model))
        return explorer

    @property
    def claim(self) -> float:
        """The bits that Theorem 4 allows, 3 m (p + log N) H."""
        return self.protocol["claim"]

    def played(self, variant: str | None = None) -> Exchange:
        """The protocol on the input and the partition that are shown, by `two_way` itself."""
        mine = [i for i in range(self.model.N) if self.alice >> i & 1]
        return two_way(self.model, self.tokens[self.input], mine, variant or self.variant)

    def figure(self, ax: Axes) -> Axes:
        """The running total of both variants against the claim."""
        sent = {x: [m.bits for m in self.played(x).channel.messages] for x in VARIANTS}
        return two_way_figures.running_total(ax, sent, self.claim)

    def table(self) -> Table:
        """The transcript: who sends what, in how many bits."""
        rows, total = [], 0
        for message in self.played().channel.messages:
            total += message.bits
            first = message.data[:6].hex(" ") + (" …" if len(message.data) > 6 else "")
            rows.append((message.sender, message.meaning, first, message.bits, total))
        return table(
            rows,
            ["sender", "what", "first bytes", "bits", "in all"],
            f"The {self.variant} transcript; Theorem 4 allows {self.claim:,.0f} bits.",
        )


def _protocol(model: IntegerTransformer) -> dict[str, Any]:
    """What does not depend on the input: the formats of all steps, the grid, and the claim."""
    a = model.arithmetic
    forms = {
        variant: [[step, form.low, form.bits] for step, (_, form) in steps.items()]
        for variant, steps in ((variant, formats(model, variant)) for variant in VARIANTS)
    }
    claim = two_way_bits(model.m, model.p, model.H, model.N, protocol="paper")
    return {"forms": forms, "S": a.S, "lowest": -a.R * a.S, "claim": claim}


def _columns(
    model: IntegerTransformer, name: str, tokens: Sequence[int], show: Callable[[int], str]
) -> dict[str, Any]:
    """What each position adds to what its owner sends, and what comes of it."""
    everyone = Player(model, "everyone", tokens, range(model.N))
    x = model.rows[everyone.last, -1]
    M = everyone.maxima(x)
    U = everyone.sums(everyone.denominators(M))
    values = everyone.weights[..., None] * everyone.values  # (H, N, v)
    attended = U // model.arithmetic.S
    return {
        "name": name,
        "symbols": [show(s) for s in everyone.symbols],
        "last": everyone.last,
        "x": x.tolist(),
        "A": everyone.A.T.tolist(),
        "e": everyone.e.T.tolist(),
        "U": np.moveaxis(values, 0, 1).reshape(model.N, -1).tolist(),
        "attended": attended.ravel().tolist(),
        "answer": model.answer(x, attended),
    }
