"""One bonus for E[Y | do(S)], for linear models: value + c sqrt(sum over nodes X of w_X^2 q_X) (`joint_means`).

w_X is the total weight of the paths from X to Y that avoid S.  A_X: the covariance of X's weights.  q_X = m' A_X m over
X's parents.  The widths of nodes on a path do not add up, as they do in the recursion over upper values. No sign is
assumed, and nothing is clipped, which would tie actions that differ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dobandit.graph.causal_graph import CausalGraph
from dobandit.oracle.joint_means import Walk, score_by_means, settle, walk_of
from dobandit.oracle.listing import Listing, pick_best, prepare, propose, score


class JointLinear(NamedTuple):
    """The oracle: actions and scratch."""

    listing: Listing
    walk: Walk


def joint_linear(graph: CausalGraph, listing: Listing) -> JointLinear:
    """The oracle for the actions of a list."""
    return JointLinear(listing, walk_of(graph, listing))


@prepare.of(JointLinear)
def prepare_joint_linear(oracle: Any, layout: Any, state: Any) -> None:
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
propose.of(JointLinear)(pick_best)
