"""Verdicts follow from stored numbers, in both directions."""

import dataclasses

import pytest

from companion.experiments import Result, Run, Score, verdicts
from companion.experiments.result import Check
from companion.experiments.verdicts import (
    VERDICTS,
    Verdict,
    fastest_success,
    grouped,
    model_name,
)

INDEX = Run(task="index-lookup", length=100, model="transformer")
DYCK = Run(task="dyck", length=20, model="lstm", alphabet=4)


def result(run, accuracy, steps=1000, **more):
    score = Score(round(1000 * accuracy), 1000)
    more = {name: Score(round(1000 * value), 1000) for name, value in more.items()}
    return Result(run, "finished", steps, [Check(steps, 1.0, accuracy)], score, score, steps,
                  1.0, 1.0, more=more)  # fmt: skip


@pytest.fixture
def store(monkeypatch):
    """Lets a test say what `reported` returns."""
    content = {}
    monkeypatch.setattr(verdicts, "reported", lambda name: content.get(name, []))
    return content


@pytest.mark.parametrize("judge", VERDICTS, ids=lambda judge: judge.__name__)
def test_without_results_there_is_no_verdict(judge, store):
    assert judge().outcome == "no results"


@pytest.mark.parametrize(
    ("cases", "outcome"),
    [
        ({"a": True, "b": True}, "reproduced"),
        ({"a": True, "b": False}, "partly"),
        ({"a": False, "b": False}, "not at this scale"),
    ],
)
def test_outcome(cases, outcome):
    assert Verdict("1", "claim", cases).outcome == outcome


def test_median_over_seeds_decides(store):
    store["figure-2-index"] = [
        result(INDEX.replace(seed=seed), accuracy)
        for seed, accuracy in enumerate((1.0, 0.995, 0.1))
    ]
    assert verdicts.attention_looks_up().outcome == "reproduced"
    store["figure-2-index"][1] = result(INDEX.replace(seed=1), 0.5)
    assert verdicts.attention_looks_up().outcome == "not at this scale"


def test_rivals_are_given_three_times_the_steps(store):
    long = INDEX.replace(length=200)
    lstm = long.replace(model="lstm")
    for steps, outcome in ((2999, "not at this scale"), (3000, "reproduced")):
        store["figure-2-index"] = [result(long, 1.0, 1000), result(lstm, 0.02, steps)]
        assert verdicts.even_with_more_steps().outcome == outcome
    store["figure-2-index"] = [result(long, 1.0, 1000), result(lstm, 0.95, 9000)]
    assert verdicts.even_with_more_steps().outcome == "not at this scale"


def test_who_degrades_was_better_before(store):
    long = INDEX.replace(length=200, model="lstm")
    for before, after, outcome in (
        (0.1, 0.02, "reproduced"),
        (1.0, 0.95, "not at this scale"),
        (0.02, 0.02, "not at this scale"),
    ):
        store["figure-2-index"] = [result(long.replace(length=20), before), result(long, after)]
        assert verdicts.rivals_do_not().outcome == outcome
    store["figure-2-index"] = [result(long, 0.02)]
    assert verdicts.rivals_do_not().outcome == "no results"


def test_a_claim_about_long_strings_is_not_judged_by_short_ones(store):
    short = Run(task="eq-ncp", length=50, model="dss", alphabet=9)
    store["figure-4"] = [result(short, 0.1)]
    assert verdicts.small_states_do_not_copy().outcome == "no results"
    store["figure-4"] = [result(short.replace(length=500), 0.1)]
    assert verdicts.small_states_do_not_copy().outcome == "reproduced"


def test_what_was_tried_further_stands_in_for_the_short_run(store):
    store["figure-2-index"] = [result(INDEX, 0.9, 6000)]
    assert verdicts.attention_looks_up().outcome == "not at this scale"
    store["further"] = [result(INDEX, 1.0, 40_000)]
    assert verdicts.attention_looks_up().cases == {"N = 100: 100.0% after 40,000 steps": True}
    assert verdicts.attention_is_quick().outcome == "not at this scale"
    store["further"] = [result(INDEX, 0.5, 40_000)]
    assert verdicts.attention_looks_up().cases == {"N = 100: 90.0% after 6,000 steps": False}
    store["further"] = [result(INDEX, 1.0, 9000)]
    assert verdicts.attention_is_quick().cases == {"N = 100: 9,000 steps": True}


def test_claims_on_equality_name_their_models_and_lengths(store):
    base = Run(task="eq-random", length=50, model="lstm", alphabet=2)
    store["figure-4"] = [
        result(base, 0.5),
        result(base.replace(length=200), 0.5),
        result(base.replace(model="mamba"), 0.995),
        result(base.replace(task="eq-one", alphabet=9), 0.7),
    ]
    assert len(verdicts.long_random_strings_are_hard().cases) == 1
    assert verdicts.state_spaces_compare().outcome == "reproduced"
    assert verdicts.all_count().outcome == "not at this scale"
    assert verdicts.attention_compares().outcome == "no results"


def test_the_faster_of_two_transformers_sets_the_unit():
    groups = grouped([result(INDEX, 1.0, 4000), result(INDEX.replace(tied=True), 1.0, 1000)])
    assert fastest_success(groups, 100) == (1000, "transformer-(1, 64), tied")
    assert fastest_success(groups, 50) is None
    assert fastest_success(grouped([result(INDEX, 0.9)]), 100) is None


def test_the_unit_ends_when_it_is_near_perfect_for_the_first_time():
    curve = [Check(step, 1.0, a) for step, a in ((100, 0.9), (200, 0.99), (300, 0.98), (400, 1.0))]
    early = dataclasses.replace(result(INDEX, 1.0, 400), curve=curve)
    assert fastest_success(grouped([early]), 100) == (200, "transformer-(1, 64)")


def test_name_says_what_is_unusual():
    names = [model_name(result(INDEX.replace(tied=True, heads=h), 1.0)) for h in (4, 1)]
    assert names == ["transformer-(1, 64), tied", "transformer-(1, 64), Theorem 1"]


def test_brackets_may_only_be_counted_and_that_is_said(store):
    store["figure-2-dyck"] = [result(DYCK, 0.999, **{"dyck-hard": 0.6})]
    assert verdicts.lstm_learns_brackets().outcome == "reproduced"
    assert verdicts.order_is_learned().outcome == "not at this scale"
    store["figure-2-dyck"] = [result(DYCK, 0.999, **{"dyck-hard": 0.995})]
    assert verdicts.order_is_learned().outcome == "reproduced"
    store["figure-2-dyck"] = [result(DYCK, 0.98, **{"dyck-hard": 0.6})]
    assert verdicts.lstm_learns_brackets().outcome == "not at this scale"
    assert verdicts.order_is_learned().outcome == "no results"


def test_one_layer_is_expected_to_fail_beyond_100(store):
    one = DYCK.replace(model="transformer", width=256)
    store["figure-2-dyck"] = [
        result(one.replace(length=100), 1.0, **{"dyck-hard": 1.0}),
        result(one.replace(length=200), 0.98, **{"dyck-hard": 0.5}),
    ]
    assert verdicts.one_layer_struggles().outcome == "reproduced"
    assert verdicts.two_layers_learn_brackets().outcome == "no results"


def test_mamba_must_rise_with_width(store):
    mamba = INDEX.replace(model="mamba", depth=2)
    rising = [result(mamba.replace(width=w), a) for w, a in ((8, 0.1), (16, 0.2), (32, 0.3))]
    store["figure-3"] = rising
    assert verdicts.wider_mamba_is_better().outcome == "reproduced"
    store["figure-3"] = [*rising, result(mamba.replace(width=64), 0.25)]
    assert verdicts.wider_mamba_is_better().outcome == "not at this scale"


def test_equality_separates_models_and_tasks(store):
    base = Run(task="eq-ncp", length=50, model="transformer", alphabet=1024)
    store["figure-4"] = [
        result(base, 0.999),
        result(base.replace(model="dss"), 0.2),
        result(base.replace(task="eq-random", alphabet=2), 0.6),
    ]
    assert verdicts.attention_copies().outcome == "reproduced"
    assert verdicts.attention_compares().outcome == "not at this scale"


def test_parity_is_judged_on_whole_strings_longer_than_in_training(store):
    base = Run(task="parity", length=50, model="srwm", alphabet=2)
    store["languages"] = [
        result(base, 1.0, **{"bin1": 1.0, "bin1 examples": 0.995}),
        result(base.replace(model="deltanet"), 1.0, **{"bin1": 0.97, "bin1 examples": 0.1}),
        result(base.replace(model="deltanet_negative"), 1.0, **{"bin1 examples": 1.0}),
    ]
    assert verdicts.recurrent_programmers_generalise().outcome == "reproduced"
    assert list(verdicts.linear_ones_do_not().cases.values()) == [True]
    store["languages"][0] = result(base, 1.0, **{"bin1": 1.0, "bin1 examples": 0.9})
    assert verdicts.recurrent_programmers_generalise().outcome == "not at this scale"
