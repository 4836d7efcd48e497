"""Every task made one symbol at a time with Python's `random`: slow twins of the generators."""

import math
from functools import cache

import torch

from companion.experiments import Batch
from companion.experiments.languages import Language


def examples(task, batch, *, rnd, exact=False):
    """`batch` examples of `task`, as its `sample` would draw them."""
    kind = "language" if isinstance(task, Language) else task.name
    rows = [MAKERS[kind](task, rnd, exact) for _ in range(batch)]
    return Batch(*(torch.tensor(part, dtype=torch.int64) for part in zip(*rows, strict=True)))


def index_lookup(task, rnd, exact):
    k = rnd.randint(task.N if exact else min(10, task.N), task.N)
    symbols = [rnd.randrange(task.alphabet) for _ in range(k)]
    p = [rnd.randrange(k) for _ in range(task.queries)]
    tokens = symbols + [task.alphabet + i for i in p] + [task.pad] * (task.N - k)
    return tokens, [k + i for i in range(task.queries)], [symbols[i] for i in p]


def index_first(task, rnd, exact):
    k = rnd.randint(task.N if exact else min(10, task.N), task.N)
    symbols = [rnd.randrange(task.alphabet) for _ in range(k)]
    p = rnd.randrange(k)
    return [task.alphabet + p, *symbols, *[task.pad] * (task.N - k)], [k], [symbols[p]]


def length_of_half(task, rnd, exact):
    return rnd.randint((task.N if exact else task.shortest) // 2, task.N // 2)


def padded(task, row):
    return row + [task.pad] * (task.max_len - len(row))


def eq_random(task, rnd, exact):
    h = length_of_half(task, rnd, exact)
    u = [rnd.randrange(task.alphabet) for _ in range(h)]
    v = u if rnd.random() < 0.5 else [rnd.randrange(task.alphabet) for _ in range(h)]
    return padded(task, [*u, task.separator, *v]), [2 * h], [int(u == v)]


def eq_one(task, rnd, exact):
    h = length_of_half(task, rnd, exact)
    u = [rnd.randrange(task.alphabet) for _ in range(h)]
    v = list(u)
    if rnd.random() < 0.5:
        at = rnd.randrange(h)
        v[at] = (v[at] + rnd.randrange(1, task.alphabet)) % task.alphabet
    return padded(task, [*u, task.separator, *v]), [2 * h], [int(u == v)]


def eq_ncp(task, rnd, exact):
    h = length_of_half(task, rnd, exact)
    u = [rnd.randrange(task.alphabet) for _ in range(h)]
    places = [r % h for r in range(task.N // 2)]
    tokens = padded(task, [*u, task.separator, *u[:-1]])
    return tokens, [h + r for r in places], [u[r] for r in places]


def ip2(task, rnd, exact):
    h = length_of_half(task, rnd, exact)
    u, v = ([rnd.randrange(2) for _ in range(h)] for _ in range(2))
    odd = sum(a & b for a, b in zip(u, v, strict=True)) % 2
    return padded(task, [*u, task.separator, *v]), [2 * h], [odd]


def recall(task, rnd, exact):
    keys = rnd.sample(range(task.alphabet), task.N)
    labels = {key: rnd.randrange(2) for key in keys}
    asked = rnd.sample(keys, task.queries)
    tokens = [t for key in keys for t in (2 + key, labels[key])] + [2 + key for key in asked]
    return tokens, range(2 * task.N, task.max_len), [labels[key] for key in asked]


def nearest(task, rnd, exact):
    keys = rnd.sample(range(task.alphabet), task.N)
    labels = {key: rnd.randrange(2) for key in keys}
    asked = {}
    while len(asked) < task.N:
        query = rnd.randrange(task.alphabet)
        if query not in asked:
            apart = [(query ^ key).bit_count() for key in keys]
            least = min(apart)
            if apart.count(least) == 1:
                asked[query] = labels[keys[apart.index(least)]]
    tokens = [t for key in keys for t in (2 + key, labels[key])] + [2 + key for key in asked]
    return tokens, range(2 * task.N, task.max_len), list(asked.values())


def member(task, rnd):
    stack, word = [], []
    for left in range(task.N, 0, -1):
        may_open = len(stack) < min(task.depth, left)
        if may_open and (not stack or rnd.randrange(task.alphabet // 2 + 1)):
            stack.append(2 * rnd.randrange(task.alphabet // 2))
            word.append(stack[-1])
        else:
            word.append(stack.pop() + 1)
    return word


def is_member(task, word):
    stack = []
    for s in word:
        if s % 2 == 0:
            if len(stack) == task.depth:
                return False
            stack.append(s)
        elif not stack or stack.pop() != s - 1:
            return False
    return not stack


def replaced(task, word, rnd):
    word, n = list(word), task.alphabet // 2
    for i in rnd.sample(range(task.N), rnd.randint(1, max(1, task.N // 10))):
        if n == 1 or rnd.random() < 0.5:
            word[i] ^= 1
        else:
            word[i] = (word[i] + 2 * rnd.randrange(1, n)) % task.alphabet
    return word


def balanced(task, word):
    counts = {}
    for i, s in enumerate(word):
        key = s // 2, (i + s) % 2
        counts[key] = counts.get(key, 0) + (1 - 2 * (s % 2))
    return word[0] % 2 == 0 and word[-1] % 2 == 1 and not any(counts.values())


def brackets(task, rnd, exact):
    word, positive = member(task, rnd), rnd.random() < 0.5
    if not positive:
        found = replaced(task, word, rnd)
        while is_member(task, found):
            found = replaced(task, word, rnd)
        word = found
    return word, [task.N - 1], [int(positive)]


def hard_brackets(task, rnd, exact):
    word, positive = member(task, rnd), rnd.random() < 0.5
    if not positive:
        word = replaced(task, word, rnd)
        while not balanced(task, word) or is_member(task, word):
            word = replaced(task, member(task, rnd), rnd)
    return word, [task.N - 1], [int(positive)]


def language(task, rnd, exact):
    n = rnd.choice(task.lengths(*task.span))
    word = WORDS.get(task.name, repeat)(task, n, rnd)
    answers = [task.answer(word[:t]) for t in range(1, n + 1)]
    blank = task.span[1] - n
    tokens = [task.symbols.index(c) for c in word] + [task.pad] * blank
    return tokens, range(task.span[1]), answers + [-100] * blank


def repeat(task, n, rnd):
    return (task.word * n)[:n]


def parity(task, n, rnd):
    return "".join(rnd.choice("01") for _ in range(n))


def bracket_word(m, rnd, symbols="()"):
    """Uniform, by the number of ways to go on: `up` of `up + down` lead over an opening one."""
    depth, word = 0, []
    for left in range(2 * m, 0, -1):
        opens = rnd.random() * 2 * left * (depth + 1) < (left - depth) * (depth + 2)
        depth += 1 if opens else -1
        word.append(symbols[0] if opens else symbols[1])
    return "".join(word)


def reset(task, n, rnd):
    m = rnd.randrange((n + 1) // 2)
    return bracket_prefix(n - 1 - 2 * m, rnd) + "1" + bracket_word(m, rnd)


@cache
def ways(left, depth):
    """Walks of `left` more steps that stay above -1."""
    if left == 0:
        return 1
    return ways(left - 1, depth + 1) + (ways(left - 1, depth - 1) if depth else 0)


def bracket_prefix(n, rnd):
    depth, word = 0, []
    for left in range(n, 0, -1):
        opens = rnd.randrange(ways(left, depth)) < ways(left - 1, depth + 1)
        depth += 1 if opens else -1
        word.append("(" if opens else ")")
    return "".join(word)


@cache
def weights(m):
    catalan = [math.comb(2 * i, i) // (i + 1) for i in range(m + 1)]
    return [math.comb(2 * m, 2 * i) * catalan[i] * catalan[m - i] for i in range(m + 1)]


def shuffled(task, n, rnd):
    weight = weights(n // 2)
    target, i = rnd.randrange(sum(weight)), 0
    while target >= weight[i]:
        target, i = target - weight[i], i + 1
    parts = {True: iter(bracket_word(i, rnd)), False: iter(bracket_word(n // 2 - i, rnd, "[]"))}
    first = set(rnd.sample(range(n), 2 * i))
    return "".join(next(parts[t in first]) for t in range(n))


def blocks(task, n, rnd):
    return "".join(c * (n // task.period) for c in task.symbols)


WORDS = {
    "parity": parity,
    "dyck-1": lambda task, n, rnd: bracket_word(n // 2, rnd),
    "reset-dyck-1": reset,
    "shuffle-2": shuffled,
    "counter-2": blocks,
    "counter-3": blocks,
}

MAKERS = {
    "index-lookup": index_lookup,
    "multi-index-lookup": index_lookup,
    "index-first": index_first,
    "eq-random": eq_random,
    "eq-one": eq_one,
    "eq-ncp": eq_ncp,
    "ip2": ip2,
    "mqar": recall,
    "associative-recall": recall,
    "nearest-neighbor": nearest,
    "dyck": brackets,
    "dyck-hard": hard_brackets,
    "language": language,
}
