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
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import by_type, inlined, kernel
from dobandit.estimation.belief import Layout, named_parents
from dobandit.estimation.least_squares import dot, factorise, pattern_row, solve_factored
from dobandit.estimation.log_likelihood import descend, has_domain, node_slopes
from dobandit.estimation.marginal_likelihood import code_length, predicted_length
from dobandit.estimation.mixture import CURVED, STRAIGHT, Mixture
from dobandit.estimation.score_equation import LARGEST
from dobandit.model.link_kernels import CODES, IDENTITY, LinkArrays, link_value

_GUARD = 0.05  # nats, shared by the guarded patterns of a node
_TURNS = 12
_CLOSE = 0.02  # of the way from the centre to the end
_SURE = 1e-3
_HALVINGS = 45


class SomePromised(NamedTuple):
    """Some nodes' links are promised."""

    nodes: int = 0


class NonePromised(NamedTuple):
    """All nodes are tables, for which there is far less to compile."""

    nodes: int = 0


class LikelihoodSets(NamedTuple):
    """What stays fixed, and scratch; D: the most parents of a node, the constant counted."""

    kind: Any  # SomePromised or NonePromised
    promised: NDArray[np.bool_]  # (n + 1,) whether a node's link is promised, and makes L convex
    links: LinkArrays
    centre: NDArray[np.float64]  # (D,) where L with barrier and ridge is least
    curve: NDArray[np.float64]  # (D * D,) the factor of the Hessian there
    theta: NDArray[np.float64]  # (D,)
    along: NDArray[np.float64]  # (D,) a
    grad: NDArray[np.float64]  # (D,)
    step: NDArray[np.float64]  # (D,)
    trial: NDArray[np.float64]  # (D,)
    lean: NDArray[np.float64]  # (D,)
    sizes: NDArray[np.float64]  # (D,)
    hess: NDArray[np.float64]  # (D * D,)
    row: NDArray[np.float64]  # (D,)
    ends: NDArray[np.float64]  # (2,)


class Centre(NamedTuple):
    """What the search for each end of a node's intervals starts from."""

    status: int  # 0: C_t is empty; 1: it is not
    loss: float  # L at the centre
    budget: float  # B + barrier * (guarded state)
    barrier: float
    ridge: float
    most: float  # R


def likelihood_sets(layout: Layout, mix: Mixture) -> LikelihoodSets:
    """The sets of a mixture: a node with one member, a line or a curve, and fewer weights than patterns is promised;
    any other is a table."""
    alone = mix.has.sum(axis=1) == 1
    straight = alone & mix.has[:, STRAIGHT]
    code = np.where(straight, IDENTITY, mix.links.code)
    convex = np.isin(code, [CODES[name] for name in ("identity", "logistic", "probit", "exponential")])
    fewer = np.diff(layout.ptr) < np.exp2(named_parents(layout))  # weights than patterns
    promised = (straight | (alone & mix.has[:, CURVED])) & convex & fewer
    widest = int(np.diff(layout.ptr).max(initial=1))
    links = mix.links._replace(code=code, parameter=np.where(straight, 0.0, mix.links.parameter))
    vector, square = partial(np.zeros, widest), partial(np.zeros, widest * widest)
    return LikelihoodSets(
        SomePromised() if promised.any() else NonePromised(),
        promised,
        links,
        centre=vector(),
        curve=square(),
        theta=vector(),
        along=vector(),
        grad=vector(),
        step=vector(),
        trial=vector(),
        lean=vector(),
        sizes=vector(),
        hess=square(),
        row=vector(),
        ends=np.zeros(2),
    )


@kernel
def table_interval(seen: float, ones: float, nats: float, out: Any) -> None:
    """out[0], out[1] = the ends of {p: l(p) <= KT + nats}, by bisection that keeps the outer side."""
    out[0], out[1] = 0.0, 1.0
    if seen <= 0.0:
        return
    budget, middle, zeros = code_length(seen, ones) + nats, ones / seen, seen - ones
    for end in range(2):
        if (end == 0 and ones == 0.0) or (end == 1 and zeros == 0.0):
            continue
        inside, outside = middle, float(end)
        for _ in range(_HALVINGS):
            p = 0.5 * (inside + outside)
            loss = (-ones * math.log(p) if ones > 0.0 else 0.0) - (zeros * math.log(1.0 - p) if zeros > 0.0 else 0.0)
            if loss > budget:
                outside = p
            else:
                inside = p
        out[end] = outside


@inlined
def spare_nats(nats: float, cells: float) -> float:
    """log(1 / s): what the intervals of so many cells leave of delta_X = exp(-nats)."""
    return 2.0 * nats + math.log(2.0) - math.log1p(-1.0 / cells) - math.log1p(-math.exp(-nats) / 3.0)


@kernel
def find_centre(layout: Any, sets: Any, state: Any, v: int, nats: float) -> Any:
    """The least L of a promised node, with the Hessian's factor there, and the budget; nats = log(1 / s)."""
    links = sets.links
    code, d = links.code[v], layout.ptr[v + 1] - layout.ptr[v]
    guarded = 0.0
    for k in range(state.nodes["cells"][v]):
        ones, seen = state.cells["total"][state.nodes["cell"][v] + k], state.cells["seen"][state.nodes["cell"][v] + k]
        if seen > 0.0 and ((has_domain(code) and ones == 0.0) or (code == IDENTITY and ones == seen)):
            guarded += 1.0
    barrier = _GUARD / max(guarded, 1.0)
    ridge, most = (1e-3, 1.0) if code == IDENTITY else (1e-4, LARGEST)
    budget = predicted_length(layout, sets, state, v) + nats + barrier * guarded
    for j in range(d):
        sets.centre[j] = 1.0 / (d + 1.0) if has_domain(code) else 0.0
        sets.along[j] = 0.0
    loss, _ = descend(layout, links, state, v, sets.along, 0.0, False, sets.centre, barrier, ridge, sets)
    over = not loss < math.inf or room_at(sets, sets.centre, d, loss, budget, ridge, most) < 0.0
    if not over:
        node_slopes(layout, links, state, v, sets.centre, barrier, ridge, sets.grad, sets.curve)
        over = not factorise(sets.curve, d)
    return Centre(0 if over else 1, loss, budget, barrier, ridge, most)


@inlined
def room_at(sets: Any, theta: Any, d: int, loss: float, budget: float, ridge: float, most: float) -> float:
    """How far, in nats, the tangent at theta can rise on C_t; below 0 where the gradient is 0: C_t is empty."""
    room = budget - loss
    for j in range(d):
        size = abs(theta[j])
        room += ridge * size * (most - size) + abs(sets.grad[j]) * (most + size)
    return room


@kernel
def highest(layout: Any, sets: Any, state: Any, v: int, centre: Any, end: int) -> float:
    """An outer bound of the largest a . theta over C_t, a = sets.along.

    end: 1 where f(a . theta) is a probability and nearly 1 is 1; 0 where f(-a . theta) is one and nearly 0 is 0; or -1.
    h(z) = min L where a . theta = z is convex. Where z can grow freely the search is Newton's for h(z) = B, whose steps
    stay outside; h grows like a line there. Where a domain ends, h grows like a logarithm, and the search is for the
    multiplier: by Newton's method for log(L - L(centre)) as a function of log pull, a line for a quadratic L.
    """
    d, along, theta, code = layout.ptr[v + 1] - layout.ptr[v], sets.along, sets.theta, sets.links.code[v]
    tied = code != IDENTITY and (end == 1 or not has_domain(code))
    middle = most = spread = square = 0.0
    solve_factored(sets.curve, d, along, sets.lean)
    for j in range(d):
        theta[j] = sets.centre[j]
        middle += along[j] * theta[j]
        most += abs(along[j]) * centre.most
        spread += along[j] * sets.lean[j]
        square += along[j] * along[j]
    room, bound, inner = max(centre.budget - centre.loss, 0.01), most, middle
    pull, z, at = math.sqrt(2.0 * room / spread), middle + math.sqrt(2.0 * room * spread), middle  # if L is quadratic
    for _ in range(_TURNS):
        if tied:
            for j in range(d):  # without leaving the domain: towards the centre, or along `a` itself
                if z < at:
                    theta[j] += (sets.centre[j] - theta[j]) * (at - z) / (at - middle)
                else:
                    theta[j] += (z - at) * (along[j] / square if has_domain(code) else sets.lean[j] / spread)
        loss, pull = descend(layout, sets.links, state, v, along, pull, tied, theta, centre.barrier, centre.ridge, sets)
        at = dot(along, 0, theta, 0, d)
        if pull > 0.0 and loss < math.inf:
            bound = min(bound, at + room_at(sets, theta, d, loss, centre.budget, centre.ridge, centre.most) / pull)
        if loss <= centre.budget:
            inner = max(inner, at)
            if end >= 0 and abs(link_value(sets.links, v, at if end else -at) - end) < _SURE:
                return math.inf
        risen = max(loss - centre.loss, 1e-3 * room)
        if abs(risen / room - 1.0) < _CLOSE or bound - inner < 0.5 * _CLOSE * (bound - middle):
            break
        solve_factored(sets.hess, d, along, sets.lean)
        spread = dot(along, 0, sets.lean, 0, d)
        if tied:
            z = at + (centre.budget - loss) / max(pull, 1e-300)
            z = min(max(z, inner + 0.1 * (at - inner)), middle + 4.0 * (at - middle))
        else:
            leap = math.log(risen / room) * risen / max(pull * pull * spread, 1e-300)
            pull *= math.exp(min(max(-leap, -2.0), 2.0))
    return bound


@kernel
def promised_interval(layout: Any, sets: Any, state: Any, v: int, centre: Any, out: Any) -> None:
    """out[0], out[1] = the lowest and highest f(theta . V) over C_t, V = sets.row."""
    d, size = layout.ptr[v + 1] - layout.ptr[v], 0.0
    for j in range(d):
        size += sets.row[j]
    for end in range(2):
        sign = 2.0 * end - 1.0
        x = 0.0
        if size > 0.0:
            for j in range(d):
                sets.along[j] = sign * sets.row[j]
            x = sign * highest(layout, sets, state, v, centre, end)
        out[end] = min(max(link_value(sets.links, v, x), 0.0), 1.0)


@inlined
def comes_up(layout: Any, v: int, i: int, fixed: Any, row: Any) -> bool:
    """row = the parents' values of v's pattern i; False where it cannot come up."""
    pattern_row(layout, v, i, row)
    possible = True
    for j in range(layout.ptr[v + 1] - layout.ptr[v]):
        known = fixed[layout.parent[layout.ptr[v] + j]]
        possible = possible and (math.isnan(known) or known == row[j])
    return possible


@by_type
def narrow_promised(
    kind: Any, layout: Any, sets: Any, state: Any, v: int, nats: float, fixed: Any, low: Any, high: Any
) -> Any:
    """Narrow the table's intervals of a node whose link is promised, unless the rows refute the promise."""


@narrow_promised.of(NonePromised)
def narrow_none(
    kind: Any, layout: Any, sets: Any, state: Any, v: int, nats: float, fixed: Any, low: Any, high: Any
) -> None:
    """There are none."""


@narrow_promised.of(SomePromised)
def narrow_convex(
    kind: Any, layout: Any, sets: Any, state: Any, v: int, nats: float, fixed: Any, low: Any, high: Any
) -> None:
    if not sets.promised[v]:
        return
    centre = find_centre(layout, sets, state, v, spare_nats(nats, float(len(low))))
    if centre.status == 0:
        return
    for i in range(len(low)):
        if comes_up(layout, v, i, fixed, sets.row):
            promised_interval(layout, sets, state, v, centre, sets.ends)
            if sets.ends[0] <= high[i] and sets.ends[1] >= low[i]:  # else the promise is refuted here
                low[i], high[i] = max(low[i], sets.ends[0]), min(high[i], sets.ends[1])


@kernel
def pattern_intervals(layout: Any, sets: Any, state: Any, v: int, nats: float, fixed: Any, low: Any, high: Any) -> None:
    """low[i], high[i]: the interval of P(v = 1 | pattern i), bit j of i the j-th parent that is not the constant.

    nats = log(1 / delta_X). All 2^parents patterns, as many as `low` has places for; those that cannot come up where
    `fixed` is set or known (NaN: free) are passed over, with [0, 1].
    """
    d = layout.ptr[v + 1] - layout.ptr[v]
    if not math.isnan(fixed[v]):
        return
    if d == 0:  # it cannot happen by itself
        low[0] = high[0] = 0.0
        return
    more = nats + math.log(float(len(low)))
    for i in range(len(low)):
        low[i], high[i] = 0.0, 1.0
        if comes_up(layout, v, i, fixed, sets.row):
            cell = state.nodes["cell"][v] + i
            table_interval(state.cells["seen"][cell], state.cells["total"][cell], more, sets.ends)
            low[i], high[i] = sets.ends[0], sets.ends[1]
    narrow_promised(sets.kind, layout, sets, state, v, nats, fixed, low, high)
