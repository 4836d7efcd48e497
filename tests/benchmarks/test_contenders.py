"""Answers and gradients of every peer that needs no download are those of our model."""

import compare
import plain
import pytest
from contenders import CONTENDERS, OURS
from measure import LAST, Sizes

from companion.models import MODELS

SIZES = Sizes(length=21, depth=2, width=16, batch=2, heads=2)
PLAIN = [
    (name, peer)
    for name, peers in CONTENDERS.items()
    for peer in peers
    if not peer.startswith(("Hugging Face", "mambapy", "mamba-ssm", "fla"))
]


def test_every_model_is_compared():
    assert set(CONTENDERS) == set(MODELS) - {"shift_register"}


@pytest.mark.parametrize(("name", "peer"), PLAIN)
def test_peer_computes_the_same(name, peer):
    ours, other = (compare.trained(name, c, SIZES, LAST, "cpu") for c in (OURS, peer))
    assert sum(p.numel() for p in other.module.parameters()) == sum(
        p.numel() for p in ours.module.parameters()
    )
    tokens = SIZES.data("cpu").tokens
    expected = compare.answers(ours.module, tokens)
    for found, value in zip(compare.answers(other.module, tokens), expected, strict=True):
        assert float((found - value).abs().max() / value.abs().max()) < compare.TOLERANCE["cpu"]
    assert other.loss().item() == pytest.approx(ours.loss().item(), rel=1e-4)


def test_peer_that_computes_something_else_is_not_timed(monkeypatch):
    class Doubled(plain.Recurrent):
        def forward(self, tokens):
            return 2 * super().forward(tokens)

    peers = {"right": plain.Recurrent, "wrong": Doubled, "slow": plain.Recurrent}
    fit = {OURS: 0.1, "right": 0.1, "wrong": 0.1, "slow": 9.0}
    monkeypatch.setitem(CONTENDERS, "lstm", peers)
    found = compare.race("lstm", fit, SIZES, LAST, "cpu", rounds=1)
    assert found["right"]["ms"] > 0 and "ms" not in found["wrong"]
    assert found["wrong"]["failed"] == "differs by 3e+00 from ours"
    assert (found["slow"]["ms"], found["slow"]["steps"]) == (9000.0, 1)
