"""The kernels of the optimistic policies: BLM-LR (Algorithm 3) and BGLM-OFU (Algorithms 1 and 2).

They differ in how M starts (I or 0), in the radius, in the initialisation phase and, on nonlinear links, in the
estimate and the oracle. The simulator calls `propose` and `update` in a compiled loop, `ask`/`tell` once a round.
Kernels take no more of the plan than they need: each array in an argument costs compile time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.estimation import confidence
from dobandit.estimation.mle import Patterns, add_to_patterns, due, fit_node
from dobandit.estimation.statistics import Layout, Statistics, add_round, gather, reaches_lambda
from dobandit.model.link_kernels import LinkArrays
from dobandit.oracle.boxed import Boxed, score_sets_boxed
from dobandit.oracle.closed_form import ClosedForm, score_sets
from dobandit.oracle.optimistic_greedy import greedy_search
from dobandit.oracle.optimistic_plan import OptimisticSearch
from dobandit.oracle.optimistic_search import search
from dobandit.oracle.per_pattern import PerPattern, score_sets_per_pattern
from dobandit.oracle.sets import SetTree, pick

# Radii
RHO_PAPER, RHO_LEMMA, RHO_MLE = 0, 1, 2
NOTHING = -1  # the index of "set nothing"

_radius_blm_lr = kernel(confidence.radius_blm_lr)
_radius_lemma11 = kernel(confidence.radius_lemma11)
_radius_bglm_ofu = kernel(confidence.radius_bglm_ofu)
_anytime_delta = kernel(confidence.anytime_delta)


class Settings(NamedTuple):
    """A policy's numbers, as the kernels need them."""

    radius: int  # RHO_PAPER: rho_t with n; RHO_LEMMA: with d; RHO_MLE: 3/kappa sqrt(log(1/delta))
    scale: float
    delta: float
    anytime: bool  # delta shrinks with t, for want of a horizon (RHO_MLE only: the others hold for all t)
    n: int  # counts the constant and Y
    kappa: float
    initial: int  # rounds without intervention; -1: until lambda_min reaches the thresholds


class LinearPlan(NamedTuple):
    """What stays fixed while a learner on identity links runs, and its scratch."""

    settings: Settings
    layout: Layout
    tree: SetTree
    form: ClosedForm
    rho: NDArray[np.float64]  # (n + 1,)
    thresholds: NDArray[np.float64]  # (n + 1,)


class BoxedPlan(NamedTuple):
    """The same with the exact oracle over ellipsoid and box."""

    linear: LinearPlan
    box: Boxed


class SearchPlan(NamedTuple):
    """The same without a list of all sets: branch and bound over ellipsoid and box."""

    linear: LinearPlan
    box: Boxed
    search: OptimisticSearch
    most_sets: int  # looked at in a round before the best so far is taken
    greedy: bool  # the standard-oracle variant instead of the search


class GeneralPlan(NamedTuple):
    """The same for any links, with the per-pattern oracle."""

    linear: LinearPlan
    links: LinkArrays
    oracle: PerPattern
    nonlinear: NDArray[np.bool_]  # (n + 1,)


class LinearState(NamedTuple):
    """What has been learned. clock: rounds told; 1 once initialisation is over."""

    stats: Statistics
    clock: NDArray[np.int64]


class GeneralState(NamedTuple):
    """`patterns.theta` is the estimate of every node, linear ones included."""

    linear: LinearState
    patterns: Patterns


@kernel
def set_radii(settings: Any, ptr: Any, t: int, rho: Any) -> None:
    """rho[v] = the radius of node v's region after t rounds; t < 0: 0, the plain estimate without optimism."""
    for v in range(1, len(rho)):
        if t < 0:
            rho[v] = 0.0
        elif settings.radius == RHO_PAPER:
            rho[v] = _radius_blm_lr(t, settings.n, settings.delta, settings.scale)
        elif settings.radius == RHO_LEMMA:
            rho[v] = _radius_lemma11(t, ptr[v + 1] - ptr[v], settings.delta, settings.scale)
        else:
            delta = _anytime_delta(max(t, 1), settings.delta) if settings.anytime else settings.delta
            rho[v] = _radius_bglm_ofu(settings.kappa, delta, settings.scale)


@inlined
def initialising(initial: int, clock: Any) -> bool:
    return clock[0] < initial if initial >= 0 else clock[1] == 0


@kernel
def end_round(initial: int, layout: Any, thresholds: Any, stats: Any, clock: Any) -> None:
    """Count the round, and end the initialisation when every node's lambda_min is large enough (Eq. 3)."""
    clock[0] += 1
    if initial < 0 and clock[1] == 0:
        for v in range(1, len(layout.ptr) - 1):
            if not reaches_lambda(layout, stats, v, thresholds[v]):
                return
        clock[1] = 1


# -- linear models --------------------------------------------------------------------------------------------


@kernel
def score_linear(plan: Any, stats: Any, t: int) -> None:
    """Optimistic value of every set after t rounds into plan.tree.values."""
    set_radii(plan.settings, plan.layout.ptr, t, plan.rho)
    score_sets(plan.layout, plan.tree, plan.form, stats.theta, stats.inverse, plan.rho)


@kernel
def propose_linear(plan: Any, state: Any, uniform: float) -> int:
    """Line 9 of Algorithm 1, line 5 of Algorithm 3: the index of the set to try, NOTHING while initialising."""
    if initialising(plan.settings.initial, state.clock):
        return NOTHING
    score_linear(plan, state.stats, state.clock[0])
    return pick(plan.tree.values, uniform)


@kernel
def score_boxed(plan: Any, stats: Any, t: int) -> None:
    linear = plan.linear
    set_radii(linear.settings, linear.layout.ptr, t, linear.rho)
    score_sets_boxed(linear.layout, linear.tree, plan.box, stats.theta, stats.gram, linear.rho)


@kernel
def propose_boxed(plan: Any, state: Any, uniform: float) -> int:
    """The same over ellipsoid and box."""
    if initialising(plan.linear.settings.initial, state.clock):
        return NOTHING
    score_boxed(plan, state.stats, state.clock[0])
    return pick(plan.linear.tree.values, uniform)


@kernel
def propose_search(plan: Any, state: Any, uniform: float, t: int) -> int:
    """How many variables to set; which ones stands in plan.search.best. t < 0: under the plain estimate.
    NOTHING while initialising."""
    linear = plan.linear
    if t >= 0 and initialising(linear.settings.initial, state.clock):
        return NOTHING
    set_radii(linear.settings, linear.layout.ptr, t, linear.rho)
    stats = state.stats
    if plan.greedy:
        return greedy_search(linear.layout, plan.search, plan.box, stats, stats.theta, linear.rho, uniform)
    return search(linear.layout, plan.search, plan.box, stats, stats.theta, linear.rho, uniform, plan.most_sets)


@kernel
def update_linear(initial: int, layout: Any, thresholds: Any, state: Any, values: Any, was_set: Any) -> None:
    """Take a round in: values by id (NaN: not seen), and which ids were set."""
    add_round(layout, state.stats, values, was_set)
    end_round(initial, layout, thresholds, state.stats, state.clock)


@kernel
def update_linear_many(initial: int, layout: Any, thresholds: Any, state: Any, values: Any, was_set: Any) -> None:
    """One round a row."""
    for t in range(len(values)):
        update_linear(initial, layout, thresholds, state, values[t], was_set[t])


# -- any link -------------------------------------------------------------------------------------------------


@kernel
def score_general(plan: Any, state: Any, t: int) -> None:
    linear, theta, inverse = plan.linear, state.patterns.theta, state.linear.stats.inverse
    set_radii(linear.settings, linear.layout.ptr, t, linear.rho)
    score_sets_per_pattern(linear.layout, plan.links, linear.tree, plan.oracle, theta, inverse, linear.rho)


@kernel
def propose_general(plan: Any, state: Any, uniform: float) -> int:
    """Line 9 of Algorithm 1 for any links, by the per-pattern oracle."""
    if initialising(plan.linear.settings.initial, state.linear.clock):
        return NOTHING
    score_general(plan, state, state.linear.clock[0])
    return pick(plan.linear.tree.values, uniform)


@kernel
def update_general(plan: Any, state: Any, values: Any, was_set: Any) -> None:
    """BGLM-Estimate: sums for every node, and the MLE of the nonlinear ones."""
    layout, stats, patterns = plan.linear.layout, state.linear.stats, state.patterns
    add_round(layout, stats, values, was_set)
    for v in range(1, len(layout.ptr) - 1):
        if not plan.nonlinear[v]:
            for slot in range(layout.ptr[v], layout.ptr[v + 1]):
                patterns.theta[slot] = stats.theta[slot]
        elif gather(layout, values, was_set, v, stats.row):
            add_to_patterns(layout, patterns, v, stats.row, values[v])
            if due(patterns, v):
                fit_node(layout, plan.links, patterns, v)
    end_round(plan.linear.settings.initial, layout, plan.linear.thresholds, stats, state.linear.clock)


@kernel
def update_general_many(plan: Any, state: Any, values: Any, was_set: Any) -> None:
    """One round a row."""
    for t in range(len(values)):
        update_general(plan, state, values[t], was_set[t])
