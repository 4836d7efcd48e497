"""The explorer of chapter 5: a bracket machine to type at, and the fooling set to break."""

import traitlets
from matplotlib.axes import Axes

from companion.book.dyck_figures import DEAD, EMPTY, automaton, layout
from companion.book.explorer import Explorer, source
from companion.book.tables import Table, table
from companion.theory import dyck
from companion.theory.dyck import Dyck

LONGEST = 24  # brackets that the page takes
N = 8  # length of the members in the fooling set
_MEMBERS = [Dyck().decode(word) for word in Dyck().members(N)]


class DyckExplorer(Explorer):
    """Dyck-(2, 2) as a machine, and two members of length 8 whose even halves change places.

    >>> explorer = DyckExplorer(word="([)]")
    >>> explorer.trail
    ['', '(', '([', 'dead', 'dead']
    >>> first, second = explorer.pair
    >>> explorer.swapped[0] in Dyck(2, 2), explorer.breaks(explorer.swapped[0]) is None
    (False, False)

    `word`: up to 24 brackets. `first`, `second`: numbers of the members, 0 to 127, in the order of
    the alphabet. Source: Lemma 1.
    """

    _esm = source("base.js", "dyck.js")
    _css = source("explorer.css", "dyck.css")
    word = traitlets.Unicode("([](").tag(sync=True)
    first = traitlets.Int(61, min=0, max=len(_MEMBERS) - 1).tag(sync=True)
    second = traitlets.Int(49, min=0, max=len(_MEMBERS) - 1).tag(sync=True)
    symbols = traitlets.Unicode(Dyck().symbols, read_only=True).tag(sync=True)
    longest = traitlets.Int(LONGEST, read_only=True).tag(sync=True)
    moves = traitlets.Dict(read_only=True).tag(sync=True)  # state, bracket -> state
    places = traitlets.Dict(read_only=True).tag(sync=True)  # where each state is drawn
    members = traitlets.List(_MEMBERS, read_only=True).tag(sync=True)

    def __init__(self, **choices):
        super().__init__(**choices)
        transitions = Dyck().automaton().transitions
        self.set_trait("moves", {state: dict(row) for state, row in transitions.items()})
        self.set_trait("places", {state: list(at) for state, at in layout(Dyck()).items()})

    @traitlets.validate("word")
    def _brackets(self, proposal) -> str:
        word = proposal["value"]
        Dyck().encode(word)
        if len(word) > LONGEST:
            raise ValueError(f"expected at most {LONGEST} brackets, got {len(word)}")
        return word

    @property
    def trail(self) -> list[str]:
        """The state before the first bracket of `word` and after each."""
        return self._read(self.word)

    @property
    def pair(self) -> tuple[str, str]:
        """The two members."""
        return self.members[self.first], self.members[self.second]

    @property
    def swapped(self) -> tuple[str, str]:
        """The odd half of each with the even half of the other."""
        (x, y), (u, v) = (dyck.split(Dyck().encode(word)) for word in self.pair)
        a, b = (Dyck().decode(dyck.join(*halves)) for halves in ((x, v), (u, y)))
        return a, b

    def breaks(self, word: str) -> int | None:
        """The first position, counted from 1, at which a word is lost; None for a member.

        A word whose brackets all fit but that leaves some open breaks after its last position.
        """
        trail = self._read(word)
        if DEAD in trail:
            return trail.index(DEAD)
        return len(word) + 1 if trail[-1] else None

    def figure(self, ax: Axes) -> Axes:
        """The automaton, in the state that `word` leads to."""
        return automaton(ax, Dyck(), self.trail[-1])

    def table(self) -> Table:
        """The word, bracket by bracket."""
        rows = [
            (i, c, "Alice" if i % 2 else "Bob", state or EMPTY)
            for i, (c, state) in enumerate(zip(self.word, self.trail[1:], strict=True), start=1)
        ]
        header = ["position", "bracket", "held by", "stack afterwards"]
        return table(rows, header, f"{self.word} is {'' if self._accepted else 'not '}accepted.")

    def swap_table(self) -> Table:
        """The four words of the pair."""
        labels = ["first", "second", "odd of first, even of second", "odd of second, even of first"]
        words = [*self.pair, *self.swapped]
        rows = [
            (label, word, (at := self.breaks(word)) is None, at)
            for label, word in zip(labels, words, strict=True)
        ]
        caption = "Two members, and what becomes of them when their even halves change places."
        return table(rows, ["word", "brackets", "member", "breaks at"], caption)

    @property
    def _accepted(self) -> bool:
        return self.trail[-1] == ""

    def _read(self, word: str) -> list[str]:
        trail = [""]
        for c in word:
            trail.append(self.moves[trail[-1]][c])
        return trail
