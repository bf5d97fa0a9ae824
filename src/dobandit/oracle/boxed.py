"""The largest e . theta over ellipsoid and box: theta in [0,1]^d, ||theta - c||_M <= rho. Exact.

theta(s) = argmin over the box of 1/2 ||theta - c||_M^2 - s e . theta is a straight line in s on each piece where the
same coordinates sit at the same bounds (a parametric quadratic program). Follow it from s = 0, the point of the box
nearest to c, until the ellipsoid is reached. The same walk, from clip(c) with M(c - clip(c)) in place of e, finds the
nearest point. If even that lies outside the ellipsoid, the region is empty and the nearest point stands in for it
(the radius is enlarged to the smallest that makes sense).

With the box the forward recursion over nodes is exact: weights are nonnegative, so a larger parent mean never hurts.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.cholesky import factorise, solve_factored
from dobandit.graph.causal_graph import CausalGraph
from dobandit.kernels import inlined, kernel, record
from dobandit.oracle.action_list import ActionList, held_at, held_before

_TINY = 1e-12
# A coordinate of the walk: e, c and theta; the right-hand side of the walk; d theta / d s; the gradient of the
# Lagrangian at theta and how it changes with s; -1 at the bound 0, 1 at the bound 1, 0 free; the i-th free coordinate.
COORDINATE = record(
    weight="f8", center="f8", theta="f8", direction="f8", move="f8", pull="f8", change="f8", bound="i8", free="i8"
)


class Boxed(NamedTuple):
    """The plan of an evaluator: the actions, and scratch for one node's program and for the recursion over nodes."""

    actions: ActionList
    means: NDArray[np.float64]  # (n + 1,)
    highest: NDArray[np.float64]  # (n + 1,) what the mean of a variable may be at most (see `upper_means`)
    box: NDArray[Any]  # (D,) COORDINATE
    work: NDArray[np.float64]  # (D * D + D,) a factor, and a right-hand side behind it


def boxed(graph: CausalGraph, actions: ActionList, highest: float = math.inf) -> Boxed:
    """The plan for the actions of a list. highest: what the mean of a variable but the target may be at most."""
    widest, nodes = int(np.diff(graph.arrays.parent_ptr).max(initial=1)), len(graph) + 1
    most = np.full(nodes, highest)
    most[graph.arrays.target] = math.inf
    return Boxed(actions, np.zeros(nodes), most, np.zeros(widest, COORDINATE), np.zeros(widest**2 + widest))


@inlined
def solve_free(pairs: Any, at: int, d: int, box: Any, work: Any) -> None:
    """move = M_FF^-1 direction_F on the free coordinates, 0 elsewhere."""
    free, trace = 0, 0.0
    for i in range(d):
        box[i]["move"] = 0.0
        if box[i]["bound"] == 0:
            box[free]["free"] = i
            free += 1
            trace += pairs[at + i * d + i]["gram"]
    for i in range(free):
        for j in range(free):
            work[i * free + j] = pairs[at + box[i]["free"] * d + box[j]["free"]]["gram"]
        # A singular M (no data yet in some direction) gets a hair, which leaves that direction to the box.
        work[i * free + i] += 1e-14 * (trace / free) + 1e-30
        work[free * free + i] = box[box[i]["free"]]["direction"]
    if free > 0 and factorise(work, 0, free):
        solve_factored(work, 0, free, free * free, free * free)
        for i in range(free):
            box[box[i]["free"]]["move"] = work[free * free + i]


@inlined
def change_along(pairs: Any, at: int, d: int, box: Any) -> None:
    """change = direction - M move: how fast each coordinate's pull grows along the piece (0 on free ones)."""
    largest = 0.0
    for i in range(d):
        largest = max(largest, abs(box[i]["move"]))
    for i in range(d):
        total = box[i]["direction"]
        for j in range(d):
            total -= pairs[at + i * d + j]["gram"] * box[j]["move"]
        # Along a direction without data `move` is huge, and the rest of the sum is rounding that would walk in circles.
        rounding = 1e-14 * pairs[at + i * d + i]["gram"] * largest
        box[i]["change"] = total if box[i]["bound"] != 0 and abs(total) > rounding else 0.0


@inlined
def next_break(d: int, box: Any) -> tuple[float, int, int]:
    """How far the piece goes: (length, coordinate, its new bound; 0: it comes free)."""
    length, which, becomes = math.inf, -1, 0
    for i in range(d):
        room, move = math.inf, box[i]["move"]
        if box[i]["bound"] == 0:
            if move > 0.0:
                room = max(1.0 - box[i]["theta"], 0.0) / move
            elif move < 0.0:
                room = max(box[i]["theta"], 0.0) / -move
            new = 1 if move > 0 else -1
        else:
            # At 0 a coordinate stays while its pull is negative, at 1 while it is positive.
            pull, change = box[i]["pull"] * box[i]["bound"], box[i]["change"] * box[i]["bound"]
            if change < -_TINY:
                room = max(pull, 0.0) / -change
            new = 0
        if room < length:
            length, which, becomes = room, i, new
    return length, which, becomes


@inlined
def step_to_ellipsoid(pairs: Any, at: int, d: int, box: Any, rho: float) -> float:
    """The step along `move` at which ||theta - c||_M = rho; 0 if already outside, inf if never."""
    a = b = c = 0.0
    for i in range(d):
        gi, mi = box[i]["theta"] - box[i]["center"], box[i]["move"]
        for j in range(d):
            m, gj = pairs[at + i * d + j]["gram"], box[j]["theta"] - box[j]["center"]
            a += mi * m * box[j]["move"]
            b += mi * m * gj
            c += gi * m * gj
    c -= rho * rho
    if c >= 0.0:
        return 0.0
    if a <= 0.0:
        return math.inf
    root = math.sqrt(max(b * b - a * c, 0.0))
    return -c / (b + root) if b > 0.0 else (root - b) / a


@kernel
def walk(pairs: Any, at: int, d: int, box: Any, work: Any, end: float, rho: float) -> None:
    """Follow theta(s) for s up to `end`, or until the ellipsoid of radius rho is reached (infinite: ignore it).

    pairs, at  M of the node is pairs[at : at + d * d]["gram"], row by row
    box        the coordinates: theta, the bound of each, and its pull, which the walk moves on

    theta(s) minimises 1/2 ||theta - c||_M^2 - s e . theta over the box. Its conditions (Karush, Kuhn and Tucker) are,
    with the pull g = s e - M (theta - c): g = 0 on free coordinates, g <= 0 on those at 0, g >= 0 on those at 1. While
    the set F of free coordinates stays as it is, d theta_F / ds = M_FF^-1 e_F and the others stand still: a straight
    piece, along which the pulls of the others change at the steady rate e - M d theta / ds. A piece ends where the
    first of these happens, each found by a division or a square root:
    - a free coordinate meets 0 or 1: it is held there from now on;
    - the pull of a held one reaches 0: it comes free, for beyond that the conditions would fail;
    - s reaches `end`, or ||theta - c||_M reaches rho, a quadratic equation in the length of the step: done.
    e . theta(s) never falls, and by duality theta(s) is the best point of the box in the ellipsoid on whose surface it
    lies; so the point where the ellipsoid of radius rho is met is the maximum. Which coordinates are at 0, free and at
    1 holds for one interval of s, so that no piece returns in exact arithmetic. With ties, rounding could walk in
    circles: `change_along` takes rates that are mere rounding for 0, and after 20 d + 20 pieces the walk ends where it
    is, at a point that is allowed, if perhaps not the best.
    """
    s = 0.0
    for _ in range(20 * d + 20):
        solve_free(pairs, at, d, box, work)
        change_along(pairs, at, d, box)
        length, which, becomes = next_break(d, box)
        stop = min(length, end - s)
        last = stop < length
        if rho < math.inf:
            hit = step_to_ellipsoid(pairs, at, d, box, rho)
            if hit <= stop:
                stop, last = hit, True
        if stop == math.inf:
            return  # nothing moves any more: the best corner of the box lies inside the ellipsoid
        s += stop
        for i in range(d):
            box[i]["theta"] = min(max(box[i]["theta"] + stop * box[i]["move"], 0.0), 1.0)
            box[i]["pull"] += stop * box[i]["change"]
        if last:
            return
        box[which]["bound"] = becomes
        if becomes != 0:
            box[which]["theta"] = 1.0 if becomes > 0 else 0.0
        box[which]["pull"] = 0.0


@kernel
def boxed_maximum(pairs: Any, at: int, d: int, rho: float, box: Any, work: Any) -> float:
    """max of weight . theta, whose arg max is left in box[:d]["theta"]; weights, of any sign, and the center are given
    there."""
    outside = False
    for i in range(d):
        box[i]["theta"] = min(max(box[i]["center"], 0.0), 1.0)
        box[i]["bound"] = 0
        box[i]["pull"] = 0.0
        outside = outside or box[i]["theta"] != box[i]["center"]
    if outside:
        for i in range(d):
            total = 0.0
            for j in range(d):
                total += pairs[at + i * d + j]["gram"] * (box[j]["center"] - min(max(box[j]["center"], 0.0), 1.0))
            box[i]["direction"] = total
        walk(pairs, at, d, box, work, 1.0, math.inf)
    for i in range(d):
        box[i]["direction"] = box[i]["weight"]
    walk(pairs, at, d, box, work, math.inf, rho)
    total = 0.0
    for i in range(d):
        total += box[i]["weight"] * box[i]["theta"]
    return total


@kernel
def boxed_index(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    """The recursion for every action over ellipsoid and box; reach: radii by id."""
    nodes, slots, pairs, order, held = belief.nodes, belief.slots, belief.pairs, plan.actions.order, plan.actions.held
    scores, means, box = plan.actions.scores, plan.means, plan.box
    means[0] = 1.0
    for i in range(len(scores)):
        at = held_before(held, i, scores[i]["first"])
        for depth in range(scores[i]["first"], len(order)):
            v = order[depth]
            means[v], at = held_at(held, i, depth, at, fixed[v])
            if math.isnan(means[v]):
                start, d = nodes[v]["start"], nodes[v]["width"]
                for j in range(d):
                    box[j]["weight"], box[j]["center"] = means[slots[start + j]["parent"]], slots[start + j]["line"]
                most = boxed_maximum(pairs, nodes[v]["square"], d, reach[v], box, plan.work)
                means[v] = min(most, plan.highest[v])
        scores[i]["mean"] = scores[i]["index"] = means[order[len(order) - 1]]
