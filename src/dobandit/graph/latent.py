"""Hidden variables in linear models (paper, Section 4.1): which structures are allowed, and how they are removed.

A hidden path runs from one observed node (or the constant) to another through hidden nodes only.
A graph is admissible when no hidden node has hidden-only paths to an observed X_i and to a descendant X_j of it.
The Markovian graph G' has an edge X_i -> X_j wherever there is a hidden path; its weight is the sum over these
paths of the product of their weights. Sums over paths are carried along the hidden nodes in topological order,
so their number does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import GraphError
from dobandit.graph.causal_graph import CausalGraph

RULE = (
    "hidden variables can be removed only if none reaches an observed node and its descendant through hidden nodes "
    "alone"
)
_BLOCK = 1024  # columns carried at once: bounds the memory to hidden nodes x 1024 numbers


@dataclass(frozen=True)
class Witness:
    """A hidden node with hidden-only paths to an observed node and to a descendant of that node."""

    hidden: str
    paths: tuple[tuple[str, ...], tuple[str, ...]]

    def __str__(self) -> str:
        first, second = (" -> ".join(path) for path in self.paths)
        return (
            f"hidden {self.hidden!r} reaches {self.paths[0][-1]!r} ({first}) and its descendant "
            f"{self.paths[1][-1]!r} ({second})"
        )


@dataclass(frozen=True)
class Admissibility:
    """Whether the hidden variables can be removed; true or false in an `if`. Made by `admissible`.

    admissible  whether they can
    witness     what speaks against it: a hidden node and its two paths; None where nothing does
    """

    admissible: bool
    witness: Witness | None = None

    def __bool__(self) -> bool:
        return self.admissible


def admissible(graph: CausalGraph) -> Admissibility:
    """Can the hidden variables of `graph` be removed? They can if there is no hidden node with two hidden-only paths to
    some X_i and to a descendant X_j of it (paper, Section 4.1).

    Returns whether it is so, with a witness (the hidden node and both paths) where it is not.

    >>> edges = [("visit", "buy"), ("mood", "visit"), ("mood", "buy")]
    >>> bool(admissible(CausalGraph(edges, target="buy", latent=["mood"])).admissible)
    False
    """
    from dobandit.graph.formats.networkx_format import as_graph

    graph = as_graph(graph, "hidden variables are those of a CausalGraph", GraphError)
    arrays = graph.arrays
    fed = np.unique(arrays.child[np.repeat(arrays.latent, np.diff(arrays.child_ptr))])
    sinks = [v for v in fed.tolist() if not arrays.latent[v]]  # observed nodes with a hidden parent
    bit = {v: 1 << i for i, v in enumerate(sinks)}
    # Masks over `sinks`: descendants of each node, what a hidden node reaches through hidden nodes alone, and the
    # descendants of what it reaches. Lower nodes come first, so the witness is the lowest hidden node at fault.
    below = _descendants_among(graph, bit)
    near: dict[int, int] = {}
    beyond: dict[int, int] = {}
    for u in np.flatnonzero(arrays.latent)[::-1].tolist():
        near[u] = beyond[u] = 0
        for c in arrays.children_of(u):
            near[u] |= near.get(c, 0) | bit.get(c, 0)
            beyond[u] |= beyond[c] if c in beyond else below[c]
        both = near[u] & beyond[u]
        if both:
            last = sinks[(both & -both).bit_length() - 1]
            first = next(v for v in sinks if near[u] & bit[v] and below[v] & bit[last])
            paths = (path_between(graph, u, first), path_between(graph, u, last))
            return Admissibility(False, Witness(graph.nodes[u - 1], paths))
    return Admissibility(True)


def require_admissible(graph: CausalGraph) -> None:
    """Refuse an inadmissible graph with its witness, and what can be done about it."""
    answer = admissible(graph)
    if answer.witness is not None:
        from dobandit.graph.hiding import ways_out

        raise GraphError(f"{RULE}, but {answer.witness}. {ways_out(graph, answer.witness, learner=False)}")


def project_graph(graph: CausalGraph) -> CausalGraph:
    """The Markovian graph G' over the observed nodes: what a learner needs to know.

    A node has the constant as a parent in G' if it has in G, or if a hidden node can turn it on.
    A graph without hidden variables is its own projection.
    """
    from dobandit.graph.hiding import reduced

    require_admissible(graph)
    return reduced(graph)


def projected_edges(graph: CausalGraph) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Edges of G' as positions in `graph.observed`, and which observed nodes have the constant as a parent."""
    reached = hidden_path_sums(graph, np.ones(len(graph.arrays.parent), dtype=bool))
    # A hidden node may be 1 by itself even where no bias is listed for it: the learner must allow for that.
    fed = np.zeros(len(graph) + 1, dtype=bool)
    child = graph.slot_child
    fed[child[graph.arrays.latent[graph.arrays.parent]]] = True
    position = np.full(len(graph) + 1, -1, dtype=np.int64)
    observed = np.flatnonzero(~graph.arrays.latent)[1:]
    position[observed] = np.arange(len(observed))
    named = reached.sources > 0
    biased = fed[observed]
    biased[position[reached.sinks[~named]]] = True
    return position[reached.sources[named]], position[reached.sinks[named]], biased


@dataclass(frozen=True)
class PathSums:
    """total[k]: sum over the hidden paths from sources[k] (0: the constant) to the observed sinks[k]."""

    sources: NDArray[np.int64]
    sinks: NDArray[np.int64]
    total: NDArray[Any]


def hidden_path_sums(graph: CausalGraph, theta: NDArray[Any]) -> PathSums:
    """Sums over hidden paths; with boolean `theta`: whether there is one. Ids as in `graph.arrays`."""
    arrays = graph.arrays
    ptr, parent, latent = arrays.parent_ptr, arrays.parent, arrays.latent
    child = graph.slot_child
    direct = ~latent[parent] & ~latent[child]
    pieces = [PathSums(parent[direct].astype(np.int64), child[direct], theta[direct])]
    starts = np.unique(parent[~latent[parent] & latent[child]])
    ends = np.unique(child[latent[parent] & ~latent[child]])
    # Carry whichever side is smaller: columns are sources (downwards) or sinks (upwards).
    if len(starts) <= len(ends):
        pieces += _carried(starts, ends, ptr, parent, theta, np.flatnonzero(latent), latent)
    else:
        order = np.argsort(parent, kind="stable")
        flipped = _carried(
            ends, starts, arrays.child_ptr, child[order], theta[order], np.flatnonzero(latent)[::-1], latent
        )
        pieces += [PathSums(piece.sinks, piece.sources, piece.total) for piece in flipped]
    return _merged(pieces, len(ptr) - 1)


def _carried(
    starts: NDArray[Any],
    ends: NDArray[Any],
    ptr: NDArray[np.int64],
    flat: NDArray[Any],
    theta: NDArray[Any],
    hidden: NDArray[np.intp],
    latent: NDArray[np.bool_],
) -> Sequence[PathSums]:
    """Path sums from each start over `hidden` (in path order) to each end; (ptr, flat) lists what comes before."""
    row = np.full(len(latent), -1, dtype=np.int64)
    row[hidden] = np.arange(len(hidden))
    pieces = []
    for first in range(0, len(starts), _BLOCK):
        block = starts[first : first + _BLOCK]
        column = np.full(len(latent), -1, dtype=np.int64)
        column[block] = np.arange(len(block))
        sums = np.zeros((len(hidden), len(block)), dtype=theta.dtype)

        def arriving(
            v: int, inner_only: bool, sums: NDArray[Any] = sums, column: NDArray[np.int64] = column
        ) -> NDArray[Any]:
            before, weight = flat[ptr[v] : ptr[v + 1]], theta[ptr[v] : ptr[v + 1]]
            inner = latent[before]
            total: NDArray[Any] = weight[inner] @ sums[row[before[inner]]]
            if not inner_only:
                outer = ~inner & (column[before] >= 0)
                total[column[before[outer]]] += weight[outer]
            return total

        for v in hidden:
            sums[row[v]] = arriving(v, inner_only=False)
        for v in ends:
            total = arriving(v, inner_only=True)
            found = np.flatnonzero(total)
            pieces.append(PathSums(block[found].astype(np.int64), np.full(len(found), v), total[found]))
    return pieces


def _merged(pieces: Sequence[PathSums], size: int) -> PathSums:
    """Add up what belongs to one (source, sink) pair."""
    sources = np.concatenate([piece.sources for piece in pieces])
    sinks = np.concatenate([piece.sinks for piece in pieces])
    total = np.concatenate([piece.total for piece in pieces])
    codes, where = np.unique(sinks * size + sources, return_inverse=True)
    merged = np.zeros(len(codes), dtype=total.dtype)
    np.add.at(merged, where, total)
    return PathSums(codes % size, codes // size, merged)


def _descendants_among(graph: CausalGraph, bit: dict[int, int]) -> list[int]:
    """For each id, a bit mask of its proper descendants among the keys of `bit`."""
    below = [0] * (len(graph) + 1)
    for v in range(len(graph), 0, -1) if bit else ():
        for c in graph.arrays.children_of(v):
            below[v] |= below[c] | bit.get(c, 0)
    return below


def path_between(graph: CausalGraph, u: int, v: int) -> tuple[str, ...]:
    """A shortest hidden-only path from u to v, by name."""
    arrays = graph.arrays
    came: dict[int, int] = {u: 0}
    queue = [u]
    for w in queue:
        if w == v:
            break
        if w != u and not arrays.latent[w]:
            continue
        for c in arrays.children_of(w):
            if c not in came:
                came[c] = w
                queue.append(c)
    path = [v]
    while path[-1] != u:
        path.append(came[path[-1]])
    return tuple(graph.nodes[w - 1] for w in reversed(path))
