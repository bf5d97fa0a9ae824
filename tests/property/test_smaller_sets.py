"""The paper's policies where sets may be smaller, or variables set to 0: they do not begin with rounds of nothing."""

from __future__ import annotations

import numpy as np
import pytest

import dobandit as dob
from dobandit.oracle.action_list import SCORE, pick, pick_action
from dobandit.policy.engine import Situation

GRAPH = dob.CausalGraph([("a", "m"), ("b", "m"), ("c", "y"), ("m", "y")], target="y", controllable=["a", "b", "c"])
ROUNDS = 120


def played(policy, links=None, **rules):
    """The actions of a run in a world in which every cause helps."""
    learner = policy.start(GRAPH, budget=2, horizon=2000, seed=1, links=links, **rules)
    rng, actions = np.random.default_rng(5), []
    for _ in range(ROUNDS):
        do = learner.propose()
        seen = {name: do.get(name, int(rng.random() < 0.2)) for name in "abc"}
        seen["m"] = int(rng.random() < 0.1 + 0.3 * seen["a"] + 0.2 * seen["b"])
        seen["y"] = int(rng.random() < 0.1 + 0.4 * seen["m"] + 0.1 * seen["c"])
        learner.update(do, seen)
        actions.append(do)
    return actions


POLICIES = [
    (dob.BLMLR(), None),
    (dob.BLMLR(region="boxed"), None),
    (dob.BGLMOFU(initial=5), None),
    (dob.BGLMOFU(initial=5), "logistic"),
]


@pytest.mark.parametrize("rules", [{"smaller": True}, {"levers": {"a": (0, 1)}}], ids=["smaller", "levers"])
@pytest.mark.parametrize(("policy", "links"), POLICIES, ids=["blm-lr", "boxed", "blm-ofu", "bglm-ofu"])
def test_something_is_set_from_the_first_optimistic_round_on(policy, links, rules):
    actions = played(policy, links, **rules)[5:]
    assert all(actions)
    assert all(len(do) == 2 for do in actions)  # at radius scale 1 little is certain after so few rounds


@pytest.mark.parametrize("region", ["closed-form", "boxed"])
def test_the_paper_s_own_game_is_played_as_before(region):
    """Sets of exactly K at 1: said in so many words, or by default, they are the same to the last bit."""
    policy = dob.BLMLR(region=region)
    assert played(policy) == played(policy, smaller=False)
    values = played(policy.__class__(region=region), levers={"a": (1,)})
    assert values == played(policy)
    learner = policy.start(GRAPH, budget=2, horizon=2000)
    assert np.all(learner.engine.evaluator.plan.highest == np.inf)
    assert not learner.engine.listed.scores["rank"].any()


def test_no_variable_but_the_target_is_expected_to_be_more_than_1_where_sets_may_be_smaller():
    """Then leaving a variable to itself is never worth more than setting it, and the largest set is as good as any."""
    learner = dob.BLMLR().start(GRAPH, budget=2, horizon=2000, smaller=True)
    engine = learner.engine
    compared = engine.compare(Situation(np.zeros(engine.draws), learner.context(None)))
    values = {tuple(action.named(learner.graph)): value for action, value in compared}
    assert values["a", "b"] == pytest.approx(values[()], rel=1e-12)
    assert engine.evaluator.plan.means[1:-1].max() <= 1.0
    assert values[()] > 1.0  # the target's own index is not cut, which would make ties


def test_ranks_only_decide_among_ties():
    rng = np.random.default_rng(3)
    for _ in range(200):
        scores = np.zeros(rng.integers(1, 9), SCORE)
        scores["index"], scores["rank"] = rng.integers(0, 4, len(scores)), rng.integers(0, 3, len(scores))
        values, rank = scores["index"], scores["rank"]
        best = np.flatnonzero(values == values.max())
        largest = best[rank[best] == rank[best].max()]
        draws = (np.arange(40) + 0.5) / 40
        assert {pick_action(scores, u) for u in draws} == set(largest.tolist())
        scores["rank"] = 0
        assert [pick_action(scores, u) for u in draws] == [pick(values.copy(), u) for u in draws]
