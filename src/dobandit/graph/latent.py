"""Hidden variables in linear models (paper, Section 4.1): which structures are allowed, and how they are removed.

A hidden path runs from one observed node (or the constant) to another through hidden nodes only.
A graph is admissible when no hidden node has hidden-only paths to an observed X_i and to a descendant X_j of it.
The Markovian graph G' has an edge X_i -> X_j wherever there is a hidden path; its weight is the sum over these
paths of the product of their weights. Sums are carried along the hidden nodes in topological order, so the number of
paths does not matter.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from dobandit.errors import GraphError
from dobandit.graph.causal_graph import CausalGraph

RULE = (
    "hidden variables can be removed only if none reaches an observed node and its descendant through hidden nodes "
    "alone"
)


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
    bit = {v: 1 << i for i, v in enumerate(fed[~arrays.latent[fed]].tolist())}  # observed nodes with a hidden parent
    below = [0] * (len(graph) + 1)  # bit masks of the descendants of each node among these
    for v in range(len(graph), 0, -1) if bit else ():
        for c in arrays.children_of(v):
            below[v] |= below[c] | bit.get(c, 0)
    for u, ends in observed_ends(graph):
        beyond = reduce(or_, (below[v] for v in ends), 0)
        last = min((v for v in ends if bit[v] & beyond), default=None)
        if last is not None:
            first = min(v for v in ends if below[v] & bit[last])
            paths = (path_between(graph, u, first), path_between(graph, u, last))
            return Admissibility(False, Witness(graph.nodes[u - 1], paths))
    return Admissibility(True)


def observed_ends(graph: CausalGraph) -> Iterator[tuple[int, set[int]]]:
    """Of each hidden node, the lowest first: the observed nodes that it reaches through hidden nodes alone, by id."""
    ends: dict[int, set[int]] = {}
    for u in np.flatnonzero(graph.arrays.latent)[::-1].tolist():
        ends[u] = set()
        for c in graph.arrays.children_of(u):
            ends[u] |= ends.get(c, {c})
        yield u, ends[u]


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


def hidden_path_sums(graph: CausalGraph, theta: Sequence[float]) -> dict[tuple[int, int], float]:
    """By (source, sink): the sum over the hidden paths between them of the product of their weights.

    theta  a weight per slot of `graph.arrays.parent`

    Sources and sinks are ids of observed nodes; a source may be 0, the constant. A pair is there if it has a path.
    """
    arrays = graph.arrays
    ptr, parent, latent = arrays.parent_ptr.tolist(), arrays.parent.tolist(), arrays.latent.tolist()
    found: dict[tuple[int, int], float] = {}
    for sink in np.flatnonzero(~arrays.latent)[1:].tolist():
        # Backwards from the sink. The lowest node comes first, so that all paths from it are summed up by then.
        carried, waiting = {sink: 1.0}, [-sink]
        while waiting:
            v = -heapq.heappop(waiting)
            for slot in range(ptr[v], ptr[v + 1]):
                p, weight = parent[slot], carried[v] * theta[slot]
                if not latent[p]:
                    found[p, sink] = found.get((p, sink), 0.0) + weight
                elif p in carried:
                    carried[p] += weight
                else:
                    carried[p] = weight
                    heapq.heappush(waiting, -p)
    return found


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
