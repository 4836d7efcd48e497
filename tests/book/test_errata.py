"""Entries of the errata that name a test name one that exists, and the picture is up to date."""

import re
from pathlib import Path

from companion.book import picture

ROOT = Path(__file__).parents[2]


def test_every_test_that_the_errata_name_exists():
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "book" / "errata.md").read_text("utf8")))
    sources = "\n".join(p.read_text("utf8") for p in (ROOT / "tests").rglob("test_*.py"))
    existing = set(re.findall(r"^def (test_\w+)\(", sources, re.M))
    assert len(named) > 30
    assert sorted(named - existing) == []


def test_the_picture_is_drawn_from_the_results_that_are_stored():
    drawn = (ROOT / "book" / "picture.svg").read_text("utf8")
    assert drawn == picture.svg(), "run make tidy"
