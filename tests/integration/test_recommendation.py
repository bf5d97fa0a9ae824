"""Recommendations that hide nothing, and when an experiment may stop."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import ExperimentError, InterventionError

GRAPH = dob.CausalGraph([("email", "buy"), ("coupon", "buy")], target="buy")
NAMES = map("spring-{}".format, itertools.count())


def experiment(**settings):
    settings = {"budget": 1, "storage": "memory", "seed": 0, **settings}
    return dob.create_experiment(f"advice {next(NAMES)}", settings.pop("graph", GRAPH), **settings)


def play(test, rounds, weights=(0.1, 0.05, 0.7), seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        trial = test.ask()
        email, coupon = trial.do.get("email", 0), trial.do.get("coupon", 0)
        buy = int(rng.random() < weights[0] + weights[1] * email + weights[2] * coupon)
        test.tell(trial, {"email": email, "coupon": coupon, "buy": buy})
    return test


def test_all_that_is_known_stands_beside_the_value():
    test = play(experiment(), 300)
    told = test.recommend()
    do, value, interval = told[:3]
    assert do == {"coupon": 1}
    assert interval.low <= value <= interval.high
    assert told.interval_words == test.interval_words == "holds with 95% at every round you look"
    assert told.uplift.value == pytest.approx(value - told.nothing.value)
    assert told.uplift.interval.low == pytest.approx(interval.low - told.nothing.interval.high)
    rows = [row for row in test.trials() if row["do"] == do]
    assert told.observed.rounds == len(rows)
    assert told.observed.mean == pytest.approx(np.mean([row["observation"]["buy"] for row in rows]))
    assert told.probability_best > 0.9
    assert told.expected_loss < 0.02
    assert 0.0 <= told.gap < 1.0
    assert told.verdict == "fits"
    assert test.evaluate(do) == told == test.recommend()


def test_any_action_can_be_looked_at():
    test = play(experiment(), 200)
    nothing, worse = test.evaluate({}), test.evaluate({"email": 1})
    assert nothing.uplift == (0.0, (0.0, 0.0))
    assert worse.probability_best < 0.1
    assert worse.expected_loss > 0.3
    assert worse.gap > test.recommend().gap
    both = test.evaluate({"email": 1, "coupon": 1})
    assert "The rules of the experiment do not allow this action." in both.warnings
    assert both.observed is None
    assert any("No asked or randomised round with exactly this action" in warning for warning in both.warnings)
    with pytest.raises(InterventionError):
        test.evaluate({"buy": 1})


def test_a_contradiction_is_not_hidden():
    """Only both together work, where the policy was promised a line."""
    test = experiment(budget=2, links="identity")
    rng = np.random.default_rng(0)
    for _ in range(600):
        a, b = rng.integers(0, 2, 2)
        test.record({"email": a, "coupon": b}, {"buy": int(rng.random() < 0.05 + 0.9 * (a != b))})
    told = test.recommend()
    assert told.verdict == "contradicted"
    assert any("contradict" in warning for warning in told.warnings)


def test_policies_without_a_model_give_what_they_can():
    told = play(experiment(policy="ucb"), 30).recommend()
    assert told.observed is not None
    assert (told.probability_best, told.expected_loss, told.gap) == (None, None, None)
    assert told.verdict == "unknown"
    assert told.interval_words == "95%, at this round"
    first = experiment().recommend()
    assert first.observed is None
    assert not math.isnan(first.value)


@pytest.mark.parametrize(
    ("policy", "horizon", "level"),
    [
        (dob.BLMLR(), None, "at least 95%"),
        (dob.BLMLR(delta=0.1), None, "at least 90%"),
        (dob.BLMLR(), 10_000, "at least 99%"),  # 1 - 1 / sqrt(T)
        (dob.BGLMOFU(), 10_000, "at least 99%"),
        (dob.BLMLR(radius_scale=0.1), None, "times 0.1, for which no level is known"),
    ],
)
def test_intervals_of_the_papers_regions_say_their_level(policy, horizon, level):
    graph = dob.CausalGraph(edges=[("a", "Y")], target="Y")
    experiment = dob.create_experiment("regions", graph, 1, policy=policy, horizon=horizon, storage="memory")
    words = experiment.interval_words
    assert words.startswith("of the policy's confidence regions")
    assert words.endswith(level)


def test_it_says_when_to_stop_and_goes_on_if_asked():
    test = experiment(stop_within=0.3)
    assert test.status().may_stop is False
    assert test.status().gap > 0.3
    assert "may stop" not in test.ask().why
    play(test, 700)
    status = test.status()
    assert status.may_stop is True
    assert status.gap <= status.stop_within == 0.3
    trial = test.ask()
    unless = "may stop unless recommend warns of something"
    assert f"{unless}: no allowed action is better by more than 0.3, with 95%, at every round you look" in trial.why
    assert test.recommend().gap == status.gap
    assert test.definition.document["stop_within"] == 0.3
    assert "stop_within" not in experiment().definition.document
    assert experiment().status().may_stop is None


@pytest.mark.parametrize("within", [0, 1.0, -0.1, True, "0.1", math.nan])
def test_a_strange_stop_is_refused(within):
    with pytest.raises(ExperimentError, match=r"stop_within is .* Try 0\.02"):
        experiment(stop_within=within)


def test_a_stop_needs_intervals_that_hold():
    for settings in ({"policy": "ucb"}, {"policy": "blm-lr"}, {"continuous": True}):
        with pytest.raises(ExperimentError, match="stop_within needs intervals"):
            experiment(stop_within=0.02, **settings)


def test_what_is_learned_from_trials_of_many_rounds_does_not_depend_on_how_the_log_is_read():
    """Intervals rest on the order of rounds, which the rows of one trial do not have."""
    test = experiment()
    rng = np.random.default_rng(0)
    for number in range(12):
        trial = test.ask(size=3)
        rows = [
            {"email": 0, "coupon": 0, **trial.do, "buy": int(b)} for b in rng.integers(0, 2, 1 if number % 2 else 3)
        ]
        test.tell(trial, rows)
        test.record({}, {"email": 0, "coupon": 0, "buy": int(rng.integers(0, 2))})
    live = test.recommend()
    assert dob.open_experiment(test.name, "memory").recommend() == live
