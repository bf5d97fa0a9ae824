"""Intervals of P(X = 1 | parents) that hold at every round they are looked at, from likelihood ratios.

L_t(theta) = -log P_theta(x_1..x_t | parents).  Q_t = -log q(x_1..x_t), q any probability of the rows given parents.
delta_X = delta / n: the share of each of the n nodes that matter (the target and its ancestors).
exp(L_t(theta) - Q_t) at the true theta is a product of ratios with mean 1 given the past, however rows are chosen:
by Ville's inequality it stays below 1 / delta_X for all t at once with probability 1 - delta_X. So the true theta is in
    C_t = {theta: L_t(theta) <= B_t},  B_t = Q_t + log(1 / delta_X).
table     any probability for each of the m = 2^parents patterns: {p: l(p) <= KT(c, s) + log(m / delta_X)}, each pattern
          by itself, KT Krichevsky and Trofimov's code length; right wherever the graph is
promised  f(theta . V), f a link that makes L convex, with fewer weights than patterns: p(V) runs over f(theta . V),
          theta in C_t, and over the table's interval; q is an average over weights (`marginal_likelihood`). Where C_t
          is empty, which refutes the promise, and where the two do not meet, the table's interval stands alone.
A promise never widens an interval: what the table leaves of delta_X pays for its set. With a = delta_X / m and M_i the
ratio of pattern i, the product of 1 - a M_i, 0 once some M_i has reached 1 / a, never falls on average, since each row
moves one factor. So all patterns hold with probability (1 - a)^m >= 1 - delta_X + s (inclusion and exclusion),
    s = delta_X^2 / 2 (1 - 1 / m) (1 - delta_X / 3),  and C_t with Q_t + log(1 / s) fails with probability s.
q does not depend on the order of the rows, so that rows may come as counts. Looks are at what has been told by then:
among the rows of a batch whose order is lost there are none.
The ends are outer bounds wherever the numerics stop. With g the gradient at any theta_0 of L with barrier and ridge,
and a = mu (g - rest), convexity gives for every theta in C_t whose weights are at most R
    a . theta <= a . theta_0 + mu (B - L(theta_0) + barrier * (guarded patterns)
                                   + ridge (R |theta_0|_1 - |theta_0|^2) + sum_j |rest_j| (R + |theta_0,j|)),
since on the domain a barrier's slope can mislead a tangent by at most `barrier`. The search only makes this tight.
Weights of logistic and probit links, and of the exponential one, are taken to be at most R = 30.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import Belief
from dobandit.estimation.cholesky import dot, factorise, solve_factored
from dobandit.estimation.kl import code_length_interval
from dobandit.estimation.log_likelihood import (
    ALONG,
    CENTRE,
    GRAD,
    HESS,
    LEAN,
    THETA,
    descend,
    has_domain,
    node_loss,
    scratch,
)
from dobandit.estimation.marginal_likelihood import predicted_length, promised_length
from dobandit.estimation.score_equation import LARGEST
from dobandit.kernels import kernel
from dobandit.model.link_kernels import IDENTITY, value_at

_GUARD = 0.05  # nats, shared by the guarded patterns of a node
_TURNS = 12
_CLOSE = 0.02  # of the way from the centre to the end
_SURE = 1e-3
Array = NDArray[np.float64]
Centre = tuple[float, float, float, float, float]


def pattern_intervals(state: Belief, v: int, nats: float) -> tuple[Array, Array]:
    """The ends of P(v = 1 | pattern i) for each of v's 2^parents patterns, bit j of i the j-th parent that is not the
    constant; nats = log(1 / delta_X). Promises are a kernel of their own: with learned links it is never compiled."""
    low, high = table_intervals(state.nodes, state.cells, v, nats)
    if state.nodes[v]["promised"]:
        narrow_promised(
            state.nodes, state.cells, state.bits, state.points, v, spare_nats(nats, float(len(low))), low, high
        )
    return low, high


@kernel
def table_intervals(nodes: Any, cells: Any, v: int, nats: float) -> tuple[Array, Array]:
    """The ends of a table's patterns."""
    node = nodes[v]
    low, high = np.zeros(node["cells"]), np.zeros(node["cells"])
    if node["width"] > 0:  # else it cannot happen by itself
        for k in range(node["cells"]):
            cell = cells[node["cell"] + k]
            low[k], high[k] = code_length_interval(cell["seen"], cell["total"], nats + math.log(float(node["cells"])))
    return low, high


@kernel
def spare_nats(nats: float, cells: float) -> float:
    """log(1 / s): what the intervals of so many cells leave of delta_X = exp(-nats); that of one leaves nothing."""
    if cells <= 1.0:
        return math.inf
    return 2.0 * nats + math.log(2.0) - math.log1p(-1.0 / cells) - math.log1p(-math.exp(-nats) / 3.0)


@kernel
def narrow_promised(nodes: Any, cells: Any, bits: Any, points: Any, v: int, nats: float, low: Any, high: Any) -> None:
    """Narrow the table's intervals of a node to f(theta . V), theta in C_t, V each pattern, unless that refutes the
    promise; nats = log(1 / s)."""
    node = nodes[v]
    length, work = predicted_length(node, cells, promised_length(node, cells, bits)), scratch(node)
    holds, centre = find_centre(node, cells, bits, work, length + nats)
    for k in range(node["cells"] if holds else 0):
        least = most = 0.0
        for end in range(2):
            x = (2.0 * end - 1.0) * highest(node, cells, bits, points, work, centre, k, end)
            least, most = most, min(max(value_at(node, points, x), 0.0), 1.0)
        if least <= high[k] and most >= low[k]:  # else the promise is refuted here
            low[k], high[k] = max(low[k], least), min(high[k], most)


@kernel
def find_centre(node: Any, cells: Any, bits: Any, work: Any, budget: float) -> tuple[bool, Centre]:
    """Whether C_t has any weights, budget = B, and what the search for each end starts from: the least L,
    B + barrier * (guarded patterns), barrier, ridge and R. Leaves the weights at CENTRE."""
    code, d, guarded = node["link"], node["width"], 0.0
    for k in range(node["cell"], node["cell"] + node["cells"]):
        ones, seen = cells[k]["total"], cells[k]["seen"]
        if seen > 0.0 and ((has_domain(code) and ones == 0.0) or (code == IDENTITY and ones == seen)):
            guarded += 1.0
    barrier = _GUARD / max(guarded, 1.0)
    ridge, most = (1e-3, 1.0) if code == IDENTITY else (1e-4, LARGEST)
    loss, _ = descend(node, cells, bits, work, CENTRE * d, 0.0, barrier, ridge)
    centre = loss, budget + barrier * guarded, barrier, ridge, most
    return loss < math.inf and room_at(work, CENTRE * d, d, loss, centre) >= 0.0, centre


@kernel
def room_at(work: Any, theta: int, d: int, loss: float, centre: Centre) -> float:
    """How far, in nats, the tangent at theta can rise on C_t; below 0 where the gradient is 0: C_t is empty."""
    _, budget, _, ridge, most = centre
    room = budget - loss
    for j in range(d):
        size = abs(work[theta + j])
        room += ridge * size * (most - size) + abs(work[GRAD * d + j]) * (most + size)
    return room


@kernel
def highest(node: Any, cells: Any, bits: Any, points: Any, work: Any, centre: Centre, k: int, end: int) -> float:
    """An outer bound of the largest a . theta over C_t: end = 1: a = V, the node's pattern k; end = 0: a = -V. It is
    infinite where f(theta . V) is nearly 1, or nearly 0.

    h(z) = min L where a . theta = z is convex. Where z can grow freely the search is Newton's for h(z) = B, whose steps
    stay outside; h grows like a line there. Where a domain ends, h grows like a logarithm, and the search is for the
    multiplier: by Newton's method for log(L - L(centre)) as a function of log pull, a line for a quadratic L.
    """
    d, code = node["width"], node["link"]
    least, budget, barrier, ridge, largest = centre
    theta, along, lean, hess = THETA * d, ALONG * d, LEAN * d, HESS * d
    tied = code != IDENTITY and (end == 1 or not has_domain(code))
    square = 0.0
    for j in range(d):
        work[theta + j] = work[CENTRE * d + j]
        work[along + j] = (2.0 * end - 1.0) * bits[node["bit"] + k * d + j]
        square += work[along + j] * work[along + j]
    bound = square * largest  # entries of V are 0 and 1
    node_loss(node, cells, bits, work, theta, barrier, ridge)
    if square == 0.0 or not factorise(work, hess, d):
        return bound
    solve_factored(work, hess, d, along, lean)
    middle, spread = dot(work, along, work, theta, d), dot(work, along, work, lean, d)
    room, inner = max(budget - least, 0.01), middle
    pull, z, at = math.sqrt(2.0 * room / spread), middle + math.sqrt(2.0 * room * spread), middle  # if L is quadratic
    for _ in range(_TURNS):
        if tied:
            for j in range(d):  # without leaving the domain: towards the centre, or along `a` itself
                if z < at:
                    work[theta + j] += (work[CENTRE * d + j] - work[theta + j]) * (at - z) / (at - middle)
                else:
                    work[theta + j] += (z - at) * (
                        work[along + j] / square if has_domain(code) else work[lean + j] / spread
                    )
        loss, pull = descend(node, cells, bits, work, theta, math.nan if tied else pull, barrier, ridge)
        if not loss < math.inf:
            break
        at = dot(work, along, work, theta, d)
        if pull > 0.0:
            bound = min(bound, at + room_at(work, theta, d, loss, centre) / pull)
        if loss <= budget:
            inner = max(inner, at)
            if abs(value_at(node, points, at if end else -at) - end) < _SURE:
                return math.inf
        risen = max(loss - least, 1e-3 * room)
        if abs(risen / room - 1.0) < _CLOSE or bound - inner < 0.5 * _CLOSE * (bound - middle):
            break
        solve_factored(work, hess, d, along, lean)
        spread = dot(work, along, work, lean, d)
        if tied:
            z = at + (budget - loss) / max(pull, 1e-300)
            z = min(max(z, inner + 0.1 * (at - inner)), middle + 4.0 * (at - middle))
        else:
            leap = math.log(risen / room) * risen / max(pull * pull * spread, 1e-300)
            pull *= math.exp(min(max(-leap, -2.0), 2.0))
    return bound
