"""The arithmetic behind sign vectors: the fields GF(2^m), and one portable hash."""

import numpy as np

# Irreducible polynomials over GF(2), one a degree: x^4 + x + 1 is 0b10011.
IRREDUCIBLE = {
    4: 0b10011,
    5: 0b100101,
    6: 0b1000011,
    7: 0b10001001,
    8: 0b100011101,
    9: 0b1000010001,
    10: 0b10000001001,
}
_MASK64 = (1 << 64) - 1


def gf_mul(a: int, b: int, m: int) -> int:
    """Product in GF(2^m), elements as m-bit integers.

    >>> gf_mul(0b1000, 0b10, 4)  # x^3 times x is x^4 = x + 1
    3
    """
    product = 0
    while b:
        if b & 1:
            product ^= a
        b >>= 1
        a <<= 1
        if a >> m & 1:
            a ^= IRREDUCIBLE[m]
    return product


def gf_trace(x: int, m: int) -> int:
    """Tr(x) = x + x^2 + x^4 + ... + x^(2^(m-1)), which is 0 or 1."""
    total = power = x
    for _ in range(m - 1):
        power = gf_mul(power, power, m)
        total ^= power
    return total


def splitmix64(x: int) -> int:
    """A 64-bit mixing function (Steele, Lea and Flood 2014): same on every machine."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK64
    return x ^ (x >> 31)


def splitmix64_array(x: np.ndarray) -> np.ndarray:
    """splitmix64 on an array of uint64, which wraps round by itself."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
