"""One bonus for E[Y | do(S)], for linear models: value + c sqrt(sum over nodes X of w_X^2 q_X).

m: means under do(S), one pass forwards.  w_X = dE[Y] / dm_X: the total weight of the paths from X to Y that avoid S,
one pass backwards.  A_X: the covariance of X's weights.  q_X = m' A_X m over X's parents: the variance of X's mean
given its parents' means. Errors of different nodes are independent, so that their shares of E[Y]'s variance add up (the
delta method); the widths of nodes on a path do not, as they do in the recursion over upper values. No sign is assumed,
and nothing is clipped, which would tie actions that differ.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.oracle.closed_form import Edges, edges_by_cause
from dobandit.oracle.listing import Listing, members_before, pick_best, prepare, propose, score, score_first


class JointLinear(NamedTuple):
    """The oracle: actions, edges, and scratch by id."""

    listing: Listing
    edges: Edges
    means: NDArray[np.float64]
    weight: NDArray[np.float64]  # w
    spread: NDArray[np.float64]  # q; 0 where a node is set or known
    free: NDArray[np.bool_]


def joint_linear(graph: CausalGraph, listing: Listing) -> JointLinear:
    """The oracle for the actions of a list."""
    nodes = len(graph) + 1
    means, weight, spread = np.zeros((3, nodes))
    free = np.zeros(nodes, dtype=np.bool_)
    return JointLinear(listing, edges_by_cause(graph, listing.order), means, weight, spread, free)


@inlined
def mean_and_spread(layout: Any, oracle: Any, theta: Any, covariance: Any, v: int) -> None:
    """The mean of v given its parents' means, and the variance of that."""
    start, at = layout.ptr[v], layout.square[v]
    d = layout.ptr[v + 1] - start
    mean = spread = 0.0
    for i in range(d):
        x = oracle.means[layout.parent[start + i]]
        if x == 0.0:
            continue
        mean += x * theta[start + i]
        cross = 0.0
        for j in range(i):
            cross += covariance[at + i * d + j] * oracle.means[layout.parent[start + j]]
        spread += x * (covariance[at + i * d + i] * x + 2.0 * cross)
    oracle.means[v], oracle.spread[v] = mean, spread


@kernel
def joint_variance(layout: Any, oracle: Any, theta: Any) -> float:
    """The variance of E[Y], from the spread of every free node: the backward pass."""
    order, edges, weight = oracle.listing.order, oracle.edges, oracle.weight
    variance = 0.0
    for k in range(len(order) - 1, -1, -1):
        v = order[k]
        total = 1.0 if v == layout.target else 0.0
        for e in range(edges.edge_ptr[v], edges.edge_ptr[v + 1]):
            if oracle.free[edges.effect[e]]:
                total += theta[edges.slot[e]] * weight[edges.effect[e]]
        weight[v] = total
        if oracle.free[v]:
            variance += total * total * oracle.spread[v]
    return variance


def score_joint_linear(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """Both passes for every action; forwards only from the first variable on which it differs from the one before."""
    listing, free, means, theta = oracle.listing, oracle.free, oracle.means, state.theta
    order, member, to = listing.order, listing.member, listing.member_to
    means[0] = 1.0
    for i in range(len(listing.values)):
        first = listing.first[i]
        at = members_before(member, i, first)
        for depth in range(first, len(order)):
            v = order[depth]
            is_set = at < member.shape[1] and member[i, at] == depth
            free[v] = not is_set and math.isnan(fixed[v])
            if free[v]:
                mean_and_spread(layout, oracle, theta, state.stats.inverse, v)
            elif is_set:
                means[v] = to[i, at]
                at += 1
            else:
                means[v] = fixed[v]
        bonus = rho[layout.target]
        value = means[layout.target]
        if bonus > 0.0:
            value += bonus * math.sqrt(max(joint_variance(layout, oracle, theta), 0.0))
        listing.values[i] = value


@prepare.of(JointLinear)
def prepare_joint_linear(oracle: Any, layout: Any, state: Any) -> None:
    """Nothing."""


score.of(JointLinear)(score_joint_linear)
score_first.of(JointLinear)(score_joint_linear)
propose.of(JointLinear)(pick_best)
