"""What `Learner.estimate` and predictions say: whose weights, how far the intervals reach, and at what level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import dobandit as dob
from dobandit.policy.engine import Rounds, no_context
from dobandit.policy.graph_evidence import GraphEvidence

GRAPH = dob.CausalGraph([("a", "Y"), ("b", "Y")], target="Y")
TRUE = {"a": 1.2, "b": -0.7}
BIAS = -0.4


def curved_rows(rng, rounds):
    """Rounds of a logistic node with two causes, in the order of the graph's ids."""
    values = np.ones((rounds, len(GRAPH) + 1))
    a, b, y = (GRAPH.index(name) for name in ("a", "b", "Y"))
    values[:, a], values[:, b] = rng.random((2, rounds)) < 0.5
    x = BIAS + TRUE["a"] * values[:, a] + TRUE["b"] * values[:, b]
    values[:, y] = rng.random(rounds) < 1.0 / (1.0 + np.exp(-x))
    return Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(rounds, dtype=np.int64))


def test_weights_of_a_promised_curve_are_the_curves_and_their_intervals_cover_them():
    """Two standard errors cover 95.4% of the time by the normal approximation; with 600 rows that approximation, and a
    prior with a standard deviation of 3, cost far less than 2.4%. So the number of intervals that cover is at least
    that of a coin of 93%, but with a chance of 1e-6."""
    runs, covered = 300, dict.fromkeys(["a", "b", "bias"], 0)
    for seed in range(runs):
        learner = dob.CausalUCB().start(GRAPH, budget=1, links="logistic", effects="any")
        learner.engine.update(curved_rows(np.random.default_rng(seed), 600))
        found = learner.estimate("Y")
        for name, weight in {**found.parents, "bias": found.bias}.items():
            covered[name] += weight.low <= {**TRUE, "bias": BIAS}[name] <= weight.high
            assert weight.high - weight.low < 1.5
    assert min(covered.values()) >= binom.ppf(1e-6, runs, 0.93), covered


def test_many_rows_bring_the_weights_of_a_promised_curve_to_the_true_ones():
    learner = dob.CausalUCB().start(GRAPH, budget=1, links="logistic", effects="any")
    learner.engine.update(curved_rows(np.random.default_rng(1), 50_000))
    found = learner.estimate("Y")
    assert {name: weight.value for name, weight in found.parents.items()} == pytest.approx(TRUE, abs=0.1)
    assert found.bias.value == pytest.approx(BIAS, abs=0.1)


@pytest.mark.parametrize(
    "policy",
    [dob.CausalUCB(), dob.CausalUCB(guarantee=True), dob.CausalUCB(guarantee=True, leeway=0), dob.BestSet(0.1)],
    ids=lambda policy: repr(policy),
)
def test_weights_have_intervals_of_two_standard_errors_whatever_chooses(policy):
    learner = policy.start(GRAPH, budget=1, effects="any")
    learner.engine.update(curved_rows(np.random.default_rng(2), 200))
    assert learner.estimate("Y").radius == 2.0


@pytest.mark.parametrize("policy", [dob.CausalUCB(), dob.BestSet(0.1, delta=0.3)], ids=["CausalUCB", "BestSet"])
def test_predictions_of_many_actions_are_those_of_each(policy):
    learner = policy.start(GRAPH, budget=2, effects="any")
    learner.engine.update(curved_rows(np.random.default_rng(3), 200))
    rows = [learner.action(do) for do in ({}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1})]
    context = no_context(len(GRAPH))
    many = np.array(learner.engine.predict_many(rows, context))
    for i, action in enumerate(rows):
        assert many[:, i] == pytest.approx(learner.engine.predict(action, context), abs=1e-12)


@pytest.mark.parametrize(("links", "causes"), [("auto", 12), ("auto", 13), ("logistic", 8), ("logistic", 9)])
def test_with_many_causes_nothing_is_guaranteed(links, causes):
    """Y is an exclusive or, which no line or curve can tell."""
    graph = dob.CausalGraph([(f"X{i}", "Y") for i in range(causes)], target="Y")
    learner, rng = dob.CausalUCB().start(graph, budget=1, links=links), np.random.default_rng(4)
    values = np.ones((300, len(graph) + 1))
    values[:, 1:] = rng.random((300, len(graph))) < 0.5
    values[:, graph.index("Y")] = values[:, graph.index("X0")] != values[:, graph.index("X1")]
    learner.engine.update(Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(300, dtype=np.int64)))
    told = learner.assess({"X0": 1})
    assert (told.guaranteed is None) == (causes > (12 if links == "auto" else 8))
    assert told.interval_words == "95%, at every look (asymptotic)"
    assert told.interval.low <= told.value <= told.interval.high


def test_whether_a_learner_keeps_a_model_is_worked_out_once():
    learner = dob.CausalUCB().start(GRAPH, budget=1)
    asked = []
    learner.engine.beliefs = lambda: asked.append(1)
    learner.propose()
    learner.predict({"a": 1})
    learner.assess()
    assert learner.keeps_model
    assert not asked
    assert not dob.UCB().start(GRAPH, budget=1).keeps_model


@pytest.mark.parametrize("policy", [dob.CausalUCB(), dob.BLMLR(radius_scale=0.1)], ids=["CausalUCB", "BLMLR"])
def test_evidence_against_the_graph_counts_a_round_once(policy, monkeypatch):
    counted, update = [], GraphEvidence.update
    monkeypatch.setattr(
        GraphEvidence, "update", lambda self, rounds: (counted.append(rounds.counts.sum()), update(self, rounds))
    )
    experiment = dob.create_experiment("once", GRAPH, budget=1, policy=policy, storage="memory")
    for number in range(20):
        trial = experiment.ask()
        experiment.tell(trial, {"a": 0, "b": number % 2, "Y": 1, **trial.do})
    experiment.ask()
    assert sum(counted) == 20
