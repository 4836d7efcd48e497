"""Lower bounds as functions: bits of state (Theorem 3 and beyond), width of one attention layer.

======= ==========================================================================
N       symbols to be remembered, or the length of the input
q       size of the alphabet, |Σ|
B       bits of state, m p in the paper
R       rate B / N, bits of state per symbol
D       probability of a wrong answer
m, H, p width of a head, heads, bits of a number (Theorems 4, 5, 10 and 12)
======= ==========================================================================
"""

import math

from companion.theory._check import check_even, check_int


def lookup_bits(N: int, q: int = 2) -> float:
    """State bits that exact Index Lookup takes: N log2 q, and a shift register meets it.

    The paper states N (two of the symbols are used, Theorem 3); all q^N strings must reach
    different states, since any two differ where Bob may ask.

    >>> lookup_bits(400, q=64)
    2400.0
    """
    check_int("N", N, low=1)
    check_int("q", q, low=2)
    return N * math.log2(q)


def longest_lookup(bits: int, q: int = 2) -> int:
    """The longest strings that B bits of state may serve.

    >>> longest_lookup(128 * 64)  # the paper's example: 128 units of 64 bits
    8192
    """
    check_int("bits", bits, low=0)
    check_int("q", q, low=2)
    return int(bits / math.log2(q) + 1e-9)


def index_first_bits(N: int, q: int) -> int:
    """State bits when the index comes first: ceil(log2(N - 1 + q)), needed and enough.

    >>> index_first_bits(1 << 20, 64)
    21
    """
    check_int("N", N, low=1)
    check_int("q", q, low=2)
    return (N - 2 + q).bit_length()


def multi_index_bits(k: int, q: int) -> float:
    """State bits when k indices come before *and* after the symbols: k log2 q (authors' response).

    With the indices 0, ..., k - 1 the state after the symbols must still determine k of them.
    """
    check_int("k", k, low=1)
    check_int("q", q, low=2)
    return k * math.log2(q)


def rate(D: float, q: int) -> float:
    """Bits a symbol that keep the error rate at D: log2 q - h(D) - D log2(q - 1).

    The rate-distortion function of a uniform symbol with Hamming distortion.
    """
    if not 0 <= D <= 1:
        raise ValueError(f"expected an error rate in [0, 1], got {D}")
    check_int("q", q, low=2)
    if D >= 1 - 1 / q:
        return 0.0
    entropy = -sum(x * math.log2(x) for x in (D, 1 - D) if x > 0)
    return math.log2(q) - entropy - D * math.log2(q - 1)


def accuracy_ceiling(R: float, q: int) -> float:
    """The best accuracy on uniform inputs that R = B / N bits of state a symbol allow.

    Holds for every model, trained or not, deterministic or random, of any depth: the state after N
    independent symbols carries at most B bits about them together, so on average at most R about
    each, and Fano's inequality turns that into an error rate.

    >>> round(accuracy_ceiling(0.5, 2), 3), accuracy_ceiling(6.0, 64)
    (0.89, 1.0)
    """
    if not R >= 0:
        raise ValueError(f"expected R >= 0 bits a symbol, got {R}")
    check_int("q", q, low=2)
    if R >= math.log2(q):
        return 1.0
    low, high = 0.0, 1 - 1 / q  # rate() falls from log2 q to 0 between these
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rate(middle, q) > R else (low, middle)
    return 1 - low


def two_way_bits(
    m: int, p: int, H: int, N: int, *, protocol: str = "lean", d: int | None = None, ends: int = 3
) -> float:
    """Bits by which two parties run one attention layer on N symbols (Theorem 4).

    `protocol`: "paper", the claim 3 m (p + log2 N) H; "literal", the steps of its proof, which send
    x_N, d numbers (d = m by default); "rounded", the same with the products rounded to p bits
    before they are added; "lean", as `two_way` runs it, with a whole number of bits for everything.
    `ends`: bits of the last symbol and of the answer together, which only "lean" sends.

    >>> [two_way_bits(16, 12, 2, 16, protocol=x) for x in ("paper", "literal", "lean")]
    [1536.0, 1840.0, 887.0]
    """
    for name, value in (("m", m), ("p", p), ("H", H), ("N", N)):
        check_int(name, value, low=1)
    d, log = m if d is None else d, math.log2(N)
    if protocol == "paper":
        return 3 * m * (p + log) * H
    if protocol == "literal":
        return d * p + H * (4 * p + 2 * log + 4 * m * p)
    if protocol == "rounded":
        return d * p + H * (4 * p + 2 * log + 2 * m * (p + log))
    if protocol == "lean":
        return float(ends + H * ((2 * m + 4) * p + 2 * N.bit_length()))
    raise ValueError(f"expected protocol paper, literal, rounded or lean, got {protocol!r}")


def needed_bits(task: str, N: int, *, exact: bool = True) -> int:
    """Bits that must cross for a task on inputs of even length N, dealt the hard way.

    "dyck": Dyck-(2,2), odd and even positions; the paper has N - 1 (Lemma 1), exact is N + 1.
    "equality" and "disjointness", first and second half: N / 2 (Facts 1 and 2), exactly N / 2 + 1.
    The extra bits come from counting leaves of both values, by rank (`problems`).

    >>> needed_bits("dyck", 8), needed_bits("equality", 8, exact=False)
    (9, 4)
    """
    check_even(N)
    if task == "dyck":
        return N + 1 if exact else N - 1
    if task in ("equality", "disjointness"):
        return N // 2 + exact
    raise ValueError(f"expected task dyck, equality or disjointness, got {task!r}")


def first_impossible(
    m: int, p: int, H: int, *, task: str = "dyck", protocol: str = "lean", exact: bool = True
) -> int:
    """N*: the smallest even N at which no such one-layer Transformer does a task (Theorems 5, 12).

    `m`: width of one of H heads, also the embedding's in "literal". `exact` as in `needed_bits`.

    >>> first_impossible(64, 16, 1), first_impossible(64, 16, 1, protocol="paper", exact=False)
    (2140, 5458)
    """
    N, ends = 2, 3 if task == "dyck" else 2  # a symbol of 4, or of 2, and one bit
    growth = needed_bits(task, 4) - needed_bits(task, 2)
    while True:
        bits = two_way_bits(m, p, H, N, protocol=protocol, ends=ends)
        spare = math.floor(bits) - needed_bits(task, N, exact=exact)
        if spare < 0:
            return N
        # Bits do not fall as N grows, so what is possible now stays so while needs are no greater.
        N += 2 * (spare // growth + 1)


def least_width(
    needed: int, N: int, p: int, H: int, *, protocol: str = "lean", ends: int = 2
) -> int:
    """The least width m of a head with which one layer may do a task that takes `needed` bits.

    `needed`: bits that two parties must exchange, for whichever way of dealing the N symbols is
    worst, as `Problem.lower_bound` or `needed_bits` say. Below this width it is impossible.

    >>> least_width(needed_bits("dyck", 10_000), 10_000, p=16, H=4, ends=3)
    76
    """
    check_int("needed", needed, low=0)
    first, second = (two_way_bits(m, p, H, N, protocol=protocol, ends=ends) for m in (1, 2))
    return max(1, 1 + math.ceil((needed - first) / (second - first)))
