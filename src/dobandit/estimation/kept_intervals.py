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
from dobandit.estimation.mixture import Kept, Mixed, Mixture
from dobandit.estimation.mle import find_pattern
from dobandit.estimation.statistics import Layout, gather

_CELL, _NODE = 0.02, 0.05  # by which share rows have to grow
_PATTERNS = 64  # a promised node of so many patterns waits for one more row each time


class Unwatched(NamedTuple):
    """No intervals are kept: whoever wants some has them computed when asking."""

    nodes: int = 0


class Watch(NamedTuple):
    """Which nodes are watched, and at what level."""

    sets: LikelihoodSets
    at: NDArray[np.int64]  # (n + 1, 2) where the cells of a node begin and end; -1: it does not matter
    nats: float  # log(n / delta), n the nodes that matter
    free: NDArray[np.float64]  # (n + 1,) NaN: nothing is known


def watched(
    layout: Layout, mix: Mixture, state: Mixed, order: NDArray[np.int64], table_ptr: NDArray[np.int64], nats: float
) -> tuple[Watch, Mixed]:
    """What is watched, and the state before any round with the intervals of the nodes of `order`, numbered as in
    `table_ptr`."""
    nodes, count = len(layout.ptr) - 1, int(table_ptr[-1])
    at = np.full((nodes, 2), -1, dtype=np.int64)
    at[order, 0], at[order, 1] = table_ptr[:-1], table_ptr[1:]
    low, high = np.zeros(count), np.ones(count)
    for v in order.tolist():
        if layout.ptr[v] == layout.ptr[v + 1]:  # it cannot happen by itself
            high[at[v, 0]] = 0.0
    watch = Watch(likelihood_sets(layout, mix), at, nats, np.full(nodes, math.nan))
    return watch, state._replace(kept=Kept(low, high, np.zeros(count)))


@by_type
def watch_round(watch: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """Bring the kept intervals up to date after a round that the state has just learned from."""


@watch_round.of(Unwatched)
def watch_nothing(watch: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """There are none."""


@watch_round.of(Watch)
def watch_nodes(watch: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """The round's cell of every table, and all cells of promised nodes, where that is due."""
    kept, row = state.kept, watch.sets.row
    for v in range(1, len(watch.at)):
        first, last = watch.at[v, 0], watch.at[v, 1]
        if first < 0 or layout.ptr[v] == layout.ptr[v + 1] or not gather(layout, values, was_set, v, row):
            continue
        if not watch.sets.promised[v]:
            watch_cell(watch, layout, state.patterns, kept, v, row)
        elif state.stats.rows[v] >= kept.due[first]:
            watch_node(watch, layout, state, v)
            rows = float(state.stats.rows[v])
            kept.due[first] = rows + max(1.0, _NODE * rows) + (last - first) // _PATTERNS


@inlined
def watch_node(watch: Any, layout: Any, state: Any, v: int) -> None:
    """All cells of node v."""
    part = slice(watch.at[v, 0], watch.at[v, 1])
    low, high = state.kept.low[part], state.kept.high[part]
    pattern_intervals(layout, watch.sets, state, v, watch.nats, watch.free, low, high)


@inlined
def watch_cell(watch: Any, layout: Any, patterns: Any, kept: Any, v: int, row: Any) -> None:
    """The cell of a table that a row of its parents has joined, if that is due."""
    start, at = layout.ptr[v], watch.at[v, 0]
    d, constant = layout.ptr[v + 1] - start, 1 if layout.parent[start] == 0 else 0
    for j in range(constant, d):
        at += int(row[j] > 0.5) << (j - constant)
    cell = patterns.first[v] + patterns.table[patterns.table_ptr[v] + find_pattern(patterns, v, d, row)]
    seen = patterns.seen[cell]
    if seen >= kept.due[at]:
        table_interval(seen, patterns.total[cell], watch.nats + (d - constant) * math.log(2.0), watch.sets.ends)
        kept.low[at], kept.high[at] = watch.sets.ends[0], watch.sets.ends[1]
        kept.due[at] = seen + max(1.0, _CELL * seen)


@kernel
def look_again(watch: Any, layout: Any, state: Any) -> None:
    """Compute everything anew: after rows without an order, and what rounds under way are expected to bring."""
    for v in range(1, len(layout.ptr) - 1):
        if watch.at[v, 0] >= 0:
            watch_node(watch, layout, state, v)
