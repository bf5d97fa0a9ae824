"""The joint bonus against its definition: E[Y] by a visit to every world, its variance by differences; and the search
over it, which may miss the largest index but never misreports one, and breaks no rule."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dobandit import CausalGraph, CausalUCB, limits
from dobandit.estimation.mixture import CURVED, OWN_LINES, STRAIGHT, TABLE, line_of, members_of, weights_of
from dobandit.oracle.action_list import action_list
from dobandit.oracle.actions import Action, actions_of
from dobandit.oracle.node_tables import fill_tables
from dobandit.policy.engine import Rounds, Situation, no_context
from dobandit.policy.evaluators import field
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
    state, tables = engine.state, engine.evaluator.plan.tables
    fill_tables(state, tables)
    at = {v: slice(first, first + patterns) for v, first, patterns in tables.tables.tolist()}
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
        patterns = tables.patterns[at[v]]
        straight, curve = reach @ rows, (reach * patterns["slope"]) @ rows
        q = {
            STRAIGHT: straight @ matrix(state, v, "inverse") @ straight,
            CURVED: curve @ matrix(state, v, "covariance") @ curve,
            TABLE: float(np.sum(reach**2 * patterns["spread"])),
            OWN_LINES: own_lines_spread(state, v, rows, reach),
        }
        for k, name in enumerate(("straight", "curved", "table", "own")):
            apart = float(reach @ (patterns[name] - cells[v]))
            weight = 0.5 * weights_of(state)[v, k] + (0.5 if k == TABLE else 0.0)
            variance += weight * (q[k] + apart**2)
    return enumerated(graph, order, cells, action) + np.sqrt((4.0 + np.log1p(engine.rounds / 500)) * variance)


def matrix(state, v, name):
    """One of the matrices of a node or a line."""
    at, d = state.nodes[v]["square"], state.nodes[v]["width"]
    return state.pairs[name][at : at + d * d].reshape(d, d)


def own_lines_spread(state, v, rows, reach):
    """The variance of sum_v D(v) p(v) where every segment has a line of its own, learned from nothing but its rows."""
    if not members_of(state)[v, OWN_LINES]:
        return 0.0
    along = {}
    for row, d in zip(rows, reach, strict=True):
        line = line_of(state.nodes, state.slots, v, row)
        along[line] = along.get(line, 0.0) + d * row
    return sum(g @ matrix(state, line, "inverse") @ g for line, g in along.items())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("context", [("X0",), ("X0", "X1")])
def test_the_index_with_context_is_the_definition(seed, context):
    """Context that is known, and context of which nothing is known: then every segment has its share."""
    rng = np.random.default_rng(seed)
    edges = [("X0", "X2"), ("X1", "X2"), ("X0", "Y"), ("X2", "Y"), ("X1", "X3"), ("X3", "Y")]
    graph = CausalGraph(edges, "Y", controllable=["X2", "X3"], context=context)
    engine, now = told(rng, graph, 1)
    assert members_of(engine.state)[graph.index("Y"), OWN_LINES]
    for action, index in engine.compare(now):
        assert index == pytest.approx(defined_index(engine, action), rel=1e-9)
    for value in (0.0, 1.0):
        known = now.context.copy()
        known[[graph.index(name) for name in context]] = value
        held = [graph.index(name) for name in context]
        for action, index in engine.compare(now._replace(context=known)):
            both = Action((*held, *action.ids), (*[value] * len(held), *action.values))
            assert index == pytest.approx(defined_index(engine, both), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_index_is_the_definition(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 4, tree=seed % 2 == 0)
    engine, now = told(rng, graph, 2)
    for action, index in list(engine.compare(now))[::3]:
        assert index == pytest.approx(defined_index(engine, action), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_nodes_as_if_independent_are_exact_where_they_are(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 7, tree=True)
    engine, now = told(rng, graph, 2)
    scores, independent = engine.listed.scores, field(engine.problem, engine.listed, None)
    for optimistic in (False, True):
        engine.score(engine.evaluator, engine.state, now.context, optimistic=optimistic)
        expected = scores["index"].copy()
        scores["index"] = np.nan
        engine.score(independent, engine.state, now.context, optimistic=optimistic)
        assert scores["index"] == pytest.approx(expected, rel=1e-9)


def levers_of(action):
    """The pairs of a variable and its value."""
    return list(zip(*action, strict=True))


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
        listed.score(field(listed.problem, listed.listed, None), listed.state, now.context)
        indices = listed.listed.scores["index"].tolist()
        values = {frozenset(levers_of(listed.listed.actions.row(i))): index for i, index in enumerate(indices)}
        chosen = frozenset(levers_of(found.action))
        assert found.value == pytest.approx(values[chosen], rel=1e-9)
        near = [value for one, value in values.items() if len(one) == len(chosen) and len(chosen - one) < 2]
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
        levers = engine.evaluator.plan.levers

        def index(taken, engine=engine, levers=levers, now=now):
            action = Action(tuple(levers["id"][taken].tolist()), tuple(levers["to"][taken].tolist()))
            actions = action_list(engine.problem.order, actions_of([action]))
            engine.score(field(engine.problem, actions, None), engine.state, now.context)
            return float(actions.scores["index"][0])

        taken = plain_search(engine.evaluator.plan, index, now.draws[0])
        found = engine.choose(now)
        assert levers_of(found.action) == sorted(levers[["id", "to"]][taken].tolist())
        assert found.value == pytest.approx(index(taken), rel=1e-12)
