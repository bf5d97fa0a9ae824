"""A model as a world to act in, compiled: every round takes one uniform a node, whatever is set.

Hidden variables are drawn like the others, but the learner sees only its own ids (`seen`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.bglm import WeightedModel
from dobandit.model.link_kernels import IDENTITY, LinkArrays, link_arrays, link_value


class World(NamedTuple):
    """The model's arrays, and scratch for one round."""

    ptr: NDArray[np.int64]
    parent: NDArray[np.int32]
    theta: NDArray[np.float64]
    links: LinkArrays
    noise: NDArray[np.float64]
    continuous: bool
    seen: NDArray[np.int64]  # (learner's n + 1,) world id of each of the learner's ids
    values: NDArray[np.float64]  # (n + 1,)
    forced: NDArray[np.bool_]  # (n + 1,)
    means: NDArray[np.float64]  # (n + 1,)
    target: int


def world_of(model: WeightedModel, learner_graph: CausalGraph) -> World:
    """The world that a learner on `learner_graph` (the model's graph, or its projection) acts in."""
    arrays = model.graph.arrays
    child = np.repeat(np.arange(len(model.graph) + 1), np.diff(arrays.parent_ptr))
    reach = np.bincount(child, weights=model.theta, minlength=len(model.graph) + 1)
    seen = np.array([0] + [model.graph.index(name) for name in learner_graph.nodes], dtype=np.int64)
    return World(
        arrays.parent_ptr,
        arrays.parent,
        model.theta,
        link_arrays(model.links, reach[1:].tolist()),
        model.noise,
        model.continuous,
        seen,
        np.ones(len(model.graph) + 1),
        np.zeros(len(model.graph) + 1, dtype=np.bool_),
        np.ones(len(model.graph) + 1),
        arrays.target,
    )


@inlined
def act(world: Any, chosen: Any, uniforms: Any, values: Any, was_set: Any) -> None:
    """Set the learner's ids in `chosen` to 1, draw the rest, and show the learner its `values` and `was_set`."""
    ptr, parent, theta, links = world.ptr, world.parent, world.theta, world.links
    seen, forced, drawn, noise = world.seen, world.forced, world.values, world.noise
    for i in range(len(was_set)):
        was_set[i] = False
    for i in range(len(chosen)):
        was_set[chosen[i]] = True
        forced[seen[chosen[i]]] = True
    for v in range(1, len(drawn)):
        if forced[v]:
            drawn[v] = 1.0
            continue
        x = 0.0
        for slot in range(ptr[v], ptr[v + 1]):
            x += theta[slot] * drawn[parent[slot]]
        mean = x if links.code[v] == IDENTITY else link_value(links, v, x)
        mean = min(max(mean, 0.0), 1.0)
        if world.continuous:
            drawn[v] = mean + (2.0 * uniforms[v - 1] - 1.0) * noise[v] * min(mean, 1.0 - mean)
        else:
            drawn[v] = 1.0 if uniforms[v - 1] < mean else 0.0
    for i in range(len(chosen)):
        forced[seen[chosen[i]]] = False
    for i in range(1, len(values)):
        values[i] = drawn[seen[i]]


@kernel
def linear_value(world: Any, chosen: Any) -> float:
    """E[Y | do(chosen)] of a linear world."""
    for i in range(len(chosen)):
        world.forced[world.seen[chosen[i]]] = True
    world.means[0] = 1.0
    for v in range(1, len(world.means)):
        total = 0.0
        for slot in range(world.ptr[v], world.ptr[v + 1]):
            total += world.theta[slot] * world.means[world.parent[slot]]
        world.means[v] = 1.0 if world.forced[v] else total
    for i in range(len(chosen)):
        world.forced[world.seen[chosen[i]]] = False
    return world.means[world.target]
