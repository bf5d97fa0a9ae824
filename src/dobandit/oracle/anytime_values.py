"""The lowest and highest E[Y | do(S)] that the nodes' intervals allow, for any signs: one pass backwards per action.

low(v), high(v): the interval of P(X = 1 | parents' pattern v).  one, zero: the states after s with X at 1 and 0.
    highest(s) = max over p in [low(v), high(v)] of p highest(one) + (1 - p) highest(zero),   lowest(s) alike.
p is chosen for each state of the frontier, which allows for more than one choice per pattern would: if every interval
holds its probability, E[Y | do(S)] lies between lowest and highest at the start.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.estimation.anytime import LikelihoodSets, likelihood_sets, pattern_intervals
from dobandit.estimation.belief import Layout, named_parents
from dobandit.estimation.mixture import Mixture
from dobandit.graph.causal_graph import CausalGraph
from dobandit.oracle.frontier import Frontier, columns_for, ends_of_target, frontier_of, hold_block
from dobandit.oracle.joint_pattern import JointPattern
from dobandit.oracle.listing import Listing, pick_best, propose, score

MOST_SEARCHED = 8  # causes of a node whose link is promised: the ends of each pattern take a search of their own
Ends = tuple[NDArray[np.float64], NDArray[np.float64]]


def bounded_frontier(graph: CausalGraph, order: NDArray[np.int64], layout: Layout, mix: Mixture) -> Frontier | None:
    """The frontier of a pass over intervals; None where it is too wide, or a node has too many causes for these."""
    promised = likelihood_sets(layout, mix).promised[order]
    if (promised & (named_parents(layout)[order] > MOST_SEARCHED)).any():
        return None
    return frontier_of(graph, order)


class AnytimeValues(NamedTuple):
    """The oracle: actions, the frontier, intervals by pattern, and scratch."""

    listing: Listing
    sets: LikelihoodSets
    frontier: Frontier
    low: NDArray[np.float64]  # (patterns,)
    high: NDArray[np.float64]  # (patterns,)
    lowest: NDArray[np.float64]  # (states, columns)
    highest: NDArray[np.float64]  # (states, columns)
    known: NDArray[np.float64]  # (depths, columns) value given to a node, NaN: free
    target: NDArray[np.float64]  # (2, columns) E[Y] where Y is 0 and where it is 1
    lower: NDArray[np.float64]  # (count,) of each action; listing.values holds the upper ones
    joint: JointPattern | None  # what scores actions where no guarantee is asked for


def anytime_values(
    listing: Listing,
    frontier: Frontier,
    layout: Layout,
    mix: Mixture,
    joint: JointPattern | None = None,
    shared: dict[int, Ends] | None = None,
) -> AnytimeValues:
    """The oracle for the actions of a list. shared: ends by state that lists of one order are worked out in, one after
    the other, by the number of columns."""
    patterns, states = int(frontier.table_ptr[-1]), int(frontier.state_ptr[-1])
    columns = columns_for(len(listing.values), states, shared is not None)
    lowest, highest = np.zeros((2, states, columns))
    if shared is not None:
        lowest, highest = shared.setdefault(columns, (lowest, highest))
    return AnytimeValues(
        listing,
        likelihood_sets(layout, mix),
        frontier,
        low=np.zeros(patterns),
        high=np.zeros(patterns),
        lowest=lowest,
        highest=highest,
        known=np.full((len(listing.order), columns), math.nan),
        target=ends_of_target(columns),
        lower=np.zeros(len(listing.values)),
        joint=joint,
    )


@kernel
def fill_intervals(layout: Any, oracle: Any, state: Any, nats: float, fixed: Any) -> None:
    """The interval of every pattern of every node that can come up where `fixed` is set or known (NaN: free).

    nats = log(n / delta), n the nodes that matter.
    """
    for depth in range(len(oracle.listing.order)):
        part = slice(oracle.frontier.table_ptr[depth], oracle.frontier.table_ptr[depth + 1])
        low, high = oracle.low[part], oracle.high[part]
        pattern_intervals(layout, oracle.sets, state, oracle.listing.order[depth], nats, fixed, low, high)


@inlined
def bound_state(out: Any, known: Any, low: float, high: float, one: Any, zero: Any, end: int) -> None:
    """A state's highest E[Y] (end = 1), or its lowest, from those of the states with the node at 1 and at 0."""
    for c in range(len(out)):
        free = math.isnan(known[c])
        least, most = low if free else known[c], high if free else known[c]
        p = (most if end else least) if one[c] >= zero[c] else (least if end else most)
        out[c] = p * one[c] + (1.0 - p) * zero[c]


@kernel
def bound_states(oracle: Any, states: Any, depth: int, end: int) -> None:
    """The pass backwards over the node at `depth`, for the ends in `states`."""
    frontier, known, last = oracle.frontier, oracle.known[depth], depth == len(oracle.known) - 1
    here, after, base = frontier.state_ptr[depth], frontier.state_ptr[depth + 1], frontier.table_ptr[depth]
    for s in range(here, after):
        low, high = oracle.low[base + frontier.pattern[s]], oracle.high[base + frontier.pattern[s]]
        one = oracle.target[1] if last else states[after + frontier.next_one[s]]
        zero = oracle.target[0] if last else states[after + frontier.next_zero[s]]
        bound_state(states[s], known, low, high, one, zero, end)


@kernel
def bound_actions(oracle: Any, fixed: Any) -> None:
    """oracle.lower[i] and oracle.listing.values[i]: the ends of E[Y] of action i, from the intervals as they stand."""
    listing, known = oracle.listing, oracle.known
    columns = known.shape[1]
    for start in range(0, len(listing.values), columns):
        hold_block(listing, start, fixed, known)
        for depth in range(len(known) - 1, -1, -1):
            bound_states(oracle, oracle.lowest, depth, 0)
            bound_states(oracle, oracle.highest, depth, 1)
        for c in range(min(columns, len(listing.values) - start)):
            oracle.lower[start + c], listing.values[start + c] = oracle.lowest[0, c], oracle.highest[0, c]


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
