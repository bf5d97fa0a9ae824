"""L(theta) = -log P_theta(rows) of a node, from its pattern counts, with derivatives, for links that make it convex.

c, s: how often a pattern V was seen, and how often X was 1 then.  x = theta . V.
l(x) = -s log f(x) - (c - s) log(1 - f(x)), convex in x for the identity, logistic, probit and exponential links, whose
log f and log(1 - f) are concave; for the rational one, and for a user's own, it need not be.
Where a link has a domain that l itself does not guard (s = 0: nothing keeps x above 0) a barrier, -barrier log x, does,
and a ridge, |theta|^2 ridge / 2, holds directions that no row has shown. `estimation.anytime` accounts for both.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import inlined, kernel
from dobandit.estimation.least_squares import dot, factorise, solve_factored
from dobandit.model.link_kernels import EXPONENTIAL, IDENTITY, LOGISTIC, PROBIT

_FAR = -30.0  # below it Phi is taken from its asymptotic series, exact to 1e-12
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_STEPS = 60
_DONE = 1e-9  # squared Newton decrement, in nats
Four = tuple[float, float, float, float]


@inlined
def has_domain(code: int) -> bool:
    """Whether x has to be at least 0."""
    return code in (IDENTITY, EXPONENTIAL)


@inlined
def log_normal(z: float) -> tuple[float, float]:
    """log Phi(z) and its derivative."""
    if z > _FAR:
        below = 0.5 * math.erfc(-z / math.sqrt(2.0))
        return math.log(below), math.exp(-0.5 * z * z) / (_ROOT_TWO_PI * below)
    r = 1.0 / (z * z)
    series = 1.0 - r * (1.0 - 3.0 * r * (1.0 - 5.0 * r * (1.0 - 7.0 * r)))
    return -0.5 * z * z - math.log(-z * _ROOT_TWO_PI) + math.log(series), -z / series


@kernel
def pattern_loss(code: int, shift: float, x: float, seen: float, ones: float, barrier: float) -> Four:
    """(l, l + barrier, its slope, its curvature) at x; infinite outside the domain."""
    zeros = seen - ones
    if code == LOGISTIC:
        z = x - shift
        small = math.exp(-abs(z))
        both = math.log1p(small)
        p = 1.0 / (1.0 + small) if z >= 0.0 else small / (1.0 + small)
        loss = ones * (both + max(-z, 0.0)) + zeros * (both + max(z, 0.0))
        return loss, loss, seen * p - ones, seen * small / ((1.0 + small) * (1.0 + small))
    if code == PROBIT:
        z = x - shift
        up, rise = log_normal(z)
        down, fall = log_normal(-z)
        loss = (-ones * up if ones > 0.0 else 0.0) + (-zeros * down if zeros > 0.0 else 0.0)
        curve = ones * rise * max(z + rise, 0.0) + zeros * fall * max(fall - z, 0.0)
        return loss, loss, zeros * fall - ones * rise, curve
    if x <= 0.0 or (code == IDENTITY and x >= 1.0):
        return math.inf, math.inf, 0.0, 0.0
    guard = barrier if ones == 0.0 else 0.0
    loss, slope, curve = 0.0, -guard / x, guard / (x * x)
    penalised = -guard * math.log(x)
    if code == EXPONENTIAL:
        loss = zeros * x
        slope += zeros
        if ones > 0.0:
            grown = math.expm1(min(x, 700.0))
            loss -= ones * math.log(-math.expm1(-x))
            slope -= ones / grown
            curve += ones / grown * (1.0 + 1.0 / grown)
        return loss, loss + penalised, slope, curve
    other = 1.0 - x
    if ones > 0.0:
        loss -= ones * math.log(x)
        slope -= ones / x
        curve += ones / (x * x)
    top = zeros
    if zeros > 0.0:
        loss -= zeros * math.log(other)
    else:
        top = barrier
        penalised -= barrier * math.log(other)
    return loss, loss + penalised, slope + top / other, curve + top / (other * other)


@kernel
def node_loss(
    layout: Any, links: Any, state: Any, v: int, theta: Any, barrier: float, ridge: float
) -> tuple[float, float]:
    """L(theta), and L with barrier and ridge; infinite outside the domain."""
    d, code, shift = layout.ptr[v + 1] - layout.ptr[v], links.code[v], links.parameter[v]
    plain = penalised = 0.0
    for j in range(d):
        penalised += 0.5 * ridge * theta[j] * theta[j]
    for k in range(state.nodes["cells"][v]):
        base, cell = state.nodes["bit"][v] + k * d, state.nodes["cell"][v] + k
        if state.cells["seen"][cell] == 0.0:
            continue
        x = size = 0.0
        for j in range(d):
            x += state.bits[base + j] * theta[j]
            size += state.bits[base + j]
        if size == 0.0 and has_domain(code):  # f(0) = 0, whatever theta is
            if state.cells["total"][cell] > 0.0:
                return math.inf, math.inf
            continue
        loss, more, _, _ = pattern_loss(code, shift, x, state.cells["seen"][cell], state.cells["total"][cell], barrier)
        if not more < math.inf:
            return math.inf, math.inf
        plain += loss
        penalised += more
    return plain, penalised


@kernel
def node_slopes(
    layout: Any, links: Any, state: Any, v: int, theta: Any, barrier: float, ridge: float, grad: Any, hess: Any
) -> None:
    """Gradient and Hessian (lower triangle) of L with barrier and ridge, inside the domain."""
    d, code, shift = layout.ptr[v + 1] - layout.ptr[v], links.code[v], links.parameter[v]
    for i in range(d):
        grad[i] = ridge * theta[i]
        for j in range(i + 1):
            hess[i * d + j] = ridge if i == j else 0.0
    for k in range(state.nodes["cells"][v]):
        base, cell = state.nodes["bit"][v] + k * d, state.nodes["cell"][v] + k
        if state.cells["seen"][cell] == 0.0:
            continue
        x = size = 0.0
        for j in range(d):
            x += state.bits[base + j] * theta[j]
            size += state.bits[base + j]
        if size == 0.0:
            continue
        seen, ones = state.cells["seen"][cell], state.cells["total"][cell]
        _, _, slope, curve = pattern_loss(code, shift, x, seen, ones, barrier)
        for i in range(d):
            if state.bits[base + i] != 0.0:
                grad[i] += slope * state.bits[base + i]
                for j in range(i + 1):
                    hess[i * d + j] += curve * state.bits[base + i] * state.bits[base + j]


@kernel
def descend(
    layout: Any,
    links: Any,
    state: Any,
    v: int,
    along: Any,
    pull: float,
    tied: bool,
    theta: Any,
    barrier: float,
    ridge: float,
    work: Any,
) -> tuple[float, float]:
    """Minimise (L with barrier and ridge) - pull along . theta by damped Newton steps from theta, which is in the
    domain; tied: along . theta stays what it is, and `pull` is its multiplier, to be found.

    Returns L and pull. Leaves in work.grad what is left of the gradient, and in work.hess the last Hessian's factor.
    """
    d = layout.ptr[v + 1] - layout.ptr[v]
    grad, hess, step, trial, lean = work.grad, work.hess, work.step, work.trial, work.lean
    plain, value = node_loss(layout, links, state, v, theta, barrier, ridge)
    force = 0.0 if tied else pull
    for j in range(d):
        value -= force * along[j] * theta[j]
    for turn in range(_STEPS + 1):
        node_slopes(layout, links, state, v, theta, barrier, ridge, grad, hess)
        if not factorise(hess, d):
            break
        if tied:
            solve_factored(hess, d, along, lean)
            pull = dot(lean, 0, grad, 0, d) / dot(lean, 0, along, 0, d)
        for j in range(d):
            grad[j] -= pull * along[j]
        solve_factored(hess, d, grad, step)
        decrement = dot(grad, 0, step, 0, d)
        if turn == _STEPS or decrement < _DONE:
            break
        share, moved, loss, reached = 1.0, False, plain, value
        for _ in range(50):
            for j in range(d):
                trial[j] = theta[j] - share * step[j]
            loss, reached = node_loss(layout, links, state, v, trial, barrier, ridge)
            if reached < math.inf:
                for j in range(d):
                    reached -= force * along[j] * trial[j]
                if reached <= value - 0.1 * share * decrement:
                    moved = True
                    break
            share *= 0.5
        if not moved:  # rounding is all that is left
            break
        plain, value = loss, reached
        for j in range(d):
            theta[j] = trial[j]
    return plain, pull
