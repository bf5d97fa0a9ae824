"""E[Y | do(S)] by one exact pass backwards over the frontier, for any signs, for a block of actions at once.

low(v), high(v): the interval of P(X = 1 | parents' pattern v).  one, zero: the states after s with X at 1 and 0.
    highest(s) = max over p in [low(v), high(v)] of p highest(one) + (1 - p) highest(zero),   lowest(s) alike.
p is chosen for each state of the frontier, which allows for more than one choice per pattern would: if every interval
holds its probability, E[Y | do(S)] lies between lowest and highest at the start. Where low = high, as for an estimate,
a drawn model or an optimistic one, both are E[Y | do(S)] itself.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import inlined, kernel
from dobandit.oracle.frontier import hold_block


@inlined
def bound_state(out: Any, known: Any, low: float, high: float, one: Any, zero: Any, end: int) -> None:
    """A state's highest E[Y] (end = 1), or its lowest, from those of the states with the node at 1 and at 0."""
    for c in range(len(out)):
        free = math.isnan(known[c])
        least, most = low if free else known[c], high if free else known[c]
        p = (most if end else least) if one[c] >= zero[c] else (least if end else most)
        out[c] = p * one[c] + (1.0 - p) * zero[c]


@kernel
def bound_states(
    frontier: Any, low: Any, high: Any, known: Any, target: Any, states: Any, depth: int, end: int
) -> None:
    """The pass backwards over the node at `depth`, for the ends in `states`."""
    here, after, base = frontier.state_ptr[depth], frontier.state_ptr[depth + 1], frontier.table_ptr[depth]
    last = depth == len(known) - 1
    for s in range(here, after):
        cell = base + frontier.states["pattern"][s]
        one = target[1] if last else states[after + frontier.states["one"][s]]
        zero = target[0] if last else states[after + frontier.states["zero"][s]]
        bound_state(states[s], known[depth], low[cell], high[cell], one, zero, end)


@kernel
def expect_actions(
    frontier: Any, listing: Any, low: Any, high: Any, fixed: Any, known: Any, target: Any, states: Any, end: int,
    out: Any,
) -> None:  # fmt: skip
    """out[i] = the highest E[Y] of action i (end = 1), or its lowest. known, states: scratch, a column per action of a
    block; target: (2, columns) E[Y] where Y is 0 and where it is 1."""
    columns = known.shape[1]
    for start in range(0, len(out), columns):
        hold_block(listing, start, fixed, known)
        for depth in range(len(known) - 1, -1, -1):
            bound_states(frontier, low, high, known, target, states, depth, end)
        for c in range(min(columns, len(out) - start)):
            out[start + c] = states[0, c]
