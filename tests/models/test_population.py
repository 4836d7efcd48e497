"""A population is its members: outputs, states, gradients, and what is left when some leave."""

import pytest
import torch

from companion.models import MODELS, ModelConfig, Population, build

P, B, T = 3, 2, 7


def members_of(model, count=P, **sizes):
    config = ModelConfig(vocab=9, classes=4, width=8, heads=2, max_len=T, **sizes)
    rng = torch.Generator().manual_seed(0)
    return [build(model, config, rng=rng).double() for _ in range(count)]


def examples(count=P):
    rng = torch.Generator().manual_seed(1)
    return torch.randint(9, (count, B, T), generator=rng), torch.randint(
        T, (count, B, 1), generator=rng
    )


def close(a, b):
    return torch.allclose(a, b, rtol=1e-12, atol=1e-12)


SETTINGS = [
    *((model, {}) for model in sorted(MODELS)),
    *((model, {"depth": 2}) for model in ("lstm", "transformer", "mamba")),
    *(("transformer", {"positions": kind}) for kind in ("none", "random", "sinusoidal", "rotary")),
    ("transformer", {"tied_from": 4}),
    ("transformer", {"tied_from": 4, "positions": "random"}),
]


@pytest.mark.parametrize(("model", "sizes"), SETTINGS)
@pytest.mark.parametrize("asked", ["all", "one"])
def test_members_compute_what_they_compute_alone(model, sizes, asked):
    members, (tokens, read) = members_of(model, **sizes), examples()
    read = None if asked == "all" else read
    population = Population(members)
    logits, state = population(tokens, read=read)
    logits.sin().sum().backward()
    gradients = dict(population.frame.named_parameters())
    for i, member in enumerate(members):
        own, after = member(tokens[i], read=None if read is None else read[i])
        own.sin().sum().backward()
        assert close(logits[i], own)
        pairs = zip(state.tensors, after.tensors, strict=True)
        assert state.t == after.t and all(close(a[i], b) for a, b in pairs)
        for name, p in member.named_parameters():
            expected = torch.zeros_like(p) if p.grad is None else p.grad
            found = gradients[name].grad
            assert close(torch.zeros_like(p) if found is None else found[i], expected), name


@pytest.mark.parametrize("model", sorted(MODELS))
def test_population_reads_in_pieces_too(model):
    population, (tokens, _) = Population(members_of(model)), examples()
    whole, last = population(tokens)
    first, state = population(tokens[..., :3])
    nothing, state = population(tokens[..., 3:3], state)
    rest, state = population(tokens[..., 3:], state)
    assert close(torch.cat([first, nothing, rest], -2), whole)
    assert all(close(a, b) for a, b in zip(state.tensors, last.tensors, strict=True))


@pytest.mark.parametrize("model", sorted(MODELS))
def test_weights_are_those_of_a_member_also_after_others_have_left(model):
    members, (tokens, _) = members_of(model, positions="random"), examples()
    population = Population(members)
    population.keep([2, 0])
    assert len(population) == 2
    logits, _ = population(tokens[[2, 0]])
    fresh = members_of(model, count=1, positions="random")[0]
    for place, i in enumerate((2, 0)):
        fresh.load_state_dict(population.weights(place))
        own, _ = members[i](tokens[i])
        assert torch.equal(fresh(tokens[i])[0], own) and close(logits[place], own)


def test_members_are_left_as_they_were():
    members, (tokens, _) = members_of("transformer"), examples()
    before = members[0](tokens[0])[0]
    population = Population(members)
    with torch.no_grad():
        for p in population.parameters():
            p.zero_()
    assert torch.equal(members[0](tokens[0])[0], before)


def test_population_of_one_and_of_none():
    (member,), (tokens, _) = members_of("lstm", count=1), examples(1)
    assert close(Population([member])(tokens)[0][0], member(tokens[0])[0])
    with pytest.raises(ValueError, match="got 0 kinds of members, expected 1"):
        Population([])
    with pytest.raises(ValueError, match="got no member of 1 to keep, expected at least 1"):
        Population([member]).keep([])


def test_members_of_different_kinds_are_refused():
    for other in (members_of("transformer", count=1), members_of("lstm", count=1, depth=2)):
        with pytest.raises(ValueError, match="got 2 kinds of members, expected 1"):
            Population([*members_of("lstm", count=1), *other])


def test_members_in_different_number_formats_are_refused():
    single, double = members_of("lstm", count=2)
    with pytest.raises(ValueError, match="got 2 kinds of members, expected 1"):
        Population([single.float(), double])


def test_tokens_without_the_axis_or_of_another_number_of_members_are_refused():
    population, (tokens, _) = Population(members_of("lstm")), examples()
    with pytest.raises(ValueError, match=r"got tokens of shape \(2, 2, 7\), expected \(3, B, T\)"):
        population(tokens[:2])
    with pytest.raises(ValueError, match=r"got tokens of shape \(3, 2, 7\), expected \(B, T\)"):
        members_of("lstm", count=1)[0](tokens)
