"""The book in one picture, for the landing page and the README: book/picture.svg.

`make tidy` draws it again; a test compares it with the stored results that it is drawn from.
"""

from __future__ import annotations

import io
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from companion.book import figures
from companion.experiments import pool, reported
from companion.theory.index_lookup import IndexLookup
from companion.theory.vectors import binary

ALPHABET = 64


def picture() -> Figure:
    """Left, what Index Lookup takes to represent; right, what training found, from stored runs."""
    figures.style()
    fig, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.7))
    sizes = [
        (1 << n, 16 * IndexLookup.build(1 << n, ALPHABET, binary(1 << n)).parameters)
        for n in range(4, 19, 2)
    ]
    figures.model_size_bits(left, {"Transformer: its matrices": sizes}, ALPHABET)
    figures.accuracy_against_length(right, trained(), chance=1 / ALPHABET)
    left.set_title("what lookup takes to represent", loc="left")
    right.set_title("what training finds", loc="left")
    left.legend(loc="upper left")
    right.legend(loc="upper left", bbox_to_anchor=(0.02, 0.84), fontsize=9.5, labelspacing=0.3)
    return fig


def trained() -> dict[str, list[tuple]]:
    """Stored accuracies of plain runs, seeds together: (N, accuracy, low, high) by model."""
    scores = defaultdict(lambda: defaultdict(list))
    for r in reported("figure-2-index"):
        if not r.run.tied:
            scores[r.run.model.replace("_", " ")][r.run.length].append(r.best)
    pooled = {
        name: {N: pool(each) for N, each in sorted(lengths.items())}
        for name, lengths in sorted(scores.items())
    }
    return {
        name: [(N, score.accuracy, *score.interval) for N, score in lengths.items()]
        for name, lengths in pooled.items()
    }


def svg() -> str:
    """The picture as text, the same on every run."""
    fig, out = picture(), io.StringIO()
    fig.savefig(out, format="svg", metadata={"Date": None})
    plt.close(fig)
    return out.getvalue()


def draw(root: Path) -> list[Path]:
    """Write book/picture.svg below `root` if it has changed; the files changed."""
    target, text = root / "book" / "picture.svg", svg()
    if target.exists() and target.read_text(encoding="utf8") == text:
        return []
    target.write_text(text, encoding="utf8")
    return [target]
