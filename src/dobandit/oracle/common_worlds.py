"""E[Y] of a growing action by simulation, for any link of a binary model.

A world is a threshold f_v^-1(U_v) for every node v: v is 1 where the weights of its active parents exceed it. Setting a
node changes some nodes below it, so that one action more costs what it changes, not a pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.errors import InferenceError
from dobandit.model.base import CausalModel
from dobandit.model.bglm import WeightedModel
from dobandit.model.inference import Expectation, expect
from dobandit.model.links import Link
from dobandit.oracle.actions import Action
from dobandit.oracle.passes import passes_of

Array = NDArray[np.float64]
WORLDS = 10_000
_FEWEST_WORLDS = 100
_MOST_VALUES = 1 << 25  # worlds x nodes: 300 MB; larger graphs get fewer worlds
SEED = 1  # not 0, the seed of `expect`: the value of the set that did best here is taken on other random numbers


class Worlds(NamedTuple):
    """The target's ancestors (as in `Passes`: the constant first, the target last) in every world."""

    child_ptr: NDArray[np.int64]
    child: NDArray[np.int32]
    theta: Array  # by child slot
    need: Array  # (worlds, nodes) weight still missing to turn on, below 0 once on; target: minus its weighted sum
    on: NDArray[np.bool_]  # (worlds, nodes)
    reach: Array  # (worlds,) the target's weighted sum after the last call
    stack: NDArray[np.int32]
    log_node: NDArray[np.int32]  # what a trial changed, to take it back
    log_need: Array
    held: NDArray[np.bool_]  # (nodes,) set, whatever the parents
    dirty: NDArray[np.bool_]  # (nodes,) scratch


class CommonWorlds:
    """By simulation, for effects of any sign and variables set to 0 or 1: every action meets the same worlds, so that
    differences between actions are sharp."""

    def __init__(self, model: WeightedModel, start: Action, worlds: int = WORLDS, seed: int = SEED) -> None:
        p = passes_of(model)
        self.model = model
        self.number = {int(v): here for here, v in enumerate(p.ids) if here}
        nodes = len(p.ids)
        self.count = max(_FEWEST_WORLDS, min(worlds, _MOST_VALUES // nodes))
        need, rng = np.zeros((self.count, nodes)), np.random.default_rng(seed)
        need[:, 0] = -1.0
        for v in range(1, nodes - 1):
            slots = slice(p.parent_ptr[v], p.parent_ptr[v + 1])
            theta, fixed = p.theta[slots], p.parent[slots] == 0
            reached = float(theta[fixed | (theta < 0)].sum()), float(theta[fixed | (theta > 0)].sum())
            need[:, v] = thresholds(model.links[int(p.ids[v]) - 1], rng.random(self.count), reached)
        edges, on, reach = len(p.child), np.zeros(need.shape, dtype=np.bool_), np.zeros(self.count)
        stack, log = np.zeros(nodes, dtype=np.int32), np.zeros(edges, dtype=np.int32)
        scratch = stack, log, np.zeros(edges), np.zeros(nodes, dtype=np.bool_), np.zeros(nodes, dtype=np.bool_)
        self.worlds = Worlds(p.child_ptr, p.child, p.child_theta, need, on, reach, *scratch)
        settle(self.worlds)
        for v, to in zip(start.ids, start.values, strict=True):
            if v in self.number:
                self.take(v, to)
        self.start = self._mean()

    def _mean(self) -> float:
        link = self.model.link(self.model.target)
        return float(np.clip(link.value(self.worlds.reach), 0.0, 1.0).mean())

    def with_set(self, v: int, to: float = 1.0) -> float:
        turn(self.worlds, self.number[v], to > 0.5, False)
        return self._mean()

    def take(self, v: int, to: float = 1.0) -> None:
        turn(self.worlds, self.number[v], to > 0.5, True)
        self.worlds.held[self.number[v]] = True

    def final(self, action: Action) -> Expectation:
        return final_means(self.model, action, self.count)


def thresholds(link: Link, u: Array, reached: tuple[float, float]) -> Array:
    """f^-1(u): the weighted sum beyond which f exceeds u; a user's own f is inverted by bisection on the sums that are
    reached (lowest, highest)."""
    parameter = link.parameters[0][1] if link.parameters else 0.0
    with np.errstate(divide="ignore"):  # u may be 0
        if link.name == "identity":
            return u
        if link.name == "logistic":
            return np.asarray(parameter + np.log(u) - np.log1p(-u))
        if link.name == "probit":
            from scipy.special import ndtri

            return np.asarray(parameter + ndtri(u))
        if link.name == "exponential":
            return -np.log1p(-u)
        if link.name == "rational":
            return u / (parameter * (1.0 - u))
    low, high = np.full(len(u), reached[0]), np.full(len(u), reached[1])
    always, never = np.asarray(link.value(low)) > u, np.asarray(link.value(high)) <= u
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = np.asarray(link.value(middle)) > u
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.where(never, np.inf, np.where(always, -np.inf, low))


@kernel
def settle(p: Any) -> None:
    """What is on without intervention; ids are in topological order."""
    worlds, nodes = p.need.shape
    for w in range(worlds):
        for v in range(nodes - 1):
            if p.need[w, v] < 0.0:
                p.on[w, v] = True
                for e in range(p.child_ptr[v], p.child_ptr[v + 1]):
                    p.need[w, p.child[e]] -= p.theta[e]
        p.reach[w] = -p.need[w, nodes - 1]


@kernel
def turn(p: Any, start: int, to: bool, keep: bool) -> None:
    """Set `start` in every world and follow what it changes, in topological order; take it back unless it is kept."""
    worlds, nodes = p.need.shape
    for w in range(worlds):
        logged, changed, waiting, v = 0, 0, 0, start
        if p.on[w, start] != to:
            p.dirty[start] = True
            waiting = 1
        while waiting:
            if p.dirty[v]:
                p.dirty[v] = False
                waiting -= 1
                new = to if v == start else p.need[w, v] < 0.0
                if new != p.on[w, v]:
                    p.on[w, v] = new
                    p.stack[changed] = v
                    changed += 1
                    for e in range(p.child_ptr[v], p.child_ptr[v + 1]):
                        c = p.child[e]
                        p.log_node[logged], p.log_need[logged] = c, p.need[w, c]
                        logged += 1
                        p.need[w, c] += -p.theta[e] if new else p.theta[e]
                        if c < nodes - 1 and not p.held[c] and not p.dirty[c]:
                            p.dirty[c] = True
                            waiting += 1
            v += 1
        p.reach[w] = -p.need[w, nodes - 1]
        if not keep:
            for i in range(changed):
                p.on[w, p.stack[i]] = not p.on[w, p.stack[i]]
            for i in range(logged - 1, -1, -1):
                p.need[w, p.log_node[i]] = p.log_need[i]


def final_means(model: CausalModel, action: Action, samples: int) -> Expectation:
    """Exact where that fits, else on fresh random numbers: on its own ones the best action looks too good."""
    do = action.named(model.graph)
    if model.is_linear:
        return expect(model, do)
    try:
        return expect(model, do, "elimination")
    except InferenceError:
        return expect(model, do, "monte-carlo", samples=samples)
