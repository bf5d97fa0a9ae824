"""The frontier of a pass over a graph: the decided nodes that still have effects to come, and every state of these.

Nodes are decided in topological order. Carrying the probability of each state from node to node gives exact
expectations for any conditional probabilities, at a cost that grows with the widest frontier, not with all nodes.

Passes take blocks of actions, a column each: a step is the same arithmetic for all of them, which processors do several
at a time. The order in which an action's numbers are added up is the same as if it were alone.
"""

from __future__ import annotations

import math
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
# Of a depth: the node decided there, its first pattern, and the first state of its frontier. Two more steps, without a
# node, say where the last tables and states end.
STEP = record(node="i8", table="i8", state="i8")


class Frontier(NamedTuple):
    """States of depth i are numbered from steps[i]["state"], patterns from steps[i]["table"]; bit j of a pattern: the
    j-th parent, without the constant."""

    steps: NDArray[Any]  # (depths + 2,) STEP
    states: NDArray[Any]  # STATE


def parents_by_depth(graph: CausalGraph, order: NDArray[np.int64]) -> list[list[int]]:
    """The depths of the parents of each node of `order`, without the constant."""
    ptr, parent = graph.arrays.parent_ptr, graph.arrays.parent
    depth_of = {v: i for i, v in enumerate(order.tolist())}
    return [[depth_of[p] for p in parent[ptr[v] : ptr[v + 1]].tolist() if p] for v in order.tolist()]


def frontier_of(
    graph: CausalGraph, order: NDArray[np.int64], most_states: int = MOST_STATES, most_parents: int = MOST_PARENTS
) -> Frontier | None:
    """The frontier of a pass over `order`, or None where it has too many states, or a node too many parents."""
    parents = parents_by_depth(graph, order)
    if max(map(len, parents)) > most_parents:
        return None
    states = _states(parents, most_states)
    if states is None:
        return None
    steps = steps_of(order, [1 << len(p) for p in parents])
    steps["state"] = states[0]
    return Frontier(steps, states[1])


def steps_of(order: NDArray[np.int64], patterns: list[int]) -> NDArray[Any]:
    """The steps of a pass over nodes with so many patterns each."""
    steps = np.zeros(len(order) + 2, STEP)
    steps["node"][:-2], steps["table"][:-1], steps["table"][-1] = order, offsets(patterns), sum(patterns)
    return steps


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
def hold_block(held: Any, steps: Any, start: int, fixed: Any, known: Any) -> None:
    """known[depth, c] = what action start + c, or else the context, holds a node to (NaN: free). Columns that are left
    over set nothing."""
    for depth in range(known.shape[0]):
        for c in range(known.shape[1]):
            known[depth, c] = fixed[steps[depth]["node"]]
    for i in range(start, min(start + known.shape[1], held.shape[0])):
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
