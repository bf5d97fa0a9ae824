"""Code lengths of a node's rows: -log of a probability of all of them that no order of the rows changes.

c, s: how often a pattern V of the parents was seen, and how often X was 1 then.  x = theta . V.  d weights.
table     each pattern by itself, P(X = 1) averaged over Jeffreys' prior: Krichevsky and Trofimov's (KT)
promised  f(theta . V) averaged over weights: q(rows) = integral of N(theta; 0, 1 / prior) P_theta(rows), which costs
          about (d / 2) log(rows), where KT's costs that much for each pattern. Weights outside a link's domain count
          as 0, so that q adds up to at most 1.
The integral is bounded from below: for any density h, log q >= E_h[log N + log P_theta] - E_h[log h] (Jensen). Here h
is even on an ellipsoid {theta_0 + u: u' A u <= 1}, so that x of a pattern stays within reach = sqrt(V' A^-1 V) of x_0,
E[(x - x_0)^2] = reach^2 / (d + 2), and slopes cancel. A is the Hessian / (d + 2) with what keeps x inside the domain.
The mean of l(x) (`log_likelihood`) is at most
    l(x_0) + (even(reach) - l(x_0)) / (d + 2)            links with a domain: even(u) = (l(x_0 + u) + l(x_0 - u)) / 2 is
                                                         a convex function of u^2 there (its series has no minus)
    l(x_0) + (largest l'' within reach) reach^2 / 2 / (d + 2)    other links.
Any theta_0 and A give a valid bound; rounding and a search that stops early only make it less tight.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import inlined, kernel
from dobandit.estimation.least_squares import dot, factorise, solve_factored
from dobandit.estimation.log_likelihood import descend, has_domain, node_loss, pattern_loss
from dobandit.model.link_kernels import IDENTITY, LOGISTIC

_LINE, _CURVE = 4.0, 0.25  # prior precision of a weight: a standard deviation of 1/2, and of 2
_BARRIER = 0.5  # keeps theta_0 as far from the end of a domain as KT's half of an imagined row would
_INSIDE = 0.99  # of the way to the end of the domain


@inlined
def code_length(seen: float, ones: float) -> float:
    """-log of Krichevsky and Trofimov's probability of `ones` ones among `seen` rows."""
    return math.lgamma(seen + 1.0) + math.log(math.pi) - math.lgamma(ones + 0.5) - math.lgamma(seen - ones + 0.5)


@kernel
def tables_length(state: Any, v: int) -> float:
    """-log of KT's probability of v's rows."""
    total, first = 0.0, state.nodes["cell"][v]
    for k in range(state.nodes["cells"][v]):
        total += code_length(state.cells["seen"][first + k], state.cells["total"][first + k])
    return total


@kernel
def predicted_length(layout: Any, sets: Any, state: Any, v: int) -> float:
    """-log of the average of KT's and the promised link's probability of v's rows, or more."""
    one, other = -promised_length(layout, sets, state, v), -tables_length(state, v)
    best = max(one, other)
    return math.log(2.0) - best - math.log(math.exp(one - best) + math.exp(other - best))


@kernel
def promised_length(layout: Any, sets: Any, state: Any, v: int) -> float:
    """-log of the promised link's probability of v's rows, or more; uses the scratch in `sets`."""
    d, code, theta = layout.ptr[v + 1] - layout.ptr[v], sets.links.code[v], sets.theta
    prior = _LINE if code == IDENTITY else _CURVE
    for j in range(d):
        theta[j] = 1.0 / (d + 1.0) if has_domain(code) else 0.0
        sets.along[j] = 0.0
    descend(layout, sets.links, state, v, sets.along, 0.0, False, theta, _BARRIER, prior, sets)
    length, _ = node_loss(layout, sets.links, state, v, theta, 0.0, 0.0)
    ellipsoid(layout, sets.links, state, v, theta, prior, sets.hess)
    if not length < math.inf or not factorise(sets.hess, d):
        return math.inf
    length += spread_loss(layout, sets, state, v, theta) / (d + 2.0)
    length += math.lgamma(0.5 * d + 1.0) - 0.5 * d * math.log(0.5 * prior)  # with the volume of a ball
    for j in range(d):
        for i in range(d):
            sets.trial[i] = 1.0 if i == j else 0.0
        solve_factored(sets.hess, d, sets.trial, sets.lean)
        length += 0.5 * prior * (theta[j] * theta[j] + sets.lean[j] / (d + 2.0)) + math.log(sets.hess[j * d + j])
    return length


@kernel
def ellipsoid(layout: Any, links: Any, state: Any, v: int, theta: Any, prior: float, out: Any) -> None:
    """A, the lower triangle."""
    d, code, shift = layout.ptr[v + 1] - layout.ptr[v], links.code[v], links.parameter[v]
    for i in range(d):
        for j in range(i + 1):
            out[i * d + j] = prior / (d + 2.0) if i == j else 0.0
    for k in range(state.nodes["cells"][v]):
        base, cell = state.nodes["bit"][v] + k * d, state.nodes["cell"][v] + k
        if state.cells["seen"][cell] == 0.0:
            continue
        x = dot(state.bits, base, theta, 0, d)
        _, _, _, curve = pattern_loss(code, shift, x, state.cells["seen"][cell], state.cells["total"][cell], 0.0)
        curve /= d + 2.0
        if has_domain(code) and x > 0.0:
            room = _INSIDE * (min(x, 1.0 - x) if code == IDENTITY else x)
            curve += 1.0 / (room * room)
        for i in range(d):
            if state.bits[base + i] != 0.0:
                for j in range(i + 1):
                    out[i * d + j] += curve * state.bits[base + i] * state.bits[base + j]


@kernel
def spread_loss(layout: Any, sets: Any, state: Any, v: int, theta: Any) -> float:
    """d + 2 times what the mean of L over the ellipsoid, whose factor is sets.hess, exceeds L(theta_0) by, or more."""
    d, code, shift, total = layout.ptr[v + 1] - layout.ptr[v], sets.links.code[v], sets.links.parameter[v], 0.0
    for k in range(state.nodes["cells"][v]):
        base, cell = state.nodes["bit"][v] + k * d, state.nodes["cell"][v] + k
        if state.cells["seen"][cell] == 0.0:
            continue
        for j in range(d):
            sets.trial[j] = state.bits[base + j]
        solve_factored(sets.hess, d, sets.trial, sets.lean)
        square = dot(sets.trial, 0, sets.lean, 0, d)
        if square <= 0.0:  # no parent is 1, and there is no constant
            continue
        x, seen, ones = dot(sets.trial, 0, theta, 0, d), state.cells["seen"][cell], state.cells["total"][cell]
        if has_domain(code):
            middle, _, _, _ = pattern_loss(code, shift, x, seen, ones, 0.0)
            total += 0.5 * (beside(code, shift, x, math.sqrt(square), seen, ones) - 2.0 * middle)
        else:
            total += 0.5 * steepest(code, shift, x, math.sqrt(square), seen, ones) * square
    return total


@inlined
def beside(code: int, shift: float, x: float, reach: float, seen: float, ones: float) -> float:
    """l(x + reach) + l(x - reach)"""
    above, _, _, _ = pattern_loss(code, shift, x + reach, seen, ones, 0.0)
    below, _, _, _ = pattern_loss(code, shift, x - reach, seen, ones, 0.0)
    return above + below


@inlined
def steepest(code: int, shift: float, x: float, reach: float, seen: float, ones: float) -> float:
    """The largest l'' within reach of x, or more. A logistic l'' falls on both sides of the shift. Of a probit one the
    part of the ones falls with x, and the part of the zeros rises."""
    if code == LOGISTIC:
        nearest = min(max(shift, x - reach), x + reach)
        _, _, _, curve = pattern_loss(code, shift, nearest, seen, ones, 0.0)
        return curve
    _, _, _, left = pattern_loss(code, shift, x - reach, ones, ones, 0.0)
    _, _, _, right = pattern_loss(code, shift, x + reach, seen - ones, 0.0, 0.0)
    return left + right
