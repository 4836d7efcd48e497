"""Every numbered claim of the main paper and of its authors' responses, in one line each.

Tests name the claim they check, `@pytest.mark.claim("Theorem 5")`. The ledger page joins this list
with the outcome of those tests; a claim without a passing test makes the build fail.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """A claim: what it says in our words, the chapter that runs it, and how far it is checked."""

    name: str
    says: str
    chapter: int
    checked: str


CLAIMS = (
    Claim(
        "Definition 1",
        "A fooling set: inputs of one value, any two of which give another value when crossed.",
        4,
        "all 3×3 matrices, and the sets used below",
    ),
    Claim(
        "Fact 1",
        "Disjointness of N-bit sets takes N bits of communication.",
        4,
        "fooling set and rank up to N = 6; exact complexity N + 1",
    ),
    Claim(
        "Fact 2",
        "Equality of N-bit strings takes N bits of communication.",
        4,
        "fooling set and rank up to N = 6; exact complexity N + 1",
    ),
    Claim(
        "Fact 3",
        "INDEX on N bits takes N bits from Alice to Bob, one way.",
        3,
        "all messages up to N = 10",
    ),
    Claim(
        "Fact 4",
        "A fooling set S forces log |S| bits of communication.",
        4,
        "all 3×3 matrices, 150 of 4×4, against the exact complexity",
    ),
    Claim(
        "Lemma 1",
        "Dyck-(2,2) of length N, odd positions against even ones, takes at least N − 1 bits.",
        5,
        "fooling set to N = 18, matrix to N = 10; exactly N + 1",
    ),
    Claim(
        "Lemma 2",
        "N nearly orthogonal sign vectors fit into O(log N) dimensions.",
        1,
        "all pairs, up to two million vectors",
    ),
    Claim(
        "Lemma 3",
        "A random sign matrix keeps the inner products of N vectors (Johnson–Lindenstrauss).",
        1,
        "random vectors, constant below 8",
    ),
    Claim(
        "Lemma 4",
        "A recurrent model that agrees with an automaton of n states has log n bits of state.",
        6,
        "extraction and residual classes; tight for every automaton",
    ),
    Claim(
        "Lemma 5",
        "For any cut into halves, two layers compute the equality of the halves.",
        8,
        "every balanced partition up to N = 8",
    ),
    Claim(
        "Theorem 1",
        "One layer of width O(log N) looks up any of N symbols.",
        2,
        "all strings to length 8 (binary) and 5 (four symbols); worst case to 2^20",
    ),
    Claim(
        "Theorem 2",
        "A recurrent model with mp bits of state is a one-way protocol of mp bits.",
        3,
        "every cut, bit for bit, three architectures",
    ),
    Claim(
        "Theorem 3",
        "A recurrent model that looks up N symbols has N / p units.",
        3,
        "collisions found for smaller states; a register meets N log |Σ|",
    ),
    Claim(
        "Theorem 4",
        "One layer of attention is a two-way protocol of 3m(p + log N)H bits, for any cut.",
        4,
        "all partitions of 8 symbols, bit for bit, two variants",
    ),
    Claim(
        "Theorem 5",
        "One layer that recognises Dyck-(2,2) has width Ω(N / p).",
        5,
        "from Theorem 4 and Lemma 1, both executed",
    ),
    Claim(
        "Theorem 6",
        "Two layers of width O(log N) compute equality.",
        6,
        "all inputs to N = 16, with a corrected scale",
    ),
    Claim(
        "Theorem 7",
        "Two layers find the nearest neighbour.",
        7,
        "planted margins down to 10⁻⁶, with a repaired construction",
    ),
    Claim(
        "Theorem 8",
        "A recurrent model for nearest neighbours or MQAR has N / 2p units.",
        7,
        "the reduction, played with registers of exactly that size",
    ),
    Claim(
        "Corollary 8.1",
        "Vectors with inner products of at most 1/4 in O(log N) dimensions.",
        1,
        "all pairs, up to a million vectors",
    ),
    Claim(
        "Proposition 9",
        "A recurrent model for associative recall has N / p units.",
        7,
        "the reduction, played; met by a register",
    ),
    Claim(
        "Theorem 10",
        "Theorem 5 again, in the letters of Appendix E.",
        5,
        "as Theorem 5",
    ),
    Claim(
        "Theorem 11",
        "A recurrent model for equality has N / 2p units.",
        6,
        "all residual classes; a rotating register meets it, to N = 18",
    ),
    Claim(
        "Theorem 12",
        "One layer that computes equality has mpH = Ω(N).",
        6,
        "from Theorem 4 and Fact 2; both sides of the constant",
    ),
    Claim(
        "Theorem 13",
        "Two layers of width O(log N) compute thresholds of N features of k inputs.",
        6,
        "all inputs of compiled formulas to N = 14",
    ),
    Claim(
        "Corollary 13.1",
        "No short two-way protocol for two layers can exist for every cut.",
        8,
        "the numbers of the argument, from Lemma 5's own matrices",
    ),
    Claim(
        "Remark on causal attention",
        "A causal mask changes nothing but Theorem 13, which pads repair.",
        6,
        "each construction again, with a mask",
    ),
    Claim(
        "Multi-Index Lookup",
        "Response: k indices are answered by the weights for one; a state needs k log |Σ| bits.",
        3,
        "random strings, up to 50 indices",
    ),
    Claim(
        "Index-first lookup",
        "Response: with the index first, log N bits of state are enough.",
        3,
        "all inputs to N = 5; exactly ⌈log(N − 1 + |Σ|)⌉",
    ),
    Claim(
        "IP2",
        "Response: inner product mod 2 is hard on average.",
        8,
        "discrepancy over all row sets, n ≤ 4; ceilings",
    ),
    Claim(
        "MQAR",
        "Multi-query associative recall is the nearest neighbour task for permuted queries.",
        7,
        "keys as sign vectors, all queries of random strings",
    ),
    Claim(
        "Constant-size RNN for Dyck",
        "A recurrent network of constant size recognises Dyck-(2,2) at every length.",
        5,
        "all words to length 10; every length by the extracted automaton",
    ),
    Claim(
        "Depth separation for Dyck",
        "Two layers of width O(log N) recognise Dyck-(2,2), where one needs Ω(N / p).",
        5,
        "all words to length 10, hard words to 2048",
    ),
    Claim(
        "Poly-log size",
        "Response: k-CNFs by models of poly-logarithmic size; we find: width, not size.",
        6,
        "a count of functions",
    ),
    Claim(
        "Summary table",
        "Response: what each architecture needs for each task.",
        0,
        "every entry evaluated against the function that computes it",
    ),
)
