"""Blocks of actions: whatever their size, an action has the number that it has alone, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from dobandit import BGLMOFU, CausalGraph, CausalTS, CausalUCB, random_model
from dobandit.oracle.frontier import columns_for
from dobandit.oracle.rules import Rules
from dobandit.policy.engine import Rounds, Situation, no_context
from dobandit.policy.problem import problem_of

POLICIES = {
    "joint": CausalUCB(),
    "sampled": CausalTS(),
    "guaranteed": CausalUCB(guarantee=True),
    "per pattern": BGLMOFU(initial=5),
}


def learned(policy, seed, levers):
    """An engine after some rounds, and a situation."""
    model = random_model("erdos-renyi", 8, seed=seed, parents=3, link="logistic")
    effects = "nonnegative" if isinstance(policy, BGLMOFU) else "any"
    rules = Rules(2, levers={model.graph.controllable[0]: (0, 1)} if levers else {})
    engine = policy.engine(problem_of(model.graph, rules, links="logistic", effects=effects, seed=seed))
    drawn, nodes = model.sample({}, size=60, rng=seed), len(model.graph)
    values = np.ones((60, nodes + 1))
    for name, column in drawn.items():
        values[:, model.graph.index(name)] = column
    engine.update(Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(60, dtype=np.int64)))
    return engine, Situation(np.full(engine.draws, 0.3), no_context(nodes))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", POLICIES)
def test_an_action_has_the_same_numbers_in_a_list_of_any_length(name, seed):
    engine, now = learned(POLICIES[name], seed, levers=name != "per pattern" and seed == 1)
    whole, graph = dict(engine.compare(now)), engine.problem.graph
    ids = tuple(map(graph.index, graph.controllable))
    lengths = {len(whole)}
    for count in range(2, len(ids)):
        some = dict(engine.compare(now._replace(available=ids[:count])))
        lengths.add(len(some))
        assert some == {action: whole[action] for action in some}
    assert len({columns_for(length, 1) for length in lengths}) > 3


@pytest.mark.parametrize("name", ["joint", "sampled"])
def test_estimates_of_many_actions_are_those_of_each(name):
    engine, now = learned(POLICIES[name], 0, levers=True)
    rows = [engine.actions().row(i) for i in range(len(engine.actions().ids))]
    for action, *numbers in zip(rows, *engine.predict_many(rows, now.context), strict=True):
        assert engine.predict(action, now.context) == pytest.approx(numbers, abs=1e-12)


def test_columns_are_few_where_states_are_many():
    assert [columns_for(400, states) for states in (10, 1 << 14, 1 << 16, 1 << 20)] == [64, 8, 2, 1]
    assert [columns_for(actions, 10) for actions in (0, 1, 5, 9)] == [1, 1, 5, 16]
    assert [columns_for(400, 1 << 18, shared=True), columns_for(3, 1 << 18, shared=True)] == [8, 3]


def test_lists_that_share_where_they_are_worked_out_are_each_by_itself():
    graph = CausalGraph([(f"P{i}", "Y") for i in range(4)], target="Y")
    learner = CausalUCB().start(graph, 2, links="auto", effects="any")
    rng = np.random.default_rng(0)
    learner.update_many([({}, {name: int(rng.random() < 0.5) for name in graph.nodes}) for _ in range(300)])
    masks = [["P0", "P1"], ["P1", "P2", "P3"], ["P2", "P3"], list(graph.controllable)]
    alone = [learner.copy() for _ in masks]
    for twin in alone:
        twin.engine.__dict__.pop("anytime", None)
    told = [twin.assess(available=mask).guaranteed.gap for twin, mask in zip(alone, masks, strict=True)]
    for _ in range(2):
        assert [learner.assess(available=mask).guaranteed.gap for mask in masks] == told
