"""Means and gains of a linear model, for every node at once.

e_v = E[v | do(S)]: one pass downwards.  a_v: total weight of the paths from v to the target that avoid S: one pass
upwards.  Setting v to x besides S raises E[Y] by exactly (x - e_v) a_v, whatever the signs of the weights, so two
passes over the edges give every gain.
Only the target's ancestors matter; they are numbered 1..n in topological order, the target last, 0 the constant.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.model.bglm import WeightedModel

# Means and gains are at most about 1: changes below this are rounding, and following them through a long chain would
# visit every node (and crawl through subnormal numbers) for nothing.
NEGLIGIBLE = 1e-18


class Passes(NamedTuple):
    """The target's ancestors with both directions of their edges, and the means and path weights under S."""

    ids: NDArray[np.int64]  # (n + 1,) id in the model's graph of each node here
    parent_ptr: NDArray[np.int64]
    parent: NDArray[np.int32]
    theta: NDArray[np.float64]  # by parent slot
    child_ptr: NDArray[np.int64]
    child: NDArray[np.int32]
    child_theta: NDArray[np.float64]  # by child slot
    is_set: NDArray[np.bool_]  # (n + 1,) S
    to: NDArray[np.float64]  # (n + 1,) what a variable in S is set to
    means: NDArray[np.float64]  # (n + 1,) e
    paths: NDArray[np.float64]  # (n + 1,) a
    dirty: NDArray[np.bool_]  # (n + 1,) scratch


def relevant_ids(graph: CausalGraph) -> NDArray[np.int64]:
    """Ids of the constant, the target's ancestors and the target: nodes here are numbered by their place in it."""
    arrays, found = graph.arrays, np.zeros(len(graph) + 1, dtype=np.bool_)
    found[[0, arrays.target]] = True
    mark_ancestors(arrays.parent_ptr, arrays.parent, found)
    return np.flatnonzero(found)


@kernel
def mark_ancestors(ptr: Any, parent: Any, found: Any) -> None:
    """Mark everything with a path to what is marked."""
    for v in range(len(found) - 1, 0, -1):
        if found[v]:
            for slot in range(ptr[v], ptr[v + 1]):
                found[parent[slot]] = True


def passes_of(model: WeightedModel) -> Passes:
    """The arrays of a model, restricted to what can reach the target, with nothing set."""
    ids, child = relevant_ids(model.graph), model.graph.slot_child
    n, number = len(ids), np.zeros(len(model.graph) + 1, dtype=np.int64)
    number[ids] = np.arange(n)
    slots = np.flatnonzero(number[child])
    heads, tails, theta = number[child[slots]], number[model.graph.arrays.parent[slots]], model.theta[slots]
    by_tail = np.argsort(tails, kind="stable")
    upwards = offsets(np.bincount(heads, minlength=n)), tails.astype(np.int32), theta.copy()
    downwards = offsets(np.bincount(tails, minlength=n)), heads[by_tail].astype(np.int32), theta[by_tail]
    is_set, dirty = np.zeros((2, n), dtype=np.bool_)
    return Passes(ids, *upwards, *downwards, is_set, np.ones(n), np.ones(n), np.zeros(n), dirty)


class LinearGains:
    """E[Y] of a linear model, whatever the signs of its weights: the gains of all options come from two passes."""

    at_once = True

    def __init__(self, model: WeightedModel) -> None:
        self.passes = passes_of(model)
        self.value = float(full_pass(self.passes))

    def gains(self, nodes: NDArray[np.int32], to: NDArray[np.float64]) -> NDArray[np.float64]:
        return (to - self.passes.means[nodes]) * self.passes.paths[nodes]

    def set(self, v: int, to: float) -> None:
        self.passes.to[v] = to
        self.value = float(toggle(self.passes, v))

    def free(self, v: int) -> None:
        self.value = float(toggle(self.passes, v))


@kernel
def mean_of(p: Any, v: int) -> float:
    if p.is_set[v]:
        return p.to[v]
    total = 0.0
    for slot in range(p.parent_ptr[v], p.parent_ptr[v + 1]):
        total += p.theta[slot] * p.means[p.parent[slot]]
    return total


@kernel
def paths_of(p: Any, v: int) -> float:
    total = 0.0
    for slot in range(p.child_ptr[v], p.child_ptr[v + 1]):
        c = p.child[slot]
        if not p.is_set[c]:
            total += p.child_theta[slot] * p.paths[c]
    return total if abs(total) > NEGLIGIBLE else 0.0


@kernel
def full_pass(p: Any) -> float:
    """Means and path weights from scratch; returns E[Y | do(S)]."""
    last = len(p.means) - 1
    p.means[0] = 1.0
    for v in range(1, last + 1):
        p.means[v] = mean_of(p, v)
    p.paths[last] = 1.0
    for v in range(last - 1, 0, -1):
        p.paths[v] = paths_of(p, v)
    return p.means[last]


@kernel
def toggle(p: Any, x: int) -> float:
    """Set x to `to[x]`, or set it free again, and bring up to date only what that changes; returns E[Y | do(S)]."""
    p.is_set[x] = not p.is_set[x]
    last = len(p.means) - 1
    p.dirty[x] = True
    waiting = 1
    v = x
    while waiting > 0:
        if p.dirty[v]:
            p.dirty[v] = False
            waiting -= 1
            new = mean_of(p, v)
            if abs(new - p.means[v]) > NEGLIGIBLE:
                p.means[v] = new
                for slot in range(p.child_ptr[v], p.child_ptr[v + 1]):
                    c = p.child[slot]
                    if not p.dirty[c] and not p.is_set[c]:
                        p.dirty[c] = True
                        waiting += 1
        v += 1
    for slot in range(p.parent_ptr[x], p.parent_ptr[x + 1]):
        u = p.parent[slot]
        if u > 0 and not p.dirty[u]:
            p.dirty[u] = True
            waiting += 1
    v = x - 1
    while waiting > 0:
        if p.dirty[v]:
            p.dirty[v] = False
            waiting -= 1
            new = paths_of(p, v)
            if abs(new - p.paths[v]) > NEGLIGIBLE:
                p.paths[v] = new
                if not p.is_set[v]:
                    for slot in range(p.parent_ptr[v], p.parent_ptr[v + 1]):
                        u = p.parent[slot]
                        if u > 0 and not p.dirty[u]:
                            p.dirty[u] = True
                            waiting += 1
        v -= 1
    return p.means[last]
