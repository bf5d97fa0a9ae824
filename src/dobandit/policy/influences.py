"""What E[target | do(S)] of many actions rests on: the cells that an action visits, and how far each moves E[Y].

A cell is a node's parent pattern, in the frontier's numbering.  p(c): the estimate of the node's probability in it.
visits(S, c): how likely a round of S visits the cell.  influence(S, c) = dE[Y | do(S)] / dp(c): visits times how much
better it is from there on if the node is 1. Both are 0 where S, or the context, sets the node.
n(c): rows that saw the cell.  The rows that bear on E[Y] at a node are sum |D| / sum (|D| / (n + 1/2)), D the
influence: where most of it is on cells that were never seen, next to none, however many rows saw the others.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import Belief
from dobandit.kernels import kernel
from dobandit.oracle.node_tables import NodeTables, node_variances

Array = NDArray[np.float64]
_LITTLE = 1e-3  # influence of a node that hardly matters


class Influences(NamedTuple):
    """A row per action."""

    value: Array  # (actions,) E[Y]
    influence: Array  # (actions, cells)
    visits: Array  # (actions, cells)


def influences_of(steps: NDArray[Any], states: NDArray[Any], p: Array, held: Array) -> Influences:
    """By a pass forwards and one backwards for each action.

    steps, states  the frontier
    held           (actions, depths) what each node is set to; NaN: free
    """
    count, cells = len(held), int(steps["table"][-1])
    value, (influence, visits) = np.zeros(count), np.zeros((2, count, cells))
    there, worth = np.zeros((2, len(states)))
    walk_cells(steps, states, p, held, there, worth, value, influence, visits)
    return Influences(value, influence, visits)


@kernel
def walk_cells(
    steps: Any, states: Any, p: Any, held: Any, there: Any, worth: Any, value: Any, influence: Any, visits: Any
) -> None:
    """there: how likely a state is reached; below 0: never, for what is held, and it is passed over.  worth: E[Y] from
    there on."""
    depths = held.shape[1]
    for i in range(len(held)):
        there[:] = -1.0
        there[0] = 1.0
        for depth in range(depths):
            after, base, known = steps[depth + 1]["state"], steps[depth]["table"], held[i, depth]
            free = math.isnan(known)
            for s in range(steps[depth]["state"], after):
                if there[s] < 0.0:
                    continue
                cell = base + states[s]["pattern"]
                q = p[cell] if free else known
                visits[i, cell] += there[s] if free else 0.0
                if depth < depths - 1 and (free or known > 0.0):
                    one = after + states[s]["one"]
                    there[one] = max(there[one], 0.0) + there[s] * q
                if depth < depths - 1 and (free or known < 1.0):
                    zero = after + states[s]["zero"]
                    there[zero] = max(there[zero], 0.0) + there[s] * (1.0 - q)
        for depth in range(depths - 1, -1, -1):
            after, base, known = steps[depth + 1]["state"], steps[depth]["table"], held[i, depth]
            free = math.isnan(known)
            for s in range(steps[depth]["state"], after):
                if there[s] < 0.0:
                    continue
                cell = base + states[s]["pattern"]
                q = p[cell] if free else known
                if_one = 1.0 if depth == depths - 1 else worth[after + states[s]["one"]]
                if_zero = 0.0 if depth == depths - 1 else worth[after + states[s]["zero"]]
                worth[s] = q * if_one + (1.0 - q) * if_zero
                influence[i, cell] += there[s] * (if_one - if_zero) if free else 0.0
        value[i] = worth[0]


def bearing_rows(steps: NDArray[Any], influence: Array, seen: Array) -> Array:
    """(actions,) how many rows bear on E[Y], at the node with the fewest."""
    size, rare = np.abs(influence), np.abs(influence) / (seen + 0.5)
    total, weighed = (np.add.reduceat(part, steps["table"][:-2], axis=1) for part in (size, rare))
    rows = np.divide(total, weighed, out=np.full(total.shape, np.inf), where=total > _LITTLE)
    return rows.min(axis=1)


def contrast_variances(belief: Belief, steps: NDArray[Any], tables: NodeTables, influence: Array) -> Array:
    """(rows,) the variance of what the influences of each row make of the cells' errors."""
    columns = len(influence)
    by_cell, along, sums = (
        np.ascontiguousarray(influence.T),
        np.zeros((len(tables.row), columns)),
        np.zeros((3, columns)),
    )
    total = np.zeros(columns)
    for depth in range(len(steps) - 2):
        node_variances(
            belief.nodes, belief.slots, belief.pairs, belief.members, steps, tables.mean, tables.patterns, by_cell,
            along, sums, depth, int(steps["table"][depth]),
        )  # fmt: skip
        total += sums[2]
    return total
