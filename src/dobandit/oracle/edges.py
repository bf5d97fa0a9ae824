"""The edges that matter to the target, by their cause, for passes from effects back to causes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph


class Edges(NamedTuple):
    """Edges into the target's ancestors (and the target), grouped by cause."""

    edge_ptr: NDArray[np.int64]  # (n + 2,)
    effect: NDArray[np.int64]  # effect of each such edge
    slot: NDArray[np.int64]  # its slot among the effect's parents


def edges_by_cause(graph: CausalGraph, order: NDArray[np.int64]) -> Edges:
    """The edges into the nodes of `order`."""
    ptr, parent = graph.arrays.parent_ptr, graph.arrays.parent
    relevant = np.zeros(len(graph) + 1, dtype=bool)
    relevant[order] = True
    child = graph.slot_child
    slots = np.flatnonzero(relevant[child])
    slots = slots[np.argsort(parent[slots], kind="stable")]
    edge_ptr = np.zeros(len(ptr), dtype=np.int64)
    np.cumsum(np.bincount(parent[slots], minlength=len(ptr) - 1), out=edge_ptr[1:])
    return Edges(edge_ptr, child[slots], slots)
