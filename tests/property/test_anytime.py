"""Likelihood-ratio sets against brute force: their code lengths, the ends over a set, and the passes over a graph."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import xlog1py, xlogy

from dobandit import CausalGraph, CausalUCB
from dobandit.estimation.anytime import find_centre, likelihood_sets, predicted_length
from dobandit.model.links import exponential, identity, logistic, probit
from dobandit.oracle.actions import Action, Actions, actions_of
from dobandit.oracle.anytime_values import anytime_values, fill_intervals
from dobandit.oracle.listing import listing_of
from dobandit.policy.anytime_intervals import AnytimeIntervals
from dobandit.policy.causal_engine import causal_engine
from dobandit.policy.engine import Rounds, Situation, no_context
from dobandit.policy.problem import problem_of

LINKS = {"identity": identity, "logistic": logistic(0.3), "probit": probit(-0.2), "exponential": exponential}
WEIGHTS = {  # the bias first
    "identity": [0.3, -0.2, 0.4, 0.1],
    "logistic": [-1.0, 2.0, -0.7, 0.5],
    "probit": [0.2, -0.8, 0.6, 0.3],
    "exponential": [0.1, 0.7, 0.2, 1.2],
}
NATS = math.log(4 / 0.05)


def fan(parents):
    return CausalGraph([(f"P{i}", "Y") for i in range(parents)], target="Y")


def engine_of(graph, link=identity, members=""):
    """CausalUCB's engine, or one whose beliefs have only the members named by their first letters."""
    problem = problem_of(graph, 1, links="auto" if members and link == identity else link, effects="any")
    if not members:
        return CausalUCB().engine(problem)
    has = np.tile([letter in members for letter in "scto"], (len(graph) + 1, 1))
    has[0] = False
    return causal_engine(problem, has, 2.0)


def told(engine, values):
    """Learn rows of values by id, in their order; nothing was set."""
    values = np.asarray(values, dtype=float)
    engine.update(Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(len(values), dtype=np.int64)))
    return engine


def fan_rows(graph, link, theta, rounds, rng):
    """Rows of a fan whose parents are fair coins."""
    values = np.ones((rounds, len(graph) + 1))
    parents = [graph.index(name) for name in graph.parents("Y")]
    values[:, parents] = rng.random((rounds, len(parents))) < 0.5
    p = link.probability(theta[0] + values[:, parents] @ np.array(theta[1 : len(parents) + 1]))
    values[:, graph.index("Y")] = rng.random(rounds) < p
    return values


def ends_of(engine, v, count, nats=NATS):
    """The ends of a node's patterns, by the kernel that fills those of all nodes."""
    order, layout = engine.problem.order, engine.plan.layout
    oracle = anytime_values(
        engine.problem.graph, listing_of(order, actions_of([Action()])), layout, engine.plan.estimator
    )
    fill_intervals(layout, oracle, engine.state, nats, no_context(len(engine.problem.graph)))
    start, end = oracle.frontier.table_ptr[order.index(v) :][:2]
    assert end - start == count
    return oracle.low[start:end], oracle.high[start:end]


def anytime_interval(engine, action, context, delta):
    """The interval of one action, from what an engine has learned."""
    return AnytimeIntervals(engine.problem, engine.plan.estimator).interval(engine.state, action, context, delta)


def anytime_bounds(engine, context, delta):
    """Those of every action that an engine may choose."""
    intervals = AnytimeIntervals(engine.problem, engine.plan.estimator)
    return intervals.bounds(engine.state, engine.actions(), context, delta)


def plain_loss(link, rows, x, theta):
    """-log P of Y's values, row by row; infinite where a probability is not one."""
    sums = rows @ theta
    if (sums < link.domain[0]).any() or (sums > link.domain[1]).any():
        return math.inf
    p = np.asarray(link.value(sums), dtype=float)
    with np.errstate(divide="ignore"):
        return -np.log(np.where(x > 0.5, p, 1.0 - p)).sum()


# -- the predictions are a probability ------------------------------------------------------------------------


@pytest.mark.parametrize("members", ["s", "c", "t", "sct"])
@pytest.mark.parametrize("link", ["identity", "exponential"])
def test_code_lengths_of_all_outcomes_add_up_to_one(link, members):
    graph = fan(1)
    parents = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    y, total = graph.index("Y"), 0.0
    for outcomes in itertools.product([0.0, 1.0], repeat=len(parents)):
        values = np.ones((len(parents), 3))
        values[:, graph.index("P0")], values[:, y] = parents, outcomes
        engine = told(engine_of(graph, LINKS[link], members), values)
        total += math.exp(-predicted_length(engine.state, y))
    assert total == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("members", ["s", "c", "t", "sct"])
def test_counts_in_any_order_are_a_probability_too(members):
    graph, rows = fan(1), 60
    v, total = graph.index("P0"), 0.0
    for ones in range(rows + 1):  # told as two counts, the ones first, after two rows that came in their order
        engine = engine_of(graph, members=members)
        told(engine, [[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
        grouped = np.ones((2, 3))
        grouped[1, v] = 0.0
        counts = np.array([ones, rows - ones], dtype=np.int64)
        engine.update(Rounds(grouped, np.zeros((2, 3), dtype=bool), counts))
        total += math.comb(rows, ones) * math.exp(-predicted_length(engine.state, v))
    first = told(engine_of(graph, members=members), [[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    assert total == pytest.approx(math.exp(-predicted_length(first.state, v)), rel=1e-9)


# -- the ends over a set --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 4, 25, 400])
@pytest.mark.parametrize("name", LINKS)
def test_ends_against_a_grid_over_weights(name, rounds):
    graph, link, rng = fan(1), LINKS[name], np.random.default_rng(rounds)
    values = fan_rows(graph, link, WEIGHTS[name], rounds, rng)
    engine, y = told(engine_of(graph, link), values), graph.index("Y")
    low, high = ends_of(engine, y, 2)
    budget = predicted_length(engine.state, y) + NATS
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
def test_ends_against_a_general_optimiser(name, rounds):
    graph, link, rng = fan(3), LINKS[name], np.random.default_rng(rounds)
    values = fan_rows(graph, link, WEIGHTS[name], rounds, rng)
    engine, y = told(engine_of(graph, link), values), graph.index("Y")
    low, high = ends_of(engine, y, 8)
    budget = predicted_length(engine.state, y) + NATS
    rows, x = values[:, [0, *(graph.index(p) for p in graph.parents("Y"))]], values[:, y]
    start = np.full(4, 0.2) if name in ("identity", "exponential") else np.zeros(4)
    start = minimize(lambda theta: min(plain_loss(link, rows, x, theta), 1e6), start, method="Nelder-Mead").x
    for pattern in (0, 3, 5):
        row = np.array([1.0, *((pattern >> j) & 1 for j in range(3))])
        for end, sign in ((low, -1.0), (high, 1.0)):
            found = farthest(link, rows, x, start, sign * row, budget)
            p = float(link.probability(sign * found))
            assert sign * (end[pattern] - p) >= -1e-6
            if rounds == 1000:  # where the optimiser can be trusted to get there
                assert sign * (end[pattern] - p) <= 0.01


def farthest(link, rows, x, start, along, budget):
    """The largest along . theta with a loss within the budget that a general optimiser finds, within 30."""
    patterns, inverse = np.unique(rows, axis=0, return_inverse=True)
    seen, ones = np.bincount(inverse), np.bincount(inverse, weights=x)

    def room(theta):
        p = np.clip(np.asarray(link.value(np.clip(patterns @ theta, *link.domain)), dtype=float), 1e-12, 1 - 1e-12)
        return budget + (ones * np.log(p) + (seen - ones) * np.log(1.0 - p)).sum()

    conditions = [{"type": "ineq", "fun": room}]
    if link.domain[0] == 0.0:
        conditions.append({"type": "ineq", "fun": lambda theta: patterns @ theta})
    if link.domain[1] == 1.0:
        conditions.append({"type": "ineq", "fun": lambda theta: 1.0 - patterns @ theta})
    bound = 1.0 if link.domain[1] == 1.0 else 30.0
    box, shares, best = [(-bound, bound)] * 4, np.linspace(1.0, 0.0, 2001), start
    for _ in range(6):  # it tends to give up early
        ahead = best + 0.01 * (start - best)
        done = minimize(lambda theta: -along @ theta, ahead, method="SLSQP", bounds=box, constraints=conditions)
        points = (start + share * (done.x - start) for share in shares)  # back to where every condition is met for sure
        point = next(point for point in points if all((c["fun"](point) >= 0.0).all() for c in conditions))
        best = max(best, point, key=lambda theta: along @ theta)
    return along @ best


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
    layout = engine.plan.layout
    sets = likelihood_sets(layout, engine.plan.estimator)
    status = {v: find_centre(layout, sets, engine.state, v, NATS).status for v in engine.problem.order}
    assert [v for v, one in status.items() if one == 0] == [y]
    low, high = ends_of(engine, y, 4)
    assert (low <= [0, 1, 1, 0]).all()
    assert (high >= [0, 1, 1, 0]).all()
    assert (high - low).max() < 0.05


# -- the passes over a graph ----------------------------------------------------------------------------------


GRAPH = CausalGraph([("A", "B"), ("A", "M"), ("B", "M"), ("M", "Y"), ("A", "Y")], target="Y")


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


@pytest.mark.parametrize(
    "members", ["", "t", "sct"]
)  # curves keep their weights together, which the exact pass does not
def test_interval_arithmetic_holds_the_exact_pass(members, monkeypatch):
    engine, _ = lived(members, rounds=3000)
    actions = actions_of([Action(), Action((1,), (1.0,)), Action((2, 3), (0.0, 1.0))])
    exact = AnytimeIntervals(engine.problem, engine.plan.estimator)
    monkeypatch.setattr("dobandit.policy.anytime_intervals.anytime_values", lambda *_: None)
    wide = AnytimeIntervals(engine.problem, engine.plan.estimator)
    for i in range(3):
        row = actions.row(i)
        low, high = exact.interval(engine.state, row, no_context(4), 0.05)
        far_low, far_high = wide.interval(engine.state, row, no_context(4), 0.05)
        assert far_high - far_low < 1.0
        assert far_low <= low + 1e-9
        assert far_high >= high - 1e-9


def test_interval_arithmetic_holds_all_curves_of_the_sets(monkeypatch):
    engine, _ = lived("c", rounds=3000)
    monkeypatch.setattr("dobandit.policy.anytime_intervals.anytime_values", lambda *_: None)
    wide, rng, curve = AnytimeIntervals(engine.problem, engine.plan.estimator), np.random.default_rng(3), logistic()
    patterns = {name: pattern_rows(len(GRAPH.parents(name))) for name in GRAPH.nodes}
    seen = {name: seen_by_pattern(engine.state, name, rows) for name, rows in patterns.items()}
    for fixed in ({}, {"A": 1}, {"B": 0, "M": 1}):
        ids = sorted((GRAPH.index(name), float(to)) for name, to in fixed.items())
        action = Action(tuple(v for v, _ in ids), tuple(to for _, to in ids))
        low, high = wide.interval(engine.state, action, no_context(4), 0.05)
        for _ in range(40):  # every node's weights at the border of its set
            tables = {}
            for name, rows in patterns.items():
                count, ones = seen[name]
                budget = predicted_length(engine.state, GRAPH.index(name)) + NATS
                ray, inside, outside = rng.normal(size=rows.shape[1]), 0.0, 20.0
                start = np.linalg.lstsq(rows, np.log((ones + 0.5) / (count - ones + 0.5)), rcond=None)[0]
                for _ in range(40):
                    p = curve.value(rows @ (start + 0.5 * (inside + outside) * ray))
                    likely = -(xlogy(ones, p) + xlog1py(count - ones, -p)).sum() <= budget
                    inside, outside = (
                        (0.5 * (inside + outside), outside) if likely else (inside, 0.5 * (inside + outside))
                    )
                assert inside > 0.0
                tables[name] = np.asarray(curve.value(rows @ (start + inside * ray)), dtype=float)
            assert low <= mean_of(tables, fixed) <= high


@pytest.mark.parametrize("members", ["s", "c"])
def test_interval_arithmetic_takes_nothing_over_from_an_action_that_differs(members, monkeypatch):
    engine, _ = lived(members, rounds=400)
    monkeypatch.setattr("dobandit.policy.anytime_intervals.anytime_values", lambda *_: None)
    wide, context = AnytimeIntervals(engine.problem, engine.plan.estimator), no_context(4)
    values = [(math.nan, 0.0, 1.0)] * 3
    acts = []
    for to in itertools.product(*values):
        held = [(v, x) for v, x in enumerate(to, start=1) if not math.isnan(x)]
        acts.append(Action(tuple(v for v, _ in held), tuple(x for _, x in held)))
    for seed in range(3):  # neighbours hold the same parents of a node, others, the same to something else, or nothing
        mixed = [acts[i] for i in np.random.default_rng(seed).permutation(len(acts))]
        bounds = wide.bounds(engine.state, actions_of([*acts, *mixed]), context, 0.05)
        for i in range(len(bounds.low)):
            alone = wide.interval(engine.state, bounds.actions.row(i), context, 0.05)
            assert (bounds.low[i], bounds.high[i]) == alone


def pattern_rows(parents):
    """A row for each pattern of the parents, the constant first."""
    return np.array([[1.0, *((i >> j) & 1 for j in range(parents))] for i in range(2**parents)])


def seen_by_pattern(state, name, rows):
    """How often each pattern was seen, and how often the node was 1 then."""
    patterns, v, d = state.patterns, GRAPH.index(name), rows.shape[1]
    kept = [tuple(patterns.rows[patterns.row_ptr[v] + k * d :][:d]) for k in range(patterns.used[v])]
    at = [patterns.first[v] + kept.index(tuple(row)) for row in rows]
    return patterns.seen[at], patterns.total[at]


@pytest.mark.parametrize("seed", range(3))
def test_no_model_within_the_intervals_is_beyond_the_gap(seed):
    engine, found = lived("t", seed, rounds=400)
    context, rng = no_context(4), np.random.default_rng(seed)
    actions = [engine.actions().row(i) for i in range(len(engine.actions().ids))]
    intervals = [anytime_interval(engine, action, context, 0.05) for action in actions]
    for i, action in enumerate(actions):
        gap = engine.gap(action, Situation(np.zeros(3), context))
        assert gap <= max(other.high for j, other in enumerate(intervals) if j != i) - intervals[i].low + 1e-12
        for _ in range(60):  # corners, at which differences are largest
            tables = {name: np.where(rng.random(len(low)) < 0.5, low, high) for name, (low, high) in found.items()}
            means = [
                mean_of(tables, {GRAPH.nodes[v - 1]: int(to) for v, to in zip(*one, strict=True)}) for one in actions
            ]
            assert max(means) - means[i] <= gap + 1e-9


def test_setting_the_target_leaves_no_doubt():
    engine, _ = lived("t")
    bounds = AnytimeIntervals(engine.problem, engine.plan.estimator).bounds(
        engine.state, Actions(np.array([[1]], dtype=np.int32), np.array([[1.0]])), no_context(4), 0.05
    )
    assert bounds.low[0] <= bounds.high[0]
    y = GRAPH.index("Y")
    assert anytime_interval(engine, Action((y,), (1.0,)), no_context(4), 0.05) == (1.0, 1.0)
