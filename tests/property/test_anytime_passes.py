"""Passes over a graph whose nodes are in likelihood-ratio sets: every model of the sets is within their ends."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import xlog1py, xlogy

from dobandit import CausalGraph
from dobandit.estimation.anytime import spare_nats
from dobandit.estimation.belief import cells_of
from dobandit.estimation.kl import code_length
from dobandit.model.links import logistic
from dobandit.oracle.actions import Action, Actions
from dobandit.policy.engine import Situation, no_context
from helpers.likely_sets import NATS, anytime_interval, ends_of, engine_of, length_of, told

GRAPH = CausalGraph([("A", "B"), ("A", "M"), ("B", "M"), ("M", "Y"), ("A", "Y")], target="Y")


def anytime_bounds(engine, context, delta):
    """Those of every action that an engine may choose."""
    return engine.anytime.bounds(engine.state, engine.actions(), context, delta)


def lived(members, seed=0, rounds=60):
    """An engine on GRAPH that has seen some rows, and each node's intervals by parents' pattern."""
    rng = np.random.default_rng(seed)
    engine = told(engine_of(GRAPH, members=members), np.hstack([np.ones((rounds, 1)), rng.random((rounds, 4)) < 0.6]))
    nats = math.log(4 / 0.05)
    found = {}
    for name in GRAPH.nodes:
        found[name] = ends_of(engine, GRAPH.index(name), 2 ** len(GRAPH.parents(name)), nats)
    return engine, found


def mean_of(tables, fixed):
    """E[Y] by summing over every world; tables by name and pattern."""
    total = 0.0
    for world in itertools.product([0, 1], repeat=4):
        at, weight = dict(zip(GRAPH.nodes, world, strict=True)), 1.0
        for name in GRAPH.nodes:
            if name in fixed:
                weight *= at[name] == fixed[name]
                continue
            parents = sorted(GRAPH.parents(name), key=GRAPH.index)
            p = tables[name][sum(at[q] << j for j, q in enumerate(parents))]
            weight *= p if at[name] else 1.0 - p
        total += weight * at["Y"]
    return total


@pytest.mark.parametrize("fixed", [{}, {"A": 1}, {"B": 0}, {"B": 1, "M": 0}])
def test_the_pass_holds_every_corner_and_is_one_where_states_are_patterns(fixed):
    engine, found = lived("t")
    ids = sorted((GRAPH.index(name), float(to)) for name, to in fixed.items())
    action = Action(tuple(v for v, _ in ids), tuple(to for _, to in ids))
    low, high = anytime_interval(engine, action, no_context(4), 0.05)
    cells = [(name, i) for name in GRAPH.nodes if name not in fixed for i in range(len(found[name][0]))]
    values = []
    for corner in itertools.product([0, 1], repeat=len(cells)):
        tables = {name: np.zeros(len(found[name][0])) for name in GRAPH.nodes}
        for (name, i), end in zip(cells, corner, strict=True):
            tables[name][i] = found[name][end][i]
        values.append(mean_of(tables, fixed))
    # Here the states in which a node is decided are its parents' patterns, so that nothing is lost.
    assert low == pytest.approx(min(values), abs=1e-9)
    assert high == pytest.approx(max(values), abs=1e-9)


@pytest.mark.parametrize("members", ["", "t"])
def test_many_actions_at_once_are_each_by_itself(members):
    engine, _ = lived(members)
    context = no_context(4)
    bounds = anytime_bounds(engine, context, 0.05)
    for i in range(len(bounds.low)):
        one = anytime_interval(engine, bounds.actions.row(i), context, 0.05)
        assert one == pytest.approx((bounds.low[i], bounds.high[i]))


def test_intervals_hold_all_curves_of_the_sets():
    engine, _ = lived("c", rounds=3000)
    rng, curve = np.random.default_rng(3), logistic()
    patterns = {name: pattern_rows(len(GRAPH.parents(name))) for name in GRAPH.nodes}
    seen = {name: seen_by_pattern(engine.state, name, rows) for name, rows in patterns.items()}
    for fixed in ({}, {"A": 1}, {"B": 0, "M": 1}):
        ids = sorted((GRAPH.index(name), float(to)) for name, to in fixed.items())
        action = Action(tuple(v for v, _ in ids), tuple(to for _, to in ids))
        low, high = anytime_interval(engine, action, no_context(4), 0.05)
        for _ in range(40):  # every node's weights at the border of its set
            tables = {}
            for name, rows in patterns.items():
                count, ones = seen[name]
                budget = length_of(engine, GRAPH.index(name)) + spare_nats(NATS, max(len(rows), 2))
                cell = np.vectorize(code_length)(count, ones) + NATS + math.log(len(rows))
                ray, inside, outside = rng.normal(size=rows.shape[1]), 0.0, 20.0
                start = np.linalg.lstsq(rows, np.log((ones + 0.5) / (count - ones + 0.5)), rcond=None)[0]
                for _ in range(40):
                    p = curve.value(rows @ (start + 0.5 * (inside + outside) * ray))
                    loss = -(xlogy(ones, p) + xlog1py(count - ones, -p))
                    likely = loss.sum() <= budget and (loss <= cell).all()
                    inside, outside = (
                        (0.5 * (inside + outside), outside) if likely else (inside, 0.5 * (inside + outside))
                    )
                assert inside > 0.0
                tables[name] = np.asarray(curve.value(rows @ (start + inside * ray)), dtype=float)
            assert low <= mean_of(tables, fixed) <= high


def pattern_rows(parents):
    """A row for each pattern of the parents, the constant first."""
    return np.array([[1.0, *((i >> j) & 1 for j in range(parents))] for i in range(2**parents)])


def seen_by_pattern(state, name, rows):
    """How often each pattern was seen, and how often the node was 1 then."""
    cells = state.cells[cells_of(state, GRAPH.index(name))]
    assert len(cells) == len(rows)
    return cells["seen"], cells["total"]


@pytest.mark.parametrize("seed", range(3))
def test_no_model_within_the_intervals_is_beyond_the_gap(seed):
    engine, found = lived("t", seed, rounds=400)
    context, rng = no_context(4), np.random.default_rng(seed)
    actions = [engine.actions().row(i) for i in range(len(engine.actions().ids))]
    intervals = [anytime_interval(engine, action, context, 0.05) for action in actions]
    for i, action in enumerate(actions):
        gap = engine.guaranteed(action, Situation(np.zeros(3), context)).gap
        assert gap <= max(other.high for j, other in enumerate(intervals) if j != i) - intervals[i].low + 1e-12
        for _ in range(60):  # corners, at which differences are largest
            tables = {name: np.where(rng.random(len(low)) < 0.5, low, high) for name, (low, high) in found.items()}
            means = [
                mean_of(tables, {GRAPH.nodes[v - 1]: int(to) for v, to in zip(*one, strict=True)}) for one in actions
            ]
            assert max(means) - means[i] <= gap + 1e-9


def test_setting_the_target_leaves_no_doubt():
    engine, _ = lived("t")
    actions = Actions(np.array([[1]], dtype=np.int32), np.array([[1.0]]))
    bounds = engine.anytime.bounds(engine.state, actions, no_context(4), 0.05)
    assert bounds.low[0] <= bounds.high[0]
    y = GRAPH.index("Y")
    assert anytime_interval(engine, Action((y,), (1.0,)), no_context(4), 0.05) == (1.0, 1.0)
