"""E[Y | do(S)] plus a bonus where nodes count as independent given their own causes, for graphs too wide for an exact
pass: one pass forwards for means and spreads, one backwards for weights.

m: means under do(S).  s_XP: how much X's mean moves with that of its parent P.  q_X: the variance of X's mean given its
parents' means.  w_X = dE[Y] / dm_X = sum over X's free effects C of s_CX w_C.
    index = m_Y + c sqrt(sum over free nodes X of w_X^2 q_X)
Errors of different nodes are independent, so that their shares of E[Y]'s variance add up (the delta method).
straight line   m_X = theta . m over X's parents, and q_X = m' A m, A the covariance of theta. Exact where every node is
                one: w_X is then the total weight of the paths from X to Y that avoid S. No sign is assumed, and nothing
                is clipped, which would tie actions that differ.
few parents     m_X = sum_v P(v) p_X(v), P(v) the product of the parents' means: exact where the parents are independent
                or p_X is a straight line. q_X is what `node_tables` makes of D_X(v) = P(v).
many parents    the node's straight line, or its curve at the parents' means.
A search tries one lever more on an action that it has scored: then only nodes that the lever reaches are settled again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.mixture import CURVED
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.kernels import inlined, kernel, record
from dobandit.model.link_kernels import slope_at, value_at
from dobandit.oracle.action_list import ActionList, held_at, held_before
from dobandit.oracle.frontier import parents_by_depth, table_list
from dobandit.oracle.node_tables import NodeTables, fill_tables, node_tables, node_variances

MOST_TABULATED = 6  # parents
# By node: m, q, w; both first as they were before a trial; whether m has changed since the action before; the first of
# the edges to its effects.
FIELD = record(mean="f8", spread="f8", weight="f8", kept_mean="f8", kept_spread="f8", moved="i8", edge="i8")
WEIGHT = record(slope="f8", line="f8", kept_slope="f8")  # by slot: s, theta of a node without a table
EDGE = record(effect="i8", slot="i8")


class MeanField(NamedTuple):
    """The plan of an evaluator: actions, edges grouped by cause, and scratch."""

    actions: ActionList
    tables: NodeTables  # of the nodes in their order; one without a table has no pattern
    field: NDArray[Any]  # (n + 2,) FIELD
    weights: NDArray[Any]  # WEIGHT
    edges: NDArray[Any]  # EDGE: those into the target's ancestors and the target
    known: NDArray[np.float64]  # (depths,) value given to a node, NaN: free
    levels: NDArray[np.float64]  # scratch of `contract`
    settled: NDArray[np.int64]  # (depths,) what a trial has settled again


def mean_field(graph: CausalGraph, actions: ActionList, lines: bool) -> MeanField:
    """The plan for the actions of a list. lines: every node is a straight line."""
    depths, nodes, parent = len(actions.order), len(graph) + 1, graph.arrays.parent
    counts = [len(parents) for parents in parents_by_depth(graph, actions.order)]
    patterns = [0 if lines or d > MOST_TABULATED else 1 << d for d in counts]
    tables = node_tables(
        table_list(actions.order.tolist(), patterns), int(np.diff(graph.arrays.parent_ptr).max(initial=1))
    )
    slots = np.flatnonzero(np.isin(graph.slot_child, actions.order))
    slots = slots[np.argsort(parent[slots], kind="stable")]
    field, edges = np.zeros(nodes + 1, FIELD), np.zeros(len(slots), EDGE)
    field["mean"][0], field["edge"] = 1.0, offsets(np.bincount(parent[slots], minlength=nodes))
    edges["effect"], edges["slot"] = graph.slot_child[slots], slots
    known, settled = np.full(depths, math.nan), np.zeros(depths, dtype=np.int64)
    weights, levels = np.zeros(len(parent), WEIGHT), np.zeros(2 << MOST_TABULATED)
    return MeanField(actions, tables, field, weights, edges, known, levels, settled)


@kernel
def fill_nodes(belief: Any, plan: Any) -> None:
    """What is believed of every node: its table, or its line."""
    nodes, slots, members, order, weights = belief.nodes, belief.slots, belief.members, plan.actions.order, plan.weights
    if len(members) > 0:
        fill_tables(belief, plan.tables)
    for depth in range(len(order)):
        node = nodes[order[depth]]
        curved = len(members) > 0 and members[4 * order[depth] + CURVED]["there"] > 0
        if plan.tables.tables[depth]["patterns"] == 0:
            for slot in range(node["start"], node["start"] + node["width"]):
                weights[slot]["line"] = slots[slot]["curve"] if curved else slots[slot]["line"]


@inlined
def settle(
    nodes: Any, slots: Any, pairs: Any, points: Any, members: Any, tables: Any, field: Any, weights: Any, levels: Any,
    depth: int, spreads: bool,
) -> None:  # fmt: skip
    """The mean of the node at `depth` given its parents' means, and, where spreads are wanted, q and s."""
    table = tables.tables[depth]
    v, base, count = table["node"], table["first"], table["patterns"]
    node = nodes[v]
    if count > 0:
        mean, influence, sums = tables.mean, tables.influence, tables.sums
        field[v]["mean"] = contract(node, slots, field, mean, levels, base, count)
        if spreads:
            expand(node, slots, field, weights, influence, levels, count)
            node_variances(
                nodes, slots, pairs, members, mean, tables.patterns, influence, tables.along, sums, v, base, count, 0
            )
            field[v]["spread"] = sums[2, 0]
    else:
        curved = len(members) > 0 and members[4 * v + CURVED]["there"] > 0
        x, spread = along_line(node, slots, pairs, field, weights, curved)
        slope, value = 1.0, x
        if curved:
            slope, value = slope_at(node, points, x), value_at(node, points, x)
        for slot in range(node["start"], node["start"] + node["width"]):
            weights[slot]["slope"] = slope * weights[slot]["line"]
        field[v]["mean"], field[v]["spread"] = value, slope * slope * max(spread, 0.0)


@inlined
def along_line(node: Any, slots: Any, pairs: Any, field: Any, weights: Any, curved: bool) -> tuple[float, float]:
    """theta . m and m' A m of a node without a table."""
    start, at, d = node["start"], node["square"], node["width"]
    x = spread = 0.0
    for i in range(d):
        m = field[slots[start + i]["parent"]]["mean"]
        if m == 0.0:
            continue
        x += m * weights[start + i]["line"]
        cross = 0.0
        for j in range(i):
            pair = pairs[at + i * d + j]
            cross += (pair["covariance"] if curved else pair["inverse"]) * field[slots[start + j]["parent"]]["mean"]
        pair = pairs[at + i * d + i]
        spread += m * ((pair["covariance"] if curved else pair["inverse"]) * m + 2.0 * cross)
    return x, spread


@inlined
def contract(node: Any, slots: Any, field: Any, mean: Any, levels: Any, base: int, patterns: int) -> float:
    """sum_v P(v) p(v), one parent after another: level j + 1 is level j with its lowest bit averaged out.

    Leaves level j of 2^(d - j) numbers in `levels`, one after another, which the way back needs.
    """
    slot = node["start"] + (node["constant"] if patterns > 1 else 0)
    for i in range(patterns):
        levels[i] = mean[base + i]
    here, size = 0, patterns
    while size > 1:
        m = min(max(field[slots[slot]["parent"]]["mean"], 0.0), 1.0)
        after, size = here + size, size // 2
        for i in range(size):
            zero, one = levels[here + 2 * i], levels[here + 2 * i + 1]
            levels[after + i] = zero + m * (one - zero)
        here = after
        slot += 1
    return levels[here]


@inlined
def expand(node: Any, slots: Any, field: Any, weights: Any, influence: Any, levels: Any, count: int) -> None:
    """The way back of `contract`: P(v) of every pattern into `influence`, and how the mean moves with each parent's."""
    slot, size, here = node["start"] + node["width"] - 1, 1, 2 * count - 2
    influence[0, 0] = 1.0
    while size < count:
        here -= 2 * size
        m = min(max(field[slots[slot]["parent"]]["mean"], 0.0), 1.0)
        slope = 0.0
        for i in range(size - 1, -1, -1):
            share = influence[i, 0]
            slope += share * (levels[here + 2 * i + 1] - levels[here + 2 * i])
            influence[2 * i + 1, 0] = share * m
            influence[2 * i, 0] = share * (1.0 - m)
        weights[slot]["slope"] = slope
        size *= 2
        slot -= 1


@inlined
def deviation_now(order: Any, field: Any, weights: Any, edges: Any, known: Any) -> float:
    """The standard deviation of E[Y] of the action whose nodes are settled: the pass backwards."""
    variance = 0.0
    for depth in range(len(order) - 1, -1, -1):
        v = order[depth]
        total = 1.0 if depth == len(order) - 1 else 0.0
        for e in range(field[v]["edge"], field[v + 1]["edge"]):
            total += weights[edges[e]["slot"]]["slope"] * field[edges[e]["effect"]]["weight"]
        if math.isnan(known[depth]):
            field[v]["weight"] = total
            variance += total * total * field[v]["spread"]
        else:
            field[v]["weight"] = 0.0  # nothing moves it
    return math.sqrt(max(variance, 0.0))


@inlined
def reached(node: Any, slots: Any, field: Any) -> bool:
    """Whether the mean of a parent has changed."""
    some = 0
    for slot in range(node["start"], node["start"] + node["width"]):
        some |= field[slots[slot]["parent"]]["moved"]
    return some > 0


@kernel
def score_means(belief: Any, plan: Any, fixed: Any, bonus: float) -> None:
    """Both passes for every action; forwards only where something differs from the action before."""
    nodes, slots, pairs, points, members = belief.nodes, belief.slots, belief.pairs, belief.points, belief.members
    order, held, scores = plan.actions.order, plan.actions.held, plan.actions.scores
    field, known, weights, edges = plan.field, plan.known, plan.weights, plan.edges
    tables, levels = plan.tables, plan.levels
    for i in range(len(scores)):
        for depth in range(scores[i]["first"]):
            field[order[depth]]["moved"] = 0
        at = held_before(held, i, scores[i]["first"])
        for depth in range(scores[i]["first"], len(order)):
            v, was_held = order[depth], not math.isnan(known[depth])
            known[depth], at = held_at(held, i, depth, at, fixed[v])
            before = field[v]["mean"]
            if not math.isnan(known[depth]):
                field[v]["mean"] = known[depth]
            elif i == 0 or was_held or reached(nodes[v], slots, field):
                settle(nodes, slots, pairs, points, members, tables, field, weights, levels, depth, bonus > 0.0)
            field[v]["moved"] = field[v]["mean"] != before
        scores[i]["mean"] = field[order[len(order) - 1]]["mean"]
        scores[i]["sd"] = deviation_now(order, field, weights, edges, known) if bonus > 0.0 else 0.0
        scores[i]["index"] = scores[i]["mean"] + bonus * scores[i]["sd"]
    for depth in range(len(order)):
        field[order[depth]]["moved"] = 0


@kernel
def index_with(belief: Any, plan: Any, bonus: float, depth: int, to: float) -> float:
    """The index of the list's first action, which was scored last, with the node at `depth` held too."""
    nodes, slots, pairs, points, members = belief.nodes, belief.slots, belief.pairs, belief.points, belief.members
    order, field, known, settled, edges = plan.actions.order, plan.field, plan.known, plan.settled, plan.edges
    tables, weights, levels = plan.tables, plan.weights, plan.levels
    if depth == len(order):  # it does not matter to the target
        return plan.actions.scores[0]["index"]
    held, was, count = order[depth], known[depth], 0
    field[held]["kept_mean"], known[depth], field[held]["mean"] = field[held]["mean"], to, to
    field[held]["moved"] = to != field[held]["kept_mean"]
    for k in range(depth + 1, len(order) if field[held]["moved"] else 0):
        v = order[k]
        if math.isnan(known[k]) and reached(nodes[v], slots, field):
            field[v]["kept_mean"], field[v]["kept_spread"] = field[v]["mean"], field[v]["spread"]
            for slot in range(nodes[v]["start"], nodes[v]["start"] + nodes[v]["width"]):
                weights[slot]["kept_slope"] = weights[slot]["slope"]
            settle(nodes, slots, pairs, points, members, tables, field, weights, levels, k, bonus > 0.0)
            field[v]["moved"] = field[v]["mean"] != field[v]["kept_mean"]
            settled[count] = v
            count += 1
    index = field[order[len(order) - 1]]["mean"]
    if bonus > 0.0:
        index += bonus * deviation_now(order, field, weights, edges, known)
    for k in range(count):
        v = settled[k]
        field[v]["mean"], field[v]["spread"], field[v]["moved"] = field[v]["kept_mean"], field[v]["kept_spread"], 0
        for slot in range(nodes[v]["start"], nodes[v]["start"] + nodes[v]["width"]):
            weights[slot]["slope"] = weights[slot]["kept_slope"]
    field[held]["mean"], known[depth], field[held]["moved"] = field[held]["kept_mean"], was, 0
    return index


@kernel
def mean_field_index(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    """Mean, standard deviation and index of every action; reach[target]: standard errors of optimism."""
    fill_nodes(belief, plan)
    score_means(belief, plan, fixed, reach[plan.actions.order[len(plan.actions.order) - 1]])
