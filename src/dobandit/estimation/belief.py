"""What a learner knows of every node, in a few arrays of records: sums over rows, weights, and counts by pattern.

V: a node's parent values in a round, the constant's 1 first (d,).  X: the node's value.
M = sum V V^T (+ I for ridge).  b = sum X V.  N: projector on M's null space.
Node v's slots, one a parent, are [ptr[v]:ptr[v + 1]] of the layout; its pairs of slots [square[v]:square[v + 1]], row
by row. A cell is a pattern of the parents: how often it was seen, and how often X was 1 then. A node with at most DENSE
parents has a cell for every pattern, in their order (bit j: the j-th parent that is not the constant). One with more
keeps its rows as they come, equal ones behind each other in one cell. Cell k's parent values are
`bits[node.bit + k * d : ... + d]`.
Behind the nodes stand the lines of segments (`mixture`), which have slots and pairs, and no cells.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit import limits
from dobandit.errors import PolicyError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.kernels import inlined
from dobandit.model.link_kernels import LINK_FIELDS, POINT

DENSE = 12  # parents of a node that has a cell for every pattern
SOLVED, SINGULAR, SEPARABLE = 0, 1, 2
NODE = np.dtype(
    [
        ("rows", np.int64),  # that were taken into the sums
        ("rank", np.int64),  # of M
        ("fresh", np.int64),  # rows since the inverse was last computed from M
        ("due", np.int64),  # rows at which a curve is fitted again
        ("since", np.int64),  # rows since the score equation was last solved
        ("status", np.int64),  # of its solution
        ("width", np.int64),  # d: parents, the constant counted
        ("constant", np.int64),  # 1 where the first parent is the constant
        ("dense", np.int64),  # 1 where every pattern has a cell
        ("cell", np.int64),  # the first cell
        ("cells", np.int64),  # cells held
        ("room", np.int64),  # cells there is room for; 0: nothing is counted
        ("bit", np.int64),  # where the first cell's parent values stand
        ("start", np.int64),  # the first slot
        ("square", np.int64),  # the first pair of slots
        *LINK_FIELDS,
        ("promised", np.int64),  # 1 where the link is assumed, and makes the likelihood convex (`anytime`)
        ("segments", np.int64),  # the first of the lines of its segments (`mixture`)
        ("apart", np.int64),  # 1 where the weight of the curve takes no part in sharing (`mixture`)
        ("nats", np.float64),  # above 0 where intervals are kept (`kept_intervals`): log(nodes that matter / delta)
        ("threshold", np.float64),  # what lambda_min has to reach before optimism begins
    ],
    align=True,
)
# The parent; which bit of a segment's number it is, -1: none; b, M^+ b, weights of a curve
SLOT = np.dtype(
    [("parent", np.int64), ("segment", np.int64), *((name, np.float64) for name in ("rhs", "line", "curve"))],
    align=True,
)
# Of a node's member: whether it is there, how much it is believed, and where a share of that goes back to (`mixture`)
MEMBER = np.dtype([("there", np.int64), ("weight", np.float64), ("back", np.float64)], align=True)
# M, M^+, N, the covariance of a curve's weights
PAIR = np.dtype([(name, np.float64) for name in ("gram", "inverse", "null", "covariance")], align=True)
# How often a pattern was seen, how often X was 1 then; the interval that is kept for it, and the rows at which it is
# computed again (`kept_intervals`)
CELL = np.dtype([(name, np.float64) for name in ("seen", "total", "low", "high", "due")], align=True)


class Layout(NamedTuple):
    """Where each node's numbers are; a Markovian graph's arrays with offsets for matrices."""

    ptr: NDArray[np.int64]  # (n + 2,)
    parent: NDArray[np.int32]
    square: NDArray[np.int64]  # (n + 2,)
    target: int


class Belief(NamedTuple):
    """What has been learned, and scratch; D: the most parents of a node, the constant counted."""

    nodes: NDArray[Any]  # (n + 1 + lines,) NODE
    slots: NDArray[Any]  # SLOT
    pairs: NDArray[Any]  # PAIR
    cells: NDArray[Any]  # CELL
    bits: NDArray[np.int8]  # parent values of cells
    clock: NDArray[np.int64]  # (3,) rounds taken in; 1 once an initialisation is over; 1: it waits for lambda_min
    row: NDArray[np.float64]  # (D,) where `gather` leaves a node's parent values
    work: NDArray[np.float64]  # (D * (D + 4),)
    points: NDArray[Any]  # POINT: tabulated links
    members: NDArray[Any]  # (4 * (n + 1),) MEMBER: of node v's mixture from 4 * v on


def layout_of(graph: CausalGraph) -> Layout:
    ptr = graph.arrays.parent_ptr
    sizes = np.diff(ptr)
    if int((sizes**2).sum()) > limits.MAX_SQUARES:
        widest = graph.nodes[int(np.argmax(sizes)) - 1]
        raise PolicyError(
            f"a policy that keeps a model of the causes keeps a matrix of causes by causes for every variable, up to "
            f"{limits.MAX_SQUARES:,} numbers in all, but {widest!r} alone has {len(graph.parents(widest)):,} causes. "
            "Use a policy without a model, such as UCB, or a graph with fewer causes of each variable."
        )
    square = offsets(sizes**2)
    square.setflags(write=False)
    return Layout(ptr, graph.arrays.parent, square, graph.arrays.target)


def named_parents(layout: Layout) -> NDArray[np.int64]:
    """(n + 1,) how many parents each node has, the constant not counted."""
    return np.diff(offsets(layout.parent != 0)[layout.ptr])


def start_belief(layout: Layout, ridge: float, counted: NDArray[np.bool_] | None = None, most_rows: int = 1) -> Belief:
    """A belief before any round, with M = ridge * I; ridge = 0 is plain least squares.

    counted    nodes whose patterns are counted; default: none
    most_rows  of nodes with many parents room for so many rows
    """
    sizes, named = np.diff(layout.ptr), named_parents(layout)
    widest, started = int(sizes.max(initial=1)), ridge > 0
    identity = np.concatenate([np.eye(size).ravel() for size in sizes])
    nodes, slots, pairs = np.zeros(len(sizes), NODE), np.zeros(int(sizes.sum()), SLOT), np.zeros(len(identity), PAIR)
    pairs["gram"], pairs["inverse"] = identity * ridge, identity / ridge if started else 0.0
    pairs["null"] = 0.0 if started else identity
    counted = np.zeros(len(sizes), dtype=np.bool_) if counted is None else counted
    room = np.where(counted, np.where(named <= DENSE, 1 << np.minimum(named, DENSE), max(most_rows, 1)), 0)
    nodes["rank"], nodes["width"] = sizes if started else 0, sizes
    nodes["status"] = np.where(sizes > 0, SINGULAR, SOLVED)
    nodes["constant"], nodes["dense"], nodes["room"] = sizes - named, named <= DENSE, room
    nodes["cell"], nodes["cells"] = offsets(room)[:-1], np.where(named <= DENSE, room, 0)
    nodes["bit"] = offsets(room * sizes)[:-1]
    nodes["start"], nodes["square"] = layout.ptr[:-1], layout.square[:-1]
    slots["parent"], slots["segment"] = layout.parent, -1
    cells, bits = cells_of_room(nodes)
    for v in np.flatnonzero(counted & (named <= DENSE)):
        part = bits[nodes["bit"][v] :][: room[v] * sizes[v]].reshape(room[v], sizes[v])
        part[:, : sizes[v] - named[v]] = 1
        part[:, sizes[v] - named[v] :] = (np.arange(room[v])[:, None] >> np.arange(named[v])) & 1
    clock, row = np.zeros(3, dtype=np.int64), np.zeros(widest)
    work, points, members = np.zeros(widest * (widest + 4) + 1), np.zeros(0, POINT), np.zeros(0, MEMBER)
    return Belief(nodes, slots, pairs, cells, bits, clock, row, work, points, members)


def grown(old: Belief) -> Belief:
    """The belief with room for twice as many rows of nodes with many parents; for learners without a horizon."""
    nodes = old.nodes.copy()
    nodes["room"] = np.where(nodes["dense"] == 1, nodes["room"], 2 * nodes["room"])
    nodes["cell"], nodes["bit"] = offsets(nodes["room"])[:-1], offsets(nodes["room"] * nodes["width"])[:-1]
    cells, bits = cells_of_room(nodes)
    for before, after in zip(old.nodes, nodes, strict=True):
        held, values = int(before["cells"]), int(before["cells"] * before["width"])
        cells[after["cell"] :][:held] = old.cells[before["cell"] :][:held]
        bits[after["bit"] :][:values] = old.bits[before["bit"] :][:values]
    return old._replace(nodes=nodes, cells=cells, bits=bits)


def cells_of_room(nodes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Empty cells, and parent values of none, for as many as there is room for."""
    cells = np.zeros(int(nodes["room"].sum()), CELL)
    cells["high"] = 1.0
    return cells, np.zeros(int((nodes["room"] * nodes["width"]).sum()), dtype=np.int8)


def rows_that_fit(state: Belief) -> int:
    """How many rows can be taken in for sure; 0: some node could run out of room at its next row."""
    limited = (state.nodes["dense"] == 0) & (state.nodes["room"] > 0)
    return int((state.nodes["room"] - state.nodes["cells"]).min(initial=1 << 40, where=limited))


def with_room(state: Belief) -> tuple[Belief, int]:
    """(belief, rows): how many rows it can take in for sure, at least one; it may have to grow."""
    while not (rows := rows_that_fit(state)):
        state = grown(state)
    return state, rows


def cells_of(state: Belief, v: int) -> slice:
    """The cells of a node with few parents, a cell for each pattern."""
    return slice(int(state.nodes["cell"][v]), int(state.nodes["cell"][v] + state.nodes["cells"][v]))


@inlined
def cell_of(nodes: Any, bits: Any, v: int, row: Any) -> int:
    """The number of the cell that a row of v's parents belongs to, among v's own."""
    node = nodes[v]
    d = node["width"]
    if node["dense"] == 1:
        constant, cell = node["constant"], 0
        for j in range(constant, d):
            cell |= int(row[j] > 0.5) << (j - constant)
        return cell
    last = node["cells"] - 1
    base = node["bit"] + last * d
    for j in range(d):
        if last < 0 or bits[base + j] != row[j]:
            return last + 1
    return last


@inlined
def add_to_cell(nodes: Any, cells: Any, bits: Any, v: int, row: Any, count: float, total: float) -> None:
    """Add to the cell of a row, making it if it is new."""
    node, k = nodes[v], cell_of(nodes, bits, v, row)
    if k == node["cells"]:
        node["cells"] += 1
        for j in range(node["width"]):
            bits[node["bit"] + k * node["width"] + j] = int(row[j])
    cell = cells[node["cell"] + k]
    cell["seen"] += count
    cell["total"] += total
