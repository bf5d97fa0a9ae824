"""The interval that people act on: how far it reaches, and what differences cancel."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dobandit as dob
from dobandit.estimation.confidence import asymptotic_reach, standard_error
from dobandit.policy.learner import Learner


def test_the_reach_is_that_of_the_paper() -> None:
    assert asymptotic_reach(0) == math.inf
    assert [round(asymptotic_reach(t), 2) for t in (100, 300, 1000, 10_000)] == [3.14, 3.04, 3.12, 3.42]
    assert asymptotic_reach(300, 0.01) > asymptotic_reach(300, 0.05)


def test_the_reach_holds_at_every_look() -> None:
    """Means of normal numbers, for which it is exact: 2,000 runs of 3,000 rounds, of which 5% may leave it once."""
    sums = np.cumsum(np.random.default_rng(7).standard_normal((2000, 3000)), axis=1)
    t = np.arange(1, 3001)
    left = (np.abs(sums) / np.sqrt(t) > [asymptotic_reach(int(k)) for k in t]).any(axis=1).sum()
    assert left <= 100 + 3 * math.sqrt(2000 * 0.05 * 0.95)


def test_a_standard_error_is_never_zero() -> None:
    assert standard_error(10, 10.0) > 0.0
    assert standard_error(10_000, 2_500.0) == pytest.approx(math.sqrt(0.25 * 0.75 / 10_000), rel=1e-3)


def told(policy: dob.CausalUCB | dob.UCB, shared: int = 0) -> Learner:
    """1,000 rounds with the ad, of which 400 buy, and 1,000 without, of which 300 do; behind `shared` nodes."""
    names = ["ad", *(f"m{i}" for i in range(shared)), "buy"]
    graph = dob.CausalGraph(list(itertools.pairwise(names)), "buy", controllable=["ad"], bias=names)
    learner = policy.start(graph, budget=1, seed=3)
    for ad, buys in ((1, 400), (0, 300)):
        for i in range(1000):
            bought = int(i % 1000 < buys)
            learner.update({"ad": ad} if ad else {}, {**dict.fromkeys(names, bought), "ad": ad})
    return learner


def test_a_difference_has_the_standard_error_of_two_means() -> None:
    expected = asymptotic_reach(2000) * math.hypot(standard_error(1000, 400.0), standard_error(1000, 300.0))
    for policy in (dob.CausalUCB(), dob.UCB()):
        uplift = told(policy).assess({"ad": 1}).uplift
        assert uplift is not None
        assert uplift.value == pytest.approx(0.1, abs=0.01)
        assert uplift.interval.high - uplift.value == pytest.approx(expected, rel=0.15)


def test_what_two_actions_share_cancels() -> None:
    """All of the rounds tell of the last step, which both share: the difference is surer than both values."""
    said = told(dob.CausalUCB(), shared=1).assess({"ad": 1})
    assert said.uplift is not None
    assert said.nothing is not None
    apart = said.interval.high - said.nothing.interval.low
    assert said.uplift.interval.high < 0.8 * apart + 0.2 * said.uplift.value
    assert said.uplift.interval.low > 0.0


def test_where_nothing_was_seen_an_interval_is_as_wide_as_what_is_proved() -> None:
    graph = dob.CausalGraph([("ad", "buy"), ("mail", "buy")], "buy", bias=["buy"])
    learner = dob.CausalUCB().start(graph, budget=1, seed=1)
    assert learner.predict({"ad": 1})[1:] == (0.0, 1.0)
    for i in range(500):
        learner.update({"ad": 1}, {"ad": 1, "mail": 0, "buy": int(i % 2)})
    seen, unseen = learner.assess({"ad": 1}), learner.assess({"mail": 1})
    assert seen.interval.high - seen.interval.low < 0.2
    assert unseen.guaranteed is not None
    assert unseen.interval.low <= unseen.guaranteed.interval.low
    assert unseen.interval.high >= unseen.guaranteed.interval.high
    assert unseen.uplift is not None
    assert unseen.uplift.interval.high > 0.5


def test_more_rounds_are_told_until_one_may_stop() -> None:
    said = told(dob.CausalUCB()).assess(within=0.02)
    assert said.gap is not None
    assert said.gap <= 0.02
    assert said.more_rounds == 0
    close = told(dob.CausalUCB()).assess({}, within=0.3)
    assert close.more_rounds == 0
    assert told(dob.CausalUCB()).assess({}, within=0.05).more_rounds is None  # the other one looks better by more


def test_levers_say_what_harms_and_what_does_nothing() -> None:
    graph = dob.CausalGraph([("ad", "buy"), ("banner", "buy"), ("logo", "buy")], "buy", bias=["buy"])
    learner = dob.CausalUCB().start(graph, budget=1, seed=1)
    rng = np.random.default_rng(5)
    for i in range(6000):
        do = [{"ad": 1}, {"banner": 1}, {"logo": 1}, {}][i % 4]
        seen = {"ad": 0, "banner": 0, "logo": 0, **do}
        p = 0.5 + 0.2 * seen["ad"] - 0.2 * seen["banner"]
        learner.update(do, {**seen, "buy": int(rng.random() < p)})
    levers = {lever.name: lever for lever in learner.assess().levers}
    assert [name for name, lever in levers.items() if lever.harms] == ["banner"]
    assert levers["ad"].interval.low > 0.0
    assert levers["logo"].interval.low < 0.0 < levers["logo"].interval.high
