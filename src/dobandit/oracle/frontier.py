"""The frontier of a pass over a graph: the decided nodes that still have effects to come, and every state of these.

Nodes are decided in topological order. Carrying the probability of each state from node to node gives exact
expectations for any conditional probabilities, at a cost that grows with the widest frontier, not with all nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets

MOST_STATES = 1 << 18  # in all
MOST_PARENTS = 12  # of a node whose probabilities are tabulated by pattern


class Frontier(NamedTuple):
    """State s of depth i's frontier -> the pattern of the node at depth i, and the state of the next frontier with that
    node at 0 and at 1. Patterns of depth i are numbered from table_ptr[i]; bit j: the j-th parent, without the
    constant."""

    table_ptr: NDArray[np.int64]  # (depths + 1,)
    state_ptr: NDArray[np.int64]  # (depths + 2,)
    pattern: NDArray[np.int64]
    next_zero: NDArray[np.int64]
    next_one: NDArray[np.int64]


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
    return Frontier(offsets([1 << len(p) for p in parents]), *states)


def _states(parents: list[list[int]], most: int) -> tuple[NDArray[np.int64], ...] | None:
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
    pattern, zero, one = (np.zeros(int(state_ptr[-1]), dtype=np.int64) for _ in range(3))
    for depth in range(depths):
        here, after = frontiers[depth], frontiers[depth + 1]
        states = np.arange(sizes[depth])
        at = slice(int(state_ptr[depth]), int(state_ptr[depth + 1]))
        bit = {u: (states >> i) & 1 for i, u in enumerate(here)}
        pattern[at] = sum((bit[p] << j for j, p in enumerate(parents[depth])), np.zeros(len(states), dtype=np.int64))
        for out, value in ((zero, 0), (one, 1)):
            bit[depth] = np.full(len(states), value)
            out[at] = sum((bit[u] << i for i, u in enumerate(after)), np.zeros(len(states), dtype=np.int64))
    return state_ptr, pattern, zero, one
