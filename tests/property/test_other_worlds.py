"""Simulations in which the learner's model is not the world's: the same rounds as a plain loop over the definitions."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from dobandit import (
    BGLMOFU,
    BLMLR,
    KLUCB,
    UCB,
    BinaryGLM,
    CausalGraph,
    CausalUCB,
    EpsilonGreedy,
    Oracle,
    Random,
    TableModel,
    paper,
    simulate,
    solve,
)
from dobandit.errors import SimulationError
from dobandit.policy.engine import Situation, one_round
from dobandit.simulation.result import StudyResult
from dobandit.simulation.simulate import run_study
from dobandit.simulation.study import Study, study_of
from helpers.worlds import THOROUGH

ROUNDS, SEED = 100 * THOROUGH, 7


def load_benchmark_worlds():
    path = Path(__file__).parents[2] / "benchmarks" / "worlds.py"
    spec = importlib.util.spec_from_file_location("benchmark_worlds", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["benchmark_worlds"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


bench = load_benchmark_worlds()


# -- plainly ----------------------------------------------------------------------------------------------------------


def chance(world, name, values):
    """P(name = 1) given the parents' values by name."""
    if isinstance(world, TableModel):
        return world.tables[name][tuple(int(values[p]) for p in world.graph.parents(name))]
    bias, weights = world.parent_weights(name)
    return float(world.link(name).probability(np.array(bias + sum(w * values[p] for p, w in weights.items()))))


def plain_value(world, do):
    """E[target | do] by visiting every world."""
    worlds = [({}, 1.0)]
    for name in world.graph.nodes:
        grown = []
        for values, p in worlds:
            one = do[name] if name in do else chance(world, name, values)
            grown += [({**values, name: x}, p * q) for x, q in ((0, 1.0 - one), (1, one)) if q > 0.0]
        worlds = grown
    return sum(p for values, p in worlds if values[world.target])


def plain_best(world, budget, context):
    sets = [s for size in range(budget + 1) for s in combinations(world.graph.controllable, size)]
    return max(plain_value(world, {**context, **dict.fromkeys(s, 1)}) for s in sets)


def plain_run(study, policy, replication, values_of, bests):
    """Cumulative regret and reward: the engine asked and told once per round, the world drawn node by node. What was
    found out by visiting every world is kept in `values_of` (by action and context) and `bests` (by context)."""
    world, problem = study.model, study.problem
    engine, graph = policy.engine(problem), problem.graph
    streams = [
        np.random.default_rng(np.random.SeedSequence(study.seed, spawn_key=(replication, i))).random(
            (study.rounds, size)
        )
        for i, size in ((0, len(world.graph)), (1, 3))
    ]
    if engine.draws > 3:
        more = np.random.default_rng(np.random.SeedSequence(study.seed, spawn_key=(replication, 2)))
        streams[1] = np.hstack([streams[1], more.random((study.rounds, engine.draws - 3))])
    regret = reward = 0.0
    regrets, rewards = [], []
    for world_draws, policy_draws in zip(*streams, strict=True):
        uniform = dict(zip(world.graph.nodes, world_draws, strict=True))
        context = {}
        for name in world.graph.context:
            context[name] = int(uniform[name] < chance(world, name, context))
        known = np.full(len(graph) + 1, np.nan)
        known[0] = 1.0
        for name, value in context.items():
            known[graph.index(name)] = value
        action = engine.choose(Situation(policy_draws, known)).action
        do = action.named(graph)
        values = {}
        for name in world.graph.nodes:
            values[name] = do[name] if name in do else int(uniform[name] < chance(world, name, values))
        seen = np.array([1.0] + [values[name] for name in graph.nodes])
        was_set = np.array([False] + [name in do for name in graph.nodes])
        engine.update(one_round(seen, was_set))
        key = tuple(sorted(do.items())), tuple(context.items())
        if key not in values_of:
            values_of[key] = plain_value(world, {**context, **do})
        if key[1] not in bests:
            bests[key[1]] = plain_best(world, study.problem.budget, context)
        regret += bests[key[1]] - values_of[key]
        reward += values[world.target]
        regrets.append(regret)
        rewards.append(reward)
    return regrets, rewards


# -- worlds -----------------------------------------------------------------------------------------------------------


def with_context():
    """The learner has the arrow between the context variables the wrong way round, so its order is another."""
    roles = {"target": "Y", "controllable": ["A", "B"], "context": ["C", "D"]}
    graph = CausalGraph([("D", "C"), ("C", "M"), ("A", "M"), ("M", "Y"), ("B", "Y"), ("D", "Y")], **roles)
    learner = CausalGraph([("C", "D"), ("C", "M"), ("A", "M"), ("M", "Y"), ("B", "Y"), ("D", "Y")], **roles)
    rng = np.random.default_rng(3)
    world = TableModel(graph, {name: rng.random((2,) * len(graph.parents(name))) for name in graph.nodes})
    return world, learner, 1


def unseen_mediator():
    """The learner does not see M, and thinks that A and B act on Y directly."""
    graph = CausalGraph([("A", "M"), ("B", "M"), ("M", "Y"), ("C", "Y")], "Y", controllable=["A", "B", "C"])
    learner = CausalGraph([("A", "Y"), ("B", "Y"), ("C", "Y")], "Y")
    tables = {"A": 0.3, "B": 0.2, "C": 0.4, "M": [[0.1, 0.2], [0.2, 0.9]], "Y": [[0.2, 0.6], [0.3, 0.9]]}
    return TableModel(graph, tables), learner, 2


WORLDS = {
    **{kind: tuple(bench.make(kind, 1)) for kind in bench.KINDS},
    "context": with_context(),
    "unseen mediator": unseen_mediator(),
}
POLICIES = [
    UCB(),
    KLUCB(),
    EpsilonGreedy(0.2),
    Random(),
    BLMLR(radius_scale=0.1, clipped=True),
    BLMLR(radius_scale=0.1, clipped=True, region="boxed", oracle="greedy"),
    BGLMOFU(radius_scale=0.1, initial=15, clipped=True),
]


def assert_plain(study, result, replications=(0,)):
    kept = {}, {}
    for row, policy in enumerate(study.policies.values()):
        for replication in replications:
            regrets, rewards = plain_run(study, policy, replication, *kept)
            np.testing.assert_allclose(result.all_regret[row, replication], regrets, rtol=0, atol=1e-9)
            np.testing.assert_array_equal(result.all_reward[row, replication], rewards)


@pytest.mark.parametrize("kind", WORLDS)
def test_a_study_is_the_plain_loop_on_the_same_numbers(kind):
    world, graph, budget = WORLDS[kind]
    study = study_of(world, POLICIES, ROUNDS, 2, budget, SEED, "every", graph=graph, links="identity", effects="any")
    result = run_study(study, workers=1)
    assert_plain(study, result, (0, 1))
    assert result.best == pytest.approx(
        sum(p * plain_best(world, budget, context) for context, p in plain_contexts(world)), abs=1e-12
    )


def plain_contexts(world):
    found = [({}, 1.0)]
    for name in world.graph.context:
        found = [
            ({**context, name: x}, p * q)
            for context, p in found
            for x, q in ((0, 1.0 - chance(world, name, context)), (1, chance(world, name, context)))
        ]
    return found


@pytest.mark.parametrize("kind", ["fits-logistic", "random-tables", "hidden-confounder"])
def test_the_causal_policy_meets_the_same_rounds(kind):
    world, graph, budget = WORLDS[kind]
    study = study_of(world, [CausalUCB()], 60, 1, budget, SEED, "every", graph=graph, links="identity", effects="any")
    assert_plain(study, run_study(study, workers=1))


def test_the_oracle_knows_the_world_and_loses_nothing():
    for world, graph, budget in WORLDS.values():
        result = simulate(world, [Oracle(world)], 50, 2, budget, graph=graph, links="identity")
        assert np.abs(result.all_regret).max() <= 1e-9


# -- what the learner believes ----------------------------------------------------------------------------------------


def test_the_learner_believes_what_is_true_unless_told_otherwise():
    problem = study_of(paper.G1, "ucb", 10, 1, 2).problem
    assert (problem.graph, problem.effects) == (paper.G1.graph, "nonnegative")
    world, graph, budget = WORLDS["missing-edge"]
    assert world.nonnegative
    assert study_of(world, "ucb", 10, 1, budget, graph=graph).problem.effects == "any"
    assert study_of(world, "ucb", 10, 1, budget, graph=world.graph).problem.effects == "nonnegative"
    assert study_of(world, "ucb", 10, 1, budget, graph=graph, effects="nonnegative").problem.monotone
    logistic, graph, budget = WORLDS["fits-logistic"]
    assert study_of(logistic, "ucb", 10, 1, budget).problem.links == logistic.links
    assert study_of(logistic, "ucb", 10, 1, budget, links="identity").problem.is_linear
    named, *others = logistic.graph.nodes
    some = study_of(logistic, "ucb", 10, 1, budget, links={named: "probit"}).problem.links
    assert (some[0].name, some[1:]) == ("probit", logistic.links[1:])
    assert others
    table, graph, budget = WORLDS["random-tables"]
    assert study_of(table, "ucb", 10, 1, budget).problem.is_linear
    rising = TableModel.of(paper.G4)
    assert study_of(rising, "ucb", 10, 1, budget).problem.effects == "nonnegative"


def test_tables_of_a_linear_world_give_the_same_study_bit_for_bit():
    policies = [BLMLR(radius_scale=0.1), UCB(), EpsilonGreedy(0.1)]
    first = run_study(study_of(paper.G4, policies, 500, 3, 2), workers=1)
    second = run_study(study_of(TableModel.of(paper.G4), policies, 500, 3, 2), workers=1)
    np.testing.assert_array_equal(first.all_reward, second.all_reward)
    np.testing.assert_allclose(first.all_regret, second.all_regret, atol=1e-9)


def test_another_view_has_no_bound_from_the_paper():
    policy = BLMLR(radius_scale=0.1)
    assert simulate(paper.G4, [policy], 50, 1, 2).bound("BLM-LR") is not None
    world = TableModel.of(paper.G4)
    assert simulate(world, [policy], 50, 1, 2).bound("BLM-LR") is None
    assert simulate(paper.G4, [policy], 50, 1, 2, graph=paper.G4.graph).bound("BLM-LR") is None


@pytest.mark.parametrize("kind", WORLDS)
def test_files_keep_what_the_learner_believed(kind, tmp_path):
    world, graph, budget = WORLDS[kind]
    result = simulate(world, ["ucb"], 20, 2, budget, graph=graph, links="identity", effects="any")
    back = StudyResult.load(result.save(tmp_path))
    assert back.study == result.study
    assert back.study.fingerprint() == result.study.fingerprint()
    assert result.summary().to_document() is not None
    told = {"graph": None, "links": None, "effects": None}
    for name in told:
        other = dataclasses.replace(result.study, view=dataclasses.replace(result.study.view, **{name: None}))
        assert other.fingerprint() != result.study.fingerprint()


def test_a_study_without_a_view_is_written_as_before():
    study = study_of(paper.G4, ["ucb"], 20, 2, 2)
    document = json.loads(json.dumps(study.to_document()))
    assert set(document) == {"model", "policies", "budget", "rounds", "replications", "seed", "grid"}
    assert Study.from_document(document) == study


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"target": "M1"}, "the learner's target is the world's"),
        ({"controllable": ["X1"]}, "controllable variables are the world's"),
        ({"context": ["X9"], "more": [("X9", "Y")]}, "X9"),
        ({"more": [("Z", "Y")]}, "'Z' is none of"),
    ],
)
def test_a_learner_must_fit_its_world(changed, words):
    weights = {"X1": 0.2, "X2": 0.2, "M1": 0.1, "Y": 0.1, ("X1", "M1"): 0.3, ("X2", "Y"): 0.2, ("M1", "Y"): 0.3}
    world = BinaryGLM.blm(weights, "Y", controllable=["X1", "X2"])
    edges = [("X1", "M1"), ("X2", "Y"), ("M1", "Y"), *changed.pop("more", [])]
    if changed.get("target") == "M1":
        edges = [("X1", "M1"), ("X2", "M1"), ("Y", "M1")]
    roles = {"target": "Y", "controllable": ["X1", "X2"], **changed}
    with pytest.raises(SimulationError, match=words):
        study_of(world, "ucb", 10, 1, 1, graph=CausalGraph(edges, **roles))


def test_a_learner_may_suspect_hidden_variables_of_its_own():
    world, _, budget = WORLDS["unseen mediator"]
    edges = [("A", "V"), ("B", "V"), ("V", "Y"), ("C", "Y")]
    suspicious = CausalGraph(edges, "Y", latent=["V"], controllable=["A", "B", "C"])
    believed = {"graph": suspicious, "effects": "nonnegative"}
    study = study_of(world, [UCB(), BLMLR(radius_scale=0.1)], 80, 1, budget, SEED, "every", **believed)
    assert "V" not in study.problem.graph
    assert_rewards_are_of_the_world(study)


def assert_rewards_are_of_the_world(study):
    result = run_study(study, workers=1)
    for row, policy in enumerate(study.policies.values()):
        _, rewards = plain_run(study, policy, 0, {}, {})
        np.testing.assert_array_equal(result.all_reward[row, 0], rewards)


# -- the worlds of the benchmarks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", bench.KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_benchmark_world_is_what_it_says(kind, seed):
    case = bench.make(kind, seed)
    world, graph, budget = case
    assert case == bench.make(kind, seed)
    assert 5 < len(world.graph.observed) < 9
    assert 3 <= len(graph.controllable) <= 6
    assert 1 <= budget <= 3
    values = sorted(
        plain_value(world, dict.fromkeys(chosen, 1))
        for size in (range(budget + 1) if not world.nonnegative else [budget])
        for chosen in combinations(graph.controllable, size)
    )
    assert values[-1] - values[-2] >= bench.GAP - 1e-12
    assert values[-1] == pytest.approx(solve(world, budget).value)
    missing = set(world.graph.edges) - set(graph.edges)
    assert len(missing) == {"missing-edge": 1, "rare-missing-effect": 1, "hidden-confounder": 2}.get(kind, 0)
    assert isinstance(world, TableModel) == (kind in TABULAR)
    assert world.nonnegative or kind in MIXED
    if kind in ("missing-edge", "rare-missing-effect"):
        assert next(iter(missing))[0] in solve(world, budget).do
    if kind == "rare-missing-effect":
        assert chance(world, next(iter(missing))[0], {}) <= 0.05  # a root, hardly ever 1 by itself


TABULAR = ("interaction-at-target", "interaction-at-mediator", "rare-patterns", "random-tables")
MIXED = (*TABULAR, "fits-logistic", "mixed-signs-linear")
