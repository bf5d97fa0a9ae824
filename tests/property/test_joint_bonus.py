"""The joint bonus against its definition: E[Y] by a visit to every world, its variance by differences; and the search
over it, which may miss the largest index but never misreports one, and breaks no rule."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dobandit import CausalGraph, CausalUCB, limits
from dobandit.estimation.mixture import CURVED, OWN_LINES, STRAIGHT, TABLE
from dobandit.oracle.actions import Action, actions_of
from dobandit.oracle.listing import listing_of
from dobandit.oracle.mean_field import mean_field
from dobandit.oracle.pattern_tables import fill_tables
from dobandit.policy.engine import Rounds, Situation, no_context
from dobandit.policy.model_rounds import score_actions
from reference_oracles.plain_search import plain_search


def random_graph(rng, nodes, tree):
    """Every node has an effect; in a tree exactly one, so that the parents of any node are independent."""
    names = [f"X{i}" for i in range(nodes)] + ["Y"]
    edges = set()
    for i in range(nodes):
        effects = 1 if tree else int(rng.integers(1, 3))
        edges |= {(names[i], names[int(j)]) for j in rng.integers(i + 1, nodes + 1, effects)}
    return CausalGraph(edges=sorted(edges), target="Y")


def told(rng, graph, budget, rows=80, links="auto", **rules):
    """An engine that has seen rows of independent bits, and the situation of a round."""
    engine = CausalUCB().start(graph, budget, links=links, effects="any", **rules).engine
    values = (rng.random((rows, len(graph) + 1)) < rng.uniform(0.2, 0.8, len(graph) + 1)).astype(float)
    values[:, 0] = 1.0
    engine.update(Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(rows, dtype=np.int64)))
    return engine, Situation(np.array([rng.random(), 0.5, 0.5]), no_context(len(graph)))


def parents_of(graph, v):
    ptr, parent = graph.arrays.parent_ptr, graph.arrays.parent
    return [int(p) for p in parent[ptr[v] : ptr[v + 1]] if p]


def enumerated(graph, order, cells, action):
    """E[Y | do(action)] where cells[v][pattern] is the probability of 1, by a visit to every world."""
    held, total = dict(zip(action.ids, action.values, strict=True)), 0.0
    free = [v for v in order if v not in held]
    for bits in product((0, 1), repeat=len(free)):
        world = {**held, **dict(zip(free, bits, strict=True))}
        chance = float(world[graph.arrays.target])
        for v in free:
            p = cells[v][sum(int(world[u]) << j for j, u in enumerate(parents_of(graph, v)))]
            chance *= p if world[v] else 1.0 - p
        total += chance
    return total


def defined_index(engine, action):
    """value + c * root of the sum over nodes and members of weight_k (q_k + b_k^2), D by differences; half of the
    weight is the table's, and c^2 = 4 + log(1 + t / 500)."""
    graph, order = engine.problem.graph, engine.problem.order
    layout, state, tables = engine.plan.layout, engine.state, engine.plan.oracle.tables
    fill_tables(layout, engine.plan.oracle.listing.order, tables, state)
    at = {v: slice(int(tables.table_ptr[i]), int(tables.table_ptr[i + 1])) for i, v in enumerate(order)}
    cells = {v: tables.mean[at[v]].copy() for v in order}
    variance = 0.0
    for v in (v for v in order if v not in action.ids):
        parents, reach = parents_of(graph, v), np.zeros(len(cells[v]))
        for i in range(len(reach)):
            ends = []
            for value in (1.0, 0.0):  # E[Y] is a line in each cell
                changed = {**cells, v: np.where(np.arange(len(reach)) == i, value, cells[v])}
                ends.append(enumerated(graph, order, changed, action))
            reach[i] = ends[0] - ends[1]
        rows = np.array([[1.0, *((i >> j) & 1 for j in range(len(parents)))] for i in range(len(reach))])
        size = slice(layout.square[v], layout.square[v] + rows.shape[1] ** 2)
        shape = (rows.shape[1], rows.shape[1])
        straight, curve = reach @ rows, (reach * tables.slope[at[v]]) @ rows
        q = {
            STRAIGHT: straight @ state.pairs["inverse"][size].reshape(shape) @ straight,
            CURVED: curve @ state.pairs["covariance"][size].reshape(shape) @ curve,
            TABLE: float(np.sum(reach**2 * tables.spread[at[v]])),
            OWN_LINES: own_lines_spread(engine, v, rows, reach),
        }
        for k, spread in q.items():
            apart = float(reach @ (tables.member[at[v], k] - cells[v]))
            weight = 0.5 * state.weight[v, k] + (0.5 if k == TABLE else 0.0)
            variance += weight * (spread + apart**2)
    return enumerated(graph, order, cells, action) + np.sqrt((4.0 + np.log1p(engine.rounds / 500)) * variance)


def own_lines_spread(engine, v, rows, reach):
    """The variance of sum_v D(v) p(v) where every segment has a line of its own, learned from nothing but its rows."""
    layout, segments = engine.plan.layout, engine.plan.estimator.segments
    bit = segments.bit[layout.ptr[v] : layout.ptr[v + 1]]
    of = [sum(1 << int(b) for b, x in zip(bit, row, strict=True) if b >= 0 and x) for row in rows]
    total = 0.0
    for segment in set(of) if (bit >= 0).any() else ():
        line = segments.first[v] + segment
        square = slice(segments.layout.square[line], segments.layout.square[line + 1])
        inverse = engine.state.pairs["inverse"][square].reshape(len(bit), len(bit))
        along = sum(d * row for d, row, g in zip(reach, rows, of, strict=True) if g == segment)
        total += along @ inverse @ along
    return float(total)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("context", [("X0",), ("X0", "X1")])
def test_the_index_with_context_is_the_definition(seed, context):
    """Context that is known, and context of which nothing is known: then every segment has its share."""
    rng = np.random.default_rng(seed)
    edges = [("X0", "X2"), ("X1", "X2"), ("X0", "Y"), ("X2", "Y"), ("X1", "X3"), ("X3", "Y")]
    graph = CausalGraph(edges, "Y", controllable=["X2", "X3"], context=context)
    engine, now = told(rng, graph, 1)
    assert engine.plan.estimator.has[graph.index("Y"), OWN_LINES]
    for action, index in engine.compared(now):
        assert index == pytest.approx(defined_index(engine, action), rel=1e-9)
    for value in (0.0, 1.0):
        known = now.context.copy()
        known[[graph.index(name) for name in context]] = value
        held = [graph.index(name) for name in context]
        for action, index in engine.compared(now._replace(context=known)):
            both = Action((*held, *action.ids), (*[value] * len(held), *action.values))
            assert index == pytest.approx(defined_index(engine, both), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_index_is_the_definition(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 4, tree=seed % 2 == 0)
    engine, now = told(rng, graph, 2)
    for action, index in list(engine.compared(now))[::3]:
        assert index == pytest.approx(defined_index(engine, action), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_nodes_as_if_independent_are_exact_where_they_are(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 7, tree=True)
    engine, now = told(rng, graph, 2)
    exact = engine.plan.oracle.listing
    field = engine.plan._replace(oracle=mean_field(graph, exact, engine.plan.estimator))
    for rounds in (-1, engine.rounds):
        score_actions(engine.plan, engine.state, now.context, rounds)
        expected = exact.values.copy()
        score_actions(field, engine.state, now.context, rounds)
        assert field.oracle.listing.values == pytest.approx(expected, rel=1e-9)


RULES = [
    {},
    {"levers": {"X1": (0, 1), "X3": (0,)}},
    {"require": ["X2"], "forbid": ["X0"]},
    {"costs": {"X0": 2.0, "X1": 0.5}, "total_cost": 2.5},
    {"exclusive": [["X0", "X1", "X2"]], "smaller": False},
]


@pytest.mark.parametrize("rules", RULES, ids=["plain", "levers", "required", "costs", "exclusive"])
def test_a_search_reports_the_index_of_an_allowed_action(rules, monkeypatch):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, 7, tree=False)
        listed, now = told(np.random.default_rng(seed), graph, 3, **rules)
        monkeypatch.setattr(limits, "MAX_ACTIONS", 0)
        searching, _ = told(np.random.default_rng(seed), graph, 3, **rules)
        monkeypatch.undo()
        found = searching.choose(now)
        assert searching.searches
        assert not found.proved
        field = listed.plan._replace(oracle=mean_field(graph, listed.plan.oracle.listing, listed.plan.estimator))
        score_actions(field, listed.state, now.context, listed.rounds)
        values = {listed.plan.oracle.listing.actions.row(i): v for i, v in enumerate(field.oracle.listing.values)}
        values = {
            Action(*zip(*sorted(zip(*a, strict=True)), strict=True)) if a.ids else a: v for a, v in values.items()
        }
        assert found.value == pytest.approx(values[found.action], rel=1e-9)
        chosen = set(zip(*found.action, strict=True))
        near = [
            v for a, v in values.items() if len(a.ids) == len(chosen) and len(chosen - set(zip(*a, strict=True))) < 2
        ]
        assert found.value >= max(near) - 1e-8  # with so few levers every exchange is looked at


@pytest.mark.parametrize("links", ["auto", "exponential", "identity"])
@pytest.mark.parametrize("rules", RULES, ids=["plain", "levers", "required", "costs", "exclusive"])
def test_a_search_that_settles_only_what_a_lever_reaches_ends_where_a_plain_one_does(links, rules, monkeypatch):
    """Nodes have up to four causes, more than a quadratic form is kept for, and the target as many as are left over,
    more than a table is made for."""
    monkeypatch.setattr(limits, "MAX_ACTIONS", 0)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        names = [f"X{i}" for i in range(14)] + ["Y"]
        before = [rng.choice(i, min(i, int(rng.integers(1, 5))), replace=False) for i in range(1, 15)]
        edges = [(names[int(j)], names[i]) for i, causes in enumerate(before, 1) for j in causes]
        graph = CausalGraph(edges + [(name, "Y") for name in set(names[:-1]) - {a for a, _ in edges}], target="Y")
        engine, now = told(rng, graph, 3, links=links, **rules)
        search = engine.plan.oracle

        def index(levers, engine=engine, graph=graph, search=search, now=now):
            action = Action(tuple(search.id[levers].tolist()), tuple(search.to[levers].tolist()))
            listing = listing_of(engine.problem.order, actions_of([action]))
            straight = engine.problem.is_linear
            one = mean_field(graph, listing, None if straight else engine.plan.estimator)
            score_actions(engine.plan._replace(oracle=one), engine.state, now.context, engine.rounds)
            return float(listing.values[0])

        levers = plain_search(search, index, now.draws[0])
        found = engine.choose(now)
        pairs = sorted(zip(search.id[levers].tolist(), search.to[levers].tolist(), strict=True))
        assert list(zip(*found.action, strict=True)) == pairs
        assert found.value == pytest.approx(index(levers), rel=1e-12)
