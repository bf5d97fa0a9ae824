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
from dobandit.policy.region import end_round

SURE = 1e-10


@kernel
def mean_pass(layout: Any, links: Any, theta: Any, fixed: Any, means: Any) -> None:
    """Means where `fixed` says what is known (NaN: free), each link taken at its parents' means, within [0, 1]."""
    means[0] = 1.0
    for v in range(1, len(layout.ptr) - 1):
        if not math.isnan(fixed[v]):
            means[v] = fixed[v]
            continue
        total = 0.0
        for slot in range(layout.ptr[v], layout.ptr[v + 1]):
            total += theta[slot] * means[layout.parent[slot]]
        means[v] = min(max(link_value(links, v, total), 0.0), 1.0)


@kernel
def expect_line(
    layout: Any, v: int, lines: Any, line: int, stats: Any, root: float, means: Any, row: Any, varies: bool
) -> None:
    """Take the expected row of node v, times root, into the sums of one of `lines`. row: scratch."""
    start, at = layout.ptr[v], lines.ptr[line]
    d = layout.ptr[v + 1] - start
    expected = 0.0
    for j in range(d):
        row[j] = root * means[layout.parent[start + j]]
        expected += row[j] * stats.theta[at + j]
    add_row(lines, stats, line, row, expected)
    for j in range(d):
        mean = means[layout.parent[start + j]]
        if varies and SURE < mean < 1.0 - SURE:
            for i in range(d):
                row[i] = 0.0
            row[j] = root * math.sqrt(mean * (1.0 - mean))
            add_row(lines, stats, line, row, row[j] * stats.theta[at + j])


@kernel
def settle(layout: Any, stats: Any, squares: Any) -> None:
    """Wipe out the rounding that rows of very different sizes leave: each M^+ from M, and the estimate as it was."""
    for v in range(1, len(layout.ptr) - 1):
        refresh(layout, stats, v)
    for slot in range(len(squares)):
        stats.theta[slot] = squares[slot]


@kernel
def expect(
    layout: Any,
    links: Any,
    region: Any,
    thresholds: Any,
    stats: Any,
    clock: Any,
    theta: Any,
    squares: Any,
    fixed: Any,
    was_set: Any,
    means: Any,
    row: Any,
    varies: bool,
) -> None:
    """A pending round: more is known, the estimate stays, time passes.

    theta: the estimate, at which the means are taken.  squares: that of least squares, which stays too.
    fixed: what is set or known from the context.  means, row: scratch.
    """
    mean_pass(layout, links, theta, fixed, means)
    for v in range(len(means)):
        if means[v] < SURE:
            means[v] = 0.0
        elif means[v] > 1.0 - SURE:
            means[v] = 1.0
    for v in range(1, len(layout.ptr) - 1):
        if not was_set[v]:
            expect_line(layout, v, layout, v, stats, 1.0, means, row, varies)
    settle(layout, stats, squares)
    end_round(region.initial, layout, thresholds, stats, clock)
