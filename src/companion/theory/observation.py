"""An automaton from answers alone: what a model does is enough to tell what it remembers.

Two prefixes that some suffix tells apart must leave a model in different states, and prefixes that
none tells apart might as well share one (Myhill and Nerode). So a table of answers, a row for each
short prefix and a column for each short suffix, shows the states that a model keeps apart, whatever
its memory is made of: an LSTM's real numbers need not be rounded first, as for `extract`. For a
model that is wrong somewhere the table shows where.

A model that is trained on words of one length is asked about words of that length: before prefix
and suffix it reads a *filler* as often as it takes, which must be a word after which all is as at
the start, such as "()" for brackets. What cannot be filled up to that length is not asked, and
counts as rejected.

======= ==========================================================================
N       length of the words that are asked
u, v    prefix and suffix; uv is accepted or not
======= ==========================================================================
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from automata.fa.dfa import DFA
from jaxtyping import Bool, Float, Int

from companion.theory._check import check_int

Accepts = Callable[[Int[np.ndarray, "words N"]], Bool[np.ndarray, " words"]]


@dataclass(frozen=True, eq=False)
class Observation:
    """Which uv are accepted, for all words u and v of up to `longest` symbols."""

    symbols: str
    words: list[str]  # the prefixes and the suffixes, the shortest first
    accepted: Bool[np.ndarray, "prefixes suffixes"]

    @cached_property
    def states(self) -> dict[bytes, str]:
        """The different rows, each with the first shortest prefix that has it."""
        named: dict[bytes, str] = {}
        for word, row in zip(self.words, self.accepted, strict=True):
            named.setdefault(row.tobytes(), word)
        return named

    def automaton(self) -> DFA:
        """The automaton with a state for each row; row of u and symbol c lead to the row of uc.

        Raises ValueError where the rows do not determine it: two prefixes with equal rows go
        different ways, or some row is that of the longest prefixes only.
        """
        rows = {word: row.tobytes() for word, row in zip(self.words, self.accepted, strict=True)}
        table: dict[str, dict[str, str]] = {name: {} for name in self.states.values()}
        for word, row in rows.items():
            if len(word) == len(self.words[-1]):
                break
            for c in self.symbols:
                target = self.states[rows[word + c]]
                known = table[self.states[row]].setdefault(c, target)
                if known != target:
                    raise ValueError(
                        f"expected equal ways from equal rows, got {known!r} and {target!r} by "
                        f"{c!r} from {self.states[row]!r} and {word!r}"
                    )
        if lost := [name for name, moves in table.items() if not moves]:
            raise ValueError(f"expected a longer prefix for every row, got none for {lost}")
        return DFA(
            states=set(table),
            input_symbols=set(self.symbols),
            transitions=table,
            initial_state="",
            final_states={word for row, word in self.states.items() if row[0]},
        )

    def wrong(self, language: DFA) -> Bool[np.ndarray, "prefixes suffixes"]:
        """Where the language says otherwise."""
        right = [[language.accepts_input(u + v) for v in self.words] for u in self.words]
        return self.accepted != np.array(right)

    def by_state(self, language: DFA) -> dict[str, Float[np.ndarray, " suffixes"]]:
        """For each state of the language's automaton, how often each suffix is accepted after it.

        Averages over the prefixes that lead there: 0 or 1 for a model that is right.
        """
        reached: dict[str, list[int]] = {}
        for i, word in enumerate(self.words):
            state = language.initial_state
            for c in word:
                state = language.transitions[state][c]
            reached.setdefault(state, []).append(i)
        return {state: self.accepted[rows].mean(0) for state, rows in reached.items()}


def observe(
    accepts: Accepts, symbols: str, N: int, *, longest: int = 3, filler: str = ""
) -> Observation:
    """Ask about all uv of up to `longest` symbols each, filled up to N symbols.

    `accepts` gets words as numbers, symbol i as i, many at once. With the empty filler only words
    of N symbols are asked.

    >>> even = observe(lambda words: words.sum(1) % 2 == 0, "01", N=4, longest=2, filler="0")
    >>> sorted(even.states.values()), even.automaton().accepts_input("0110")
    (['', '1'], True)

    Raises ValueError for words that would not fit into N symbols.
    """
    check_int("longest", longest, low=1)
    check_int("N", N, low=2 * longest)
    words = ["".join(word) for n in range(longest + 1) for word in product(symbols, repeat=n)]
    accepted = np.zeros((len(words), len(words)), bool)
    asked, cells = [], []
    for i, j in np.ndindex(accepted.shape):
        left = N - len(words[i]) - len(words[j])
        times, rest = divmod(left, len(filler)) if filler else (0, left)
        if rest == 0:
            asked.append([symbols.index(c) for c in filler * times + words[i] + words[j]])
            cells.append((i, j))
    if asked:
        accepted[tuple(np.array(cells).T)] = accepts(np.array(asked))
    return Observation(symbols, words, accepted)
