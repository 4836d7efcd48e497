"""Fixed position tables, and index tokens that are positions."""

import pytest
import torch

from companion.models import POSITIONS, ModelConfig, build
from companion.models.positions import INIT_STD, Embedding, Positions

FIXED = [name for name, make in POSITIONS.items() if make is not None]


@pytest.mark.parametrize("kind", FIXED)
@pytest.mark.parametrize("rows", [1, 2, 3, 16])
def test_fixed_rows_are_distinct_of_equal_norm_and_not_trained(kind, rows):
    with torch.random.fork_rng():
        torch.manual_seed(0)  # of 16 random rows two are equal once in 500 draws
        positions = Positions(kind, rows, 16)
    table = positions.table
    assert not list(positions.parameters())
    assert torch.allclose(table.norm(dim=-1), torch.full((rows,), INIT_STD * 4), atol=1e-6)
    assert torch.unique(table, dim=0).shape[0] == rows


def test_one_hot_rows_are_orthogonal_and_random_rows_nearly():
    one_hot, random = (Positions(kind, 64, 4096).table for kind in ("one-hot", "random"))
    scale = INIT_STD**2 * 4096
    assert torch.equal((one_hot @ one_hot.T > 0), torch.eye(64, dtype=torch.bool))
    coherence = (random @ random.T / scale - torch.eye(64)).abs().max()
    assert 0 < coherence < 0.1  # √(2 ln 64² / 4096) ≈ 0.064 is typical


@pytest.mark.parametrize(
    ("kind", "rows", "width", "message"),
    [
        ("one-hot", 9, 8, "width=8 for one-hot positions, expected at least 9"),
        ("binary", 17, 4, "width=4 for binary positions, expected at least 5"),
    ],
)
def test_width_too_small_for_the_table_is_refused(kind, rows, width, message):
    with pytest.raises(ValueError, match=message):
        Positions(kind, rows, width)


def test_random_table_depends_on_the_seed_only():
    config = ModelConfig(vocab=3, classes=2, positions="random")
    a, b, c = (
        build("transformer", config, rng=torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
    )
    tables = [model.embedding.position.table for model in (a, b, c)]
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])


@pytest.mark.parametrize("name", ["transformer", "mamba", "dss", "retnet", "deltanet"])
def test_size_of_the_embedding_is_a_choice(name):
    config = ModelConfig(vocab=100, classes=2, width=32, max_len=100, embedding_std=0.5)
    model = build(name, config, rng=torch.Generator().manual_seed(0))
    tables = [model.embedding.token.weight]
    if name in ("transformer", "deltanet"):
        tables.append(model.embedding.position.table)
    else:  # these read in order and have no use for positions
        assert model.embedding.position is None
    assert all(0.45 < table.std() < 0.55 for table in tables)
    fixed = Positions("sinusoidal", 10, 16, std=0.5).table
    assert torch.allclose(fixed.norm(dim=-1), torch.full((10,), 2.0))


def test_odd_width_of_sinusoidal_positions():
    assert Positions("sinusoidal", 5, 7).table.shape == (5, 7)


def test_tied_index_token_is_the_vector_of_its_position():
    embedding = Embedding(vocab=7, width=4, max_len=9, positions="learned", tied_from=4)
    x = embedding(torch.tensor([[0, 6, 4]]), t=2)[0]
    table, symbols = embedding.position.table, embedding.token.weight
    assert torch.equal(x, torch.stack([symbols[0] + table[2], table[2], table[0]]))


@pytest.mark.parametrize("kind", POSITIONS)
def test_every_kind_runs_in_a_model(kind):
    config = ModelConfig(vocab=3, classes=2, width=8, heads=2, max_len=8, positions=kind)
    model = build("transformer", config, rng=torch.Generator().manual_seed(0))
    tokens = torch.tensor([[0, 1, 1, 2]])
    swapped = torch.tensor([[1, 0, 1, 2]])
    same = torch.allclose(model(tokens)[0][:, -1], model(swapped)[0][:, -1], atol=1e-9)
    assert same == (kind == "none")
