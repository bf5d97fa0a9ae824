"""A model as a world to act in: every round takes one uniform number per node, whatever is set.

Hidden variables are drawn like the others, but the learner sees only its own ids (`seen`). Context variables do not
depend on what is set, so that they can be drawn before an action is chosen and come out the same afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.base import CausalModel
from dobandit.model.inference import linear_pass
from dobandit.model.link_kernels import IDENTITY, TABLE, LinkArrays, link_value
from dobandit.oracle.actions import Action
from dobandit.policy.engine import Rounds, no_context

Array = NDArray[np.float64]
_linear_pass = kernel(linear_pass)


class WorldArrays(NamedTuple):
    """The model's arrays, and scratch for one round."""

    ptr: NDArray[np.int64]
    parent: NDArray[np.int32]
    theta: Array
    links: LinkArrays
    tables: Array  # flat; see NodeArrays
    noise: Array
    continuous: bool
    target: int
    seen: NDArray[np.int64]  # (learner's n + 1,) world id of each of the learner's ids; -v: the flag "v was set"
    context: NDArray[np.int32]  # the learner's ids of the context variables
    drawn_first: NDArray[np.int64]  # world ids of the context variables, causes first
    drawn: Array  # (n + 1,) values of the round
    is_set: NDArray[np.bool_]  # (n + 1,)
    fixed: Array  # (n + 1,) what is set or known, NaN: free
    means: Array  # (n + 1,)
    values: Array  # (learner's n + 1,) what the learner sees
    was_set: NDArray[np.bool_]  # (learner's n + 1,)
    known: Array  # (learner's n + 1,) the context, NaN elsewhere
    row: Array  # (1, learner's n + 1) `values` once more, as the only row of a batch
    row_set: NDArray[np.bool_]  # (1, learner's n + 1) `was_set`
    once: NDArray[np.int64]  # (1,) its count


class World:
    """The world that a learner on `graph` (the model's own, its projection, or another on the same names) acts in.

    flags  (flag, variable) ids of the graph, the last of its nodes: 1 in rounds in which the variable is set, else 0
    """

    def __init__(self, model: CausalModel, graph: CausalGraph, flags: Sequence[tuple[int, int]] = ()) -> None:
        self.model, self.graph = model, graph
        arrays, nodes = model.graph.arrays, len(model.graph) + 1
        kept = model.node_arrays()
        variables = graph.nodes[: len(graph) - len(flags)]
        seen = np.array([0, *map(model.graph.index, variables), *(-of for _, of in flags)], dtype=np.int64)
        values, was_set = np.ones(len(graph) + 1), np.zeros(len(graph) + 1, dtype=np.bool_)
        self.arrays = WorldArrays(
            arrays.parent_ptr,
            arrays.parent,
            kept.theta,
            kept.links,
            kept.tables,
            model.noise,
            model.continuous,
            arrays.target,
            seen,
            graph.arrays.context,
            np.sort(seen[graph.arrays.context]),
            np.ones(nodes),
            np.zeros(nodes, dtype=np.bool_),
            np.full(nodes, math.nan),
            np.ones(nodes),
            values,
            was_set,
            no_context(len(graph)),
            values[None, :],
            was_set[None, :],
            np.ones(1, dtype=np.int64),
        )

    def context(self, uniforms: Array) -> Array:
        """The values of the context variables in a round, by the learner's ids, NaN elsewhere."""
        see_context(self.arrays, uniforms)
        return self.arrays.known.copy()

    def play(self, action: Action, uniforms: Array) -> Rounds:
        """One round: what the learner sees."""
        ids, to = np.array(action.ids, dtype=np.int32), np.array(action.values, dtype=np.float64)
        act(self.arrays, ids, to, uniforms)
        return Rounds(self.arrays.row.copy(), self.arrays.row_set.copy(), self.arrays.once.copy())


@inlined
def draw_node(world: Any, v: int, uniform: float) -> float:
    """The value of node v, given those of its parents."""
    x = 0.0
    for slot in range(world.ptr[v], world.ptr[v + 1]):
        x += world.theta[slot] * world.drawn[world.parent[slot]]
    code = world.links.code[v]
    if code == IDENTITY:
        mean = x
    elif code == TABLE:
        mean = world.tables[int(world.links.parameter[v] + x)]
    else:
        mean = link_value(world.links, v, x)
    mean = min(max(mean, 0.0), 1.0)
    if world.continuous:
        return mean + (2.0 * uniform - 1.0) * world.noise[v] * min(mean, 1.0 - mean)
    return 1.0 if uniform < mean else 0.0


@kernel
def see_context(world: Any, uniforms: Any) -> int:
    """Draw the context variables into `known`; returns which of their 2^c patterns came (0 where there are none)."""
    for i in range(len(world.drawn_first)):
        v = world.drawn_first[i]
        world.drawn[v] = draw_node(world, v, uniforms[v - 1])
    code = 0
    for i in range(len(world.context)):
        value = world.drawn[world.seen[world.context[i]]]
        world.known[world.context[i]] = value
        code |= int(value > 0.5) << i
    return code


@inlined
def draw_round(world: Any, ids: Any, to: Any, uniforms: Any) -> None:
    """Set the learner's ids to their values (0: no id) and draw the rest."""
    seen, drawn, is_set = world.seen, world.drawn, world.is_set
    for i in range(len(ids)):
        drawn[seen[ids[i]]] = to[i]
        is_set[seen[ids[i]]] = True
    drawn[0] = 1.0  # what has no id was put in the constant's place
    for v in range(1, len(drawn)):
        if not is_set[v]:
            drawn[v] = draw_node(world, v, uniforms[v - 1])
    for i in range(len(ids)):
        is_set[seen[ids[i]]] = False


@inlined
def act(world: Any, ids: Any, to: Any, uniforms: Any) -> None:
    """Draw a round, and leave what the learner sees in `values` and `was_set`."""
    draw_round(world, ids, to, uniforms)
    world.was_set[:] = False
    for i in range(len(ids)):
        world.was_set[ids[i]] = ids[i] > 0
    for i in range(1, len(world.values)):
        if world.seen[i] > 0:
            world.values[i] = world.drawn[world.seen[i]]
        else:
            world.was_set[i] = world.was_set[-world.seen[i]]
            world.values[i] = 1.0 if world.was_set[i] else 0.0


@kernel
def linear_value(world: Any, ids: Any, to: Any) -> float:
    """E[Y] of an action in a linear world, given the context that was seen last."""
    for i in range(len(ids)):
        if ids[i] > 0:
            world.fixed[world.seen[ids[i]]] = to[i]
    for i in range(len(world.context)):
        world.fixed[world.seen[world.context[i]]] = world.known[world.context[i]]
    _linear_pass(world.ptr, world.parent, world.theta, world.fixed, world.means)
    for i in range(len(ids)):
        if ids[i] > 0:
            world.fixed[world.seen[ids[i]]] = math.nan
    for i in range(len(world.context)):
        world.fixed[world.seen[world.context[i]]] = math.nan
    return world.means[world.target]
