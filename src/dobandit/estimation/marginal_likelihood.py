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

from dobandit.estimation.cholesky import dot, factorise, solve_factored
from dobandit.estimation.kl import code_length
from dobandit.estimation.log_likelihood import (
    HESS,
    LEAN,
    THETA,
    TRIAL,
    add_square,
    descend,
    has_domain,
    node_loss,
    pattern_loss,
    scratch,
)
from dobandit.kernels import kernel
from dobandit.model.link_kernels import IDENTITY, LOGISTIC

_LINE, _CURVE = 4.0, 0.25  # prior precision of a weight: a standard deviation of 1/2, and of 2
_BARRIER = 0.5  # keeps theta_0 as far from the end of a domain as KT's half of an imagined row would
_INSIDE = 0.99  # of the way to the end of the domain


@kernel
def predicted_length(node: Any, cells: Any, promised: float) -> float:
    """-log of the average of KT's and the promised link's probability of a node's rows; promised: -log of the latter,
    or more."""
    one, other = -promised, 0.0
    for k in range(node["cell"], node["cell"] + node["cells"]):
        other -= code_length(cells[k]["seen"], cells[k]["total"])
    best = max(one, other)
    return math.log(2.0) - best - math.log(math.exp(one - best) + math.exp(other - best))


@kernel
def promised_length(node: Any, cells: Any, bits: Any) -> float:
    """-log of the promised link's probability of a node's rows, or more."""
    d, work = node["width"], scratch(node)
    theta, trial, lean, hess = THETA * d, TRIAL * d, LEAN * d, HESS * d
    prior = _LINE if node["link"] == IDENTITY else _CURVE
    descend(node, cells, bits, work, theta, 0.0, _BARRIER, prior)
    length, _ = node_loss(node, cells, bits, work, theta, 0.0, prior)
    if not length < math.inf or not find_ellipsoid(node, cells, bits, work):
        return math.inf
    length += spread_loss(node, cells, bits, work) / (d + 2.0)
    length += math.lgamma(0.5 * d + 1.0) - 0.5 * d * math.log(0.5 * prior)  # with the volume of a ball
    for j in range(d):
        for i in range(d):
            work[trial + i] = 1.0 if i == j else 0.0
        solve_factored(work, hess, d, trial, lean)
        square = work[theta + j] * work[theta + j] + work[lean + j] / (d + 2.0)
        length += 0.5 * prior * square + math.log(work[hess + j * d + j])
    return length


@kernel
def find_ellipsoid(node: Any, cells: Any, bits: Any, work: Any) -> bool:
    """Make of the Hessian at HESS the factor of A; False if rounding leaves none."""
    d, code, hess = node["width"], node["link"], HESS * node["width"]
    for i in range(d * d):
        work[hess + i] /= d + 2.0
    for k in range(node["cells"]):
        base = node["bit"] + k * d
        x = dot(bits, base, work, THETA * d, d)
        if has_domain(code) and x > 0.0 and cells[node["cell"] + k]["seen"] > 0.0:
            room = _INSIDE * (min(x, 1.0 - x) if code == IDENTITY else x)
            add_square(work, hess, d, bits, base, 1.0 / (room * room))
    return factorise(work, hess, d)


@kernel
def spread_loss(node: Any, cells: Any, bits: Any, work: Any) -> float:
    """d + 2 times what the mean of L over the ellipsoid, whose factor is at HESS, exceeds L(theta_0) by, or more."""
    d, total = node["width"], 0.0
    theta, trial, lean = THETA * d, TRIAL * d, LEAN * d
    for k in range(node["cells"]):
        base, cell = node["bit"] + k * d, cells[node["cell"] + k]
        if cell["seen"] == 0.0:
            continue
        for j in range(d):
            work[trial + j] = bits[base + j]
        solve_factored(work, HESS * d, d, trial, lean)
        square = dot(work, trial, work, lean, d)
        if square > 0.0:  # else no parent is 1, and there is no constant
            x = dot(work, trial, work, theta, d)
            reach = math.sqrt(square)
            total += spread(node["link"], node["parameter"], x, reach, cell["seen"], cell["total"])
    return total


@kernel
def spread(code: int, shift: float, x: float, reach: float, seen: float, ones: float) -> float:
    """d + 2 times what the mean of l over the ellipsoid exceeds l(x) by, or more.

    A logistic l'' falls on both sides of the shift. Of a probit one the part of the ones falls with x, and the part of
    the zeros rises.
    """
    if has_domain(code):
        middle, _, _, _ = pattern_loss(code, shift, x, seen, ones, 0.0)
        above, _, _, _ = pattern_loss(code, shift, x + reach, seen, ones, 0.0)
        below, _, _, _ = pattern_loss(code, shift, x - reach, seen, ones, 0.0)
        return 0.5 * (above + below) - middle
    if code == LOGISTIC:
        _, _, _, largest = pattern_loss(code, shift, min(max(shift, x - reach), x + reach), seen, ones, 0.0)
    else:
        _, _, _, left = pattern_loss(code, shift, x - reach, ones, ones, 0.0)
        _, _, _, right = pattern_loss(code, shift, x + reach, seen - ones, 0.0, 0.0)
        largest = left + right
    return 0.5 * largest * reach * reach
