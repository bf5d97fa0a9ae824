"""The optimistic value of every set for any link, pattern by pattern.

Given its parents' pattern v, node X is 1 with probability at most
    g_X(v) = min(1, f_X(v . theta_X + rho_X ||v||_{M_X^+})).
The value of a set is E[Y | do(S)] of the network with these conditional probabilities. It is at least the literal
arg max of the paper's line 9 (docs/oracles.md has the two-line proof), and it needs no search over weights.

Exact: a table over the frontier (decided nodes that still have effects to come) is carried from node to node.
Monte Carlo, where a table would be too large: the same fixed uniforms for every set, so differences are sharp.
Either way sets that agree on their first variables share the work done for them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.link_kernels import link_value
from dobandit.oracle.sets import SetTree, members_before

_MOST_ENTRIES = 1 << 18  # frontier tables in all
_MOST_TABLE = 12  # parents of a node whose g_X is tabulated


class PerPattern(NamedTuple):
    """Plan and scratch. Depths follow SetTree.order."""

    sampled: bool  # Monte Carlo instead of frontier tables
    # g_X by pattern (bit j: the j-th parent that is not the constant); empty where X has too many parents
    table_ptr: NDArray[np.int64]  # (depths + 1,)
    table: NDArray[np.float64]
    # exact: state s of depth i's frontier -> pattern of the node, state of the next frontier with node at 0 and at 1
    state_ptr: NDArray[np.int64]  # (depths + 2,)
    pattern: NDArray[np.int64]
    next_zero: NDArray[np.int64]
    next_one: NDArray[np.int64]
    weight: NDArray[np.float64]  # probability of each state
    # sampled
    uniforms: NDArray[np.float64]  # (depths, samples)
    worlds: NDArray[np.float64]  # (n + 1, samples)
    row: NDArray[np.float64]  # (D,)
    along: NDArray[np.float64]  # (D,)


def per_pattern(graph: CausalGraph, tree: SetTree, rng: np.random.Generator, samples: int) -> PerPattern:
    """Plan the recursion: exact where the frontier stays small, sampled otherwise."""
    depth_of = {int(v): i for i, v in enumerate(tree.order)}
    parents = [[depth_of[p] for p in graph.arrays.parent[_slots(graph, v)].tolist() if p] for v in tree.order.tolist()]
    widest = max((len(_parent_ids(graph, v)) for v in tree.order.tolist()), default=1)
    plan = _frontier_plan(parents)
    tabulated = [len(p) <= _MOST_TABLE for p in parents]
    sampled = plan is None or not all(tabulated)
    table_ptr = np.zeros(len(parents) + 1, dtype=np.int64)
    np.cumsum([1 << len(p) if ok else 0 for p, ok in zip(parents, tabulated, strict=True)], out=table_ptr[1:])
    empty = np.zeros(0, dtype=np.int64)
    state_ptr, pattern, zero, one = (
        plan if plan is not None and not sampled else (np.zeros(len(parents) + 2, dtype=np.int64), empty, empty, empty)
    )
    count = samples if sampled else 0
    return PerPattern(
        sampled,
        table_ptr,
        np.zeros(int(table_ptr[-1])),
        state_ptr,
        pattern,
        zero,
        one,
        np.zeros(int(state_ptr[-1])),
        rng.random((len(parents) if sampled else 0, count)),
        np.ones((len(graph) + 1 if sampled else 0, count)),
        np.zeros(max(widest, 1)),
        np.zeros(max(widest, 1)),
    )


def _slots(graph: CausalGraph, v: int) -> slice:
    return slice(int(graph.arrays.parent_ptr[v]), int(graph.arrays.parent_ptr[v + 1]))


def _parent_ids(graph: CausalGraph, v: int) -> list[int]:
    ids: list[int] = graph.arrays.parent[_slots(graph, v)].tolist()
    return ids


def _frontier_plan(parents: list[list[int]]) -> tuple[NDArray[np.int64], ...] | None:
    """State maps of the frontier recursion, or None if its tables would be too large."""
    depths = len(parents)
    last_use = list(range(depths))
    for depth, before in enumerate(parents):
        for p in before:
            last_use[p] = depth
    frontiers: list[list[int]] = [[]]
    for depth in range(depths):
        frontiers.append([u for u in [*frontiers[-1], depth] if last_use[u] > depth])
    sizes = [1 << min(len(frontier), 60) for frontier in frontiers]
    if sum(sizes) > _MOST_ENTRIES:
        return None
    state_ptr = np.zeros(depths + 2, dtype=np.int64)
    np.cumsum(sizes, out=state_ptr[1:])
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


@kernel
def optimistic_probability(links: Any, v: int, lin: float, quad: float, rho: float) -> float:
    """min(1, f(lin + rho sqrt(quad))), not below 0."""
    return min(max(link_value(links, v, lin + rho * math.sqrt(max(quad, 0.0))), 0.0), 1.0)


@kernel
def fill_table(layout: Any, links: Any, plan: Any, theta: Any, inverse: Any, rho: float, v: int, depth: int) -> None:
    """g_v for every pattern, in Gray-code order: flipping one parent updates A row in O(d)."""
    start, at = layout.ptr[v], layout.square[v]
    d = layout.ptr[v + 1] - start
    first = 1 if d > 0 and layout.parent[start] == 0 else 0
    lin = quad = 0.0
    for j in range(d):
        plan.row[j] = 0.0
        plan.along[j] = inverse[at + j * d] if first else 0.0  # A e_0
    if first:
        plan.row[0] = 1.0
        lin, quad = theta[start], inverse[at]
    base, gray = plan.table_ptr[depth], 0
    plan.table[base] = optimistic_probability(links, v, lin, quad, rho)
    for step in range(1, plan.table_ptr[depth + 1] - base):
        bit = 0
        while not (step >> bit) & 1:
            bit += 1
        j = bit + first
        sign = 1.0 - 2.0 * plan.row[j]
        lin += sign * theta[start + j]
        quad += 2.0 * sign * plan.along[j] + inverse[at + j * d + j]
        for i in range(d):
            plan.along[i] += sign * inverse[at + i * d + j]
        plan.row[j] += sign
        gray ^= 1 << bit
        plan.table[base + gray] = optimistic_probability(links, v, lin, quad, rho)


@kernel
def carry(plan: Any, depth: int, is_set: bool, last: bool) -> float:
    """Take the frontier past the node at `depth`; at the target returns its probability of being 1."""
    here, after = plan.state_ptr[depth], plan.state_ptr[depth + 1]
    for s in range(after, plan.state_ptr[depth + 2]):
        plan.weight[s] = 0.0
    base, total = plan.table_ptr[depth], 0.0
    for s in range(here, after):
        p = 1.0 if is_set else plan.table[base + plan.pattern[s]]
        total += plan.weight[s] * p
        if not last:
            plan.weight[after + plan.next_one[s]] += plan.weight[s] * p
            plan.weight[after + plan.next_zero[s]] += plan.weight[s] * (1.0 - p)
    return total


@kernel
def draw(
    layout: Any, links: Any, plan: Any, theta: Any, inverse: Any, rho: float, v: int, depth: int, is_set: bool
) -> float:
    """Sample v in every world from its sampled parents; returns the mean of its probability."""
    samples = plan.worlds.shape[1]
    start, at = layout.ptr[v], layout.square[v]
    d = layout.ptr[v + 1] - start
    base = plan.table_ptr[depth]
    tabulated = plan.table_ptr[depth + 1] > base
    first = 1 if d > 0 and layout.parent[start] == 0 else 0
    total = 0.0
    for k in range(samples):
        p = 1.0
        if not is_set and tabulated:
            pattern = 0
            for j in range(first, d):
                if plan.worlds[layout.parent[start + j], k] > 0.5:
                    pattern |= 1 << (j - first)
            p = plan.table[base + pattern]
        elif not is_set:
            lin = quad = 0.0
            for i in range(d):
                if plan.worlds[layout.parent[start + i], k] > 0.5:
                    lin += theta[start + i]
                    for j in range(d):
                        if plan.worlds[layout.parent[start + j], k] > 0.5:
                            quad += inverse[at + i * d + j]
            p = optimistic_probability(links, v, lin, quad, rho)
        total += p
        plan.worlds[v, k] = 1.0 if plan.uniforms[depth, k] < p else 0.0
    return total / samples


@kernel
def score_sets_per_pattern(layout: Any, links: Any, tree: Any, plan: Any, theta: Any, inverse: Any, rho: Any) -> None:
    """tree.values[i] = optimistic E[Y | do(set i)]."""
    depths, member = len(tree.order), tree.member
    for depth in range(depths):
        v = tree.order[depth]
        if plan.table_ptr[depth + 1] > plan.table_ptr[depth]:
            fill_table(layout, links, plan, theta, inverse, rho[v], v, depth)
    if not plan.sampled:
        plan.weight[0] = 1.0
    value = 0.0
    for i in range(len(tree.values)):
        first = tree.first[i]
        at = members_before(member, i, first)
        for depth in range(first, depths):
            v = tree.order[depth]
            is_set = at < member.shape[1] and member[i, at] == depth
            at += is_set
            if plan.sampled:
                value = draw(layout, links, plan, theta, inverse, rho[v], v, depth, is_set)
            else:
                value = carry(plan, depth, is_set, depth == depths - 1)
        tree.values[i] = value
