"""Draws from what a learner believes: exact passes, the right spread, the same answer twice."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dobandit as dob
from dobandit.oracle.action_list import action_list
from dobandit.oracle.actions import actions_of
from dobandit.oracle.difference_bound import advantage, pair_scratch
from dobandit.oracle.frontier import frontier_of
from dobandit.oracle.interval_pass import fill_intervals, interval_pass
from dobandit.policy.engine import NOTHING, Action, Rounds, Situation, no_context
from dobandit.policy.posterior import Posterior
from dobandit.policy.questions import best, gap

GRAPH = dob.CausalGraph([("A", "M"), ("B", "M"), ("M", "Y"), ("B", "Y")], target="Y")
CHOICES = [NOTHING, *(Action((v,), (1.0,)) for v in (1, 2, 3))]


def world(seed):
    a, b, m = (float(x) for x in np.random.default_rng(seed).uniform(0.05, 0.3, 3))
    return dob.BinaryGLM(
        GRAPH,
        {"A": 0.3, "B": 0.4, "M": 0.1, "Y": 0.05, ("A", "M"): a, ("B", "M"): b, ("M", "Y"): 0.2 + m, ("B", "Y"): a * b},
    )


def learned(model, rows, seed=0, **settings):
    """A learner that has seen rows without any action."""
    learner = dob.CausalUCB().start(GRAPH, budget=1, effects="any", seed=seed, **settings)
    drawn = model.sample({}, size=rows, rng=seed)
    values = np.column_stack([np.ones(rows), *(drawn[name] for name in GRAPH.nodes)]).astype(float)
    learner.engine.update(Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(rows, dtype=np.int64)))
    return learner


@pytest.mark.parametrize("links", ["auto", "identity", "logistic"])
def test_draws_settle_on_the_truth_as_the_estimate_does(links):
    model = world(1)
    learner = learned(model, 20_000, links=links)
    engine = learner.engine
    posterior = Posterior(engine.believed, engine.estimator, engine.layout)
    values = posterior.values(engine.state, CHOICES, no_context(4))
    for i, action in enumerate(CHOICES):
        estimate = engine.predict(action, no_context(4))
        assert values[:, i].mean() == pytest.approx(estimate.value, abs=0.01)
        assert 0.0 < values[:, i].std() < 0.05
        if links != "logistic":
            assert estimate.value == pytest.approx(dob.expect(model, action.named(GRAPH)).value, abs=0.04)


def test_numbers_are_drawn_by_a_pass_over_means():
    learner = dob.CausalUCB().start(GRAPH, budget=1, effects="any", continuous=True)
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b = rng.random(2)
        m = 0.5 * a + 0.2 * b
        learner.update({}, {"A": a, "B": b, "M": m, "Y": 0.8 * m})
    told = learner.assess()
    assert told.do == {"M": 1}
    assert told.probability_best > 0.9
    assert told.guaranteed is None
    assert told.interval_words == "95%, at every look (asymptotic)"


def test_the_chance_is_a_function_of_seed_and_rounds():
    learner, again, other = (learned(world(2), 40, seed) for seed in (0, 0, 1))  # so few that nothing is certain
    now = Situation(np.zeros(3), no_context(4))
    chances = [one.engine.chance(CHOICES[3], now) for one in (learner, learner, again, other)]
    assert chances[0] == chances[1] == chances[2] != chances[3]
    total = sum(learner.engine.chance(action, now).best for action in CHOICES)
    assert total == pytest.approx(1.0, abs=0.02)  # only ties count twice
    assert all(learner.engine.chance(action, now).loss >= 0.0 for action in CHOICES)


@pytest.mark.parametrize("links", ["auto", "identity"])
def test_the_gap_is_what_another_action_can_be_ahead_by_its_ends_or_in_one_pass(links):
    learner = learned(world(3), 500, links=links)
    now, engine = Situation(np.zeros(3), no_context(4)), learner.engine
    ends = {action: engine.anytime.interval(engine.state, action, now.context, 0.05) for action in CHOICES}
    listed = action_list(engine.problem.order, actions_of(CHOICES))
    plan = interval_pass(listed, frontier_of(GRAPH, listed.order))
    fill_intervals(plan, engine.state, math.log(len(listed.order) / 0.05))
    rows, work = [listed.actions.row(i) for i in range(len(CHOICES))], pair_scratch(plan)
    for i, action in enumerate(rows):
        ahead = [
            min(ends[other].high - ends[action].low, advantage(plan, work, now.context, j, i))
            for j, other in enumerate(rows)
            if j != i
        ]
        assert engine.guaranteed(action, now).gap == pytest.approx(max(*ahead, 0.0), abs=1e-9)
    assert learner.gap() == gap(engine, best(engine, now).action, now).gap


def told_while_it_chooses(learner, rounds):
    """(situation, choice, bounds of every action) round after round, each told to the learner after it is looked at."""
    rng = np.random.default_rng(0)
    for number in range(rounds):
        now = Situation(rng.random(3), no_context(4))
        choice = learner.engine.choose(now)
        bounds = learner.engine.anytime.bounds(learner.engine.state, learner.engine.actions(), now.context, 0.05)
        do = choice.action.named(GRAPH)
        seen = world(4).sample(do, size=1, rng=number)
        observed = {name: int(values[0]) for name, values in seen.items()}
        yield now, choice, bounds, (do, observed)
        learner.update(do, observed)


def test_a_guarantee_without_leeway_chooses_the_largest_upper_end():
    learner = dob.CausalUCB(guarantee=True, leeway=0).start(GRAPH, budget=1, effects="any", seed=0)
    # up to 50 rows, each row is news enough for a cell to be looked at again
    for _, choice, bounds, _ in told_while_it_chooses(learner, 50):
        assert choice.value == pytest.approx(bounds.high.max(), abs=1e-9)
    busy = learner.propose(pending=[learner.propose()] * 20)
    assert busy in [action.named(GRAPH) for action in CHOICES]


@pytest.mark.parametrize("leeway", [0.02, 0.5])
def test_within_the_leeway_a_guarantee_chooses_as_without_one(leeway):
    """By intervals that are computed anew, and by the indices of a learner without a guarantee that saw the same."""
    learner = dob.CausalUCB(guarantee=True, leeway=leeway).start(GRAPH, budget=1, effects="any", seed=0)
    free = dob.CausalUCB().start(GRAPH, budget=1, effects="any", seed=0)
    kept_back = 0
    for now, choice, bounds, told in told_while_it_chooses(learner, 50):
        reach = bounds.high + leeway * (bounds.high - bounds.low)
        allowed = {bounds.actions.row(i) for i in np.flatnonzero(reach >= bounds.high.max() - 1e-9)}
        indices = dict(free.engine.compare(now))
        assert dict(learner.engine.compare(now)) == pytest.approx({action: indices[action] for action in allowed})
        assert choice.value == pytest.approx(max(indices[action] for action in allowed), abs=1e-9)
        assert indices[choice.action] == pytest.approx(choice.value, abs=1e-9)
        kept_back += choice.value < max(indices.values()) - 1e-9
        free.update(*told)
    assert (kept_back > 0) is (leeway < 0.5)  # the smaller leeway makes it try what it would not have tried
    assert "intervals reach up far enough" in learner.engine.choose(now).note


def test_what_a_guarantee_refuses():
    with pytest.raises(dob.errors.PolicyError, match="numbers between"):
        dob.CausalUCB(guarantee=True).start(GRAPH, budget=1, continuous=True)
    with pytest.raises(dob.errors.PolicyError, match="True or False"):
        dob.CausalUCB(guarantee=1)
    with pytest.raises(dob.errors.PolicyError, match=r"without it. Leave it out, or add guarantee=True"):
        dob.CausalUCB(leeway=0.5)
    for wrong in (-0.1, 11, math.nan, "much"):
        with pytest.raises(dob.errors.PolicyError, match="leeway must be a number from 0 up to 10"):
            dob.CausalUCB(guarantee=True, leeway=wrong)
    assert dob.CausalUCB(guarantee=True).settings() == {"guarantee": True, "leeway": 0.5}
    assert dob.CausalUCB(guarantee=True, leeway=0).settings() == {"guarantee": True, "leeway": 0.0}
    assert dob.CausalUCB().settings() == {}
