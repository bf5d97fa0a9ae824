"""Simulated runs under every rule, with harm and in contexts, against rounds by hand and the transcription."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json

import numpy as np
import pytest

import transcription as tr
from dobandit import BGLMOFU, BLMLR, UCB, BinaryGLM, CausalGraph, EpsilonGreedy, Oracle, Random, paper
from dobandit.errors import PolicyError
from dobandit.model.random_models import random_model
from dobandit.oracle.rules import Rules
from dobandit.policy.base import Policy
from dobandit.policy.registry import policy_to_spec
from dobandit.simulation.result import StudyResult
from dobandit.simulation.simulate import run_study
from dobandit.simulation.study import Study
from helpers.simulations import (
    ANY_POLICIES,
    CONTINUOUS,
    GENERAL_POLICIES,
    HIDDEN,
    LAYERED,
    LINEAR_POLICIES,
    LOGISTIC,
    assert_played,
    assert_same,
    learner_by_hand,
    played_by_hand,
    study,
    uniforms,
)

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
    "everything": (LAYERED, Rules(3, {"X6": (0, 1)}, {"X2": 2.0, "X3": 0.5}, 3.5, ("X4",), ("X5",), (("X2", "X3"),))),
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
        paper_policies = [p for p in paper_policies if p.oracle != "greedy"]
    if rules.require:
        paper_policies = [p for p in paper_policies if getattr(p, "initial", 0) != "lambda-min"]
    if min(model.weights.values()) < 0:
        paper_policies = [dataclasses.replace(policy, clipped=True) for policy in paper_policies]
    return [*paper_policies, *ANY_POLICIES, Oracle(model)]


@functools.cache
def value_of(name, do):
    """E[Y | do], as pairs, in the model of a case."""
    return tr.expected_reward(RULED[name][0], dict(do))


RULED_CASES = [(name, policy) for name in RULED for policy in policies_that_can(name)]


@pytest.mark.parametrize(("name", "policy"), RULED_CASES, ids=[f"{n}-{policy_to_spec(p)}" for n, p in RULED_CASES])
@pytest.mark.filterwarnings("ignore:'X2' has 3 values")
def test_a_simulated_run_under_any_rules_is_the_run_by_hand(name, policy):
    model, rules = RULED[name]
    graph, rounds, seed, replication = model.graph, 40, 4, 1
    result = run_study(study(model, [policy], rounds, 2, rules, seed=seed, record="every"), workers=1)
    learner = learner_by_hand(model, policy, rules, rounds, seed)
    everything = list(allowed_actions(graph, rules))

    def value(do, known):
        return value_of(name, tuple(sorted({**do, **known}.items())))

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
