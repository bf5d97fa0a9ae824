"""E[Y] of a growing action by simulation, for any link of a binary model.

A world is a threshold f_v^-1(U_v) for every node v: v is 1 where the weights of its active parents exceed it. Setting a
node changes some nodes below it, so that one action more costs what it changes, not a pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.model.bglm import WeightedModel
from dobandit.model.links import Link
from dobandit.oracle.linear_gains import passes_of

Array = NDArray[np.float64]
WORLDS = 10_000
_FEWEST_WORLDS = 100
_MOST_VALUES = 1 << 25  # worlds x nodes: 300 MB; larger graphs get fewer worlds
_FREE = -1  # in place of a value
SEED = 1  # not 0, the seed of `expect`: the value of the set that did best here is taken on other random numbers


class Worlds(NamedTuple):
    """The target's ancestors, numbered as in `linear_gains`, in every world."""

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

    at_once = False

    def __init__(self, model: WeightedModel, worlds: int = WORLDS, seed: int = SEED) -> None:
        p = passes_of(model)
        self.ids, self.link = p.ids, model.link(model.target)
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
        self.value = self._mean()

    def _mean(self) -> float:
        return float(np.clip(self.link.value(self.worlds.reach), 0.0, 1.0).mean())

    def _after(self, v: int, to: int, keep: bool) -> float:
        turn(self.worlds, v, to, keep)
        return self._mean()

    def gains(self, nodes: NDArray[np.int32], to: Array) -> Array:
        return np.array([self._after(v, int(x > 0.5), False) for v, x in zip(nodes, to, strict=True)]) - self.value

    def set(self, v: int, to: float) -> None:
        self.worlds.held[v] = True
        self.value = self._after(v, int(to > 0.5), True)

    def free(self, v: int) -> None:
        self.worlds.held[v] = False
        self.value = self._after(v, _FREE, True)


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
def turn(p: Any, start: int, to: int, keep: bool) -> None:
    """Set `start` to 0 or 1 in every world, or free it (-1), and follow what that changes, in topological order; take
    it back unless it is kept."""
    worlds, nodes = p.need.shape
    for w in range(worlds):
        logged, changed, waiting, v = 0, 0, 0, start
        first = to == 1 if to >= 0 else p.need[w, start] < 0.0
        if p.on[w, start] != first:
            p.dirty[start] = True
            waiting = 1
        while waiting:
            if p.dirty[v]:
                p.dirty[v] = False
                waiting -= 1
                new = first if v == start else p.need[w, v] < 0.0
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
