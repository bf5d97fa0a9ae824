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
from collections.abc import Sequence
from typing import Any

from dobandit.estimation.anytime import narrow_promised, pattern_intervals, spare_nats, table_intervals
from dobandit.estimation.belief import Belief, cells_of
from dobandit.estimation.kl import code_length_interval
from dobandit.estimation.mixture import mix_round
from dobandit.kernels import inlined, kernel, with_kernels

_CELL, _NODE = 0.02, 0.05  # by which share rows have to grow
KEEP: Any = None  # what is kept, which `kernels.with_kernels` puts into the learner
_PATTERNS = 64  # a promised node of so many patterns waits for one more row each time


def keep_intervals(state: Belief, order: Sequence[int], delta: float) -> Any:
    """Keep the intervals of these nodes from now on; returns the kernel that learns. Where some link is promised there
    is far more to compile.

    delta  with what probability one of them fails
    """
    state.nodes["nats"][list(order)] = math.log(len(order) / delta)
    for v in order:
        if state.nodes["width"][v] == 0:  # it cannot happen by itself
            state.cells["high"][cells_of(state, v)] = 0.0
    return with_kernels(learn_keeping, KEEP=keep_all if state.nodes["promised"][list(order)].any() else keep_tables)


def look_again(state: Belief) -> None:
    """Compute everything anew: after rows without an order, and what rounds under way are expected to bring."""
    for v in (state.nodes["nats"] > 0.0).nonzero()[0].tolist():
        part = cells_of(state, v)
        ends = pattern_intervals(state, v, float(state.nodes["nats"][v]))
        state.cells["low"][part], state.cells["high"][part] = ends


@kernel
def learn_keeping(belief: Any, values: Any, was_set: Any, counts: Any) -> None:
    """The mixture, and the intervals that KEEP keeps."""
    for t in range(len(values)):
        for _ in range(counts[t]):
            mix_round(belief, values[t], was_set[t])
            KEEP(belief, values[t], was_set[t])


@inlined
def keep_tables(belief: Any, values: Any, was_set: Any) -> None:
    """Where that is due, the cell of every table that a round has joined."""
    nodes, slots, cells = belief.nodes, belief.slots, belief.cells
    for v in range(1, len(values)):
        node = nodes[v]
        if node["nats"] > 0.0 and node["promised"] == 0:
            there, k = cell_of_round(node, slots, v, values, was_set)
            cell = cells[node["cell"] + k]
            if there and cell["seen"] >= cell["due"]:
                level = node["nats"] + math.log(float(node["cells"]))
                cell["low"], cell["high"] = code_length_interval(cell["seen"], cell["total"], level)
                cell["due"] = cell["seen"] + max(1.0, _CELL * cell["seen"])


@inlined
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


@inlined
def keep_all(belief: Any, values: Any, was_set: Any) -> None:
    """Tables, and promised nodes."""
    keep_tables(belief, values, was_set)
    keep_promised(belief.nodes, belief.cells, belief.bits, belief.points)


@kernel
def keep_promised(nodes: Any, cells: Any, bits: Any, points: Any) -> None:
    """Where that is due, all cells of every node whose link is promised."""
    for v in range(1, len(nodes)):
        node = nodes[v]
        rows, first = float(node["rows"]), node["cell"]
        if node["nats"] > 0.0 and node["promised"] == 1 and rows >= max(cells[first]["due"], 1.0):
            low, high = table_intervals(nodes, cells, v, node["nats"])
            narrow_promised(nodes, cells, bits, points, v, spare_nats(node["nats"], float(len(low))), low, high)
            for k in range(len(low)):
                cells[first + k]["low"], cells[first + k]["high"] = low[k], high[k]
            cells[first]["due"] = rows + max(1.0, _NODE * rows) + node["cells"] // _PATTERNS
