"""Plan and stack of the searches for the best optimistic set, with the steps that the searches share."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import csr
from dobandit.oracle.actions import Actions, order_of
from dobandit.oracle.boxed import Boxed, boxed_maximum
from dobandit.oracle.edges import Edges, edges_by_cause
from dobandit.oracle.listing import Listing, listing_of
from dobandit.oracle.rules import Rules


class OptimisticSearch(NamedTuple):
    """The oracle: plan and stack; rows are depths, that is, variables set so far. Variables are set to 1 only."""

    listing: Listing  # of one row: what was found
    box: Boxed
    most_sets: int  # looked at in a round before the best so far is taken
    greedy: bool  # the standard-oracle variant instead of the search
    size: int  # how many variables a set can hold besides the required ones
    edges: Edges
    settable: NDArray[np.int64]  # ids
    required: NDArray[np.int64]  # ids
    cost: NDArray[np.float64]  # (n + 1,)
    rival_ptr: NDArray[np.int64]  # (n + 2,) variables that a variable excludes
    rival: NDArray[np.int32]
    blocked: NDArray[np.bool_]  # (n + 1,)
    money: NDArray[np.float64]  # (K + 1,) what is left to spend
    is_set: NDArray[np.bool_]  # (n + 1,)
    open: NDArray[np.bool_]  # (n + 1,) may still be set, while a bound is worked out: counts as max(1, its mean)
    lowest: NDArray[np.float64]  # by slot
    highest: NDArray[np.float64]
    means: NDArray[np.float64]  # (n + 1,)
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    candidate: NDArray[np.int64]  # (K + 1, settable)
    gain: NDArray[np.float64]
    width: NDArray[np.int64]  # (K + 1,)
    position: NDArray[np.int64]
    value: NDArray[np.float64]
    best: NDArray[np.int64]  # (K,) ids, 0 for none
    report: NDArray[np.float64]  # (3,) best value, bound, sets looked at


def optimistic_search(graph: CausalGraph, rules: Rules, box: Boxed, most_sets: int, greedy: bool) -> OptimisticSearch:
    """For the sets that `rules` allow, on a monotone problem."""
    order = np.array(order_of(graph), dtype=np.int64)
    relevant = set(order.tolist())
    candidates = tuple(name for name in rules.candidates(graph) if graph.index(name) in relevant)
    settable = np.array([graph.index(name) for name in candidates], dtype=np.int64)
    size, nodes, slots = rules.most(candidates), len(graph) + 1, len(graph.arrays.parent)
    cost, money = np.ones(nodes), np.zeros(size + 1)
    cost[settable], money[0] = [rules.unit_cost(name) for name in candidates], rules.money * (1.0 + 1e-12)
    rival_ptr, rival = _rivals(graph, rules)
    means, low, high = (np.zeros(nodes) for _ in range(3))
    lowest, highest = np.zeros(slots), np.zeros(slots)
    is_set, is_open = (np.zeros(nodes, dtype=np.bool_) for _ in range(2))
    stack = (size + 1, max(len(settable), 1))
    row = np.zeros((1, size + len(rules.require)), dtype=np.int32)
    return OptimisticSearch(
        listing_of(order.tolist(), Actions(row, np.ones(row.shape))),
        box,
        most_sets,
        greedy,
        size,
        edges_by_cause(graph, order),
        settable,
        np.array([graph.index(name) for name in rules.require], dtype=np.int64),
        cost,
        rival_ptr,
        rival,
        np.zeros(nodes, dtype=np.bool_),
        money,
        is_set,
        is_open,
        lowest,
        highest,
        means,
        low,
        high,
        np.zeros(stack, dtype=np.int64),
        np.zeros(stack),
        np.zeros(size + 1, dtype=np.int64),
        np.zeros(size + 1, dtype=np.int64),
        np.zeros(size + 1),
        np.zeros(max(size, 1), dtype=np.int64),
        np.zeros(3),
    )


def _rivals(graph: CausalGraph, rules: Rules) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The variables that each variable excludes, grouped by variable."""
    pairs = {pair for group in rules.exclusive for pair in permutations(map(graph.index, group), 2)}
    ones, others = np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T
    return csr(ones, others, len(graph) + 1)


@kernel
def extreme_weights(layout: Any, s: Any, stats: Any, theta: Any, rho: Any) -> None:
    """The lowest and the highest value of every weight within its region and [0, 1], and within the box's nearest point
    to the estimate, which stands in for a region that the box leaves empty. It need not lie near the estimate's clipped
    weights."""
    box = s.box
    for k in range(len(s.listing.order)):
        v = s.listing.order[k]
        start = layout.ptr[v]
        d = layout.ptr[v + 1] - start
        outside = False
        for j in range(d):
            at = layout.square[v] + j * d + j
            reach = math.inf if stats.null[at] > 1e-9 else rho[v] * math.sqrt(max(stats.inverse[at], 0.0))
            # A hair of slack: regions that the box leaves empty were enlarged to their nearest point.
            s.lowest[start + j] = min(max(theta[start + j] - reach - 1e-12, 0.0), 1.0)
            s.highest[start + j] = max(min(theta[start + j] + reach + 1e-12, 1.0), 0.0)
            box.weights[j] = 0.0
            outside = outside or theta[start + j] < 0.0 or theta[start + j] > 1.0
        if outside:
            boxed_maximum(stats.gram, layout.square[v], d, theta, start, 0.0, box.weights, box)
            for j in range(d):
                s.lowest[start + j] = min(s.lowest[start + j], max(box.theta[j] - 1e-12, 0.0))
                s.highest[start + j] = max(s.highest[start + j], min(box.theta[j] + 1e-12, 1.0))


@kernel
def means_at(layout: Any, s: Any, weights: Any, fixed: Any, means: Any) -> None:
    """The means under S with the given weights; open variables count as max(1, mean)."""
    means[0] = 1.0
    for k in range(len(s.listing.order)):
        v = s.listing.order[k]
        total = 0.0
        for slot in range(layout.ptr[v], layout.ptr[v + 1]):
            total += weights[slot] * means[layout.parent[slot]]
        total = 1.0 if s.is_set[v] else total if math.isnan(fixed[v]) else fixed[v]
        means[v] = max(total, 1.0) if s.open[v] else total


@kernel
def bound_gains(layout: Any, s: Any, fixed: Any) -> None:
    """low and high under S; the gain of v is at most max(0, 1 - low[v]) high[v]."""
    means_at(layout, s, s.lowest, fixed, s.low)
    edges = s.edges
    for k in range(len(s.listing.order) - 1, -1, -1):
        v = s.listing.order[k]
        total = 1.0 if v == layout.target else 0.0
        for e in range(edges.edge_ptr[v], edges.edge_ptr[v + 1]):
            if not s.is_set[edges.effect[e]] and math.isnan(fixed[edges.effect[e]]):
                total += s.highest[edges.slot[e]] * s.high[edges.effect[e]]
        s.high[v] = total


@kernel
def start(s: Any) -> None:
    """Only the required variables are set."""
    for i in range(len(s.settable)):
        s.is_set[s.settable[i]] = False
    for i in range(len(s.required)):
        s.is_set[s.required[i]] = True


@kernel
def block_rivals(s: Any, v: int, blocked: bool) -> None:
    for r in range(s.rival_ptr[v], s.rival_ptr[v + 1]):
        s.blocked[s.rival[r]] = blocked


@kernel
def take(s: Any, v: int, money: float) -> float:
    """Set v, and block what it excludes; returns what is left to spend."""
    s.is_set[v] = True
    block_rivals(s, v, True)
    return money - s.cost[v]


@kernel
def release(s: Any, count: int) -> None:
    for i in range(count):
        block_rivals(s, s.best[i], False)


@kernel
def write_found(s: Any, count: int) -> int:
    """Leave the best set, the required variables included, in the list's one row; returns that row."""
    row = s.listing.ids[0]
    row[:] = 0
    for i in range(count):
        row[i] = s.best[i]
    for i in range(len(s.required)):
        row[count + i] = s.required[i]
    return 0
