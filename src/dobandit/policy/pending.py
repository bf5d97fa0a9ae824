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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import Belief, add_to_cell
from dobandit.estimation.estimators import FLOOR
from dobandit.estimation.least_squares import add_row, end_round, refresh
from dobandit.estimation.mixture import CURVED, OWN_LINES, TABLE, fit_curve, line_of, member_means
from dobandit.kernels import inlined, kernel
from dobandit.model.link_kernels import IDENTITY, value_at

if TYPE_CHECKING:
    from dobandit.policy.engine import Pending
    from dobandit.policy.problem import Problem

SURE = 1e-10
MOST_TABULATED = 6  # parents of a node whose cells are expected one by one
_RARE = 1e-3  # patterns less likely than this teach nothing worth the work


@kernel
def expect_line(
    nodes: Any, slots: Any, pairs: Any, work: Any, v: int, line: int, root: float, means: Any, row: Any, varies: bool
) -> None:
    """Take the expected row of node v, times root, into the sums of a line: its own, or one of its segments'. row:
    scratch."""
    start, at, d = nodes[v]["start"], nodes[line]["start"], nodes[v]["width"]
    expected = 0.0
    for j in range(d):
        row[j] = root * means[slots[start + j]["parent"]]
        expected += row[j] * slots[at + j]["line"]
    add_row(nodes, slots, pairs, work, line, row, expected)
    for j in range(d):
        mean = means[slots[start + j]["parent"]]
        if varies and SURE < mean < 1.0 - SURE:
            for i in range(d):
                row[i] = 0.0
            row[j] = root * math.sqrt(mean * (1.0 - mean))
            add_row(nodes, slots, pairs, work, line, row, row[j] * slots[at + j]["line"])


@inlined
def expected_sum(node: Any, slots: Any, curved: bool, means: Any) -> float:
    """theta . m over a node's parents."""
    total = 0.0
    for slot in range(node["start"], node["start"] + node["width"]):
        theta = slots[slot]["curve"] if curved else slots[slot]["line"]
        total += theta * means[slots[slot]["parent"]]
    return total


@kernel
def expect_cells(belief: Any, v: int, means: Any, row: Any, teaches: bool) -> float:
    """The mean of v over its parents' patterns; where the round teaches, each pattern counts as seen P times."""
    nodes, slots, pairs, cells = belief.nodes, belief.slots, belief.pairs, belief.cells
    bits, points, members, node = belief.bits, belief.points, belief.members, belief.nodes[v]
    start, d, first = node["start"], node["width"], node["constant"]
    if d == 0:
        return 0.0
    total = 0.0
    for pattern in range(1 << (d - first)):
        chance = row[0] = 1.0
        for j in range(first, d):
            row[j] = float((pattern >> (j - first)) & 1)
            mean = min(max(means[slots[start + j]["parent"]], 0.0), 1.0)
            chance *= mean if row[j] > 0.0 else 1.0 - mean
        if chance < _RARE:
            continue
        p = member_means(nodes, slots, pairs, cells, bits, points, members, v, row)[4]
        total += chance * p
        if teaches:
            add_to_cell(nodes, cells, bits, v, row, chance, chance * p)
    if teaches and members[4 * v + CURVED]["there"]:
        fit_curve(node, slots, pairs, cells, bits, points, belief.work)
    return total


@kernel
def expect_round(
    belief: Any, order: Any, variable: Any, squares: Any, fixed: Any, was_set: Any, means: Any, row: Any, varies: bool,
    weighs: bool,
) -> None:  # fmt: skip
    """Take the expectation of one round in: more is known, the estimate stays, time passes.

    order    ids of the nodes that variables answer by, causes first
    variable  by node: which variable it is about
    squares  the least-squares estimate, which stays
    fixed    what is set or known from the context
    varies   whether variables are 0 or 1, so that they vary around their means
    weighs   whether a row weighs by what it can tell
    means, row: scratch
    """
    nodes, slots, pairs, members, work = belief.nodes, belief.slots, belief.pairs, belief.members, belief.work
    means[0] = 1.0
    for v in order:
        node = nodes[v]
        few = node["width"] - node["constant"] <= MOST_TABULATED
        if len(members) > 0 and few and (members[4 * v + CURVED]["there"] or members[4 * v + TABLE]["there"]):
            mean = expect_cells(belief, v, means, row, not was_set[v])
        elif len(members) > 0 or weighs or node["link"] == IDENTITY:
            mean = expected_sum(node, slots, False, means)
        else:
            mean = value_at(node, belief.points, expected_sum(node, slots, True, means))
        mean = mean if math.isnan(fixed[v]) else fixed[v]
        means[v] = means[variable[v]] = 0.0 if mean < SURE else 1.0 if mean > 1.0 - SURE else mean
        if was_set[v]:
            continue
        p = min(max(means[v], FLOOR), 1.0 - FLOOR)
        root = 1.0 / math.sqrt(p * (1.0 - p)) if weighs else 1.0
        expect_line(nodes, slots, pairs, work, v, v, root, means, row, varies)
        if len(members) > 0 and members[4 * v + OWN_LINES]["there"]:
            for j in range(node["width"]):  # the segment that the round is in: the mean of a context is its value
                row[j] = means[slots[node["start"] + j]["parent"]]
            line = line_of(nodes, slots, v, row)
            expect_line(nodes, slots, pairs, work, v, line, root, means, row, varies)
            refresh(nodes, pairs, work, line)
    for v in order:  # rows of very different sizes leave rounding: each M^+ from M, and the estimate as it was
        refresh(nodes, pairs, work, v)
    for slot in range(len(squares)):
        slots[slot]["line"] = squares[slot]
    end_round(nodes, pairs, work, belief.clock)


def expect_pending(
    belief: Belief, estimate: NDArray[np.float64], problem: Problem, pending: Pending, weighs: bool, most: int
) -> None:
    """Take in what the rounds of a pending action are expected to teach, `most` of them at most.

    estimate  by slot, the least-squares estimate, which stays
    weighs    whether a row weighs by what it can tell
    """
    graph, action = problem.graph, problem.flagged(pending.action)
    fixed = action.over(problem.known(pending.context))
    means, was_set, row = np.ones(len(fixed)), np.zeros(len(fixed), dtype=np.bool_), np.zeros(len(belief.row))
    was_set[list(action.ids)] = True
    ids = [graph.index(name) for name in graph.topological_order]
    variable = np.arange(len(fixed))
    if problem.regimes is not None:
        ids, variable = problem.regimes.nodes_of(action, ids), problem.regimes.variable
        was_set |= ~np.isin(np.arange(len(fixed)), ids)
    order = np.array(ids, dtype=np.int64)
    for _ in range(min(pending.size, most)):
        expect_round(belief, order, variable, estimate, fixed, was_set, means, row, not problem.continuous, weighs)
