"""What rounds that are still under way are expected to teach, so that parallel workers do not all try the same set.

A pending round with set S adds to each node's M its expectation under the estimate, e e^T + diag(e (1 - e)), where e
are the parents' means under do(S) and parents count as independent (continuous ones as fixed at their means). With a
right-hand side of that times theta the estimate stays where it is: only the regions shrink, and time passes.
Means within SURE of 0 or 1 count as 0 or 1: a share of 1e-16 is rounding, but would make M regular in a direction that
nothing has shown, with an inverse of 1e16.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import kernel
from dobandit.estimation.statistics import add_row, refresh
from dobandit.model.link_kernels import link_value
from dobandit.policy.optimist import end_round

SURE = 1e-10


@kernel
def linear_means(layout: Any, theta: Any, was_set: Any, means: Any) -> None:
    """Means under do(set = 1) of identity links, within [0, 1]."""
    means[0] = 1.0
    for v in range(1, len(layout.ptr) - 1):
        total = 0.0
        for slot in range(layout.ptr[v], layout.ptr[v + 1]):
            total += theta[slot] * means[layout.parent[slot]]
        means[v] = 1.0 if was_set[v] else min(max(total, 0.0), 1.0)


@kernel
def link_means(layout: Any, links: Any, theta: Any, was_set: Any, means: Any) -> None:
    """The same for any links, each taken at its parents' means."""
    means[0] = 1.0
    for v in range(1, len(layout.ptr) - 1):
        total = 0.0
        for slot in range(layout.ptr[v], layout.ptr[v + 1]):
            total += theta[slot] * means[layout.parent[slot]]
        means[v] = 1.0 if was_set[v] else min(max(link_value(links, v, total), 0.0), 1.0)


@kernel
def add_expected(layout: Any, stats: Any, means: Any, was_set: Any, row: Any, varies: bool) -> None:
    """Take the expectation of a round into the sums of every node that was not set. `row`: scratch."""
    for v in range(1, len(layout.ptr) - 1):
        if was_set[v]:
            continue
        start = layout.ptr[v]
        d = layout.ptr[v + 1] - start
        expected = 0.0
        for j in range(d):
            row[j] = means[layout.parent[start + j]]
            expected += row[j] * stats.theta[start + j]
        add_row(layout, stats, v, row, expected)
        for j in range(d):
            mean = means[layout.parent[start + j]]
            if varies and 0.0 < mean < 1.0:
                for i in range(d):
                    row[i] = 0.0
                row[j] = math.sqrt(mean * (1.0 - mean))
                add_row(layout, stats, v, row, row[j] * stats.theta[start + j])


@kernel
def settle(layout: Any, stats: Any, theta: Any) -> None:
    """Wipe out the rounding that rows of very different sizes leave: each M^+ from M, and the estimate as it was."""
    for v in range(1, len(layout.ptr) - 1):
        refresh(layout, stats, v)
    for slot in range(len(theta)):
        stats.theta[slot] = theta[slot]


@kernel
def learn_expected(plan: Any, linear: Any, theta: Any, was_set: Any, means: Any, row: Any, varies: bool) -> None:
    """A pending round, whose means are known: more is known, the estimate stays, time passes."""
    for v in range(len(means)):
        if means[v] < SURE:
            means[v] = 0.0
        elif means[v] > 1.0 - SURE:
            means[v] = 1.0
    add_expected(plan.layout, linear.stats, means, was_set, row, varies)
    settle(plan.layout, linear.stats, theta)
    end_round(plan.settings.initial, plan.layout, plan.thresholds, linear.stats, linear.clock)


@kernel
def expect_linear(
    plan: Any, linear: Any, theta: Any, sets: Any, was_set: Any, means: Any, row: Any, varies: bool
) -> None:
    """Pending sets, a row each (0 for none), on identity links."""
    for i in range(len(sets)):
        mark(sets[i], was_set)
        linear_means(plan.layout, theta, was_set, means)
        learn_expected(plan, linear, theta, was_set, means, row, varies)


@kernel
def expect_general(
    plan: Any, linear: Any, theta: Any, squares: Any, sets: Any, was_set: Any, means: Any, row: Any
) -> None:
    """The same for any links. theta: the estimate; squares: that of least squares, which stays too."""
    for i in range(len(sets)):
        mark(sets[i], was_set)
        link_means(plan.linear.layout, plan.links, theta, was_set, means)
        learn_expected(plan.linear, linear, squares, was_set, means, row, True)


@kernel
def mark(ids: Any, was_set: Any) -> None:
    was_set[:] = False
    for j in range(len(ids)):
        if ids[j] > 0:
            was_set[ids[j]] = True
