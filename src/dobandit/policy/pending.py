"""What rounds that are still under way are expected to teach, so that parallel workers do not all try the same set.

A pending round with set S adds to each node's M its expectation under the estimate, e e^T + diag(e (1 - e)), where e
are the parents' means under do(S) and parents count as independent (continuous ones as fixed at their means). With a
right-hand side of that times theta the estimate stays where it is: only the regions shrink, and time passes.
Means within SURE of 0 or 1 count as 0 or 1: a share of 1e-16 is rounding, but would make M regular in a direction that
nothing has shown, with an inverse of 1e16.

The same for learners with a joint bonus (`expect_round`): estimates stay where they are, only what is unsure shrinks.
e: means under the action, parents counted as independent.  A row of parents is expected to be e with the variances
e (1 - e), and weighs 1 / (p (1 - p)) as a real one would; a table's cell is expected to be seen P(pattern) times.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import by_type, inlined, kernel
from dobandit.estimation.estimators import WeightedSquares
from dobandit.estimation.mixture import CURVED, OWN_LINES, TABLE, Mixture, fit_curve, line_of, member_means
from dobandit.estimation.mle import add_pattern, find_pattern
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
def refresh_sums(layout: Any, stats: Any, squares: Any) -> None:
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
    refresh_sums(layout, stats, squares)
    end_round(region.initial, layout, thresholds, stats, clock)


MOST_TABULATED = 6  # parents of a node whose cells are expected one by one
_RARE = 1e-3  # patterns less likely than this teach nothing worth the work


@by_type
def expect_round(
    estimator: Any, layout: Any, order: Any, state: Any, squares: Any, fixed: Any, was_set: Any, means: Any, row: Any,
    varies: bool,
) -> None:  # fmt: skip
    """Take the expectation of one round in.

    order: ids of all nodes, causes first. squares: the least-squares estimate, which stays. means, row: scratch.
    """


@inlined
def root_weight(mean: float, floor: float) -> float:
    """The root of what a row weighs whose node has this mean."""
    p = min(max(mean, floor), 1.0 - floor)
    return 1.0 / math.sqrt(p * (1.0 - p))


@expect_round.of(WeightedSquares)
def expect_straight(
    estimator: Any, layout: Any, order: Any, state: Any, squares: Any, fixed: Any, was_set: Any, means: Any, row: Any,
    varies: bool,
) -> None:  # fmt: skip
    """Straight lines only."""
    means[0] = 1.0
    for v in order:
        total = 0.0
        for slot in range(layout.ptr[v], layout.ptr[v + 1]):
            total += state.theta[slot] * means[layout.parent[slot]]
        means[v] = min(max(total, 0.0), 1.0) if math.isnan(fixed[v]) else fixed[v]
        if not was_set[v]:
            root = root_weight(means[v], estimator.floor)
            expect_line(layout, v, layout, v, state.stats, root, means, row, varies)
    refresh_sums(layout, state.stats, squares)
    state.clock[0] += 1


@expect_round.of(Mixture)
def expect_mixture(
    mix: Any, layout: Any, order: Any, state: Any, squares: Any, fixed: Any, was_set: Any, means: Any, row: Any,
    varies: bool,
) -> None:  # fmt: skip
    """Lines, curves and tables."""
    means[0] = 1.0
    for v in order:
        start = layout.ptr[v]
        d = layout.ptr[v + 1] - start
        first = 1 if d > 0 and layout.parent[start] == 0 else 0
        counted = mix.has[v, CURVED] or mix.has[v, TABLE]
        if counted and d - first <= MOST_TABULATED:
            total = expect_cells(mix, layout, state, v, means, row, not was_set[v])
        else:
            total = 0.0
            for slot in range(start, start + d):
                total += state.theta[slot] * means[layout.parent[slot]]
        means[v] = min(max(total, 0.0), 1.0) if math.isnan(fixed[v]) else fixed[v]
        if not was_set[v]:
            root = root_weight(means[v], mix.straight.floor)
            expect_line(layout, v, layout, v, state.stats, root, means, row, varies)
            if mix.has[v, OWN_LINES]:
                expect_own_line(mix, layout, state, v, root, means, row, varies)
    refresh_sums(layout, state.stats, squares)
    state.clock[0] += 1


@kernel
def expect_own_line(mix: Any, layout: Any, state: Any, v: int, root: float, means: Any, row: Any, varies: bool) -> None:
    """The line of the segment that the round is in: context is known, so that its mean is its value."""
    for j in range(layout.ptr[v + 1] - layout.ptr[v]):
        row[j] = means[layout.parent[layout.ptr[v] + j]]
    lines, line = mix.segments.layout, line_of(mix.segments, layout, v, row)
    expect_line(layout, v, lines, line, state.own, root, means, row, varies)
    refresh(lines, state.own, line)  # rows of very different sizes leave rounding


@kernel
def expect_cells(mix: Any, layout: Any, state: Any, v: int, means: Any, row: Any, teaches: bool) -> float:
    """The mean of v over its parents' patterns; where the round teaches, each pattern counts as seen P times."""
    start, patterns = layout.ptr[v], state.patterns
    d = layout.ptr[v + 1] - start
    first = 1 if d > 0 and layout.parent[start] == 0 else 0
    if d == 0:
        return 0.0
    total, out = 0.0, patterns.work[0:5]
    for pattern in range(1 << (d - first)):
        chance = row[0] = 1.0
        for j in range(first, d):
            row[j] = float((pattern >> (j - first)) & 1)
            mean = min(max(means[layout.parent[start + j]], 0.0), 1.0)
            chance *= mean if row[j] > 0.0 else 1.0 - mean
        if chance < _RARE:
            continue
        member_means(layout, mix, state, v, row, out)
        p = out[4]
        total += chance * p
        if teaches:
            slot = find_pattern(patterns, v, d, row)
            known = patterns.table[patterns.table_ptr[v] + slot] >= 0
            if known or patterns.used[v] < patterns.capacity[v]:
                add_pattern(patterns, v, d, row, slot, chance, chance * p)
    if teaches and mix.has[v, CURVED]:
        fit_curve(layout, mix.links, state, v)
    return total
