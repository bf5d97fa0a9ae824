"""Rounds in batches, and intervals of what they teach."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transcription as tr
from dobandit import BGLMOFU, BLMLR, BinaryGLM, CausalGraph, Fixed, Oracle, paper
from dobandit.estimation.belief import cells_of
from dobandit.policy.beliefs import target_interval
from dobandit.policy.engine import Rounds, one_round
from helpers.under_way import LINEAR, NAN, arrays_of, assert_same_bits, every_policy, rounds_of, seeds, started
from helpers.worlds import graphs, relaxed


def some_rounds(rounds, start=None, end=None):
    """A part of a batch."""
    return Rounds(*(part[start:end] for part in rounds))


# -- rounds in batches ----------------------------------------------------------------------------------------


def both_ways(name, graph, rounds, cuts, **options):
    """The same rounds one by one and in batches; returns the two engines."""
    one, many = (started(name, graph, 1, **options).engine for _ in range(2))
    for row, mask in zip(rounds.values, rounds.was_set, strict=True):
        one.update(one_round(row, mask))
    for start, end in itertools.pairwise([0, *sorted(cuts), len(rounds.values)]):
        many.update(some_rounds(rounds, start, end))
    assert one.rounds == many.rounds == len(rounds.values)
    assert_same_bits(arrays_of(one.state), arrays_of(many.state))
    return one, many


@every_policy
@relaxed(max_examples=15)
@given(graphs(most=6), seeds, st.sampled_from([200, None]))
def test_batches_are_rounds_one_by_one_to_the_bit(name, graph, seed, horizon):
    rng = np.random.default_rng(seed)
    count = int(rng.choice([1, 7, 60]))
    rounds = rounds_of(rng, graph, count, missing=float(rng.choice([0.0, 0.2, 0.9])))
    both_ways(name, graph, rounds, rng.integers(0, count + 1, 2).tolist(), horizon=horizon)


@pytest.mark.parametrize("policy", [Fixed(["X2", "X3"]), Oracle(paper.G5)], ids=["Fixed", "Oracle"])
def test_policies_that_do_not_learn_take_batches_too(policy):
    rounds = rounds_of(np.random.default_rng(0), paper.G5.graph, 30, missing=0.2)
    one, many = (policy.start(paper.G5.graph, 2).engine for _ in range(2))
    for row, mask in zip(rounds.values, rounds.was_set, strict=True):
        one.update(one_round(row, mask))
    many.update(rounds)
    assert_same_bits(arrays_of(one.state), arrays_of(many.state))


def test_cells_are_counted_alike_in_batches():
    graph = CausalGraph([(f"X{i}", "Y") for i in range(10)] + [("X0", "X1"), ("X2", "X1")], target="Y")
    rounds = rounds_of(np.random.default_rng(3), graph, 420, missing=0.01)
    one, many = both_ways("BGLMOFU logistic", graph, rounds, [1, 90, 90, 300], horizon=None)
    values, was_set, _ = rounds
    target = graph.index("Y")
    rows = {tuple(v) for v, mask in zip(values, was_set, strict=True) if not np.isnan(v).any() and not mask[target]}
    seen = {row[1:target] for row in rows}
    for engine in (one, many):
        state = engine.state
        assert np.count_nonzero(state.cells["seen"][cells_of(state, target)]) == len(seen) > 256


def test_batches_cross_a_refresh_of_the_inverse():
    graph = CausalGraph([("A", "Y"), ("B", "Y")], target="Y")
    rounds = rounds_of(np.random.default_rng(4), graph, 2300, missing=0.02)
    for name in ("BLMLR", "BLMOFU", "BGLMOFU logistic"):
        both_ways(name, graph, rounds, [900, 1400])


@every_policy
def test_an_empty_batch_is_no_round(name):
    engine = started(name, paper.G4.graph, 1).engine
    before = [array.copy() for array in arrays_of(engine.state)]
    engine.update(Rounds(np.zeros((0, 6)), np.zeros((0, 6), dtype=bool), np.zeros(0, dtype=np.int64)))
    assert_same_bits(before, arrays_of(engine.state))


# -- intervals ------------------------------------------------------------------------------------------------


def plain_interval(engine, graph, fixed, rho):
    """(low, estimate, high) by the recursion over all nodes; a node with a part never seen runs from 0 to 1."""
    beliefs = engine.beliefs()
    ends = []
    for sign in (-1.0, 0.0, 1.0):
        means = np.ones(len(graph) + 1)
        for v in range(1, len(graph) + 1):
            node = beliefs.node(v)
            d, e, M = len(node.parents), means[node.parents], node.gram
            mean = float(e @ node.theta)
            if d and sign:
                rows = M - engine.estimator.ridge * np.eye(d)  # a prior has shown nothing
                values, vectors = np.linalg.eigh(rows)
                lost = vectors[:, values <= 1e-10 * max(values[-1], 1.0)]
                unseen = float(np.sum((lost.T @ e) ** 2))
                if unseen > 1e-9:
                    mean = 0.0 if sign < 0 else 1.0
                else:
                    mean += sign * rho[v] * tr.width(e, tr.pseudo_inverse(M))
            means[v] = np.clip(mean, 0.0, 1.0) if np.isnan(fixed[v]) else fixed[v]
        ends.append(float(means[graph.index(graph.target)]))
    return min(ends), ends[1], max(ends)


@pytest.mark.parametrize("name", LINEAR)
@relaxed(max_examples=15)
@given(graphs(most=7), seeds)
def test_intervals_are_the_plain_recursion(name, graph, seed):
    rng = np.random.default_rng(seed)
    learner = started(name, graph, 1)
    engine, problem = learner.engine, learner.problem
    engine.update(rounds_of(rng, graph, int(rng.choice([0, 1, 3, 50])), missing=0.1, likely=rng.random()))
    for _ in range(4):
        fixed = np.where(rng.random(len(graph) + 1) < 0.3, rng.integers(0, 2, len(graph) + 1), NAN)
        fixed[0] = NAN
        radii = rng.random(len(graph) + 1) * rng.choice([0.0, 0.05, 1.0]) * (rng.random(len(graph) + 1) < 0.8)
        for rho in (None, np.zeros(len(fixed)), radii):
            beliefs = engine.beliefs()
            beliefs.radii[:] = beliefs.radii if rho is None else rho
            low, estimate, high = target_interval(beliefs, problem, fixed)
            truth = plain_interval(engine, graph, fixed, beliefs.radii)
            np.testing.assert_allclose((low, estimate, high), truth, rtol=1e-8, atol=1e-8)
            assert 0.0 <= low <= estimate <= high <= 1.0
        do = {graph.nodes[v - 1]: int(fixed[v]) for v in range(1, len(fixed)) if not np.isnan(fixed[v])}
        assert learner.interval(do) == target_interval(engine.beliefs(), problem, fixed)[::2]
        assert learner.expected(do) == target_interval(engine.beliefs(), problem, fixed)[1]


def test_an_interval_without_data_is_everything_and_with_much_data_holds_the_truth():
    model = paper.G5
    learner = BLMLR().start(model.graph, 2, horizon=5000)
    assert learner.interval() == (0.0, 1.0)
    drawn = model.sample(size=5000, rng=1)
    values = np.stack([np.ones(5000), *(drawn[name] for name in model.graph.nodes)], axis=1).astype(float)
    learner.engine.update(Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(5000, dtype=np.int64)))
    for do in ({}, {"X2": 1}, {"X3": 1, "X4": 1}):
        low, high = learner.interval(do)
        truth = tr.expected_reward(model, tuple(do))
        assert low <= truth <= high
        assert learner.expected(do) == pytest.approx(truth, abs=0.1)
    assert isinstance(model, BinaryGLM)


@pytest.mark.parametrize("policy", [BLMLR(), BLMLR(radius_scale=0.1), BLMLR(radius_scale=0), BGLMOFU(radius_scale=0)])
def test_what_nobody_has_seen_is_not_bounded_by_a_prior_or_a_small_radius(policy):
    learner = policy.start(CausalGraph([("a", "Y"), ("b", "Y")], target="Y"), 1)
    whole, edge = (0.0, 1.0), lambda name: learner.estimate("Y").parents[name][1:3]
    for do in ({}, {"a": 1}, {"a": 1, "b": 0}):
        assert learner.interval(do) == whole
    assert edge("a") == edge("b") == learner.estimate("Y").bias[1:3] == whole
    for _ in range(50):  # b is always 0: of its effect nothing is known; of a alone only together with the bias
        learner.update({"a": 1}, {"b": 0, "Y": 1})
    assert edge("a") == edge("b") == learner.estimate("Y").bias[1:3] == whole
    assert learner.interval({"b": 1}) == learner.interval({"a": 0}) == whole
    assert learner.interval({"a": 1, "b": 0}).low > 0.25 or policy.radius_scale == 1.0
    for _ in range(50):
        learner.update({}, {"a": 0, "b": 0, "Y": 0})
    assert edge("b") == whole
    assert edge("a") != whole or policy.radius_scale == 1.0
    assert learner.estimate("Y").status == "singular"
