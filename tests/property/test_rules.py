"""Whatever the rules, only what they allow is proposed."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dobandit import BGLMOFU, BLMLR, UCB, CausalGraph, Fixed, Oracle, Random, paper
from dobandit.errors import DobanditWarning, InterventionError
from helpers.ruled import (
    CASES,
    Game,
    a_model,
    a_round,
    data,
    every_policy,
    games,
    index_of,
    now,
    random_game,
    searched,
    seeds,
)
from helpers.worlds import quietly, relaxed

# -- rules, and what they allow, straight from their words ----------------------------------------------------


def test_the_games_have_something_to_choose_from():
    drawn = [random_game(seed) for seed in range(200)]
    assert sum(len(game.maximal(game.relevant())) > 2 for game in drawn) > 60
    assert sum(bool(set(game.require) - set(game.relevant())) for game in drawn) > 5
    assert sum(0 in game.tenths.values() for game in drawn) > 30
    groups = [[set(group) for group in game.exclusive if len(group) > 1] for game in drawn]
    assert sum(any(a & b for a, b in itertools.combinations(g, 2)) for g in groups) > 30


optimists = pytest.mark.parametrize("case", CASES[:7], ids=[case.name for case in CASES[:7]])

# -- only allowed sets ----------------------------------------------------------------------------------------


@every_policy
@relaxed(max_examples=15)
@given(games(), seeds)
def test_every_proposal_of_a_run_is_allowed(case, game, seed):
    rng = np.random.default_rng(seed)
    learner = case.start(game, seed=seed % 1000)
    for _ in range(10):
        action = learner.propose()
        assert game.allows(action), (game, action)
        assert set(action.values()) <= {1}
        learner.update(action, a_round(rng, game.graph, action))
    best = learner.best().do if case.name != "Random" else learner.propose()
    assert game.allows(best), (game, best)


@pytest.mark.parametrize("case", [c for c in CASES if "OFU" in c.name], ids=lambda c: c.name)
def test_required_variables_are_set_while_initialising(case):
    game = Game(paper.G5.graph, budget=3, require=["X3"])
    learner = case.start(game)
    for _ in range(3):
        assert learner.propose() == {"X3": 1}
        learner.update({"X3": 1}, {"X3": 1})
    after = set(learner.propose())
    assert "X3" in after
    assert len(after) == 3


def test_waiting_for_what_a_required_variable_never_shows_is_warned_about():
    policy = BGLMOFU(radius_scale=0.1)
    with pytest.warns(DobanditWarning, match="'X3' is required, so it is set in every round"):
        learner = policy.start(paper.G5.graph, 3, horizon=1000, require=["X3"])
    assert learner.propose() == {"X3": 1}


@every_policy
def test_a_required_variable_that_cannot_matter_is_set_all_the_same(case):
    graph = quietly(CausalGraph, [("A", "Y"), ("B", "Y"), ("A", "Z")], target="Y", nodes=["A", "B", "Z", "Y"])
    game = Game(graph, budget=2, tenths={"Z": 15, "A": 5, "B": 6}, total=20, require=["Z"])
    learner = case.start(game)
    rng = np.random.default_rng(0)
    for _ in range(8):
        action = learner.propose()
        assert "Z" in action
        assert game.allows(action)
        learner.update(action, a_round(rng, graph, action))
    assert set(learner.propose()) == {"A", "Z"}  # B costs too much besides Z


@every_policy
def test_rules_that_no_set_fulfils_are_refused_at_the_start(case):
    impossible = [game for game in (random_game(seed, feasible=False) for seed in range(150)) if not game.feasible]
    assert len(impossible) > 10
    for game in impossible:
        with pytest.raises(InterventionError):
            case.start(game)


def test_the_search_holds_where_estimates_lie_far_outside_the_box():
    """Few rows and small radii: the box's nearest point, not the clipped estimate, stands in for the region."""
    outside = best = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        game = Game(random_game(seed, most=7).graph, budget=2)
        learner = BGLMOFU(radius_scale=1e-3, initial=1, region="boxed", oracle="greedy").start(
            game.graph, horizon=1000, **game.keywords
        )
        learner.update_many(data(rng, game, int(rng.integers(5, 40))))
        outside += bool(np.any(learner.engine.beliefs().theta < -0.1))
        truth = max(index_of(learner, S) for S in game.allowed(game.relevant()))
        choice = learner.engine.choose(now(learner, draws=rng.random(3)))
        assert choice.value <= truth + 1e-7
        assert index_of(learner, choice.action.named(game.graph)) == pytest.approx(choice.value, abs=1e-7)
        assert not choice.proved
        best += choice.value >= truth - 1e-7
    assert outside > 100
    assert best > 140  # of 150: greedy and exchanges rarely miss the best of so few


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"budget": None}, "budget or a total cost"),
        ({"budget": 1, "require": ["X2", "X3"]}, "budget is 1"),
        ({"budget": 2, "require": ["X2"], "forbid": ["X2"]}, "both required and forbidden"),
        ({"budget": 3, "require": ["X2", "X3"], "exclusive": [["X2", "X3"]]}, "exclude each other"),
        ({"budget": None, "total_cost": 1, "costs": {"X2": 2}, "require": ["X2"]}, "cost 2"),
        ({"budget": 2, "costs": {"X2": 1}}, "total cost"),
        ({"budget": 2, "total_cost": 1, "costs": {"X2": -1}}, "0 or more"),
        ({"budget": 2, "total_cost": float("nan")}, "0 or more"),
        ({"budget": 2, "forbid": ["X9"]}, "X9"),
        ({"budget": 2, "require": ["Y"]}, "'Y'"),
        ({"budget": 2, "forbid": "X2"}, "list of names"),
        ({"budget": 2, "exclusive": ["X2", "X3"]}, "list of names"),
    ],
)
def test_bad_rules_are_refused_with_the_reason(rules, says):
    for policy in (BLMLR(), BGLMOFU(initial=1), UCB(), Random(), Fixed(["X2"]), Oracle(paper.G1)):
        with pytest.raises(InterventionError, match=says):
            policy.start(paper.G1.graph, **rules)


@relaxed(max_examples=30)
@given(games(), st.data())
def test_a_fixed_set_must_be_allowed(game, data):
    names = data.draw(st.lists(st.sampled_from(game.graph.controllable), unique=True))
    if game.allows(names):
        assert set(Fixed(names).start(game.graph, **game.keywords).propose()) == set(names)
    else:
        with pytest.raises(InterventionError):
            Fixed(names).start(game.graph, **game.keywords)


def test_costs_that_add_up_to_the_total_but_for_rounding_are_affordable():
    """0.1 + 0.2 > 0.3 in floats; and beside a required variable that costs a million, 0.3 is 0.3 still."""
    graph = CausalGraph([(name, "Y") for name in "ABCD"], target="Y")
    tight = {"A": 0.1, "B": 0.2, "C": 0.3, "D": 0.0}
    dear = {"A": 1e6, "B": 0.3, "C": 0.4, "D": 0.4}
    for policy in (BLMLR(), searched(oracle="greedy"), UCB(), Random(), Oracle(a_model(graph))):
        start = partial(policy.start, graph, None, effects="nonnegative")
        assert set(start(costs=tight, total_cost=0.3, require=["A", "B"]).propose()) == {"A", "B", "D"}
        assert set(start(costs=tight, total_cost=0.6).propose()) == set("ABCD")
        assert set(start(costs=dear, total_cost=1e6 + 0.3, require=["A"]).propose()) == {"A", "B"}


def test_costs_may_be_numpy_numbers():
    costs = {"X2": np.int64(3), "X3": np.float32(0.5)}
    learner = BLMLR().start(paper.G1.graph, None, costs=costs, total_cost=np.int64(4))
    assert learner.propose()
