"""A model as a world to act in: every round takes one uniform number per node, whatever is set.

Hidden variables are drawn like the others, but the learner sees only its own ids (`seen`). Context variables do not
depend on what is set, so that they can be drawn before an action is chosen and come out the same afterwards.
Random numbers are a row per round (`uniforms`, row t), actions a row each (`ids` and `to`, row `action`; id 0: none).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.kernels import inlined, record
from dobandit.model.causal_model import CausalModel
from dobandit.model.link_kernels import TABLE, value_at
from dobandit.oracle.actions import Action
from dobandit.policy.engine import Rounds, no_context
from dobandit.policy.regimes import Regimes

Array = NDArray[np.float64]
# What an id of the learner's stands for: a node; or, where `flag_of` is not 0, whether that id of the learner's is set
SEEN = record(node="i8", flag_of="i8")
CONTEXT = record(node="i8", id="i8", bit="i8")  # the learner's id; the bit of it in a pattern's number


class WorldArrays(NamedTuple):
    """The model's arrays, how the learner sees them, and what it saw in the last round."""

    nodes: NDArray[Any]  # (n + 1,) MODEL_NODE
    slots: NDArray[Any]  # MODEL_SLOT
    points: NDArray[Any]  # POINT
    seen: NDArray[Any]  # (learner's n + 1,) SEEN
    context: NDArray[Any]  # CONTEXT, causes first
    known: Array  # (learner's n + 1,) the context, NaN elsewhere
    values: Array  # (learner's n + 1,)
    was_set: NDArray[np.bool_]  # (learner's n + 1,)
    shown: NDArray[np.int8]  # (regimes, learner's n + 1) what rounds of a regime teach; no rows: all that is free


class World:
    """The world that a learner on `graph` (the model's own, its projection, or another on the same names) acts in.

    flags    (flag, variable) ids of the graph, the last of its nodes: 1 in rounds in which the variable is set, else 0
    regimes  of the graph's further nodes, each a mechanism: the variable that it is about
    """

    def __init__(
        self,
        model: CausalModel,
        graph: CausalGraph,
        flags: Sequence[tuple[int, int]] = (),
        regimes: Regimes | None = None,
    ) -> None:
        self.model, self.graph = model, graph
        ids, bits = graph.arrays.context, len(graph.context)
        seen, context = np.zeros(len(graph) + 1, SEEN), np.zeros(bits, CONTEXT)
        further = len(flags) if regimes is None else len(regimes.further)
        variables = graph.nodes[: len(graph) - further]
        seen["node"][1 : len(variables) + 1] = [model.graph.index(name) for name in variables]
        shown = np.zeros((0, len(seen)), dtype=np.int8)
        if regimes is not None:
            seen["node"], shown = seen["node"][regimes.variable], regimes.shown
        for flag, variable in flags:
            seen[flag]["flag_of"] = variable
        context["node"], context["id"], context["bit"] = seen["node"][ids], ids, range(bits)
        context.sort(order="node")
        values, was_set = np.ones(len(graph) + 1), np.zeros(len(graph) + 1, dtype=np.bool_)
        self.arrays = WorldArrays(*model.node_arrays(), seen, context, no_context(len(graph)), values, was_set, shown)

    def context(self, uniforms: Array) -> Array:
        """The values of the context variables in a round, by the learner's ids, NaN elsewhere."""
        nodes, slots, points, _, context, known, *_ = self.arrays
        see_context(nodes, slots, points, context, known, uniforms[None, :], 0)
        return known.copy()

    def play(self, action: Action, uniforms: Array) -> Rounds:
        """One round: what the learner sees."""
        nodes, slots, points, seen, _, _, values, was_set, _ = self.arrays
        ids, to = np.array([action.ids], dtype=np.int32), np.array([action.values], dtype=np.float64)
        act(nodes, slots, points, seen, ids, to, 0, uniforms[None, :], 0, values, was_set)
        return Rounds(values[None, :].copy(), was_set[None, :].copy(), np.ones(1, dtype=np.int64))


@inlined
def weighted_sum(nodes: Any, slots: Any, v: int) -> float:
    """theta_v . the values of v's parents."""
    first, total = nodes[v]["start"], 0.0
    for slot in range(first, first + nodes[v]["width"]):
        total += slots[slot]["weight"] * nodes[slots[slot]["parent"]]["value"]
    return total


@inlined
def draw_node(nodes: Any, slots: Any, points: Any, v: int, uniform: float) -> None:
    """The value of node v, given those of its parents."""
    node, x = nodes[v], weighted_sum(nodes, slots, v)
    mean = points[node["point"] + int(x)]["value"] if node["link"] == TABLE else value_at(node, points, x)
    mean = min(max(mean, 0.0), 1.0)
    if node["continuous"]:
        node["value"] = mean + (2.0 * uniform - 1.0) * node["noise"] * min(mean, 1.0 - mean)
    else:
        node["value"] = 1.0 if uniform < mean else 0.0


@inlined
def see_context(nodes: Any, slots: Any, points: Any, context: Any, known: Any, uniforms: Any, t: int) -> int:
    """Draw the context variables into `known`; returns which of their 2^c patterns came (0 where there are none)."""
    pattern = 0
    for i in range(len(context)):
        v = context[i]["node"]
        draw_node(nodes, slots, points, v, uniforms[t, v - 1])
        known[context[i]["id"]] = nodes[v]["value"]
        pattern |= int(nodes[v]["value"] > 0.5) << context[i]["bit"]
    return pattern


@inlined
def set_nodes(nodes: Any, seen: Any, ids: Any, to: Any, action: int) -> None:
    """Set what an action sets."""
    for i in range(ids.shape[1]):
        node = nodes[seen[ids[action, i]]["node"]]
        node["value"], node["is_set"] = to[action, i], 1
    nodes[0]["value"], nodes[0]["is_set"] = 1.0, 0  # what has no id was put in the constant's place


@inlined
def free_nodes(nodes: Any, seen: Any, ids: Any, action: int) -> None:
    """Nothing is set any more."""
    for i in range(ids.shape[1]):
        nodes[seen[ids[action, i]]["node"]]["is_set"] = 0


@inlined
def draw_round(
    nodes: Any, slots: Any, points: Any, seen: Any, ids: Any, to: Any, action: int, uniforms: Any, t: int
) -> None:
    """Draw the values of all nodes where an action is taken."""
    set_nodes(nodes, seen, ids, to, action)
    for v in range(1, len(nodes)):
        if not nodes[v]["is_set"]:
            draw_node(nodes, slots, points, v, uniforms[t, v - 1])
    free_nodes(nodes, seen, ids, action)


@inlined
def act(
    nodes: Any, slots: Any, points: Any, seen: Any, ids: Any, to: Any, action: int, uniforms: Any, t: int,
    values: Any, was_set: Any,
) -> None:  # fmt: skip
    """Draw a round, and leave what the learner sees in `values` and `was_set`."""
    draw_round(nodes, slots, points, seen, ids, to, action, uniforms, t)
    was_set[:] = False
    for i in range(ids.shape[1]):
        was_set[ids[action, i]] = ids[action, i] > 0
    for i in range(1, len(values)):
        of = seen[i]["flag_of"]
        was_set[i] |= was_set[of]
        values[i] = was_set[of] if of > 0 else nodes[seen[i]["node"]]["value"]


@inlined
def hide_unshown(shown: Any, regime: int, was_set: Any) -> None:
    """What a round of this regime does not teach counts as set."""
    for v in range(1, len(was_set)):
        if not shown[regime, v]:
            was_set[v] = True


@inlined
def linear_value(nodes: Any, slots: Any, seen: Any, context: Any, ids: Any, to: Any, action: int, target: int) -> float:
    """E[Y] of an action in a linear world, given the context that was seen last; the means take the place of the
    values of the round. target: the learner's id."""
    set_nodes(nodes, seen, ids, to, action)
    for i in range(len(context)):
        nodes[context[i]["node"]]["is_set"] = 1
    for v in range(1, len(nodes)):
        if not nodes[v]["is_set"]:
            nodes[v]["value"] = weighted_sum(nodes, slots, v)
    for i in range(len(context)):
        nodes[context[i]["node"]]["is_set"] = 0
    free_nodes(nodes, seen, ids, action)
    return nodes[seen[target]["node"]]["value"]
