"""The lowest and highest E[Y | do(S)] that the nodes' intervals allow, for any signs: one pass backwards per action.

What the intervals allow of an action is one pass for each end (`exact_pass`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.estimation.anytime import pattern_intervals
from dobandit.estimation.belief import Belief, Layout, named_parents
from dobandit.estimation.mixture import CURVED, Mixture, promised_nodes
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.link_kernels import IDENTITY
from dobandit.oracle.exact_pass import expect_actions
from dobandit.oracle.frontier import Frontier, columns_for, ends_of_target, frontier_of
from dobandit.oracle.joint_pattern import JointPattern
from dobandit.oracle.listing import Listing, pick_best, propose, score

MOST_SEARCHED = 8  # causes of a node whose link is promised: the ends of each pattern take a search of their own
Ends = NDArray[np.float64]


def bounded_frontier(graph: CausalGraph, order: NDArray[np.int64], layout: Layout, mix: Mixture) -> Frontier | None:
    """The frontier of a pass over intervals; None where it is too wide, or a node has too many causes for these."""
    code = np.where(mix.has[:, CURVED], mix.links.code, IDENTITY)
    searched = promised_nodes(layout, mix.has, code) & (named_parents(layout) > MOST_SEARCHED)
    if searched[order].any():
        return None
    return frontier_of(graph, order)


class AnytimeValues(NamedTuple):
    """The oracle: actions, the frontier, intervals by pattern, and scratch."""

    listing: Listing
    frontier: Frontier
    low: NDArray[np.float64]  # (patterns,)
    high: NDArray[np.float64]  # (patterns,)
    states: NDArray[np.float64]  # (states, columns)
    known: NDArray[np.float64]  # (depths, columns) value given to a node, NaN: free
    target: NDArray[np.float64]  # (2, columns) E[Y] where Y is 0 and where it is 1
    lower: NDArray[np.float64]  # (count,) of each action; listing.values holds the upper ones
    joint: JointPattern | None  # what scores actions where no guarantee is asked for


def anytime_values(
    listing: Listing, frontier: Frontier, joint: JointPattern | None = None, shared: dict[int, Ends] | None = None
) -> AnytimeValues:
    """The oracle for the actions of a list. shared: ends by state that lists of one order are worked out in, one after
    the other, by the number of columns."""
    patterns, states = int(frontier.table_ptr[-1]), int(frontier.state_ptr[-1])
    columns = columns_for(len(listing.values), states, shared is not None)
    ends = np.zeros((states, columns))
    if shared is not None:
        ends = shared.setdefault(columns, ends)
    return AnytimeValues(
        listing,
        frontier,
        low=np.zeros(patterns),
        high=np.zeros(patterns),
        states=ends,
        known=np.full((len(listing.order), columns), math.nan),
        target=ends_of_target(columns),
        lower=np.zeros(len(listing.values)),
        joint=joint,
    )


def fill_intervals(oracle: AnytimeValues, state: Belief, nats: float) -> None:
    """The interval of every pattern of every node; nats = log(n / delta), n the nodes that matter."""
    ptr = oracle.frontier.table_ptr
    for depth, v in enumerate(oracle.listing.order.tolist()):
        part = slice(ptr[depth], ptr[depth + 1])
        oracle.low[part], oracle.high[part] = pattern_intervals(state, v, nats)


@kernel
def bound_actions(oracle: Any, fixed: Any) -> None:
    """oracle.lower[i] and oracle.listing.values[i]: the ends of E[Y] of action i, from the intervals as they stand."""
    frontier, listing, low, high, known = oracle.frontier, oracle.listing, oracle.low, oracle.high, oracle.known
    expect_actions(frontier, listing, low, high, fixed, known, oracle.target, oracle.states, 0, oracle.lower)
    expect_actions(frontier, listing, low, high, fixed, known, oracle.target, oracle.states, 1, listing.values)


@kernel
def bound_kept(oracle: Any, state: Any, fixed: Any) -> None:
    """The ends of E[Y] of every action, from the intervals that the state keeps (`estimation.kept_intervals`)."""
    for depth in range(len(oracle.listing.order)):
        base, first = oracle.frontier.table_ptr[depth], state.nodes["cell"][oracle.listing.order[depth]]
        for k in range(oracle.frontier.table_ptr[depth + 1] - base):
            oracle.low[base + k], oracle.high[base + k] = state.cells["low"][first + k], state.cells["high"][first + k]
    bound_actions(oracle, fixed)


@score.of(AnytimeValues)
def score_anytime(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """The upper ends by the kept intervals; without optimism (rho 0), what the estimate says."""
    if rho[layout.target] > 0.0:
        bound_kept(oracle, state, fixed)
    else:
        score(oracle.joint, layout, state, rho, fixed)


propose.of(AnytimeValues)(pick_best)
