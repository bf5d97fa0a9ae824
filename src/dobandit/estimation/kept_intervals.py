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

from dobandit.compiled import by_type, inlined, kernel
from dobandit.estimation.anytime import LikelihoodSets, likelihood_sets, pattern_intervals, table_interval
from dobandit.estimation.belief import Belief, Layout, cell_of, cells_of
from dobandit.estimation.least_squares import gather
from dobandit.estimation.mixture import Mixture

_CELL, _NODE = 0.02, 0.05  # by which share rows have to grow
_PATTERNS = 64  # a promised node of so many patterns waits for one more row each time


class Unwatched(NamedTuple):
    """No intervals are kept: whoever wants some has them computed when asking."""

    nodes: int = 0


class Watch(NamedTuple):
    """Which nodes are watched, and at what level."""

    sets: LikelihoodSets
    watched: NDArray[np.bool_]  # (n + 1,) the nodes that matter
    nats: float  # log(n / delta), n their number
    free: NDArray[np.float64]  # (n + 1,) NaN: nothing is known


def watch_of(layout: Layout, mix: Mixture, state: Belief, order: NDArray[np.int64], nats: float) -> Watch:
    """What is watched of the nodes of `order`; what cannot happen by itself has its interval at once."""
    nodes = len(layout.ptr) - 1
    for v in order.tolist():
        if layout.ptr[v] == layout.ptr[v + 1]:
            state.cells["high"][cells_of(state, v)] = 0.0
    return Watch(likelihood_sets(layout, mix), np.isin(np.arange(nodes), order), nats, np.full(nodes, math.nan))


@by_type
def watch_round(watch: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """Bring the kept intervals up to date after a round that the state has just learned from."""


@watch_round.of(Unwatched)
def watch_nothing(watch: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """There are none."""


@watch_round.of(Watch)
def watch_nodes(watch: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """The round's cell of every table, and all cells of promised nodes, where that is due."""
    row, cells = watch.sets.row, state.cells
    for v in range(1, len(watch.watched)):
        d, first = layout.ptr[v + 1] - layout.ptr[v], state.nodes["cell"][v]
        if not watch.watched[v] or d == 0 or not gather(layout, values, was_set, v, row):
            continue
        if not watch.sets.promised[v]:
            watch_cell(watch, state, v, first + cell_of(state, v, d, row))
        elif state.nodes["rows"][v] >= cells["due"][first]:
            watch_node(watch, layout, state, v)
            rows = float(state.nodes["rows"][v])
            cells["due"][first] = rows + max(1.0, _NODE * rows) + state.nodes["cells"][v] // _PATTERNS


@inlined
def watch_node(watch: Any, layout: Any, state: Any, v: int) -> None:
    """All cells of node v."""
    cells = state.cells[state.nodes["cell"][v] : state.nodes["cell"][v] + state.nodes["cells"][v]]
    pattern_intervals(layout, watch.sets, state, v, watch.nats, watch.free, cells["low"], cells["high"])


@inlined
def watch_cell(watch: Any, state: Any, v: int, at: int) -> None:
    """The cell of a table that a row has joined, if that is due."""
    cells, seen = state.cells, state.cells["seen"][at]
    if seen >= cells["due"][at]:
        nats = watch.nats + math.log(float(state.nodes["cells"][v]))
        table_interval(seen, cells["total"][at], nats, watch.sets.ends)
        cells["low"][at], cells["high"][at] = watch.sets.ends[0], watch.sets.ends[1]
        cells["due"][at] = seen + max(1.0, _CELL * seen)


@kernel
def look_again(watch: Any, layout: Any, state: Any) -> None:
    """Compute everything anew: after rows without an order, and what rounds under way are expected to bring."""
    for v in range(1, len(watch.watched)):
        if watch.watched[v]:
            watch_node(watch, layout, state, v)
