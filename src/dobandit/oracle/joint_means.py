"""Value plus bonus from means alone: one pass forwards for means and spreads, one backwards for weights.

m: means under do(S).  s_XP: how much X's mean moves with that of its parent P.  q_X: the variance of X's mean given its
parents' means.  w_X = dE[Y] / dm_X = sum over X's free effects C of s_CX w_C.
    index = m_Y + c sqrt(sum over free nodes X of w_X^2 q_X)
Errors of different nodes are independent, so that their shares of E[Y]'s variance add up (the delta method). What a
node's mean, s and q are is up to the oracle (`settle`). For linear models (`JointLinear`) w_X is the total weight of
the paths from X to Y that avoid S, and q_X = m' A_X m over X's parents, A_X the covariance of X's weights. No sign is
assumed, and nothing is clipped, which would tie actions that differ. A search tries one lever more on an action that
it has scored: then only nodes are settled again that the lever reaches.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import by_type, inlined, kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.oracle.listing import Listing, held_at, members_before, pick_best, prepare, propose, score, score_prepared


class Edges(NamedTuple):
    """Edges into the target's ancestors (and the target), grouped by cause."""

    edge_ptr: NDArray[np.int64]  # (n + 2,)
    effect: NDArray[np.int64]  # effect of each such edge
    slot: NDArray[np.int64]  # its slot among the effect's parents


def edges_by_cause(graph: CausalGraph, order: NDArray[np.int64]) -> Edges:
    """The edges into the nodes of `order`."""
    parent, relevant = graph.arrays.parent, np.zeros(len(graph) + 1, dtype=bool)
    relevant[order] = True
    child = graph.slot_child
    slots = np.flatnonzero(relevant[child])
    slots = slots[np.argsort(parent[slots], kind="stable")]
    return Edges(offsets(np.bincount(parent[slots], minlength=len(relevant))), child[slots], slots)


class Walk(NamedTuple):
    """The edges, and scratch of both passes: by id, but for what is said."""

    edges: Edges
    known: NDArray[np.float64]  # (depths,) value given to a node, NaN: free
    means: NDArray[np.float64]
    spread: NDArray[np.float64]  # q
    weight: NDArray[np.float64]  # w
    slope: NDArray[np.float64]  # by slot: s
    kept_means: NDArray[np.float64]  # what a trial has changed, as it was before
    kept_spread: NDArray[np.float64]
    kept_slope: NDArray[np.float64]
    moved: NDArray[np.bool_]  # whose mean has changed since the action before
    settled: NDArray[np.int64]  # (depths,) what a trial has settled again


def walk_of(graph: CausalGraph, listing: Listing) -> Walk:
    """Scratch for the actions of a list."""
    nodes, slots, depths = len(graph) + 1, len(graph.arrays.parent), len(listing.order)
    means, spread, weight, kept_means, kept_spread = np.zeros((5, nodes))
    slope, kept_slope = np.zeros((2, slots))
    means[0] = 1.0
    return Walk(
        edges_by_cause(graph, listing.order),
        np.full(depths, math.nan),
        means,
        spread,
        weight,
        slope,
        kept_means,
        kept_spread,
        kept_slope,
        np.zeros(nodes, dtype=np.bool_),
        np.zeros(depths, dtype=np.int64),
    )


@by_type
def settle(oracle: Any, layout: Any, state: Any, depth: int, spreads: bool) -> None:
    """The mean of the node at `depth` given its parents' means, and, where spreads are wanted, q and s."""


@inlined
def joint_variance(oracle: Any, layout: Any) -> float:
    """The variance of E[Y]: the backward pass."""
    order, walk, edges = oracle.listing.order, oracle.walk, oracle.walk.edges
    known, weight = walk.known, walk.weight
    variance = 0.0
    for depth in range(len(order) - 1, -1, -1):
        v = order[depth]
        total = 1.0 if v == layout.target else 0.0
        for e in range(edges.edge_ptr[v], edges.edge_ptr[v + 1]):
            total += walk.slope[edges.slot[e]] * weight[edges.effect[e]]
        if math.isnan(known[depth]):
            weight[v] = total
            variance += total * total * walk.spread[v]
        else:
            weight[v] = 0.0  # nothing moves it
    return variance


@inlined
def index_now(oracle: Any, layout: Any, bonus: float) -> float:
    """The index of the action that has been walked."""
    value = oracle.walk.means[layout.target]
    return value + bonus * math.sqrt(max(joint_variance(oracle, layout), 0.0)) if bonus > 0.0 else value


@inlined
def reached(layout: Any, moved: Any, v: int) -> bool:
    """Whether the mean of a parent of v has changed."""
    some = False
    for slot in range(layout.ptr[v], layout.ptr[v + 1]):
        some = some or moved[layout.parent[slot]]
    return some


@kernel
def score_means(oracle: Any, layout: Any, state: Any, bonus: float, fixed: Any) -> None:
    """Both passes for every action; forwards only where something differs from the action before."""
    listing, known, means, moved = oracle.listing, oracle.walk.known, oracle.walk.means, oracle.walk.moved
    for i in range(len(listing.values)):
        for depth in range(listing.first[i]):
            moved[listing.order[depth]] = False
        at = members_before(listing.member, i, listing.first[i])
        for depth in range(listing.first[i], len(listing.order)):
            v, held = listing.order[depth], not math.isnan(known[depth])
            known[depth], at = held_at(listing, i, depth, at, fixed)
            before = means[v]
            if not math.isnan(known[depth]):
                means[v] = known[depth]
            elif i == 0 or held or reached(layout, moved, v):
                settle(oracle, layout, state, depth, bonus > 0.0)
            moved[v] = means[v] != before
        listing.values[i] = index_now(oracle, layout, bonus)
    for depth in range(len(listing.order)):
        moved[listing.order[depth]] = False


def score_prepared_means(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """Both passes for every action."""
    score_means(oracle, layout, state, rho[layout.target], fixed)


def score_by_means(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """What no action changes, then both passes for every action."""
    prepare(oracle, layout, state, rho)
    score_means(oracle, layout, state, rho[layout.target], fixed)


@kernel
def index_with(oracle: Any, layout: Any, state: Any, bonus: float, depth: int, to: float) -> float:
    """The index of the list's first action, which was scored last, with the node at `depth` held too."""
    order, walk = oracle.listing.order, oracle.walk
    if depth == len(order):  # it does not matter to the target
        return oracle.listing.values[0]
    held, was, count = order[depth], walk.known[depth], 0
    walk.kept_means[held], walk.known[depth], walk.means[held] = walk.means[held], to, to
    walk.moved[held] = to != walk.kept_means[held]
    for k in range(depth + 1, len(order) if walk.moved[held] else 0):
        v = order[k]
        if math.isnan(walk.known[k]) and reached(layout, walk.moved, v):
            walk.kept_means[v], walk.kept_spread[v] = walk.means[v], walk.spread[v]
            for slot in range(layout.ptr[v], layout.ptr[v + 1]):
                walk.kept_slope[slot] = walk.slope[slot]
            settle(oracle, layout, state, k, bonus > 0.0)
            walk.moved[v] = walk.means[v] != walk.kept_means[v]
            walk.settled[count] = v
            count += 1
    value = index_now(oracle, layout, bonus)
    for k in range(count):
        v = walk.settled[k]
        walk.means[v], walk.spread[v], walk.moved[v] = walk.kept_means[v], walk.kept_spread[v], False
        for slot in range(layout.ptr[v], layout.ptr[v + 1]):
            walk.slope[slot] = walk.kept_slope[slot]
    walk.means[held], walk.known[depth], walk.moved[held] = walk.kept_means[held], was, False
    return value


class JointLinear(NamedTuple):
    """The oracle: actions and scratch."""

    listing: Listing
    walk: Walk


def joint_linear(graph: CausalGraph, listing: Listing) -> JointLinear:
    """The oracle for the actions of a list."""
    return JointLinear(listing, walk_of(graph, listing))


@prepare.of(JointLinear)
def prepare_joint_linear(oracle: Any, layout: Any, state: Any, rho: Any) -> None:
    """A mean moves with its parents' as their weights say."""
    for slot in range(len(state.theta)):
        oracle.walk.slope[slot] = state.theta[slot]


@settle.of(JointLinear)
def settle_linear(oracle: Any, layout: Any, state: Any, depth: int, spreads: bool) -> None:
    """The mean and its variance."""
    v, means, covariance = oracle.listing.order[depth], oracle.walk.means, state.stats.inverse
    start, at = layout.ptr[v], layout.square[v]
    d = layout.ptr[v + 1] - start
    mean = spread = 0.0
    for i in range(d):
        x = means[layout.parent[start + i]]
        if x == 0.0:
            continue
        mean += x * state.theta[start + i]
        cross = 0.0
        for j in range(i):
            cross += covariance[at + i * d + j] * means[layout.parent[start + j]]
        spread += x * (covariance[at + i * d + i] * x + 2.0 * cross)
    means[v], oracle.walk.spread[v] = mean, spread


score.of(JointLinear)(score_by_means)
score_prepared.of(JointLinear)(score_prepared_means)
propose.of(JointLinear)(pick_best)
