"""The least and the most likely pattern of each node's parents, and the weights that are refused because of them.

x = theta . parents is least with every parent of negative weight at 1 and every other at 0, and most the other way
round; the constant is always 1. f does not decrease, so a node's probabilities lie between f at these two ends, for
values between 0 and 1 too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import ModelError, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.links import Link, identity
from dobandit.model.weights import edge_name, keys_in_order

if TYPE_CHECKING:
    from dobandit.model.bglm import WeightedModel

# Weights that are decimal fractions add up to 1 only to rounding.
TOLERANCE = 1e-9


class Reach(NamedTuple):
    """The least and the largest weighted sum of each node over all patterns of its parents, by id."""

    low: NDArray[np.float64]  # (n + 1,)
    high: NDArray[np.float64]  # (n + 1,)


def reach_of(graph: CausalGraph, theta: NDArray[np.float64]) -> Reach:
    """From the bias and the negative weights to the bias and the positive ones; 0 for the constant itself."""
    ptr, parent = graph.arrays.parent_ptr, graph.arrays.parent
    child = graph.slot_child
    low, high = (
        np.bincount(child, weights=np.where(counted | (parent == 0), theta, 0.0), minlength=len(ptr) - 1).astype(float)
        for counted in (theta < 0, theta > 0)
    )
    for ends in (low, high):
        ends.setflags(write=False)
    return Reach(low, high)


def refuse_bad_weights(model: WeightedModel) -> None:
    """Weights in their link's range, and probabilities in [0, 1] for every pattern of the parents."""
    child = model.graph.slot_child
    distinct = {id(link): link for link in model.links}
    kind = np.array([-1] + [id(link) for link in model.links])
    for link in distinct.values():
        _refuse_out_of_range(model, link, np.flatnonzero(kind[child] == id(link)))
        nodes = np.flatnonzero(kind == id(link))
        for highest, ends in enumerate(model.reach):
            _refuse_improbable(model, link, nodes, ends[nodes], bool(highest))


def _refuse_out_of_range(model: WeightedModel, link: Link, slots: NDArray[np.intp]) -> None:
    low, high = link.weight_range
    least = low - TOLERANCE if low < 0 else low  # a weight that should be 0 is easily written as 0
    bad = slots[(model.theta[slots] < least) | (model.theta[slots] > high + TOLERANCE)]
    if len(bad):
        rule = f"between {low:g} and {high:g}" if math.isfinite(high) else f"at least {low:g}"
        key = keys_in_order(model.graph)[bad[0]]
        parent, node = (None, key) if isinstance(key, str) else key
        message = f"{edge_name(key)} must be {rule} ({link.name} link), but got {model.theta[bad[0]]:g}."
        if model.theta[bad[0]] < 0 <= low:
            message += " Effects that make a node less likely need the identity, logistic or probit link."
        raise ModelError(message, node=node, parent=parent)


def _refuse_improbable(
    model: WeightedModel, link: Link, nodes: NDArray[np.intp], x: NDArray[np.float64], highest: bool
) -> None:
    """Refuse the first of `nodes` whose weighted sum x, or f(x), is where it cannot be."""
    low, high = link.domain
    outside = np.flatnonzero(~((x >= low - TOLERANCE) & (x <= high + TOLERANCE)))
    if link is not identity and len(outside):
        name = model.graph.nodes[nodes[outside[0]] - 1]
        raise ModelError(
            f"node {name!r}: with {_pattern(model, name, highest)} the weighted sum is {x[outside[0]]:g}, outside the "
            f"{link.name} link's domain [{low:g}, {high:g}]. Change its weights.",
            node=name,
        )
    p = np.asarray(link.value(x if link is identity else np.clip(x, low, high)), dtype=float)
    bad = np.flatnonzero(~((p >= -TOLERANCE) & (p <= 1 + TOLERANCE)))
    if len(bad):
        name = model.graph.nodes[nodes[bad[0]] - 1]
        way_out = "Raise its bias, or weaken its negative weights." if p[bad[0]] < 0 else "Change its weights."
        raise ModelError(
            f"node {name!r}: with {_pattern(model, name, highest)} its probability would be {p[bad[0]]:g}, but it must "
            f"stay within [0, 1]. {way_out}",
            node=name,
        )


def _pattern(model: WeightedModel, name: str, highest: bool) -> str:
    """The parents' values at which the node is most (or least) likely, in words."""
    weights = model.parent_weights(name)[1]
    ones = [parent for parent, weight in weights.items() if (weight > 0 if highest else weight < 0)]
    opposed = any(weight < 0 if highest else weight > 0 for weight in weights.values())
    if not ones:
        return "all parents at 0"
    return f"{listed(ones)} at 1 and all other parents at 0" if opposed else "all parents at 1"
