"""Blocks of actions, a column each: a step of a pass is the same arithmetic for all of them, which processors do
several at a time. The order in which an action's numbers are added up is the same as if it were alone.

Rows are handed over as arrays of their own, so that the loops over them are as simple as a compiler wants them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel

_AT_ONCE = 8  # columns that a processor may work on at once: rows are filled up to a multiple of it
_NEAR = 1 << 17  # states times columns: beyond, they would not stay in a core's near memory
_MOST = 64  # columns: more gain nothing


def whole_columns(wanted: int) -> int:
    """So many columns, or a few more; at least one."""
    return max(-(-wanted // _AT_ONCE), 1) * _AT_ONCE


def columns_for(actions: int, states: int, shared: bool = False) -> int:
    """How many columns a pass over so many states of a frontier has at once: few where there are very many states,
    unless lists share what they are worked out in."""
    near = max(_NEAR // max(states, 1), _AT_ONCE if shared else 1)
    wanted = max(min(actions, _MOST, near), 1)
    return wanted if wanted < _AT_ONCE else whole_columns(wanted)


def ends_of_target(columns: int) -> NDArray[np.float64]:
    """(2, columns) E[Y] where Y is 0, and where it is 1: what a pass backwards begins with."""
    return np.repeat([[0.0], [1.0]], columns, axis=1)


@inlined
def fill(row: Any, value: float) -> None:
    for c in range(len(row)):
        row[c] = value


@inlined
def hold_block(listing: Any, start: int, fixed: Any, known: Any) -> None:
    """known[depth, c] = what action start + c, or else the context, holds a node to (NaN: free). Columns that are left
    over set nothing."""
    for depth in range(len(known)):
        fill(known[depth], fixed[listing.order[depth]])
    for i in range(start, min(start + known.shape[1], len(listing.values))):
        for k in range(listing.member.shape[1]):
            if listing.member[i, k] < len(known):
                known[listing.member[i, k], i - start] = listing.member_to[i, k]


@inlined
def pass_on(weight: Any, known: Any, p: float, one: Any, zero: Any) -> None:
    """A state's weight goes to the states with the node at 1 and at 0."""
    for c in range(len(weight)):
        q = p if math.isnan(known[c]) else known[c]
        one[c] += weight[c] * q
        zero[c] += weight[c] * (1.0 - q)


@kernel
def forwards(frontier: Any, table: Any, weight: Any, known: Any, depth: int) -> None:
    """Carry the weights of the frontier's states past the node at `depth`; table: the node's probability by pattern."""
    here, after, base = frontier.state_ptr[depth], frontier.state_ptr[depth + 1], frontier.table_ptr[depth]
    for s in range(after, frontier.state_ptr[depth + 2]):
        fill(weight[s], 0.0)
    for s in range(here, after):
        one, zero = weight[after + frontier.next_one[s]], weight[after + frontier.next_zero[s]]
        pass_on(weight[s], known[depth], table[base + frontier.pattern[s]], one, zero)
