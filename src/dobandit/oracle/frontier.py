"""The frontier of a pass over a graph: the decided nodes that still have effects to come, and every state of these.

Nodes are decided in topological order. Carrying the probability of each state from node to node gives exact
expectations for any conditional probabilities, at a cost that grows with the widest frontier, not with all nodes.

Passes take blocks of actions, a column each: a step is the same arithmetic for all of them, which processors do several
at a time. The order in which an action's numbers are added up is the same as if it were alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import DENSE
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.kernels import inlined, record

MOST_STATES = 1 << 18  # in all
MOST_PARENTS = DENSE  # of a node whose probabilities are tabulated by pattern


# Of a state of depth i's frontier: the pattern of the node at depth i, and the states of the next frontier with that
# node at 0 and at 1.
STATE = record(pattern="i8", zero="i8", one="i8")
# Of a depth: the variable decided there, the node of the belief that it answers by (0: it is set, or does not matter),
# the first of its patterns, how many there are, and the first state of its frontier. Two more steps, without a
# variable, say where the last states end.
STEP = record(variable="i8", node="i8", table="i8", patterns="i8", state="i8")
# The probabilities of a node of the belief, by pattern: where they begin, and how many there are.
TABLE = record(node="i8", first="i8", patterns="i8")
# How a variable answers: the node of the belief that says so, and its causes.
Answering = tuple[int, Sequence[int]]


class Frontier(NamedTuple):
    """A pass for each regime: which variables are set decides which node of the belief a variable answers by. States of
    depth i are numbered from steps[regime, i]["state"], patterns from steps[regime, i]["table"]; bit j of a pattern:
    the j-th parent, without the constant. Regimes share the tables of nodes."""

    steps: NDArray[Any]  # (regimes, depths + 2) STEP
    states: NDArray[Any]  # STATE
    tables: NDArray[Any]  # TABLE


def parents_by_depth(graph: CausalGraph, order: NDArray[np.int64]) -> list[list[int]]:
    """The depths of the parents of each node of `order`, without the constant."""
    ptr, parent = graph.arrays.parent_ptr, graph.arrays.parent
    depth_of = {v: i for i, v in enumerate(order.tolist())}
    return [[depth_of[p] for p in parent[ptr[v] : ptr[v + 1]].tolist() if p] for v in order.tolist()]


def frontier_of(
    graph: CausalGraph,
    order: NDArray[np.int64],
    most_states: int = MOST_STATES,
    most_parents: int = MOST_PARENTS,
    regimes: Sequence[Mapping[int, Answering]] = (),
) -> Frontier | None:
    """The frontier of a pass over `order`, or None where it has too many states, or a node too many parents.

    regimes  of each, how every variable answers that matters; a variable that is not named is set, or does not matter.
             Default: one regime, in which each variable answers as itself, by its parents
    """
    ids, depth_of = order.tolist(), {v: i for i, v in enumerate(order.tolist())}
    if not regimes:
        parents = parents_by_depth(graph, order)
        regimes = [{v: (v, [ids[depth] for depth in depths]) for v, depths in zip(ids, parents, strict=True)}]
    named = dict.fromkeys(answer[0] for regime in regimes for answer in regime.values())
    counts = {node: len(causes) for regime in regimes for node, causes in regime.values()}
    if max(counts.values()) > most_parents:
        return None
    tables = table_list(list(named), [1 << counts[node] for node in named])
    first_of = dict(zip(tables["node"].tolist(), tables["first"].tolist(), strict=True))
    nothing = int(tables["patterns"].sum())  # one pattern more, for variables that do not matter
    steps, parts, count = np.zeros((len(regimes), len(ids) + 2), STEP), [], 0
    for at, regime in zip(steps, regimes, strict=True):
        states = _states([[depth_of[p] for p in regime.get(v, (0, ()))[1]] for v in ids], most_states - count)
        if states is None:
            return None
        for depth, v in enumerate(ids):
            node, causes = regime.get(v, (0, ()))
            at[depth]["variable"], at[depth]["node"] = v, node
            at[depth]["table"], at[depth]["patterns"] = first_of.get(node, nothing), 1 << len(causes)
        at["state"] = count + states[0]
        count += len(states[1])
        parts.append(states[1])
    return Frontier(steps, np.concatenate(parts), tables)


def table_list(nodes: Sequence[int], patterns: Sequence[int]) -> NDArray[Any]:
    """Tables of nodes with so many patterns each, one after another."""
    tables = np.zeros(len(nodes), TABLE)
    tables["node"], tables["first"], tables["patterns"] = nodes, offsets(patterns)[:-1], patterns
    return tables


def patterns_in(tables: NDArray[Any]) -> int:
    """How many patterns the tables have in all, and one that stands for variables that do not matter."""
    return int(tables["patterns"].sum()) + 1


def _states(parents: list[list[int]], most: int) -> tuple[NDArray[np.int64], NDArray[Any]] | None:
    """The state maps."""
    depths = len(parents)
    last_use = list(range(depths))
    for depth, before in enumerate(parents):
        for p in before:
            last_use[p] = depth
    frontiers: list[list[int]] = [[]]
    for depth in range(depths):
        frontiers.append([u for u in [*frontiers[-1], depth] if last_use[u] > depth])
    sizes = [1 << min(len(frontier), 60) for frontier in frontiers]
    if sum(sizes) > most:
        return None
    state_ptr = offsets(sizes)
    found = np.zeros(int(state_ptr[-1]), STATE)
    for depth in range(depths):
        here, after = frontiers[depth], frontiers[depth + 1]
        states, part = np.arange(sizes[depth]), found[state_ptr[depth] : state_ptr[depth + 1]]
        bit = {u: (states >> i) & 1 for i, u in enumerate(here)}
        part["pattern"] = sum(
            (bit[p] << j for j, p in enumerate(parents[depth])), np.zeros(len(states), dtype=np.int64)
        )
        for name, value in (("zero", 0), ("one", 1)):
            bit[depth] = np.full(len(states), value)
            part[name] = sum((bit[u] << i for i, u in enumerate(after)), np.zeros(len(states), dtype=np.int64))
    return state_ptr, found


_AT_ONCE = 8  # columns that a processor may work on at once: rows are filled up to a multiple of it
_NEAR = 1 << 17  # states times columns: beyond, they would not stay in a core's near memory
_MOST = 64  # columns: more gain nothing


def whole_columns(wanted: int) -> int:
    """So many columns, or a few more; at least one."""
    return max(-(-wanted // _AT_ONCE), 1) * _AT_ONCE


def columns_for(actions: int, states: int, shared: bool = False) -> int:
    """How many columns a pass over so many states of a frontier has at once: few where there are very many states,
    unless lists share what they are worked out in."""
    near = max(_NEAR // max(states, 1), _AT_ONCE if shared else 1)
    wanted = max(min(actions, _MOST, near), 1)
    return wanted if wanted < _AT_ONCE else whole_columns(wanted)


@inlined
def block_from(scores: Any, start: int, columns: int) -> int:
    """How many actions from `start` on are of one regime, at most as many as there are columns."""
    count = 1
    while count < min(columns, len(scores) - start) and scores[start + count]["regime"] == scores[start]["regime"]:
        count += 1
    return count


@inlined
def hold_block(held: Any, steps: Any, start: int, count: int, fixed: Any, known: Any) -> None:
    """known[depth, c] = what action start + c, or else the context, holds a node to (NaN: free). Columns that are left
    over set nothing."""
    for depth in range(known.shape[0]):
        for c in range(known.shape[1]):
            known[depth, c] = fixed[steps[depth]["variable"]]
    for i in range(start, start + count):
        for k in range(held.shape[1]):
            if held[i, k]["depth"] < known.shape[0]:
                known[held[i, k]["depth"], i - start] = held[i, k]["to"]


@inlined
def forwards(steps: Any, states: Any, mean: Any, weight: Any, known: Any, depth: int) -> None:
    """Carry the weights of the frontier's states past the node at `depth`; mean: a node's probability by pattern."""
    here, after, base = steps[depth]["state"], steps[depth + 1]["state"], steps[depth]["table"]
    for s in range(after, steps[depth + 2]["state"]):
        for c in range(known.shape[1]):
            weight[s, c] = 0.0
    for s in range(here, after):
        one, zero, p = after + states[s]["one"], after + states[s]["zero"], mean[base + states[s]["pattern"]]
        for c in range(known.shape[1]):
            q = p if math.isnan(known[depth, c]) else known[depth, c]
            weight[one, c] += weight[s, c] * q
            weight[zero, c] += weight[s, c] * (1.0 - q)
