"""The optimistic value of every set, in the closed form of the paper's Algorithm 4 (pair-oracle for BLMs).

e_X: optimistic mean of X under do(S).  e: the parents' means.  A = M_X^+.
e_X = its value if X is set or known from the context, else e . theta_X + rho_X sqrt(e^T A e): the maximum of
e . theta' over the bare ellipsoid ||theta' - theta_X||_M <= rho_X. The [0,1] box is dropped, as printed in the paper;
`boxed` keeps it.
Values are not clipped at 1: clipping makes ties that ruin exploration. But a variable that could be 13 by itself would
then never be worth setting to 1: where sets may be smaller, or variables set to other values, the means of all
variables but the target stop at `highest` = 1, which still bounds the true ones.

lin[slot] and quad[slot] hold e . theta and e^T A e over the parents up to that slot, so a decision adds O(d) a child.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined
from dobandit.graph.causal_graph import CausalGraph
from dobandit.oracle.listing import Listing, held_at, members_before, pick_best, propose, score


class Edges(NamedTuple):
    """Edges into the target's ancestors (and the target), grouped by cause."""

    edge_ptr: NDArray[np.int64]  # (n + 2,)
    effect: NDArray[np.int64]  # effect of each such edge
    slot: NDArray[np.int64]  # its slot among the effect's parents


class ClosedForm(NamedTuple):
    """The oracle: the actions, the edges, and scratch for the recursion."""

    listing: Listing
    edges: Edges
    means: NDArray[np.float64]  # (n + 1,)
    lin: NDArray[np.float64]
    quad: NDArray[np.float64]
    alone: NDArray[np.float64]  # (n + 1,) e_X where X depends on nothing that can be set, else NaN; once per round
    highest: float = math.inf  # mean of a variable that is not the target


def edges_by_cause(graph: CausalGraph, order: NDArray[np.int64]) -> Edges:
    """The edges into the nodes of `order`."""
    ptr, parent = graph.arrays.parent_ptr, graph.arrays.parent
    relevant = np.zeros(len(graph) + 1, dtype=bool)
    relevant[order] = True
    child = graph.slot_child
    slots = np.flatnonzero(relevant[child])
    slots = slots[np.argsort(parent[slots], kind="stable")]
    edge_ptr = np.zeros(len(ptr), dtype=np.int64)
    np.cumsum(np.bincount(parent[slots], minlength=len(ptr) - 1), out=edge_ptr[1:])
    return Edges(edge_ptr, child[slots], slots)


def closed_form(graph: CausalGraph, listing: Listing, highest: float = math.inf) -> ClosedForm:
    """The oracle for the actions of a list. highest: what the mean of a variable but the target may be at most."""
    sums = np.zeros((2, len(graph.arrays.parent)))
    edges, means = edges_by_cause(graph, listing.order), np.zeros(len(graph) + 1)
    return ClosedForm(listing, edges, means, sums[0], sums[1], np.zeros(len(graph) + 1), highest)


@inlined
def push(layout: Any, form: Any, theta: Any, inverse: Any, v: int) -> None:
    """Carry v's mean into the partial sums of its effects."""
    e, edges = form.means[v], form.edges
    for k in range(edges.edge_ptr[v], edges.edge_ptr[v + 1]):
        c, slot = edges.effect[k], edges.slot[k]
        start = layout.ptr[c]
        d, j = layout.ptr[c + 1] - start, slot - start
        base = layout.square[c] + j * d
        cross = 0.0
        for i in range(j):
            cross += inverse[base + i] * form.means[layout.parent[start + i]]
        lin, quad = theta[slot] * e, e * (inverse[base + j] * e + 2.0 * cross)
        if j > 0:
            lin += form.lin[slot - 1]
            quad += form.quad[slot - 1]
        form.lin[slot] = lin
        form.quad[slot] = quad


@inlined
def optimistic_mean(layout: Any, form: Any, rho: Any, v: int) -> float:
    """What the partial sums of all of v's parents amount to."""
    last = layout.ptr[v + 1] - 1
    if last < layout.ptr[v]:
        return 0.0  # no parents, not even the constant
    if form.quad[last] <= 0.0:  # rounding may leave it a hair below
        return form.lin[last]
    return form.lin[last] + rho[v] * math.sqrt(form.quad[last])


@inlined
def settle_alone(layout: Any, form: Any, rho: Any) -> None:
    """The means of nodes that depend on the constant at most, which no set changes."""
    for depth in range(len(form.listing.order)):
        v = form.listing.order[depth]
        start, end = layout.ptr[v], layout.ptr[v + 1]
        alone = end == start or (end == start + 1 and layout.parent[start] == 0)
        form.alone[v] = optimistic_mean(layout, form, rho, v) if alone else math.nan


@score.of(ClosedForm)
def score_closed_form(form: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """The recursion for every action, from the first variable on which it differs from the action before."""
    listing, means, theta, inverse = form.listing, form.means, state.theta, state.stats.inverse
    means[0] = 1.0
    push(layout, form, theta, inverse, 0)
    settle_alone(layout, form, rho)
    for i in range(len(listing.values)):
        at = members_before(listing.member, i, listing.first[i])
        for depth in range(listing.first[i], len(listing.order)):
            v = listing.order[depth]
            means[v], at = held_at(listing, i, depth, at, fixed)
            if math.isnan(means[v]):
                means[v] = form.alone[v]
                if math.isnan(means[v]):
                    means[v] = optimistic_mean(layout, form, rho, v)
                if v != layout.target:
                    means[v] = min(means[v], form.highest)
            push(layout, form, theta, inverse, v)
        listing.values[i] = means[layout.target]


propose.of(ClosedForm)(pick_best)
