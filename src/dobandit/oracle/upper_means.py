"""The optimistic value of every set, in the closed form of the paper's Algorithm 4 (pair-oracle for BLMs).

e_X: optimistic mean of X under do(S).  e: the parents' means.  A = M_X^+.
e_X = its value if X is set or known from the context, else e . theta_X + rho_X sqrt(e^T A e): the maximum of
e . theta' over the bare ellipsoid ||theta' - theta_X||_M <= rho_X. The [0,1] box is dropped, as printed in the paper;
`boxed` keeps it.
Values are not clipped at 1: clipping makes ties that ruin exploration. But a variable that could be 13 by itself would
then never be worth setting to 1: where sets may be smaller, or variables set to other values, the means of all
variables but the target stop at `highest` = 1, which still bounds the true ones.

The recursion runs for a block of actions at once, a column each (`frontier`). What one action shares with the next is
not worth keeping then: passes that took over what was known from the action before took two to five times as long.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.kernels import inlined, record
from dobandit.oracle.action_list import ActionList
from dobandit.oracle.frontier import whole_columns

_BLOCK = 64  # columns at most
HOLD = record(column="i8", to="f8")
Array = NDArray[np.float64]


class UpperMeans(NamedTuple):
    """The plan of an evaluator: the actions, what they set by block and depth, and scratch for the recursion."""

    actions: ActionList
    first: NDArray[np.int64]  # (blocks * depths + 1,) where the holds of a block at a depth begin
    holds: NDArray[Any]  # HOLD
    means: Array  # (n + 1, columns) e
    sums: Array  # (3, columns) e . theta, e^T A e, and sum of A_ji e_i over the causes i before j, over causes so far
    highest: Array  # (n + 1,) what the mean of a variable may be at most


def upper_means(graph: CausalGraph, actions: ActionList, highest: float = math.inf) -> UpperMeans:
    """The plan for the actions of a list. highest: what the mean of a variable but the target may be at most."""
    columns = min(whole_columns(len(actions.scores)), _BLOCK)
    first, holds = holds_by_depth(actions, columns)
    most = np.full(len(graph) + 1, highest)
    most[graph.arrays.target] = math.inf
    return UpperMeans(actions, first, holds, np.ones((len(graph) + 1, columns)), np.zeros((3, columns)), most)


def holds_by_depth(actions: ActionList, columns: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """What the actions set, in blocks of so many columns: those of a block at a depth stand together."""
    depths, depth = len(actions.order), actions.held["depth"]
    rows, which = np.nonzero(depth < depths)
    blocks = -(-len(actions.scores) // columns)
    place = rows // columns * depths + depth[rows, which]
    ranking = np.argsort(place, kind="stable")
    holds = np.zeros(depth.size, HOLD)
    holds["column"][: len(rows)] = (rows % columns)[ranking]
    holds["to"][: len(rows)] = actions.held["to"][rows, which][ranking]
    return offsets(np.bincount(place, minlength=blocks * depths)), holds


@inlined
def hold_only_row(actions: Any, first: Any, holds: Any) -> None:
    """What the only action of a list sets, which may have been written anew (`write_row`, `index_search`)."""
    held, k = actions.held, 0
    for depth in range(len(actions.order)):
        first[depth] = k
        while k < held.shape[1] and held[0, k]["depth"] == depth:
            holds[k]["column"], holds[k]["to"] = 0, held[0, k]["to"]
            k += 1
    first[len(actions.order)] = k


@inlined
def mean_alone(node: Any, slots: Any, pairs: Any, rho: float) -> float:
    """The optimistic mean of a node that depends on the constant at most, and so on no action; NaN for others."""
    if node["width"] == 0:
        return 0.0  # no parents, not even the constant
    if node["width"] > 1 or node["constant"] == 0:
        return math.nan
    theta, variance = slots[node["start"]]["line"], pairs[node["square"]]["inverse"]
    return theta if variance <= 0.0 else theta + rho * math.sqrt(variance)


@inlined
def settle_free(nodes: Any, slots: Any, pairs: Any, means: Any, sums: Any, rho: float, highest: float, v: int) -> None:
    """The optimistic means of a node with causes, in every column, as if no action set it."""
    start, at, d, columns = nodes[v]["start"], nodes[v]["square"], nodes[v]["width"], means.shape[1]
    first = slots[start]["parent"]
    theta, a = slots[start]["line"], pairs[at]["inverse"]
    for c in range(columns):
        e = means[first, c]
        sums[0, c] = theta * e
        sums[1, c] = e * (a * e)
    for j in range(1, d):
        row, here, last = at + j * d, slots[start + j]["parent"], slots[start + j - 1]["parent"]
        factor = 0.0 if j == 1 else pairs[row]["inverse"]
        for c in range(columns):
            sums[2, c] = factor * means[first, c]
        for i in range(1, j - 1):
            factor, cause = pairs[row + i]["inverse"], slots[start + i]["parent"]
            for c in range(columns):
                sums[2, c] += factor * means[cause, c]
        theta, a, before = slots[start + j]["line"], pairs[row + j]["inverse"], pairs[row + j - 1]["inverse"]
        for c in range(columns):
            e = means[here, c]
            sums[0, c] += theta * e
            sums[1, c] += e * (a * e + 2.0 * (sums[2, c] + before * means[last, c]))
    for c in range(columns):  # rounding may leave the square a hair below 0
        lin, quad = sums[0, c], sums[1, c]
        means[v, c] = min(lin if quad <= 0.0 else lin + rho * math.sqrt(quad), highest)


@inlined
def upper_index(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    """The recursion, for one block of actions after the other; reach: radii by id."""
    nodes, slots, pairs, order = belief.nodes, belief.slots, belief.pairs, plan.actions.order
    first, holds, means, sums, scores = plan.first, plan.holds, plan.means, plan.sums, plan.actions.scores
    columns, target, place = plan.means.shape[1], plan.actions.order[len(plan.actions.order) - 1], 0
    if len(scores) == 1:
        hold_only_row(plan.actions, first, holds)
    for start in range(0, len(scores), columns):
        for depth in range(len(order)):
            v = order[depth]
            known = fixed[v]
            if math.isnan(known):
                known = min(mean_alone(nodes[v], slots, pairs, reach[v]), plan.highest[v])
            if math.isnan(known):
                settle_free(nodes, slots, pairs, means, sums, reach[v], plan.highest[v], v)
            else:
                for c in range(columns):
                    means[v, c] = known
            for k in range(first[place], first[place + 1]):
                means[v, holds[k]["column"]] = holds[k]["to"]
            place += 1
        for c in range(min(columns, len(scores) - start)):
            scores[start + c]["mean"] = scores[start + c]["index"] = means[target, c]
