"""Every numbered claim of the main paper and of its authors' responses, in one line each; and what
the abstract of the second paper says.

Tests name the claim they check, and may say on what: `@pytest.mark.claim("Lemma 1", "all words,
N = {N}")`, where {N} stands for the values of that parameter with which the test has passed. The
ledger page joins this list with the outcome of those tests; a claim without a passing test makes
the build fail.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from string import Formatter


@dataclass(frozen=True)
class Claim:
    """A claim: what it says in our words, and the chapter that runs it."""

    name: str
    says: str
    chapter: int


def checked(template: str, runs: Sequence[dict[str, object]]) -> str:
    """What a test has been run on: its own words, with the parameters of all its passed runs.

    >>> checked("all words, N = {N}", [{"N": N, "beta": 1.0} for N in (2, 4, 6, 8, 10)])
    'all words, N = 2, 4, …, 10'
    >>> checked("length {n} over {q} symbols", [{"n": 8, "q": 2}, {"n": 5, "q": 4}])
    'length 5 over 4 symbols; length 8 over 2 symbols'
    """
    names = [name for _, name, _, _ in Formatter().parse(template) if name]
    varied = sum(len({str(run[name]) for run in runs}) > 1 for name in names)
    texts = sorted({template.format(**run) for run in runs})
    if varied > 1 and len(texts) == 2:  # values that go together
        return "; ".join(texts)
    return template.format(**{name: span([run[name] for run in runs]) for name in names})


def span(values: Sequence[object]) -> str:
    """Values in order, each once; whole numbers in even steps by the first two and the last.

    >>> span([3, 1, 2, 2]), span([1, 2, 4, 8]), span(["late", "early"]), span([7])
    ('1, 2, 3', '1, 2, 4, 8', 'early, late', '7')
    """
    if not all(isinstance(x, int | float) for x in values):
        return ", ".join(sorted({str(x).removeprefix("torch.") for x in values}))
    once = sorted(set(values))
    if len(once) > 4 and len({b - a for a, b in itertools.pairwise(once)}) == 1:
        once = [*once[:2], "…", once[-1]]
    return ", ".join(map(str, once))


CLAIMS = (
    Claim(
        "Definition 1",
        "A fooling set: inputs of one value, any two of which give another value when crossed.",
        4,
    ),
    Claim(
        "Fact 1",
        "Disjointness of N-bit sets takes N bits of communication.",
        4,
    ),
    Claim(
        "Fact 2",
        "Equality of N-bit strings takes N bits of communication.",
        4,
    ),
    Claim(
        "Fact 3",
        "INDEX on N bits takes N bits from Alice to Bob, one way.",
        3,
    ),
    Claim(
        "Fact 4",
        "A fooling set S forces log |S| bits of communication.",
        4,
    ),
    Claim(
        "Lemma 1",
        "Dyck-(2,2) of length N, odd positions against even ones, takes at least N − 1 bits.",
        5,
    ),
    Claim(
        "Lemma 2",
        "N nearly orthogonal sign vectors fit into O(log N) dimensions.",
        1,
    ),
    Claim(
        "Lemma 3",
        "A random sign matrix keeps the inner products of N vectors (Johnson–Lindenstrauss).",
        1,
    ),
    Claim(
        "Lemma 4",
        "A recurrent model that agrees with an automaton of n states has log n bits of state.",
        6,
    ),
    Claim(
        "Lemma 5",
        "For any cut into halves, two layers compute the equality of the halves.",
        8,
    ),
    Claim(
        "Theorem 1",
        "One layer of width O(log N) looks up any of N symbols.",
        2,
    ),
    Claim(
        "Theorem 2",
        "A recurrent model with mp bits of state is a one-way protocol of mp bits.",
        3,
    ),
    Claim(
        "Theorem 3",
        "A recurrent model that looks up N symbols has N / p units.",
        3,
    ),
    Claim(
        "Theorem 4",
        "One layer of attention is a two-way protocol of 3m(p + log N)H bits, for any cut.",
        4,
    ),
    Claim(
        "Theorem 5",
        "One layer that recognises Dyck-(2,2) has width Ω(N / p).",
        5,
    ),
    Claim(
        "Theorem 6",
        "Two layers of width O(log N) compute equality.",
        6,
    ),
    Claim(
        "Theorem 7",
        "Two layers find the nearest neighbour.",
        7,
    ),
    Claim(
        "Theorem 8",
        "A recurrent model for nearest neighbours or MQAR has N / 2p units.",
        7,
    ),
    Claim(
        "Corollary 8.1",
        "Vectors with inner products of at most 1/4 in O(log N) dimensions.",
        1,
    ),
    Claim(
        "Proposition 9",
        "A recurrent model for associative recall has N / p units.",
        7,
    ),
    Claim(
        "Theorem 10",
        "Theorem 5 again, in the letters of Appendix E.",
        5,
    ),
    Claim(
        "Theorem 11",
        "A recurrent model for equality has N / 2p units.",
        6,
    ),
    Claim(
        "Theorem 12",
        "One layer that computes equality has mpH = Ω(N).",
        6,
    ),
    Claim(
        "Theorem 13",
        "Two layers of width O(log N) compute thresholds of N features of k inputs.",
        6,
    ),
    Claim(
        "Corollary 13.1",
        "No short two-way protocol for two layers can exist for every cut.",
        8,
    ),
    Claim(
        "Remark on causal attention",
        "A causal mask changes nothing but Theorem 13, which pads repair.",
        6,
    ),
    Claim(
        "Multi-Index Lookup",
        "Response: k indices are answered by the weights for one; a state needs k log |Σ| bits.",
        3,
    ),
    Claim(
        "Index-first lookup",
        "Response: with the index first, log N bits of state are enough.",
        3,
    ),
    Claim(
        "IP2",
        "Response: inner product mod 2 is hard on average.",
        8,
    ),
    Claim(
        "MQAR",
        "Multi-query associative recall is the nearest neighbour task for permuted queries.",
        7,
    ),
    Claim(
        "Constant-size RNN for Dyck",
        "A recurrent network of constant size recognises Dyck-(2,2) at every length.",
        5,
    ),
    Claim(
        "Depth separation for Dyck",
        "Two layers of width O(log N) recognise Dyck-(2,2), where one needs Ω(N / p).",
        5,
    ),
    Claim(
        "Poly-log size",
        "Response: k-CNFs by models of poly-logarithmic size; we find: width, not size.",
        6,
    ),
    Claim(
        "Summary table",
        "Response: what each architecture needs for each task.",
        0,
    ),
    Claim(
        "Linear Transformer as RNN",
        "Second paper: a linear Transformer is a recurrent network with a state of fixed size.",
        9,
    ),
    Claim(
        "Counting by a sum",
        "Second paper: results for Transformers carry over to linear ones. They count.",
        9,
    ),
    Claim(
        "A sum forgets order",
        "Second paper: results carry over. One layer without positions cannot reset.",
        9,
    ),
    Claim(
        "Forgetting by the delta rule",
        "What a DeltaNet has stored at a key it can replace, and so it resets.",
        9,
    ),
    Claim(
        "Parity by recurrent fast weights",
        "Second paper: Recurrent Delta and SRWM overcome limits of linear Transformers: parity.",
        9,
    ),
    Claim(
        "Fading memories cannot do parity",
        "If what is kept only fades, 1ⁿ and 1ⁿ⁺¹ end in the same p-bit state for some n.",
        9,
    ),
    Claim(
        "Parity by a reflection",
        "Later work (Grazzi et al. 2024): with rates up to 2 a DeltaNet does parity.",
        9,
    ),
)
