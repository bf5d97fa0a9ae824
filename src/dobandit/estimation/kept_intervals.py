"""The intervals of `estimation.anytime`, kept in the state of a mixture for those who choose by them every round.

An interval of an earlier round holds as well as one of now, since they hold at all rounds at once. So they are computed
again only where a share of news has come: a table's cell by itself when its rows have grown by a fiftieth, since it
depends on no other; a promised node as a whole, since its weights are shared by all patterns, when its rows have grown
by a twentieth, and a little later still where it has very many patterns. What is kept is a function of the rows in
their order, whoever asks and whenever: rounds told one by one, in batches, replayed and simulated end in the same
state.
Where rows have no order, the one they are learned in is made of their outcomes. Intervals computed among them do not
hold; `look_again` computes everything anew.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import by_type
from dobandit.estimation.anytime import narrow_promised, pattern_intervals, spare_nats, table_interval, table_intervals
from dobandit.estimation.belief import Belief, cells_of
from dobandit.kernels import kernel

_CELL, _NODE = 0.02, 0.05  # by which share rows have to grow
_PATTERNS = 64  # a promised node of so many patterns waits for one more row each time


class Unwatched(NamedTuple):
    """No intervals are kept: whoever wants some has them computed when asking."""

    nodes: int = 0


class WatchTables(NamedTuple):
    """Whose intervals are kept, and at what level; no link is promised."""

    order: NDArray[np.int64]  # the nodes that matter
    nats: float  # log(n / delta), n their number


class WatchAll(WatchTables):
    """The same where some links are promised: for these there is far more to compile."""


def watch_of(state: Belief, order: NDArray[np.int64], nats: float) -> WatchTables:
    """What is kept of the nodes of `order`; what cannot happen by itself has its interval at once."""
    for v in order.tolist():
        if state.nodes[v]["width"] == 0:
            state.cells["high"][cells_of(state, v)] = 0.0
    kind = WatchAll if state.nodes["promised"][order].any() else WatchTables
    return kind(order, nats)


def look_again(watch: WatchTables, state: Belief) -> None:
    """Compute everything anew: after rows without an order, and what rounds under way are expected to bring."""
    for v in watch.order.tolist():
        part = cells_of(state, v)
        state.cells["low"][part], state.cells["high"][part] = pattern_intervals(state, v, watch.nats)


@by_type
def watch_round(watch: Any, state: Any, values: Any, was_set: Any) -> None:
    """Bring the kept intervals up to date after a round that the state has just learned from."""


@watch_round.of(Unwatched)
def watch_nothing(watch: Any, state: Any, values: Any, was_set: Any) -> None:
    """There are none."""


@watch_round.of(WatchTables)
def watch_tables(watch: Any, state: Any, values: Any, was_set: Any) -> None:
    keep_tables(state.nodes, state.slots, state.cells, watch.order, watch.nats, values, was_set)


@watch_round.of(WatchAll)
def watch_all(watch: Any, state: Any, values: Any, was_set: Any) -> None:
    keep_tables(state.nodes, state.slots, state.cells, watch.order, watch.nats, values, was_set)
    keep_promised(state.nodes, state.cells, state.bits, state.points, watch.order, watch.nats)


@kernel
def keep_tables(nodes: Any, slots: Any, cells: Any, order: Any, nats: float, values: Any, was_set: Any) -> None:
    """Where that is due, the cell of every table that a round has joined."""
    for v in order:
        node = nodes[v]
        there, k = cell_of_round(node, slots, v, values, was_set)
        cell = cells[node["cell"] + k]
        if there and node["promised"] == 0 and cell["seen"] >= cell["due"]:
            level = nats + math.log(float(node["cells"]))
            cell["low"], cell["high"] = table_interval(cell["seen"], cell["total"], level)
            cell["due"] = cell["seen"] + max(1.0, _CELL * cell["seen"])


@kernel
def cell_of_round(node: Any, slots: Any, v: int, values: Any, was_set: Any) -> tuple[bool, int]:
    """Whether a round says something about node v, and the number of the cell among v's own: not where v was set or
    cannot happen, nor where a value is missing."""
    there, cell = node["width"] > 0 and not was_set[v] and not math.isnan(values[v]), 0
    for j in range(node["width"]):
        x = values[slots[node["start"] + j]["parent"]]
        there = there and not math.isnan(x)
        if j >= node["constant"] and x > 0.5:
            cell |= 1 << (j - node["constant"])
    return there, cell


@kernel
def keep_promised(nodes: Any, cells: Any, bits: Any, points: Any, order: Any, nats: float) -> None:
    """Where that is due, all cells of every node whose link is promised."""
    for v in order:
        node = nodes[v]
        rows, first = float(node["rows"]), node["cell"]
        if node["promised"] == 1 and rows >= max(cells[first]["due"], 1.0):
            low, high = table_intervals(nodes, cells, v, nats)
            narrow_promised(nodes, cells, bits, points, v, spare_nats(nats, float(len(low))), low, high)
            for k in range(len(low)):
                cells[first + k]["low"], cells[first + k]["high"] = low[k], high[k]
            cells[first]["due"] = rows + max(1.0, _NODE * rows) + node["cells"] // _PATTERNS
