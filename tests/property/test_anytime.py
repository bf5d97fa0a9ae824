"""Likelihood-ratio sets against brute force: their code lengths, the ends over a set, and the passes over a graph."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from scipy.special import xlog1py, xlogy

from dobandit import CausalGraph
from dobandit.estimation.anytime import find_centre
from dobandit.estimation.log_likelihood import scratch
from dobandit.model.links import exponential, identity, logistic, probit
from dobandit.oracle.actions import Action
from dobandit.policy.engine import Rounds, no_context
from helpers.likely_sets import (
    NATS,
    anytime_interval,
    ends_of,
    engine_of,
    length_of,
    promised_ends,
    promised_length_of,
    told,
)
from helpers.worlds import relaxed

LINKS = {"identity": identity, "logistic": logistic(0.3), "probit": probit(-0.2), "exponential": exponential}
WEIGHTS = {  # the bias first
    "identity": [0.3, -0.2, 0.4, 0.1],
    "logistic": [-1.0, 2.0, -0.7, 0.5],
    "probit": [0.2, -0.8, 0.6, 0.3],
    "exponential": [0.1, 0.7, 0.2, 1.2],
}


def fan(parents):
    return CausalGraph([(f"P{i}", "Y") for i in range(parents)], target="Y")


def fan_rows(graph, link, theta, rounds, rng):
    """Rows of a fan whose parents are fair coins."""
    values = np.ones((rounds, len(graph) + 1))
    parents = [graph.index(name) for name in graph.parents("Y")]
    values[:, parents] = rng.random((rounds, len(parents))) < 0.5
    p = link.probability(theta[0] + values[:, parents] @ np.array(theta[1 : len(parents) + 1]))
    values[:, graph.index("Y")] = rng.random(rounds) < p
    return values


def plain_loss(link, rows, x, theta):
    """-log P of Y's values, row by row; infinite where a probability is not one."""
    sums = rows @ theta
    if (sums < link.domain[0]).any() or (sums > link.domain[1]).any():
        return math.inf
    p = np.asarray(link.value(sums), dtype=float)
    with np.errstate(divide="ignore"):
        return -np.log(np.where(x > 0.5, p, 1.0 - p)).sum()


# -- the predictions are a probability ------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINKS)
def test_code_lengths_of_all_outcomes_add_up_to_at_most_one(name):
    graph, fresh = fan(2), engine_of(fan(2), LINKS[name])
    parents = np.array([[i & 1, i >> 1] for i in (0, 1, 2, 3, 3, 1, 0)], dtype=float)
    y, total = graph.index("Y"), 0.0
    for outcomes in itertools.product([0.0, 1.0], repeat=len(parents)):
        values = np.ones((len(parents), 4))
        values[:, [graph.index("P0"), graph.index("P1")]], values[:, y] = parents, outcomes
        total += math.exp(-length_of(told(fresh.copy(), values), y))
    assert 0.51 < total <= 1.0 + 1e-9  # half of it are the tables, which add up to 1


@pytest.mark.parametrize("rounds", [1, 5, 40, 400])
@pytest.mark.parametrize("name", LINKS)
def test_the_probability_of_a_promised_link_is_a_bound_of_the_integral_over_weights(name, rounds):
    graph, link, rng = fan(1), LINKS[name], np.random.default_rng(rounds)
    values = fan_rows(graph, link, WEIGHTS[name], rounds, rng)
    engine, y = told(engine_of(graph, link), values), graph.index("Y")
    length = promised_length_of(engine, y)
    sd = 0.5 if name == "identity" else 2.0
    bias, step = np.linspace(-6 * sd, 6 * sd, 3001, retstep=True)
    bias, weight = bias[:, None], bias[None, :]
    log_density = -(bias**2 + weight**2) / (2 * sd**2) - math.log(2 * math.pi * sd**2)
    cells = counts(values[:, [0, graph.index("P0")]], values[:, y])
    for (seen, ones), sums in zip(cells, (bias, bias + weight), strict=True):
        inside = (sums > link.domain[0]) & (sums < link.domain[1])
        p = np.asarray(link.value(np.where(inside, sums, 0.5)), dtype=float)
        fits = xlogy(ones, p) + xlog1py(seen - ones, -p)
        log_density = log_density + np.where(inside | (seen == 0), fits, -np.inf)
    truth = -math.log(np.exp(log_density).sum() * step**2)
    assert truth - 0.01 <= length <= truth + 2.5


def test_the_order_of_rows_changes_no_code_length():
    graph, rng = fan(3), np.random.default_rng(5)
    values = fan_rows(graph, LINKS["logistic"], WEIGHTS["logistic"], 300, rng)
    kept, often = np.unique(values, axis=0, return_counts=True)
    grouped, y = engine_of(graph, LINKS["logistic"]), graph.index("Y")
    grouped.update(Rounds(kept, np.zeros(kept.shape, dtype=bool), often))
    in_order = told(engine_of(graph, LINKS["logistic"]), values)
    assert length_of(grouped, y) == pytest.approx(length_of(in_order, y), abs=1e-6)
    np.testing.assert_allclose(ends_of(grouped, y, 8), ends_of(in_order, y, 8), atol=1e-6)


# -- a promise and the table ----------------------------------------------------------------------------------


@pytest.mark.parametrize("parents", [1, 2, 3])
@pytest.mark.parametrize("name", LINKS)
@relaxed(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_a_promise_never_widens(name, parents, seed):
    """Right or wrong, with rows in plenty or none."""
    graph, rng = fan(parents), np.random.default_rng(seed)
    rounds, y = int(rng.choice([0, 1, 7, 60, 2000])), graph.index("Y")
    values = fan_rows(graph, LINKS[name], WEIGHTS[name], rounds, rng)
    if rng.random() < 0.3:  # some patterns do not come up
        values[:, graph.index("P0")] = 0.0
    if rng.random() < 0.3:  # another link, or certainty
        values[:, y] = rng.random(rounds) < rng.choice([0.0, 0.01, 0.5, 1.0])
    low, high = ends_of(told(engine_of(graph, LINKS[name]), values), y, 1 << parents)
    table_low, table_high = ends_of(told(engine_of(graph, members="sct"), values), y, 1 << parents)
    assert (low >= table_low).all()
    assert (high <= table_high).all()
    assert (low <= high).all()


@pytest.mark.parametrize(("name", "least"), [("identity", 0.1), ("logistic", 0.05)])
def test_a_right_promise_narrows(name, least):
    graph, rng = fan(4), np.random.default_rng(1)
    values = fan_rows(graph, LINKS[name], [*WEIGHTS[name], 0.1], 3000, rng)
    y = graph.index("Y")
    low, high = ends_of(told(engine_of(graph, LINKS[name]), values), y, 16)
    table_low, table_high = ends_of(told(engine_of(graph, members="sct"), values), y, 16)
    assert (high - low).mean() < (1.0 - least) * (table_high - table_low).mean()


# -- the ends over a set --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 4, 25, 400])
@pytest.mark.parametrize("name", LINKS)
def test_ends_against_a_grid_over_weights(name, rounds):
    graph, link, rng = fan(1), LINKS[name], np.random.default_rng(rounds)
    values = fan_rows(graph, link, WEIGHTS[name], rounds, rng)
    engine, y = told(engine_of(graph, link), values), graph.index("Y")
    low, high = promised_ends(engine, y, 2)
    budget = length_of(engine, y) + NATS
    rows, x = values[:, [0, graph.index("P0")]], values[:, y]
    reach = {"identity": (0.0, 1.0)}.get(name, (link.domain[0] if name == "exponential" else -12.0, 12.0))
    sums = np.linspace(*reach, 400)  # of either pattern: the weights follow from them
    p = np.asarray(link.value(sums), dtype=float)
    loss = [-xlogy(s, p) - xlog1py(c - s, -p) for c, s in counts(rows, x)]
    inside = loss[0][:, None] + loss[1][None, :] <= budget
    assert inside.any()
    for pattern, axis in ((0, 1), (1, 0)):
        found = p[inside.any(axis=axis)]
        step = np.diff(p).max()
        assert low[pattern] <= found.min() + 1e-9
        assert high[pattern] >= found.max() - 1e-9
        assert found.min() - low[pattern] <= 0.02 + step
        assert high[pattern] - found.max() <= 0.02 + step


def counts(rows, x):
    for bit in (0.0, 1.0):
        mine = rows[:, 1] == bit
        yield mine.sum(), x[mine].sum()


@pytest.mark.parametrize("rounds", [12, 60, 1000])
@pytest.mark.parametrize("name", LINKS)
def test_ends_against_supporting_hyperplanes(name, rounds):
    graph, link, rng = fan(3), LINKS[name], np.random.default_rng(rounds)
    values = fan_rows(graph, link, WEIGHTS[name], rounds, rng)
    engine, y = told(engine_of(graph, link), values), graph.index("Y")
    low, high = promised_ends(engine, y, 8)
    budget = length_of(engine, y) + NATS
    rows, x = values[:, [0, *(graph.index(p) for p in graph.parents("Y"))]], values[:, y]
    start = np.full(4, 0.2) if name in ("identity", "exponential") else np.zeros(4)
    start = minimize(lambda theta: min(plain_loss(link, rows, x, theta), 1e6), start, method="Nelder-Mead").x
    for pattern in (0, 3, 5):
        row = np.array([1.0, *((pattern >> j) & 1 for j in range(3))])
        for end, sign in ((low, -1.0), (high, 1.0)):
            p = farthest(link, rows, x, start, sign * row, budget, sign)
            assert -1e-6 <= sign * (end[pattern] - p) <= 0.005


def farthest(link, rows, x, start, along, budget, sign):
    """f(sign * z), z the largest along . theta over the convex set of weights with a loss within the budget.

    A linear program over half-spaces that hold the set gives a point outside. Where the way there from `start`, a point
    inside, leaves the set, its tangent is one more half-space (Veinott 1967): so both ends of z come together.
    """
    patterns, inverse = np.unique(rows, axis=0, return_inverse=True)
    seen, ones = np.bincount(inverse), np.bincount(inverse, weights=x)

    def loss(theta):
        p = np.asarray(link.value(np.clip(patterns @ theta, *link.domain)), dtype=float)
        return -(xlogy(ones, p) + xlog1py(seen - ones, -p)).sum()

    def slopes(theta):
        sums = np.clip(patterns @ theta, *link.domain)
        p = np.asarray(link.value(sums), dtype=float)
        up = np.divide(ones, p, out=np.zeros(len(p)), where=ones > 0)
        down = np.divide(seen - ones, 1.0 - p, out=np.zeros(len(p)), where=seen > ones)
        return ((down - up) * link.slope(sums)) @ patterns

    most, best = 1.0 if link.domain[1] == 1.0 else 30.0, along @ start
    normals, limits = np.vstack([-patterns, patterns]), np.repeat([-link.domain[0], link.domain[1]], len(patterns))
    normals, limits = normals[np.isfinite(limits)], limits[np.isfinite(limits)]
    for _ in range(400):
        way = linprog(-along, normals, limits, bounds=(-most, most)).x - start
        inside, outside = 0.0, 1.0
        for _ in range(50):
            share = 0.5 * (inside + outside)
            inside, outside = (share, outside) if loss(start + share * way) <= budget else (inside, share)
        point = start + inside * way
        best = max(best, along @ point)
        p, beyond = link.probability(sign * np.array([best, along @ (start + way)]))
        if abs(beyond - p) < 1e-4:
            return p
        normals = np.vstack([normals, slopes(point)])
        limits = np.append(limits, normals[-1] @ point + budget - loss(point))
    raise AssertionError("the two ends did not come together")


@pytest.mark.parametrize(("seen", "ones"), [(1, 0), (7, 7), (50, 13), (3000, 2)])
def test_a_table_s_cell_against_its_definition(seen, ones):
    graph = fan(1)
    values = np.ones((seen, 3))
    values[ones:, graph.index("P0")] = 0.0
    low, high = ends_of(told(engine_of(graph, members="t"), values), graph.index("P0"), 1)
    p = np.linspace(0.0, 1.0, 100_001)
    trofimov = math.fsum(
        -math.log((i + 0.5) / (i + 1)) if i < ones else -math.log((i - ones + 0.5) / (i + 1)) for i in range(seen)
    )
    loss = -xlogy(ones, p) - xlog1py(seen - ones, -p)
    inside = p[loss <= trofimov + NATS]
    assert low[0] == pytest.approx(inside.min(), abs=1.1e-5)
    assert high[0] == pytest.approx(inside.max(), abs=1.1e-5)
    assert low[0] <= inside.min()
    assert high[0] >= inside.max()


@pytest.mark.parametrize("members", ["", "t", "sct"])
@pytest.mark.parametrize("name", LINKS)
def test_nothing_seen_says_nothing(name, members):
    graph = CausalGraph([("A", "M"), ("B", "M"), ("M", "Y"), ("A", "Y")], target="Y")
    engine = engine_of(graph, LINKS[name], members)
    assert anytime_interval(engine, Action((1,), (1.0,)), no_context(4), 0.05) == (0.0, 1.0)


def test_a_refuted_promise_is_said_and_tables_stand_in():
    graph, rng = fan(2), np.random.default_rng(0)
    values = fan_rows(graph, identity, [0.0, 0.0, 0.0], 3000, rng)
    first, second, y = (graph.index(name) for name in ("P0", "P1", "Y"))
    values[:, y] = values[:, first] != values[:, second]  # no line does this
    engine = told(engine_of(graph), values)
    nodes, cells, bits = engine.state.nodes, engine.state.cells, engine.state.bits
    for v in engine.problem.order:
        holds, _ = find_centre(nodes[v], cells, bits, scratch(nodes[v]), length_of(engine, v) + NATS)
        assert holds == (v != y)
    low, high = ends_of(engine, y, 4)
    assert (low <= [0, 1, 1, 0]).all()
    assert (high >= [0, 1, 1, 0]).all()
    assert (high - low).max() < 0.05
