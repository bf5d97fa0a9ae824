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

from dobandit.compiled import inlined, kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.oracle.frontier import fill, whole_columns
from dobandit.oracle.listing import Listing, pick_best, prepare, prepare_nothing, propose, score, score_prepared

_BLOCK = 256  # columns, of which the rows of some dozen nodes fit into a core's nearest memory


class Held(NamedTuple):
    """What the actions set, by block and depth: block b sets at depth k what stands from ptr[b * depths + k] on."""

    ptr: NDArray[np.int64]
    column: NDArray[np.int64]
    to: NDArray[np.float64]


class ClosedForm(NamedTuple):
    """The oracle: the actions, what they set, and scratch for the recursion."""

    listing: Listing
    held: Held
    means: NDArray[np.float64]  # (n + 1, columns) e
    cross: NDArray[np.float64]  # (columns,) sum of A_ji e_i over the causes i before j
    lin: NDArray[np.float64]  # (columns,) e . theta over the causes so far
    quad: NDArray[np.float64]  # (columns,) e^T A e over the causes so far
    highest: float = math.inf  # mean of a variable that is not the target


def closed_form(graph: CausalGraph, listing: Listing, highest: float = math.inf) -> ClosedForm:
    """The oracle for the actions of a list. highest: what the mean of a variable but the target may be at most."""
    columns = min(whole_columns(len(listing.values)), _BLOCK)
    means, (cross, lin, quad) = np.ones((len(graph) + 1, columns)), np.zeros((3, columns))
    return ClosedForm(listing, held_by_depth(listing, columns), means, cross, lin, quad, highest)


def held_by_depth(listing: Listing, columns: int) -> Held:
    """What the actions set, in blocks of so many columns."""
    depths = len(listing.order)
    rows, which = np.nonzero(listing.member < depths)
    blocks = -(-len(listing.values) // columns)
    place = rows // columns * depths + listing.member[rows, which]
    ranking = np.argsort(place, kind="stable")
    ptr = offsets(np.bincount(place, minlength=blocks * depths))
    column, to = np.zeros(listing.member.size, dtype=np.int64), np.zeros(listing.member.size)
    column[: len(rows)], to[: len(rows)] = (rows % columns)[ranking], listing.member_to[rows, which][ranking]
    return Held(ptr, column, to)


@kernel
def hold_only_row(form: Any) -> None:
    """What the only action of a list sets, which may have been written anew (`listing.write_row`, `local_search`)."""
    listing, held, k = form.listing, form.held, 0
    for depth in range(len(listing.order)):
        held.ptr[depth] = k
        while k < listing.member.shape[1] and listing.member[0, k] == depth:
            held.column[k], held.to[k] = 0, listing.member_to[0, k]
            k += 1
    held.ptr[len(listing.order)] = k


@inlined
def multiply(row: Any, factor: float, other: Any) -> None:
    for s in range(len(row)):
        row[s] = factor * other[s]


@inlined
def add_multiple(row: Any, factor: float, other: Any) -> None:
    for s in range(len(row)):
        row[s] += factor * other[s]


@inlined
def first_cause(lin: Any, quad: Any, e: Any, theta: float, a: float) -> None:
    for s in range(len(e)):
        lin[s] = theta * e[s]
        quad[s] = e[s] * (a * e[s])


@inlined
def next_cause(lin: Any, quad: Any, e: Any, theta: float, a: float, cross: Any, before: float, last: Any) -> None:
    """last: the means of the cause before it, whose share of `cross` is still missing."""
    for s in range(len(e)):
        lin[s] += theta * e[s]
        quad[s] += e[s] * (a * e[s] + 2.0 * (cross[s] + before * last[s]))


@inlined
def upper_means(row: Any, lin: Any, quad: Any, rho: float, highest: float) -> None:
    for s in range(len(row)):
        # Rounding may leave the square a hair below 0.
        row[s] = min(lin[s] if quad[s] <= 0.0 else lin[s] + rho * math.sqrt(quad[s]), highest)


@inlined
def alone(layout: Any, theta: Any, inverse: Any, rho: Any, v: int) -> float:
    """The optimistic mean of a node that depends on the constant at most, and so on no action; NaN for others."""
    start, end = layout.ptr[v], layout.ptr[v + 1]
    if end == start:
        return 0.0  # no parents, not even the constant
    if end > start + 1 or layout.parent[start] != 0:
        return math.nan
    variance = inverse[layout.square[v]]
    return theta[start] if variance <= 0.0 else theta[start] + rho[v] * math.sqrt(variance)


@inlined
def settle_free(form: Any, layout: Any, theta: Any, inverse: Any, rho: Any, v: int, highest: float) -> None:
    """The optimistic means of a node with causes, in every column, as if no action set it."""
    means, parent, cross, lin, quad = form.means, layout.parent, form.cross, form.lin, form.quad
    start, at = layout.ptr[v], layout.square[v]
    d = layout.ptr[v + 1] - start
    first = means[parent[start]]
    first_cause(lin, quad, first, theta[start], inverse[at])
    for j in range(1, d):
        row = at + j * d
        if j == 1:
            fill(cross, 0.0)
        else:
            multiply(cross, inverse[row], first)
        for i in range(1, j - 1):
            add_multiple(cross, inverse[row + i], means[parent[start + i]])
        e, last = means[parent[start + j]], means[parent[start + j - 1]]
        next_cause(lin, quad, e, theta[start + j], inverse[row + j], cross, inverse[row + j - 1], last)
    upper_means(means[v], lin, quad, rho[v], highest)


def score_closed_form(form: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """The recursion, for one block of actions after the other."""
    values, order, held, means = form.listing.values, form.listing.order, form.held, form.means
    theta, inverse, columns = state.slots["line"], state.pairs["inverse"], form.means.shape[1]
    if len(values) == 1:
        hold_only_row(form)
    place = 0
    for start in range(0, len(values), columns):
        for depth in range(len(order)):
            v = order[depth]
            highest = form.highest if v != layout.target else math.inf
            known = fixed[v]
            if math.isnan(known):
                known = min(alone(layout, theta, inverse, rho, v), highest)
            if math.isnan(known):
                settle_free(form, layout, theta, inverse, rho, v, highest)
            else:
                fill(means[v], known)
            for k in range(held.ptr[place], held.ptr[place + 1]):
                means[v, held.column[k]] = held.to[k]
            place += 1
        for s in range(min(columns, len(values) - start)):
            values[start + s] = means[layout.target, s]


score.of(ClosedForm)(score_closed_form)
score_prepared.of(ClosedForm)(score_closed_form)
prepare.of(ClosedForm)(prepare_nothing)
propose.of(ClosedForm)(pick_best)
