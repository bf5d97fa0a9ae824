"""The simulation engine: the same numbers however they are computed, and the numbers that the definitions ask for."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import transcription as tr
from dobandit import (
    BGLMOFU,
    BLMLR,
    UCB,
    BinaryGLM,
    CausalGraph,
    EpsilonGreedy,
    Fixed,
    LinearModel,
    Oracle,
    Random,
    paper,
)
from dobandit.errors import InterventionError, ModelError, PolicyError, SimulationError
from dobandit.model.random_models import random_model
from dobandit.oracle.rules import Rules
from dobandit.policy.base import Policy
from dobandit.policy.registry import policy_to_spec
from dobandit.simulation import statistics
from dobandit.simulation.result import StudyResult
from dobandit.simulation.run import prepare, run_block
from dobandit.simulation.simulate import run_study
from dobandit.simulation.study import Study, study_of
from worlds import relaxed

LOGISTIC = random_model("layered", 6, seed=2, parents=2, link={"name": "logistic", "shift": 1.5})
LAYERED = random_model("layered", 8, seed=1, parents=3)
HIDDEN = random_model("layered", 7, seed=3, parents=3, latent=3)
CONTINUOUS = random_model("layered", 7, seed=4, parents=3, continuous=True)
HIDDEN_CONTINUOUS = random_model("parallel", 6, seed=5, latent=3, continuous=True)
MODELS = {
    "layered": LAYERED,
    "hidden": HIDDEN,
    "continuous": CONTINUOUS,
    "hidden continuous": HIDDEN_CONTINUOUS,
    "logistic": LOGISTIC,
}
LINEAR_POLICIES = [
    BLMLR(radius_scale=0.1),
    BLMLR(radius="lemma"),
    BLMLR(radius_scale=0.1, region="boxed"),
    BGLMOFU(radius_scale=0.1, initial=15),
    BGLMOFU(radius_scale=0.1),
    BGLMOFU(radius_scale=0.1, initial=15, region="boxed"),
    BLMLR(radius_scale=0.1, region="boxed", oracle="branch-and-bound"),
    BLMLR(radius_scale=0.1, region="boxed", oracle="greedy"),
]
ANY_POLICIES = [UCB(), UCB(scale=0.1), EpsilonGreedy(0.1), EpsilonGreedy(1.0), Random()]
GENERAL_POLICIES = [BGLMOFU(radius_scale=0.02, initial=25, kappa=0.1), BGLMOFU(radius_scale=0.1, initial=0, kappa=0.1)]
CASES = [
    (world, policy)
    for world in MODELS
    for policy in [*(GENERAL_POLICIES if world == "logistic" else LINEAR_POLICIES), *ANY_POLICIES]
]
PAPER_POLICIES = ["blm-lr:radius_scale=0.1", "blm-ofu:radius_scale=0.1,initial=20", "ucb", "eps-greedy:epsilon=0.1"]
CURVES = ("all_regret", "all_reward", "best_plays")


def study(model=paper.G4, policies=PAPER_POLICIES, rounds=200, replications=6, budget=2, **options) -> Study:
    """budget: a number, or Rules."""
    return study_of(model, policies, rounds, replications, budget, **options)


def assert_same(first: StudyResult, second: StudyResult) -> None:
    for name in CURVES:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.best, first.best_do) == (second.best, second.best_do)


def uniforms(seed: int, replication: int, rounds: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The random numbers of a replication: (rounds, nodes) for the world, (rounds, 3) for the policies."""
    streams = [np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(replication, i))) for i in range(2)]
    return streams[0].random((rounds, nodes)), streams[1].random((rounds, 3))


# -- the same, however it is computed ---------------------------------------------------------------------------


class InDisorder:
    """Runs blocks in a random order, and delivers some of them twice."""

    workers = 3

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def run(self, study, prepared, blocks):
        for i in self.rng.permutation([*range(len(blocks)), 0]):
            yield run_block(study, prepared, blocks[i])


@pytest.mark.parametrize("replications", [1, 2, 7, 70])
def test_any_number_of_threads_gives_the_same_bits(replications):
    wanted = study(replications=replications, rounds=60)
    alone = run_study(wanted, workers=1)
    for workers in (2, 3, 8):
        assert_same(alone, run_study(wanted, workers=workers))
    for name in CURVES:
        assert getattr(alone, name).shape[1] == replications
    assert (alone.all_reward[:, :, -1] > 0).all()  # every replication was run


def test_a_lost_block_is_an_error_and_not_a_zero():
    class Forgetful(InDisorder):
        def run(self, study, prepared, blocks):
            yield from super().run(study, prepared, blocks[1:])

    with pytest.raises(SimulationError, match="1 replications came back without a result"):
        run_study(study(replications=30, rounds=5), executor=Forgetful(0))


@relaxed(max_examples=10)
@given(st.integers(0, 1000))
def test_any_order_of_completion_gives_the_same_bits(seed):
    wanted = study(replications=30, rounds=50)
    assert_same(run_study(wanted, workers=1), run_study(wanted, executor=InDisorder(seed)))


def test_general_links_and_boxed_regions_do_not_depend_on_threads():
    wanted = study(LOGISTIC, GENERAL_POLICIES, rounds=40, replications=8, budget=1)
    assert_same(run_study(wanted, workers=1), run_study(wanted, workers=8))
    wanted = study(HIDDEN, [BLMLR(region="boxed"), BLMLR()], rounds=40, replications=8)
    assert_same(run_study(wanted, workers=1), run_study(wanted, workers=8))


def test_a_policys_result_does_not_depend_on_its_company_or_its_place():
    full = run_study(study())
    for i, spec in enumerate(PAPER_POLICIES):
        alone = run_study(study(policies=[spec]))
        np.testing.assert_array_equal(alone.all_regret[0], full.all_regret[i])
        np.testing.assert_array_equal(alone.all_reward[0], full.all_reward[i])
    turned = run_study(study(policies=PAPER_POLICIES[::-1]))
    np.testing.assert_array_equal(turned.all_regret[::-1], full.all_regret)


def test_the_first_replications_do_not_depend_on_how_many_follow():
    few, many = (run_study(study(replications=n, rounds=80)) for n in (5, 40))
    np.testing.assert_array_equal(many.all_regret[:, :5], few.all_regret)
    np.testing.assert_array_equal(many.all_reward[:, :5], few.all_reward)


def test_seeds_and_replications_differ():
    result, other = run_study(study(replications=10)), run_study(study(replications=10, seed=1))
    assert len(np.unique(result.all_reward[2, :, :], axis=0)) == 10
    assert not np.array_equal(result.all_reward, other.all_reward)


def test_policies_meet_the_same_world():
    twice = run_study(study(policies={"one": Fixed(["X2"]), "other": Fixed(["X2"])}))
    np.testing.assert_array_equal(twice.reward("one"), twice.reward("other"))
    # setting more can only help on the same random numbers
    nested = run_study(study(policies={"less": Fixed(["X2"]), "more": Fixed(["X2", "X3"])}))
    assert (nested.reward("more") >= nested.reward("less")).all()


def test_progress_counts_every_replication_once():
    counts = []
    run_study(study(replications=25, rounds=10), workers=3, progress=counts.append)
    assert sum(counts) == 25
    assert min(counts) > 0


# -- simulated rounds and rounds by hand --------------------------------------------------------------------------


def learner_by_hand(model, policy, rules, rounds, seed):
    """As a study starts it: told the signs of the weights, never the weights."""
    links = {name: model.link(name) for name in model.graph.nodes}
    effects = "nonnegative" if min(model.weights.values()) >= 0 else "any"
    options = {"links": links, "continuous": model.continuous, "effects": effects}
    return policy.start(model.graph, rules, horizon=rounds, seed=seed, **options)


def played_by_hand(model, policy, budget, rounds, seed, replication):
    """The same run through Learner.propose and update: (sets, rewards)."""
    learner = learner_by_hand(model, policy, budget, rounds, seed)
    world_draws, policy_draws = uniforms(seed, replication, rounds, len(model.graph))
    sets, rewards = [], []
    for t in range(rounds):
        action = learner.propose(policy_draws[t])
        chosen = tuple(name for name in model.graph.controllable if name in action)
        values = tr.draw_world(model, chosen, world_draws[t])
        learner.update(action, {name: values[name] for name in model.graph.observed})
        sets.append(chosen)
        rewards.append(values[model.target])
    return sets, np.array(rewards)


def assert_played(result, row, replication, sets, rewards):
    model, budget = result.study.model, result.study.budget
    regret = np.cumsum(tr.expected_regret(model, budget, sets))
    np.testing.assert_allclose(result.all_regret[row, replication], regret[result.grid - 1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        result.all_reward[row, replication], np.cumsum(rewards)[result.grid - 1], rtol=0, atol=1e-9
    )
    best = tr.best_reward(model, budget)
    assert result.best == pytest.approx(best, abs=1e-12)
    optimal = sum(tr.expected_reward(model, chosen) >= best - 1e-12 for chosen in sets)
    assert result.best_plays[row, replication] == optimal


@pytest.mark.parametrize("world", MODELS)
def test_the_worlds_tell_sets_apart(world):
    """So that equal curves below mean equal choices."""
    model = MODELS[world]
    values = [tr.expected_reward(model, chosen) for chosen in tr.all_arms(model.graph, 2)]
    assert len(set(np.round(values, 12))) == len(values)


@pytest.mark.parametrize(("world", "policy"), CASES, ids=[f"{w}-{policy_to_spec(p)}" for w, p in CASES])
def test_a_simulated_run_is_the_run_by_hand(world, policy):
    model = MODELS[world]
    wanted = study(model, [policy], rounds=120, replications=3, seed=11, record="every")
    result = run_study(wanted, workers=1)
    sets, rewards = played_by_hand(model, policy, 2, 120, seed=11, replication=2)
    assert_played(result, 0, 2, sets, rewards)
    if getattr(policy, "initial", 0) != "lambda-min":  # which may never end in so few rounds
        assert len(set(sets)) > 1


# -- the same under every rule, with harm, and in contexts -------------------------------------------------------

SIGNED = BinaryGLM(
    CausalGraph([("a", "c"), ("b", "c"), ("b", "d"), ("c", "Y"), ("d", "Y"), ("e", "Y")], target="Y"),
    {"a": 0.3, "b": 0.45, "c": 0.5, "d": 0.6, "e": 0.35, "Y": 0.4, ("a", "c"): 0.4, ("b", "c"): -0.35, ("b", "d"): 0.2}
    | {("c", "Y"): 0.25, ("d", "Y"): -0.3, ("e", "Y"): -0.05},
)
CONTEXT_EDGES = [("day", "mood"), ("day", "ad"), ("mood", "visit"), ("ad", "visit"), ("mail", "visit"), ("mail", "Y")]
CONTEXT_GRAPH = CausalGraph(
    [*CONTEXT_EDGES, ("mood", "mail"), ("visit", "Y"), ("coupon", "Y")],
    target="Y",
    controllable=["ad", "mail", "coupon"],
    context=["day", "mood"],
)
CONTEXT_WEIGHTS = {"day": 0.4, "mood": 0.2, "ad": 0.05, "mail": 0.1, "visit": 0.1, "coupon": 0.2, "Y": 0.05} | {
    ("day", "mood"): 0.5,
    ("day", "ad"): 0.8,
    ("mood", "visit"): 0.2,
    ("ad", "visit"): 0.45,
    ("mail", "visit"): 0.15,
    ("mail", "Y"): 0.2,
    ("mood", "mail"): 0.7,
    ("visit", "Y"): 0.4,
    ("coupon", "Y"): 0.12,
}
IN_CONTEXT = BinaryGLM(CONTEXT_GRAPH, CONTEXT_WEIGHTS)
HARM_IN_CONTEXT = BinaryGLM(CONTEXT_GRAPH, CONTEXT_WEIGHTS | {("mail", "visit"): -0.1, ("coupon", "Y"): -0.04})
LOGISTIC_IN_CONTEXT = BinaryGLM(
    CONTEXT_GRAPH,
    {key: weight if isinstance(key, str) else 5.0 * weight for key, weight in CONTEXT_WEIGHTS.items()},
    links={"name": "logistic", "shift": 2.0},
)
RULED = {
    "costs": (LAYERED, Rules(2, costs={"X2": 2.0, "X4": 0.5, "X5": 0.0}, total_cost=2.0)),
    "costs alone": (LAYERED, Rules(costs={"X2": 2.5, "X4": 1.5}, total_cost=3.0)),
    "exclusive": (LAYERED, Rules(3, exclusive=[["X2", "X3"], ["X3", "X4", "X5"]])),
    "required": (LAYERED, Rules(3, require=["X3"])),
    "forbidden": (LAYERED, Rules(2, forbid=["X2", "X5"])),
    "levers": (LAYERED, Rules(2, levers={"X2": (0, 1), "X4": (0, 1)})),
    "only to 0": (LAYERED, Rules(2, levers={"X3": (0,)})),
    "smaller": (LAYERED, Rules(2, smaller=True)),
    "everything": (
        LAYERED,
        Rules(3, {"X6": (0, 1)}, {"X2": 2.0, "X3": 0.5}, 3.5, ("X4",), ("X5",), (("X2", "X3"),)),
    ),
    "hidden, costs": (HIDDEN, Rules(2, costs={"X2": 2.0}, total_cost=2.0)),
    "continuous, levers": (CONTINUOUS, Rules(2, levers={"X2": (0, 0.5, 1), "X3": (0.25,)})),
    "logistic, levers": (LOGISTIC, Rules(2, levers={"X3": (0, 1)}, exclusive=[["X2", "X4"]])),
    "signed": (SIGNED, Rules(2)),
    "signed, levers": (SIGNED, Rules(2, levers={"b": (0, 1), "d": (0, 1)})),
    "signed, full sets": (SIGNED, Rules(2, smaller=False)),
    "context": (IN_CONTEXT, Rules(1)),
    "context, rules": (IN_CONTEXT, Rules(2, {"ad": (0, 1)}, exclusive=[["mail", "coupon"]])),
    "context, harm": (HARM_IN_CONTEXT, Rules(2)),
    "context, logistic": (LOGISTIC_IN_CONTEXT, Rules(1, levers={"ad": (0, 1)})),
}


def allowed_actions(graph, rules):
    """Every allowed action, from the words of the rules; with smaller=False those that can take no other variable."""
    names = [name for name in graph.controllable if name not in rules.forbid]

    def keeps(chosen):
        costs = sum(rules.costs.get(name, 1.0) for name in chosen)
        return (
            (rules.budget is None or len(chosen) <= rules.budget)
            and (rules.total_cost is None or costs <= rules.total_cost + 1e-9)
            and set(rules.require) <= set(chosen)
            and not any(len(set(chosen) & set(group)) > 1 for group in rules.exclusive)
        )

    sets = [chosen for k in range(len(names) + 1) for chosen in itertools.combinations(names, k) if keeps(chosen)]
    if rules.smaller is False:
        sets = [chosen for chosen in sets if not any(keeps((*chosen, n)) for n in names if n not in chosen)]
    for chosen in sets:
        for values in itertools.product(*(rules.levers.get(name, (1.0,)) for name in chosen)):
            yield dict(zip(chosen, values, strict=True))


def policies_that_can(name):
    """Searches are for variables that are set to 1; policies of the paper read harm as no effect, where told to."""
    model, rules = RULED[name]
    paper_policies = GENERAL_POLICIES if any(link.name != "identity" for link in model.links) else LINEAR_POLICIES
    if rules.levers:
        paper_policies = [p for p in paper_policies if p.oracle not in ("branch-and-bound", "greedy")]
    if rules.require:
        paper_policies = [p for p in paper_policies if getattr(p, "initial", 0) != "lambda-min"]
    if min(model.weights.values()) < 0:
        paper_policies = [dataclasses.replace(policy, clipped=True) for policy in paper_policies]
    return [*paper_policies, *ANY_POLICIES, Oracle(model)]


RULED_CASES = [(name, policy) for name in RULED for policy in policies_that_can(name)]


@pytest.mark.parametrize(("name", "policy"), RULED_CASES, ids=[f"{n}-{policy_to_spec(p)}" for n, p in RULED_CASES])
def test_a_simulated_run_under_any_rules_is_the_run_by_hand(name, policy):
    model, rules = RULED[name]
    graph, rounds, seed, replication = model.graph, 90, 4, 1
    result = run_study(study(model, [policy], rounds, 2, rules, seed=seed, record="every"), workers=1)
    learner = learner_by_hand(model, policy, rules, rounds, seed)
    everything = list(allowed_actions(graph, rules))
    values = {}

    def value(do, known):
        key = tuple(sorted({**do, **known}.items()))
        if key not in values:
            values[key] = tr.expected_reward(model, {**do, **known})
        return values[key]

    best = {
        bits: max(value(do, dict(zip(graph.context, bits, strict=True))) for do in everything)
        for bits in itertools.product((0.0, 1.0), repeat=len(graph.context))
    }
    world_draws, policy_draws = uniforms(seed, replication, rounds, len(graph))
    regret, rewards, played, optimal = [], [], [], 0
    for t in range(rounds):
        before = tr.draw_world(model, {}, world_draws[t])  # what is known before acting does not depend on it
        known = {name: before[name] for name in graph.context}
        action = learner.propose(policy_draws[t], context=known)
        assert action in everything or action == dict.fromkeys(rules.require, 1)
        seen = tr.draw_world(model, action, world_draws[t])
        learner.update(action, {name: seen[name] for name in graph.observed})
        top, here = best[tuple(known.values())], value(action, known)
        regret.append(top - here)
        optimal += here >= top - 1e-12
        rewards.append(seen[graph.target])
        played.append((tuple(known.values()), tuple(action.items())))
    np.testing.assert_allclose(result.all_regret[0, replication], np.cumsum(regret), rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.all_reward[0, replication], np.cumsum(rewards), rtol=0, atol=1e-9)
    assert result.best_plays[0, replication] == optimal
    assert min(regret) >= -1e-12
    if isinstance(policy, Oracle):
        assert optimal == rounds
    elif getattr(policy, "initial", 0) != "lambda-min":
        assert len({action for _, action in played}) > 1
    chance = dict.fromkeys(best, 1.0)
    for bits in best:
        known = dict(zip(graph.context, bits, strict=True))
        for name, bit in known.items():
            p = tr.conditional_mean(model, name, known)
            chance[bits] *= p if bit else 1.0 - p
    assert result.best == pytest.approx(sum(chance[bits] * best[bits] for bits in best), abs=1e-9)


def test_in_contexts_other_actions_are_best():
    """So that the runs above mean something."""
    for model in (IN_CONTEXT, LOGISTIC_IN_CONTEXT):
        best = set()
        for bits in itertools.product((0.0, 1.0), repeat=2):
            known = dict(zip(CONTEXT_GRAPH.context, bits, strict=True))
            best.add(max(CONTEXT_GRAPH.controllable, key=lambda x: tr.expected_reward(model, {**known, x: 1})))
        assert len(best) > 1
    assert CONTEXT_GRAPH.context == ("day", "mood")


@pytest.mark.parametrize("name", ["levers", "signed", "everything", "context, rules"])
def test_a_study_with_rules_is_saved_and_run_again(name, tmp_path):
    model, rules = RULED[name]
    first = study(model, [UCB(), Random()], 30, 2, rules)
    assert Study.from_document(json.loads(json.dumps(first.to_document()))) == first
    result = run_study(first)
    again = StudyResult.load(result.save(tmp_path))
    assert again.study == first
    assert_same(again, result)
    assert_same(run_study(again.study), result)
    assert first.fingerprint() != study(model, [UCB(), Random()], 30, 2, 1).fingerprint()


@pytest.mark.parametrize("policy", [BLMLR(), BGLMOFU(initial=5)], ids=["BLM-LR", "BLM-OFU"])
def test_the_papers_policies_refuse_harm_unless_told_to_read_it_as_none(policy):
    with pytest.raises(PolicyError, match="clipped=True"):
        run_study(study(SIGNED, [policy], 10, 1, 2))
    run_study(study(SIGNED, [dataclasses.replace(policy, clipped=True)], 10, 1, 2))


def test_long_runs_are_not_cut_at_the_seams():
    """Random numbers are drawn a few thousand rounds at a time."""
    result = run_study(study(policies=[EpsilonGreedy(0.3)], rounds=4500, replications=1, record="every"))
    sets, rewards = played_by_hand(paper.G4, EpsilonGreedy(0.3), 2, 4500, seed=0, replication=0)
    assert_played(result, 0, 0, sets, rewards)


@pytest.mark.parametrize(
    ("policy", "reference"),
    [
        (BLMLR(radius_scale=0.1), lambda g, T: tr.BLMLRTranscription(g, 2, T, 0.1)),
        (BGLMOFU(radius_scale=0.1, initial=3), lambda g, T: tr.BGLMOFUTranscription(g, {}, 2, T, 3, radius_scale=0.1)),
        (UCB(), lambda g, T: tr.UCBTranscription(g, 2)),
        (UCB(scale=0.1), lambda g, T: tr.UCBTranscription(g, 2, 0.1)),
        (EpsilonGreedy(0.1), lambda g, T: tr.EpsilonGreedyTranscription(g, 2, 0.1)),
        (EpsilonGreedy(0.01), lambda g, T: tr.EpsilonGreedyTranscription(g, 2, 0.01)),
        (Random(), lambda g, T: tr.RandomTranscription(g, 2)),
    ],
    ids=lambda value: policy_to_spec(value) if isinstance(value, Policy) else "",
)
def test_a_simulated_run_is_the_transcriptions(policy, reference):
    rounds = 300
    result = run_study(study(policies=[policy], rounds=rounds, replications=2, seed=7, record="every"))
    for replication in range(2):
        draws = uniforms(7, replication, rounds, len(paper.G4.graph))
        played = tr.play(paper.G4, reference(paper.G4.graph, rounds), rounds, *draws)
        assert_played(result, 0, replication, played.sets, played.rewards)


@pytest.mark.parametrize("budget", [0, 1, 4])
def test_nothing_and_everything_may_be_set(budget):
    result = run_study(study(budget=budget, record="every", replications=2))
    assert result.best == pytest.approx(tr.best_reward(paper.G4, budget))
    if budget == 0:
        assert not result.all_regret.any()
        assert (result.best_plays == 200).all()
    if budget == 4:  # one set only; BLM-OFU observes for 20 rounds first
        np.testing.assert_allclose(result.all_regret[[0, 2, 3]], 0.0, atol=1e-9)
        missed = 20 * (result.best - tr.expected_reward(paper.G4, ()))
        np.testing.assert_allclose(result.regret("BLM-OFU")[:, -1], missed)


def test_nodes_with_many_parents_are_fine():
    wide = random_model("parallel", 16, seed=0)
    linear = run_study(study(wide, [BLMLR(radius_scale=0.1), UCB()], rounds=150, replications=2))
    assert linear.best == pytest.approx(tr.best_reward(wide, 2))
    assert (linear.all_regret >= -1e-9).all()
    logistic = random_model("parallel", 13, seed=0, link={"name": "logistic", "shift": 3.0})
    result = run_study(
        study(logistic, [BGLMOFU(0.1, initial=30, kappa=0.1), UCB()], rounds=60, replications=2, budget=1)
    )
    _, rewards = played_by_hand(logistic, UCB(), 1, 60, 0, 1)
    np.testing.assert_allclose(result.reward("UCB")[1, -1], rewards.sum())
    assert np.isfinite(result.all_regret).all()


def test_knowing_the_model_costs_no_regret_and_always_plays_the_best_set():
    result = run_study(study(HIDDEN, [Oracle(HIDDEN), Random()], rounds=500))
    assert np.abs(result.regret("Oracle")).max() < 1e-9
    assert result.best_share("Oracle") == 1.0
    assert 0.0 < result.best_share("Random") < 0.3
    assert tuple(result.best_do) == tuple(sorted(result.best_do, key=HIDDEN.graph.index))
    assert set(result.best_do.values()) == {1}
    assert result.best_set == tuple(result.best_do)
    assert tr.expected_reward(HIDDEN, tuple(result.best_do)) == pytest.approx(result.best)


# -- what is recorded ---------------------------------------------------------------------------------------------


def test_every_kind_of_recording_tells_the_same():
    every = run_study(study(rounds=3000, replications=2, record="every"))
    grid = run_study(study(rounds=3000, replications=2, record="grid"))
    some = run_study(study(rounds=3000, replications=2, record=[2049, 7, 2048, 7]))
    assert every.grid.tolist() == list(range(1, 3001))
    assert some.grid.tolist() == [7, 2048, 2049, 3000]
    assert (grid.grid[0], grid.grid[-1]) == (1, 3000)
    assert 200 <= len(grid.grid) <= 400
    for result in (grid, some):
        np.testing.assert_array_equal(result.all_regret, every.all_regret[:, :, result.grid - 1])
        np.testing.assert_array_equal(result.all_reward, every.all_reward[:, :, result.grid - 1])
        np.testing.assert_array_equal(result.best_plays, every.best_plays)
        assert result.summary_of("UCB") == every.summary_of("UCB")
        assert result.summary_of("UCB", int(result.grid[1])) == every.summary_of("UCB", int(result.grid[1]))


@pytest.mark.parametrize("rounds", [1, 2, 10, 401])
def test_short_runs_have_a_grid_too(rounds):
    grid = study(rounds=rounds).grid
    assert grid[-1] == rounds
    assert len(set(grid)) == len(grid)


def test_approximation_regret_is_alpha_beta_best_minus_what_was_earned():
    # G4: E[Y] = .2 X2 + .2 X3 + .1 X4 + .1 X5 with P(X2) = P(X3) = .2, P(X4) = P(X5) = .6
    result = run_study(study(policies={"X4": Fixed(["X4"])}, rounds=50, record="every", replications=2))
    best, earned = 0.2 + 0.2 + 0.06 + 0.06, 0.04 + 0.04 + 0.1 + 0.06
    t = np.arange(1, 51)
    np.testing.assert_allclose(result.regret("X4")[0], (best - earned) * t)
    np.testing.assert_allclose(result.regret("X4", alpha=0.9)[1], (0.9 * best - earned) * t)
    np.testing.assert_allclose(
        result.regret("X4", alpha=1 - 1 / math.e, beta=0.5)[0], ((1 - 1 / math.e) * 0.5 * best - earned) * t
    )
    for wrong in ({"alpha": 0.0}, {"beta": 1.5}, {"alpha": math.nan}):
        with pytest.raises(SimulationError, match="must be above 0 and at most 1"):
            result.regret("X4", **wrong)


def test_questions_about_what_is_not_there_are_refused():
    result = run_study(study(record=[5], rounds=20))
    with pytest.raises(SimulationError, match="Did you mean 'BLM-LR'"):
        result.regret("BLM-RL")
    with pytest.raises(SimulationError, match="round 6 was not recorded; the next recorded one is 20"):
        result.summary_of("UCB", 6)
    with pytest.raises(SimulationError, match="not recorded"):
        result.summary_of("UCB", 21)


def test_differences_are_paired():
    result = run_study(study(replications=40))
    gap = result.difference("UCB", "BLM-LR")
    sample = result.regret("UCB")[:, -1] - result.regret("BLM-LR")[:, -1]
    assert gap.mean == pytest.approx(sample.mean())
    assert gap.mean == pytest.approx(result.summary_of("UCB").mean - result.summary_of("BLM-LR").mean)
    assert result.difference("BLM-LR", "UCB").mean == pytest.approx(-gap.mean)
    assert result.microseconds_per_round("UCB") > 0


# -- files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", MODELS)
def test_saving_and_loading_changes_nothing(world, tmp_path):
    policies = {
        "a": GENERAL_POLICIES[0] if world == "logistic" else BLMLR(0.1),
        "b": UCB(0.1),
        "c": Fixed(["X3", "X2"]),
    }
    result = run_study(study(MODELS[world], policies, rounds=30, replications=3, seed=5))
    path = result.save(tmp_path / "deep" / "folder")
    for again in (StudyResult.load(path), StudyResult.load(path.parent)):
        assert_same(again, result)
        np.testing.assert_array_equal(again.seconds, result.seconds)
        assert again.elapsed == result.elapsed
        assert again.study == result.study
        assert again.labels == ["a", "b", "c"]
    assert_same(run_study(StudyResult.load(path).study), result)  # the file is enough to run it again
    assert [file.name for file in path.parent.iterdir()] == ["study.npz"]


def test_saving_again_replaces_the_file(tmp_path):
    for seed in (0, 1):
        run_study(study(rounds=5, seed=seed)).save(tmp_path)
    assert StudyResult.load(tmp_path).study.seed == 1


def test_a_damaged_file_is_refused_or_harmless(tmp_path):
    result = run_study(study(rounds=20, record=[5]))
    path = result.save(tmp_path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for at in rng.integers(0, len(whole), 300).tolist():
        damaged = bytearray(whole)
        damaged[at] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            assert_same(StudyResult.load(path), result)
        except SimulationError:
            refused += 1
    assert refused > 100
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(SimulationError, match="not a saved study"):
            StudyResult.load(path)


def rewritten(path, **changes):
    """The file with some of its arrays replaced, or dropped (None)."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"study": np.array("no JSON")}, "not a saved study"),
        ({"study": np.array("[]")}, "not a saved study"),
        ({"study": np.array('{"format": "other", "version": 1}')}, "not a saved study"),
        ({"study": np.array('{"format": "dobandit-study", "version": 2}')}, "version 2.*Update dobandit"),
        ({"study": None}, "not a saved study"),
        ({"regret": None}, "not a saved study"),
        ({"regret": np.array([{}], dtype=object)}, "not a saved study"),
    ],
    ids=["no JSON", "a list", "foreign", "future", "no study", "no regret", "pickled"],
)
def test_foreign_and_future_files_are_refused(changes, words, tmp_path):
    path = run_study(study(rounds=5)).save(tmp_path)
    rewritten(path, **changes)
    with pytest.raises(SimulationError, match=words):
        StudyResult.load(path)


def test_files_that_are_not_there_or_not_ours_are_refused(tmp_path):
    with pytest.raises(SimulationError, match="no saved study"):
        StudyResult.load(tmp_path)
    with pytest.raises(SimulationError, match="no saved study"):
        StudyResult.load(tmp_path / "nowhere" / "study.npz")
    (tmp_path / "notes.txt").write_text("regret")
    np.savez(tmp_path / "foreign.npz", x=np.zeros(3))
    np.save(tmp_path / "array.npy", np.zeros(3))
    for name in ("notes.txt", "foreign.npz", "array.npy"):
        with pytest.raises(SimulationError, match="not a saved study"):
            StudyResult.load(tmp_path / name)


def test_the_configuration_is_in_the_file(tmp_path):
    path = run_study(study(rounds=5, seed=9)).save(tmp_path)
    with np.load(path, allow_pickle=False) as archive:
        document = json.loads(str(archive["study"]))
        assert archive["regret"].shape == (4, 6, len(document["study"]["grid"]))
    assert document["format"] == "dobandit-study"
    assert document["study"]["seed"] == 9
    assert document["study"]["policies"]["BLM-LR"] == {"name": "blm-lr", "radius_scale": 0.1}
    assert document["study"]["model"]["target"] == "Y"


# -- a study's parts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"model": paper.G4.graph}, SimulationError, "needs a model of its world, but got CausalGraph"),
        ({"policies": []}, SimulationError, "at least one policy"),
        ({"policies": ["ucb", "ucb", "ucb"]}, SimulationError, "listed twice"),
        ({"policies": ["thompson"]}, PolicyError, "policies are"),
        ({"policies": "ucb:scal=1"}, PolicyError, "Did you mean 'scale'"),
        ({"rounds": 0}, SimulationError, "rounds must be a whole number from 1"),
        ({"rounds": 10.0}, SimulationError, "rounds must be"),
        ({"replications": 0}, SimulationError, "replications must be"),
        ({"replications": True}, SimulationError, "replications must be"),
        ({"seed": -1}, SimulationError, "seed must be"),
        ({"budget": 5}, InterventionError, "budget must be a whole number from 0 to 4"),
        ({"record": "all"}, SimulationError, "record is 'grid', 'every' or a list"),
        ({"record": []}, SimulationError, r"a list of rounds, but got \[\]"),
        ({"record": [201]}, SimulationError, "whole number from 1 to 200, but got 201"),
        ({"record": [0]}, SimulationError, "a recorded round must be"),
        ({"record": [1.5]}, SimulationError, "a recorded round must be"),
    ],
)
def test_wrong_parts_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        study(**arguments)


def test_policies_that_do_not_fit_the_model_are_refused():
    with pytest.raises(PolicyError, match="BLM-LR is for linear models"):
        run_study(study(LOGISTIC, [BLMLR()]))
    hidden = random_model("parallel", 5, seed=0, latent=1, link="logistic")
    with pytest.raises(ModelError, match="share are handled in linear models only"):
        run_study(study(hidden, [BGLMOFU(initial=3)]))
    run_study(study(hidden, [UCB()]))
    with pytest.raises(InterventionError, match="only controllable variables"):
        run_study(study(policies=[Fixed(["X9"])]))


@pytest.mark.parametrize(("workers", "executor"), [(0, "threads"), (-1, "threads"), (1.5, "dask"), (True, "threads")])
def test_a_wrong_number_of_workers_is_refused(workers, executor):
    with pytest.raises(SimulationError, match="workers must be"):
        run_study(study(), executor=executor, workers=workers)


def test_an_unknown_executor_is_refused():
    with pytest.raises(SimulationError, match="'threads', 'dask', a scheduler's address"):
        run_study(study(), executor="processes")


def test_a_recording_that_would_not_fit_in_memory_is_refused():
    with pytest.raises(SimulationError, match=r"Record fewer rounds"):
        study(rounds=100_000, replications=10_000, record="every")
    large = study(rounds=100_000, replications=10_000)  # on the grid it does
    assert 2 * 8 * len(large.grid) * large.replications * len(large.policies) < 1e9


def test_labels_tell_policies_apart():
    policies = study(policies=[BLMLR(), BLMLR(radius_scale=0.1), BGLMOFU(initial=5), UCB(0.1)]).policies
    assert list(policies) == ["BLM-LR (radius scale 1)", "BLM-LR (radius scale 0.1)", "BLM-OFU", "UCB (0.1)"]
    assert list(study(LOGISTIC, BGLMOFU(initial=5)).policies) == ["BGLM-OFU"]
    assert list(study(policies={"mine": "ucb"}).policies) == ["mine"]


def test_the_fingerprint_is_of_all_that_decides_a_replication():
    base = study(rounds=1000)
    assert base.fingerprint() == study(rounds=1000, replications=99).fingerprint()
    others = [
        study(rounds=1001),
        study(rounds=1000, seed=1),
        study(rounds=1000, budget=1),
        study(rounds=1000, policies=PAPER_POLICIES[:2]),
        study(rounds=1000, record="every"),
        study(paper.G3, rounds=1000),
    ]
    assert len({base.fingerprint(), *(other.fingerprint() for other in others)}) == 7


def test_a_studys_document_is_the_study():
    for model in MODELS.values():
        first = study(model, [UCB(0.25), Fixed(["X2", "X4"]), Random()], seed=3)
        again = Study.from_document(json.loads(json.dumps(first.to_document())))
        assert again == first
        assert again.fingerprint() == first.fingerprint()


def test_links_of_ones_own_are_simulated():
    from worlds import ARCTAN

    model = BinaryGLM(
        CausalGraph([("a", "Y"), ("b", "Y")], target="Y"),
        {"a": 0.1, "b": 0.2, "Y": 0.0, ("a", "Y"): 0.9, ("b", "Y"): 0.4},
        links=ARCTAN,
    )
    result = run_study(study(model, [UCB()], rounds=200, replications=2, budget=1, record="every"))
    sets, rewards = played_by_hand(model, UCB(), 1, 200, 0, 0)
    assert_played(result, 0, 0, sets, rewards)


def test_noise_on_probabilities_does_not_change_a_binary_world():
    noisy = BinaryGLM(paper.G4.graph, paper.G4.weights, noise=0.5)
    assert_same(run_study(study()), run_study(study(noisy)))


def test_noise_in_a_continuous_world_does():
    def rewards(noise):
        return run_study(study(LinearModel(paper.G4.graph, paper.G4.weights, noise=noise), [Random()])).all_reward

    still, noisy = rewards(0.0), rewards(0.9)
    assert not np.array_equal(still, noisy)
    assert abs(still[..., -1] - noisy[..., -1]).max() < 20.0


# -- statistics ---------------------------------------------------------------------------------------------------

samples = st.tuples(st.integers(0, 2**32 - 1), st.integers(2, 200))


def sample_of(seed, size, scale=10.0):
    return np.random.default_rng(seed).normal(50.0, scale, size)


@relaxed(max_examples=30)
@given(samples)
def test_the_interval_is_the_normal_one_where_the_sample_is_even(drawn):
    sample = sample_of(*drawn)
    summary = statistics.summarise(sample)
    error = stats.sem(sample)
    assert summary.mean == pytest.approx(sample.mean())
    assert summary.standard_error == pytest.approx(error)
    assert summary.size == len(sample)
    for q, value in summary.quantiles.items():
        assert value == pytest.approx(np.quantile(sample, q))
    if summary.method == "normal":
        low, high = stats.t.interval(0.95, len(sample) - 1, loc=sample.mean(), scale=error)
        assert (summary.low, summary.high) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize("size", [30, 600])
def test_a_skewed_sample_gets_the_bootstrap_and_an_even_one_does_not(size):
    even, skewed = np.linspace(3.0, 5.0, size), np.random.default_rng(1).lognormal(0.0, 2.5, size)
    assert statistics.summarise(even).method == "normal"
    summary = statistics.summarise(skewed)
    assert summary.method == "bootstrap"
    found = stats.bootstrap(
        (skewed,), np.mean, n_resamples=10_000, method="percentile", random_state=3, vectorized=True
    )
    width = found.confidence_interval.high - found.confidence_interval.low
    assert summary.low == pytest.approx(found.confidence_interval.low, abs=0.05 * width)
    assert summary.high == pytest.approx(found.confidence_interval.high, abs=0.05 * width)


def test_the_choice_is_by_skewness_over_the_root_of_the_size():
    sample = np.random.default_rng(5).lognormal(0.0, 1.0, 5000)
    for size in (20, 5000):
        part = sample[:size]
        expected = "bootstrap" if abs(stats.skew(part)) / math.sqrt(size) > 0.1 else "normal"
        assert statistics.summarise(part).method == expected
    assert statistics.summarise(sample[:20]).method != statistics.summarise(sample).method


def test_the_bootstrap_is_the_same_every_time():
    sample = np.random.default_rng(1).lognormal(0.0, 2.5, 100)
    assert statistics.summarise(sample) == statistics.summarise(sample.copy())


def test_one_replication_has_no_interval_and_equal_ones_none_to_speak_of():
    one = statistics.summarise(np.array([3.0]))
    assert (one.mean, one.low, one.high, one.method, one.size) == (3.0, 3.0, 3.0, "none", 1)
    assert math.isnan(one.standard_error)
    equal = statistics.summarise(np.full(20, 0.1))
    assert (equal.low, equal.high, equal.standard_error) == (equal.mean, equal.mean, 0.0)


def test_the_papers_groups_give_students_interval_of_their_averages():
    sample = np.random.default_rng(0).gamma(2.0, 10.0, 600)
    mean, low, high = statistics.grouped_interval(sample, 20, 30)
    averages = [sample[30 * g : 30 * (g + 1)].mean() for g in range(20)]
    assert mean == pytest.approx(sample.mean())
    expected = stats.t.interval(0.95, 19, loc=np.mean(averages), scale=stats.sem(averages))
    assert (low, high) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    for groups, size in ((20, 31), (1, 600)):
        with pytest.raises(SimulationError, match=f"{groups} groups of {size} need"):
            statistics.grouped_interval(sample, groups, size)


@relaxed(max_examples=20)
@given(samples)
def test_paired_differences_are_summaries_of_the_differences(drawn):
    first, second = sample_of(*drawn), sample_of(drawn[0] + 1, drawn[1], 3.0)
    second[0] = first[0]  # a tie counts as half
    gap = statistics.paired_difference(first, second)
    summary = statistics.summarise(first - second)
    assert gap[:4] == (summary.mean, summary.low, summary.high, summary.method)
    wins = sum(a < b for a, b in zip(first[1:], second[1:], strict=True)) + 0.5
    assert gap.smaller_share == pytest.approx(wins / len(first))
    other = statistics.paired_difference(second, first)
    assert other.smaller_share == pytest.approx(1.0 - gap.smaller_share)
    with pytest.raises(SimulationError, match="one length"):
        statistics.paired_difference(first, second[1:])


def test_curves_have_the_normal_interval_at_every_point():
    curves = np.random.default_rng(2).random((25, 7)).cumsum(axis=1)
    mean, low, high = statistics.curve_interval(curves)
    for point in range(7):
        column = curves[:, point]
        expected = stats.t.interval(0.95, len(column) - 1, loc=column.mean(), scale=stats.sem(column))
        assert (low[point], high[point]) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    np.testing.assert_allclose(mean, curves.mean(axis=0))
    alone = statistics.curve_interval(curves[:1])
    assert all(np.array_equal(part, curves[0]) for part in alone)


def test_pairing_on_common_random_numbers_narrows_the_interval():
    result = run_study(study(policies={"a": BLMLR(0.1), "b": BLMLR(0.2)}, rounds=500, replications=100))
    gap = result.difference("a", "b")
    apart = math.hypot(result.summary_of("a").standard_error, result.summary_of("b").standard_error)
    assert (gap.high - gap.low) / 2 < 1.96 * apart


def test_prepared_values_are_those_of_the_definition():
    wanted = study(HIDDEN, [BLMLR(), UCB()], rounds=10)
    truth, tables = prepare(wanted)
    np.testing.assert_allclose(truth.best, [tr.best_reward(HIDDEN, 2)])
    assert truth.chance().tolist() == [1.0]
    for (table,) in tables:
        arms = [tr.expected_reward(HIDDEN, arm) for arm in tr.all_arms(HIDDEN.graph, 2)]
        np.testing.assert_allclose(np.sort(table[:-1]), np.sort(arms))
        assert table[-1] == pytest.approx(tr.expected_reward(HIDDEN, ()))


def test_a_study_is_a_value():
    assert study() == study()
    assert study() != study(seed=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        study().seed = 3
