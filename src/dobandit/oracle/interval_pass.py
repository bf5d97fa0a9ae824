"""The lowest and highest E[Y | do(S)] that the nodes' intervals allow, for any signs, and choices made by them.

What the intervals allow of an action is one exact pass for each end (`exact_pass`).
Leeway: of the actions whose intervals reach up nearly as far as the farthest, the one is played that an index speaks
most for.  low, high: the ends of E[Y | do(S)].  w = high - low.  c: the leeway.
S may be played if high(S) + c w(S) >= max over S' of high(S'). While the intervals hold, playing it then loses
    E[Y | do(best)] - E[Y | do(S)] <= max high - low(S) <= (1 + c) w(S),
where always playing the farthest (c = 0) loses w(S) at most: what is guaranteed of the sum over all rounds, which only
needs that the widths of played actions shrink, is the same but for the factor 1 + c.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.anytime import pattern_intervals
from dobandit.estimation.belief import Belief
from dobandit.kernels import kernel
from dobandit.oracle.action_list import ActionList, tie_floor
from dobandit.oracle.exact_pass import exact_index, expect_actions
from dobandit.oracle.frontier import Frontier, columns_for, patterns_in

MOST_SEARCHED = 8  # causes of a node whose link is promised: the ends of each pattern take a search of their own
INDEX: Any = None  # the evaluator whose index chooses within the leeway, which `kernels.with_kernels` puts in
Array = NDArray[np.float64]


def bounded(frontier: Frontier | None, state: Belief) -> Frontier | None:
    """The frontier, where a pass over intervals can take it; None where a node has too many causes for these."""
    nodes = state.nodes[[] if frontier is None else frontier.tables["node"]]
    wide = ((nodes["promised"] > 0) & (nodes["width"] - nodes["constant"] > MOST_SEARCHED)).any()
    return None if wide else frontier


class IntervalPass(NamedTuple):
    """The plan of an evaluator: actions, the frontier, intervals by pattern, and scratch."""

    actions: ActionList  # scores["low"] and scores["high"]: the ends of each
    steps: NDArray[Any]  # (regimes, depths + 2) STEP
    states: NDArray[Any]  # STATE
    tables: NDArray[Any]  # TABLE
    low: Array  # (patterns,)
    high: Array  # (patterns,)
    known: Array  # (depths, columns) value given to a node, NaN: free
    value: Array  # (states, columns)
    ends: Array  # (count,) scratch
    index: Any  # the plan of the index that chooses within the leeway, over the same actions; () for none
    share: Array  # (1,) c


def interval_pass(
    actions: ActionList, frontier: Frontier, index: Any = (), share: float = 0.0, shared: dict[int, Array] | None = None
) -> IntervalPass:
    """The plan for the actions of a list. shared: ends by state that lists of one order are worked out in, one after
    the other, by the number of columns."""
    patterns, states = patterns_in(frontier.tables), len(frontier.states)
    columns = columns_for(len(actions.scores), states, shared is not None)
    value = np.zeros((states, columns)) if shared is None else shared.setdefault(columns, np.zeros((states, columns)))
    low, high = np.zeros((2, patterns))
    known = np.full((len(actions.order), columns), math.nan)
    ends = np.zeros(len(actions.scores))
    return IntervalPass(actions, *frontier, low, high, known, value, ends, index, np.array([share]))


def fill_intervals(plan: IntervalPass, state: Belief, nats: float) -> None:
    """The interval of every pattern of every node; nats = log(n / delta), n the nodes that matter."""
    for node, first, patterns in plan.tables.tolist():
        part = slice(first, first + patterns)
        plan.low[part], plan.high[part] = pattern_intervals(state, node, nats)


@kernel
def highest_means(plan: Any, fixed: Any) -> None:
    """plan.ends = the upper end of E[Y] of every action, from the intervals as they stand."""
    expect_actions(
        plan.steps, plan.states, plan.actions.held, plan.actions.scores, plan.low, plan.high, fixed, plan.known,
        plan.value, True, plan.ends,
    )  # fmt: skip


@kernel
def bound_actions(plan: Any, fixed: Any) -> None:
    """The ends of E[Y] of every action, from the intervals as they stand."""
    scores, ends, held = plan.actions.scores, plan.ends, plan.actions.held
    expect_actions(
        plan.steps, plan.states, held, scores, plan.low, plan.high, fixed, plan.known, plan.value, False, ends
    )
    for i in range(len(scores)):
        scores[i]["low"] = ends[i]
    highest_means(plan, fixed)
    for i in range(len(scores)):
        scores[i]["high"] = ends[i]


@kernel
def bound_kept(belief: Any, plan: Any, fixed: Any) -> None:
    """The ends of E[Y] of every action, from the intervals that the belief keeps (`estimation.kept_intervals`)."""
    low, high = plan.low, plan.high
    for i in range(len(plan.tables)):
        base, first = plan.tables[i]["first"], belief.nodes[plan.tables[i]["node"]]["cell"]
        for k in range(plan.tables[i]["patterns"]):
            low[base + k], high[base + k] = belief.cells[first + k]["low"], belief.cells[first + k]["high"]
    bound_actions(plan, fixed)


@kernel
def highest_index(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    """The upper ends by the kept intervals; without optimism (reach 0), what the estimate says."""
    if reach[plan.actions.order[len(plan.actions.order) - 1]] <= 0.0:
        exact_index(belief, plan.index, fixed, reach, draws)
        return
    bound_kept(belief, plan, fixed)
    for i in range(len(plan.actions.scores)):
        plan.actions.scores[i]["index"] = plan.actions.scores[i]["high"]


@kernel
def leeway_index(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    """The index of the evaluator INDEX; -inf for every action that may not be played. Without optimism (reach 0) all
    may."""
    INDEX(belief, plan.index, fixed, reach, draws)
    scores = plan.actions.scores
    if reach[plan.actions.order[len(plan.actions.order) - 1]] <= 0.0:
        return
    bound_kept(belief, plan, fixed)
    best = -math.inf
    for i in range(len(scores)):
        best = max(best, scores[i]["high"])
    for i in range(len(scores)):
        low, high = scores[i]["low"], scores[i]["high"]
        if high + plan.share[0] * (high - low) < tie_floor(best):
            scores[i]["index"] = -math.inf
