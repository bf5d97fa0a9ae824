"""What E[target | do(S)] of many actions rests on: the cells that an action visits, and how far each moves E[Y].

A cell is a node's parent pattern, in the frontier's numbering.  p(c): the estimate of the node's probability in it.
visits(S, c): how likely a round of S visits the cell.  influence(S, c) = dE[Y | do(S)] / dp(c): visits times how much
better it is from there on if the node is 1. Both are 0 where S, or the context, sets the node.
n(c): rows that saw the cell.  The rows that bear on E[Y] at a node are sum |D| / sum (|D| / (n + 1/2)), D the
influence: where most of it is on cells that were never seen, next to none, however many rows saw the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.oracle.frontier import Frontier
from dobandit.oracle.pattern_tables import node_variance

Array = NDArray[np.float64]
_LITTLE = 1e-3  # influence of a node that hardly matters


class Influences(NamedTuple):
    """A row per action."""

    value: Array  # (actions,) E[Y]
    influence: Array  # (actions, cells)
    visits: Array  # (actions, cells)


def influences_of(frontier: Frontier, p: Array, held: Array) -> Influences:
    """By a pass forwards and one backwards, for all actions at once.

    held  (actions, depths) what each node is set to; NaN: free
    """
    count, depths = held.shape
    there, value = np.zeros((2, count, int(frontier.state_ptr[-1])))
    influence, visits = np.zeros((2, count, int(frontier.table_ptr[-1])))
    there[:, 0] = 1.0
    parts = [slice(*frontier.state_ptr[depth : depth + 2]) for depth in range(depths)]
    cells = [frontier.table_ptr[depth] + frontier.pattern[parts[depth]] for depth in range(depths)]
    free = np.isnan(held)
    for depth, (part, cell) in enumerate(zip(parts, cells, strict=True)):
        _add(visits, cell, there[:, part] * free[:, [depth]])
        if depth < depths - 1:
            one = np.where(free[:, [depth]], p[cell], held[:, [depth]])
            _add(there, part.stop + frontier.next_one[part], there[:, part] * one)
            _add(there, part.stop + frontier.next_zero[part], there[:, part] * (1.0 - one))
    for depth in range(depths - 1, -1, -1):
        part, cell = parts[depth], cells[depth]
        if depth == depths - 1:
            if_one, if_zero = np.ones((count, len(cell))), np.zeros((count, len(cell)))
        else:
            if_one = value[:, part.stop + frontier.next_one[part]]
            if_zero = value[:, part.stop + frontier.next_zero[part]]
        one = np.where(free[:, [depth]], p[cell], held[:, [depth]])
        value[:, part] = one * if_one + (1.0 - one) * if_zero
        _add(influence, cell, there[:, part] * (if_one - if_zero) * free[:, [depth]])
    return Influences(value[:, 0], influence, visits)


def _add(sums: Array, at: NDArray[np.int64], what: Array) -> None:
    """sums[:, at[k]] += what[:, k], also where an index comes again."""
    np.add.at(sums.T, at, what.T)


def bearing_rows(table_ptr: NDArray[np.int64], influence: Array, seen: Array) -> Array:
    """(actions,) how many rows bear on E[Y], at the node with the fewest."""
    size, rare = np.abs(influence), np.abs(influence) / (seen + 0.5)
    total, weighed = (np.add.reduceat(part, table_ptr[:-1], axis=1) for part in (size, rare))
    rows = np.divide(total, weighed, out=np.full(total.shape, np.inf), where=total > _LITTLE)
    return rows.min(axis=1)


@kernel
def contrast_variances(layout: Any, order: Any, tables: Any, state: Any, influence: Any, out: Any) -> None:
    """out[i] = the variance of what the influences of row i make of the cells' errors."""
    for i in range(len(influence)):
        for at in range(influence.shape[1]):
            tables.influence[at] = influence[i, at]
        out[i] = 0.0
        for depth in range(len(order)):
            out[i] += node_variance(layout, tables, state, order[depth], depth)
