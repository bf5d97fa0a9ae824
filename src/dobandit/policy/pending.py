"""What rounds that are still under way are expected to teach, so that parallel workers do not all try the same set.

A pending round with set S adds to each node's M its expectation under the estimate, e e^T + diag(e (1 - e)), where e
are the parents' means under do(S) and parents count as independent (continuous ones as fixed at their means). With a
right-hand side of that times theta the estimate stays where it is: only what is unsure shrinks, and time passes.
Where rows are weighed, an expected one weighs 1 / (p (1 - p)) as a real one would, p the node's mean; a table's cell is
expected to be seen P(pattern) times.
Means within SURE of 0 or 1 count as 0 or 1: a share of 1e-16 is rounding, but would make M regular in a direction that
nothing has shown, with an inverse of 1e16.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import by_type, inlined, kernel
from dobandit.estimation.belief import add_to_cell
from dobandit.estimation.estimators import LeastSquares, MaximumLikelihood, WeightedSquares
from dobandit.estimation.least_squares import add_row, refresh
from dobandit.estimation.mixture import CURVED, OWN_LINES, TABLE, Mixture, fit_curve, line_of, member_means
from dobandit.model.link_kernels import link_value
from dobandit.policy.region import end_round

SURE = 1e-10
MOST_TABULATED = 6  # parents of a node whose cells are expected one by one
_RARE = 1e-3  # patterns less likely than this teach nothing worth the work


@kernel
def expect_line(
    layout: Any, v: int, lines: Any, line: int, state: Any, root: float, means: Any, row: Any, varies: bool
) -> None:
    """Take the expected row of node v, times root, into the sums of one of `lines`. row: scratch."""
    start, at = layout.ptr[v], lines.ptr[line]
    d = layout.ptr[v + 1] - start
    expected = 0.0
    for j in range(d):
        row[j] = root * means[layout.parent[start + j]]
        expected += row[j] * state.slots["line"][at + j]
    add_row(lines, state, line, row, expected)
    for j in range(d):
        mean = means[layout.parent[start + j]]
        if varies and SURE < mean < 1.0 - SURE:
            for i in range(d):
                row[i] = 0.0
            row[j] = root * math.sqrt(mean * (1.0 - mean))
            add_row(lines, state, line, row, row[j] * state.slots["line"][at + j])


@by_type
def expected_mean(estimator: Any, layout: Any, state: Any, v: int, means: Any, row: Any, teaches: bool) -> Any:
    """The mean of node v, given its parents' means; where the round teaches, tables take in what they are expected to
    see. row: scratch."""


@inlined
def weighted_sum(layout: Any, theta: Any, v: int, means: Any) -> float:
    total = 0.0
    for slot in range(layout.ptr[v], layout.ptr[v + 1]):
        total += theta[slot] * means[layout.parent[slot]]
    return total


@expected_mean.of(MaximumLikelihood)
def mean_by_link(estimator: Any, layout: Any, state: Any, v: int, means: Any, row: Any, teaches: bool) -> float:
    return link_value(estimator.links, v, weighted_sum(layout, state.slots["curve"], v, means))


def mean_by_line(estimator: Any, layout: Any, state: Any, v: int, means: Any, row: Any, teaches: bool) -> float:
    return weighted_sum(layout, state.slots["line"], v, means)


expected_mean.of(LeastSquares)(mean_by_line)
expected_mean.of(WeightedSquares)(mean_by_line)


@expected_mean.of(Mixture)
def mean_by_members(mix: Any, layout: Any, state: Any, v: int, means: Any, row: Any, teaches: bool) -> float:
    start, end = layout.ptr[v], layout.ptr[v + 1]
    first = 1 if end > start and layout.parent[start] == 0 else 0
    if (mix.has[v, CURVED] or mix.has[v, TABLE]) and end - start - first <= MOST_TABULATED:
        return expect_cells(mix, layout, state, v, means, row, teaches)
    return weighted_sum(layout, state.slots["line"], v, means)


@by_type
def expect_rows(estimator: Any, layout: Any, state: Any, v: int, means: Any, row: Any, varies: bool) -> None:
    """Take the expected row of node v into its sums."""


def expect_plain_row(estimator: Any, layout: Any, state: Any, v: int, means: Any, row: Any, varies: bool) -> None:
    expect_line(layout, v, layout, v, state, 1.0, means, row, varies)


expect_rows.of(LeastSquares)(expect_plain_row)
expect_rows.of(MaximumLikelihood)(expect_plain_row)


@expect_rows.of(WeightedSquares)
def expect_weighted_row(estimator: Any, layout: Any, state: Any, v: int, means: Any, row: Any, varies: bool) -> None:
    root = root_weight(means[v], estimator.floor)
    expect_line(layout, v, layout, v, state, root, means, row, varies)


@expect_rows.of(Mixture)
def expect_mixed_rows(mix: Any, layout: Any, state: Any, v: int, means: Any, row: Any, varies: bool) -> None:
    root = root_weight(means[v], mix.straight.floor)
    expect_line(layout, v, layout, v, state, root, means, row, varies)
    if mix.has[v, OWN_LINES]:
        expect_own_line(mix, layout, state, v, root, means, row, varies)


@inlined
def root_weight(mean: float, floor: float) -> float:
    """The root of what a row weighs whose node has this mean."""
    p = min(max(mean, floor), 1.0 - floor)
    return 1.0 / math.sqrt(p * (1.0 - p))


@kernel
def expect_round(
    estimator: Any, layout: Any, order: Any, initial: int, thresholds: Any, state: Any, squares: Any, fixed: Any,
    was_set: Any, means: Any, row: Any, varies: bool,
) -> None:  # fmt: skip
    """Take the expectation of one round in: more is known, the estimate stays, time passes.

    order: ids of all nodes, causes first. squares: the least-squares estimate, which stays. fixed: what is set or known
    from the context. means, row: scratch.
    """
    means[0] = 1.0
    for v in order:
        mean = expected_mean(estimator, layout, state, v, means, row, not was_set[v])
        mean = mean if math.isnan(fixed[v]) else fixed[v]
        means[v] = 0.0 if mean < SURE else 1.0 if mean > 1.0 - SURE else mean
        if not was_set[v]:
            expect_rows(estimator, layout, state, v, means, row, varies)
    for v in order:  # rows of very different sizes leave rounding: each M^+ from M, and the estimate as it was
        refresh(layout, state, v)
    for slot in range(len(squares)):
        state.slots["line"][slot] = squares[slot]
    end_round(initial, layout, thresholds, state, state.clock)


@kernel
def expect_own_line(mix: Any, layout: Any, state: Any, v: int, root: float, means: Any, row: Any, varies: bool) -> None:
    """The line of the segment that the round is in: context is known, so that its mean is its value."""
    for j in range(layout.ptr[v + 1] - layout.ptr[v]):
        row[j] = means[layout.parent[layout.ptr[v] + j]]
    lines, line = mix.segments.layout, line_of(mix.segments, layout, v, row)
    expect_line(layout, v, lines, line, state, root, means, row, varies)
    refresh(lines, state, line)  # rows of very different sizes leave rounding


@kernel
def expect_cells(mix: Any, layout: Any, state: Any, v: int, means: Any, row: Any, teaches: bool) -> float:
    """The mean of v over its parents' patterns; where the round teaches, each pattern counts as seen P times."""
    start = layout.ptr[v]
    d = layout.ptr[v + 1] - start
    first = 1 if d > 0 and layout.parent[start] == 0 else 0
    if d == 0:
        return 0.0
    total, out = 0.0, state.work[0:5]
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
            add_to_cell(state, v, d, row, chance, chance * p)
    if teaches and mix.has[v, CURVED]:
        fit_curve(layout, mix.links, state, v)
    return total
