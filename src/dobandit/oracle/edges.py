"""The edges that matter to the target, by their cause, for passes from effects back to causes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets


class Edges(NamedTuple):
    """Edges into the target's ancestors (and the target), grouped by cause."""

    edge_ptr: NDArray[np.int64]  # (n + 2,)
    effect: NDArray[np.int64]  # effect of each such edge
    slot: NDArray[np.int64]  # its slot among the effect's parents


def edges_by_cause(graph: CausalGraph, order: NDArray[np.int64]) -> Edges:
    """The edges into the nodes of `order`."""
    parent, relevant = graph.arrays.parent, np.zeros(len(graph) + 1, dtype=bool)
    relevant[order] = True
    child = graph.slot_child
    slots = np.flatnonzero(relevant[child])
    slots = slots[np.argsort(parent[slots], kind="stable")]
    return Edges(offsets(np.bincount(parent[slots], minlength=len(relevant))), child[slots], slots)
