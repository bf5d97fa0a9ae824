"""Blocks of actions: whatever their size, an action has the number that it has alone, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from dobandit import BGLMOFU, CausalGraph, CausalTS, CausalUCB, random_model
from dobandit.oracle.frontier import columns_for
from dobandit.oracle.rules import Rules
from dobandit.policy.engine import Rounds, Situation, no_context
from dobandit.policy.problem import problem_of

HOMES = ("oracle.joint_pattern", "oracle.per_pattern", "oracle.anytime_values", "policy.posterior")
POLICIES = {
    "joint": CausalUCB(),
    "sampled": CausalTS(),
    "guaranteed": CausalUCB(guarantee=True),
    "per pattern": BGLMOFU(initial=5),
}


def answers(policy, seed, levers):
    """What an engine says of all actions after some rounds: indices, estimates, and the answers for one of them."""
    model = random_model("erdos-renyi", 8, seed=seed, parents=3, link="logistic")
    effects = "nonnegative" if isinstance(policy, BGLMOFU) else "any"
    problem = problem_of(model.graph, 2, links="logistic", effects=effects, seed=seed)
    if levers:
        name = model.graph.controllable[0]
        problem = problem_of(model.graph, Rules(2, levers={name: (0, 1)}), links="logistic", effects=effects, seed=seed)
    engine = policy.engine(problem)
    drawn, nodes = model.sample({}, size=60, rng=seed), len(model.graph)
    values = np.ones((60, nodes + 1))
    for name, column in drawn.items():
        values[:, model.graph.index(name)] = column
    engine.update(Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(60, dtype=np.int64)))
    now = Situation(np.full(engine.draws, 0.3), no_context(nodes))
    best = engine.best(now)
    told = [engine.compared(now), best, engine.predict(best.action, now.context)]
    return repr([*told, engine.gap(best.action, now), engine.chance(best.action, now)])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", POLICIES)
def test_any_number_of_columns_gives_the_same_numbers(name, seed, monkeypatch):
    levers = name != "per pattern" and seed == 1
    usual = answers(POLICIES[name], seed, levers)
    for columns in (1, 3, 8):
        for home in HOMES:
            monkeypatch.setattr(f"dobandit.{home}.columns_for", lambda *_, columns=columns, **__: columns)
        assert answers(POLICIES[name], seed, levers) == usual


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
    told = [twin.gap(available=mask) for twin, mask in zip(alone, masks, strict=True)]
    for _ in range(2):
        assert [learner.gap(available=mask) for mask in masks] == told
    anytime = learner.engine.anytime
    kept = [oracle for _, oracle in anytime._kept.values()]
    assert len(kept) == 4
    assert kept[0].lowest is kept[2].lowest  # as many actions
