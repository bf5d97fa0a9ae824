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

import numpy as np

from dobandit.estimation.cholesky import dot, factorise, solve_factored
from dobandit.kernels import kernel
from dobandit.model.link_kernels import EXPONENTIAL, IDENTITY, LOGISTIC, PROBIT

CENTRE, THETA, ALONG, GRAD, STEP, TRIAL, LEAN, HESS = range(8)  # what stands in a `scratch`
_FAR = -30.0  # below it Phi is taken from its asymptotic series, exact to 1e-12
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_STEPS = 60
_SHORTEST = 2.0**-49  # share of a Newton step
_DONE = 1e-9  # squared Newton decrement, in nats
Four = tuple[float, float, float, float]


@kernel
def has_domain(code: int) -> bool:
    """Whether x has to be at least 0."""
    return code in (IDENTITY, EXPONENTIAL)


@kernel
def scratch(node: Any) -> Any:
    """Room for all that is computed of a node with d weights: vector number k of those named above begins at k * d, the
    Hessian, or its factor, at HESS * d. CENTRE and THETA, from which one descends, are in the middle of the domain."""
    d = node["width"]
    work = np.zeros((HESS + d) * d)
    for j in range(d):
        work[CENTRE * d + j] = work[THETA * d + j] = 1.0 / (d + 1.0) if has_domain(node["link"]) else 0.0
    return work


@kernel
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
    if code == IDENTITY:
        up, down = ones if ones > 0.0 else barrier, zeros if zeros > 0.0 else barrier
        y, log_x, log_y = 1.0 - x, math.log(x), math.log(1.0 - x)
        loss, guarded = -ones * log_x - zeros * log_y, -up * log_x - down * log_y
        return loss, guarded, down / y - up / x, up / (x * x) + down / (y * y)
    if ones == 0.0:
        return zeros * x, zeros * x - barrier * math.log(x), zeros - barrier / x, barrier / (x * x)
    odds = ones / math.expm1(min(x, 700.0))
    loss = zeros * x - ones * math.log(-math.expm1(-x))
    return loss, loss, zeros - odds, odds * (1.0 + odds / ones)


@kernel
def node_loss(
    node: Any, cells: Any, bits: Any, work: Any, theta: int, barrier: float, ridge: float
) -> tuple[float, float]:
    """L(theta), and L with barrier and ridge, theta the vector at `theta`; infinite outside the domain.

    Inside, it leaves the gradient of the latter at GRAD and its Hessian (lower triangle) at HESS.
    """
    d, grad, hess = node["width"], GRAD * node["width"], HESS * node["width"]
    plain = penalised = 0.0
    for i in range(d):
        penalised += 0.5 * ridge * work[theta + i] * work[theta + i]
        work[grad + i] = ridge * work[theta + i]
        for j in range(i + 1):
            work[hess + i * d + j] = ridge if i == j else 0.0
    for k in range(node["cells"]):
        base, cell = node["bit"] + k * d, cells[node["cell"] + k]
        if cell["seen"] == 0.0:
            continue
        code, x = node["link"], 0.0
        for j in range(d):
            x += bits[base + j] * work[theta + j]
        if k + node["constant"] == 0 and has_domain(code) and cell["total"] == 0.0:
            continue  # V = 0, and f(0) = 0, whatever theta is
        loss, more, slope, curve = pattern_loss(code, node["parameter"], x, cell["seen"], cell["total"], barrier)
        if not more < math.inf:
            return math.inf, math.inf
        plain += loss
        penalised += more
        for i in range(d):
            work[grad + i] += slope * bits[base + i]
        add_square(work, hess, d, bits, base, curve)
    return plain, penalised


@kernel
def add_square(work: Any, at: int, d: int, bits: Any, base: int, weight: float) -> None:
    """Add weight * V V^T to the lower triangle of the matrix at `at`, V = bits[base : base + d] of zeros and ones."""
    for i in range(d):
        if bits[base + i] != 0:
            for j in range(i + 1):
                work[at + i * d + j] += weight * bits[base + j]


@kernel
def descend(
    node: Any, cells: Any, bits: Any, work: Any, theta: int, pull: float, barrier: float, ridge: float
) -> tuple[float, float]:
    """Minimise (L with barrier and ridge) - pull a . theta by Newton steps from theta, which is in the domain, each of
    them halved until the value falls enough; a is the vector at ALONG. pull is NaN: a . theta stays what it is, and its
    multiplier is to be found.

    Returns L and pull. Leaves what is left of the gradient at GRAD, and the Hessian's factor at HESS.
    """
    d = node["width"]
    along, grad, step, trial, lean, hess = ALONG * d, GRAD * d, STEP * d, TRIAL * d, LEAN * d, HESS * d
    tied, plain, value = math.isnan(pull), math.inf, math.inf
    steps, share, decrement, force = 0, 0.0, 0.0, 0.0 if tied else pull
    while True:
        for j in range(d):
            work[trial + j] = work[theta + j] - share * work[step + j] if share > 0.0 else work[theta + j]
        loss, reached = node_loss(node, cells, bits, work, trial, barrier, ridge)
        reached -= force * dot(work, along, work, trial, d)
        if share > 0.0 and not (reached < math.inf and reached <= value - 0.1 * share * decrement):
            share = 0.5 * share if share > _SHORTEST else 0.0  # then rounding is all that is left
            continue
        for j in range(d):
            work[theta + j] = work[trial + j]
        plain, value = loss, reached
        if not plain < math.inf or not factorise(work, hess, d):
            return plain, pull
        if tied:
            solve_factored(work, hess, d, along, lean)
            pull = dot(work, lean, work, grad, d) / dot(work, lean, work, along, d)
        for j in range(d):
            work[grad + j] -= pull * work[along + j]
        solve_factored(work, hess, d, grad, step)
        decrement = dot(work, grad, work, step, d)
        if decrement < _DONE or steps == _STEPS or (steps > 0 and share == 0.0):
            return plain, pull
        steps, share = steps + 1, 1.0
