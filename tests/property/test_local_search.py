"""Greedy and exchanges, where there are too many sets to look at one by one: learners that search still learn."""

from __future__ import annotations

import numpy as np
import pytest

import dobandit as dob


@pytest.mark.parametrize("region", ["closed-form", "boxed"])
def test_a_learner_on_a_hundred_nodes_sets_what_helps(region):
    model = dob.random_model("erdos-renyi", 100, seed=3)
    learner = dob.BLMLR(radius_scale=0.02, region=region).start(model.graph, budget=5, horizon=2000, seed=1)
    drawn = model.sample(size=1500, rng=4)
    learner.update_many([({}, {n: int(drawn[n][t]) for n in drawn}) for t in range(1500)])
    assert learner.engine.actions() is None
    for number in range(10):
        action = learner.propose()
        assert len(action) == 5
        seen = model.sample(action, 1, number)
        learner.update(action, {name: int(values[0]) for name, values in seen.items()})
    assert dob.expect(model, learner.best().do).value > dob.expect(model).value


@pytest.mark.statistics
def test_a_learner_that_searches_learns():
    model = dob.random_model("layered", 40, seed=2)
    best = dob.solve(model, 4).value
    learner = dob.BLMLR(radius_scale=0.02, region="boxed", oracle="greedy").start(model.graph, 4, horizon=800, seed=1)
    rewards, values = [], {}
    for number in range(800):
        action = learner.propose()
        assert len(action) == 4
        if tuple(action) not in values:
            values[tuple(action)] = dob.expect(model, action).value
        rewards.append(values[tuple(action)])
        seen = model.sample(action, 1, number)
        learner.update(action, {name: int(values[0]) for name, values in seen.items()})
    rng = np.random.default_rng(0)
    others = [dob.expect(model, rng.choice(model.graph.controllable, 4, replace=False)).value for _ in range(50)]
    assert np.mean(rewards[-300:]) >= 0.95 * best
    assert np.mean(rewards[-300:]) > np.mean(others)


def test_where_effects_may_do_harm_a_searched_set_may_be_smaller():
    graph = dob.CausalGraph([("good", "Y"), ("bad", "Y")], target="Y")
    policy = dob.BLMLR(radius_scale=0.0, oracle="greedy", clipped=True)
    learner = policy.start(graph, budget=2, effects="any", smaller=True)
    rows = [({"good": g, "bad": b}, {"Y": y}) for g, b, y in ((0, 0, 0), (1, 0, 1), (0, 1, 0), (1, 1, 0))]
    learner.update_many(rows * 20)
    assert learner.propose() == {"good": 1}


def test_a_prediction_for_promised_straight_and_nonnegative_effects_is_that_of_its_action():
    """One action is looked at with the index of the list of all, whose values are worked out in blocks."""
    model = dob.paper.G1
    learner = dob.CausalUCB().start(model.graph, budget=2, links="identity", effects="nonnegative", seed=0)
    drawn = model.sample(size=3000, rng=1)
    learner.update_many([({}, {n: int(drawn[n][t]) for n in drawn}) for t in range(3000)])
    names = model.graph.controllable
    rows = [{}, *({name: 1} for name in names), {names[0]: 1, names[1]: 1}]
    for do in rows:
        found = learner.predict(do)
        assert found.value == pytest.approx(dob.expect(model, do).value, abs=0.1)
        assert found.low <= found.value <= found.high
    best = learner.best()
    assert best.value == pytest.approx(learner.predict(best.do).value)
    assert best.value > learner.predict({}).value + 0.1
