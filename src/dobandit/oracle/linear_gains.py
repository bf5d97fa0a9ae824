"""Means and gains of a linear model, for every node at once.

e_v = E[v | do(S)]: one pass downwards.  a_v: total weight of the paths from v to the target that avoid S: one pass
upwards.  Setting v to x besides S raises E[Y] by exactly (x - e_v) a_v, whatever the signs of the weights, so two
passes over the edges give every gain.
Only the target's ancestors matter; they are numbered 1..n in topological order, the target last, 0 the constant.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.kernels import kernel, record
from dobandit.model.bglm import WeightedModel

# Means and gains are at most about 1: changes below this are rounding, and following them through a long chain would
# visit every node (and crawl through subnormal numbers) for nothing.
NEGLIGIBLE = 1e-18
EDGE = record(node=np.int64, weight=np.float64)
NODE = record(
    parents=np.int64,  # where its edges from parents begin; they end where those of the next node begin
    children=np.int64,
    first_parent=np.int64,  # itself where it has none
    last_child=np.int64,
    bias=np.float64,
    fixed=np.float64,  # what it is set to; NaN: free
    mean=np.float64,  # e
    paths=np.float64,  # a
    low=np.float64,  # the interval of a where some variables may still be set (`branch_and_bound`)
    high=np.float64,
    open=np.int64,  # whether it is one of them
)


class Ancestors(NamedTuple):
    """The target's ancestors with both directions of their edges, and the means and path weights under S."""

    nodes: NDArray[Any]  # (n + 2,) NODE: the constant, the nodes, and the end of the last node's edges
    parents: NDArray[Any]  # EDGE
    children: NDArray[Any]  # EDGE


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


def ancestors_of(model: WeightedModel) -> Ancestors:
    """The target's ancestors in a model, with nothing set."""
    ids, child = relevant_ids(model.graph), model.graph.slot_child
    number = np.zeros(len(model.graph) + 1, dtype=np.int64)
    number[ids] = np.arange(len(ids))
    slots = np.flatnonzero(number[child])
    return linked(number[child[slots]], number[model.graph.arrays.parent[slots]], model.theta[slots], len(ids))


def linked(heads: NDArray[np.int64], tails: NDArray[np.int64], weights: NDArray[np.float64], size: int) -> Ancestors:
    """Nodes with these edges, which are sorted by head; those with tail 0 are biases."""
    nodes, biased = np.zeros(size + 1, NODE), tails == 0
    nodes["bias"][heads[biased]] = weights[biased]
    heads, tails, weights = heads[~biased], tails[~biased], weights[~biased]
    by_tail = np.argsort(tails, kind="stable")
    parents, children = np.zeros((2, len(heads)), EDGE)
    parents["node"], parents["weight"] = tails, weights
    children["node"], children["weight"] = heads[by_tail], weights[by_tail]
    nodes["parents"] = offsets(np.bincount(heads, minlength=size))
    nodes["children"] = offsets(np.bincount(tails, minlength=size))
    nodes["first_parent"] = nodes["last_child"] = np.arange(size + 1)
    np.minimum.at(nodes["first_parent"], heads, tails)
    np.maximum.at(nodes["last_child"], tails, heads)
    nodes["last_child"][0] = size - 1  # once the constant is 1, every mean is to be computed
    nodes["fixed"], nodes["paths"][size - 1] = np.nan, 1.0
    change(nodes, parents, children, 0, 1.0)
    change(nodes, parents, children, size - 1, math.nan)
    return Ancestors(nodes, parents, children)


class LinearGains:
    """E[Y] of a linear model, whatever the signs of its weights: the gains of all options come from two passes."""

    def __init__(self, model: WeightedModel) -> None:
        self.ancestors = ancestors_of(model)
        self.value = float(self.ancestors.nodes["mean"][-2])

    def gains(self, which: NDArray[np.int64], to: NDArray[np.float64]) -> NDArray[np.float64]:
        nodes = self.ancestors.nodes
        gains: NDArray[np.float64] = (to - nodes["mean"][which]) * nodes["paths"][which]
        return gains

    def set(self, v: int, to: float) -> None:
        self.value = change(*self.ancestors, v, to)


@kernel
def change(nodes: Any, parents: Any, children: Any, v: int, to: float) -> float:
    """Set a node, or set it free (NaN), and bring up to date what that changes; returns E[Y | do(S)]."""
    nodes[v]["fixed"] = to
    pass_down(nodes, parents, v, v)
    pass_up(nodes, children, v - 1, nodes[v]["first_parent"])
    return nodes[len(nodes) - 2]["mean"]


@kernel
def pass_down(nodes: Any, parents: Any, v: int, last: int) -> None:
    """The means of the nodes from v to `last`, and on as far as these change any."""
    while v <= last:
        mean = nodes[v]["fixed"]
        if math.isnan(mean):
            mean = nodes[v]["bias"]
            for slot in range(nodes[v]["parents"], nodes[v + 1]["parents"]):
                mean += parents[slot]["weight"] * nodes[parents[slot]["node"]]["mean"]
        if abs(mean - nodes[v]["mean"]) > NEGLIGIBLE:
            nodes[v]["mean"] = mean
            last = max(last, nodes[v]["last_child"])
        v += 1


@kernel
def pass_up(nodes: Any, children: Any, v: int, first: int) -> None:
    """The path weights of the nodes from v back to `first`, and on as far as these change any."""
    while v >= first:
        paths = 0.0
        for slot in range(nodes[v]["children"], nodes[v + 1]["children"]):
            child = nodes[children[slot]["node"]]
            if math.isnan(child["fixed"]):
                paths += children[slot]["weight"] * child["paths"]
        if abs(paths - nodes[v]["paths"]) > NEGLIGIBLE:
            nodes[v]["paths"] = paths if abs(paths) > NEGLIGIBLE else 0.0
            if math.isnan(nodes[v]["fixed"]):
                first = min(first, nodes[v]["first_parent"])
        v -= 1
