"""Greedy for any link, lazily (CELF, Leskovec et al. 2007): a stale gain counts until it comes to the top of a heap.

Where E[Y] is submodular (independent cascades, linear thresholds) gains never grow, so this is plain greedy with fewer
evaluations; elsewhere it is a heuristic. E[Y] is exact while that is cheap; otherwise it is a mean over worlds drawn
once. A world is a threshold f_v^-1(U_v) for every node v: v is 1 once the weights of its active parents exceed it.
Weights are not negative, so setting a node only turns others on: one set more costs what it turns on, not a pass.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.errors import InferenceError
from dobandit.model import elimination
from dobandit.model.bglm import WeightedModel
from dobandit.model.inference import expect
from dobandit.model.links import Link
from dobandit.oracle.exhaustive import Limits
from dobandit.oracle.passes import passes_of
from dobandit.oracle.problem import Problem

Array = NDArray[np.float64]
WORLDS = 10_000
_FEWEST_WORLDS = 100
_MOST_VALUES = 1 << 25  # worlds x nodes: 300 MB; larger graphs get fewer worlds
_SEED = 1  # not 0, the seed of `expect`: the value of the set that did best here is taken on other random numbers
_EXACT_WORK = 1 << 26  # table entries of a step that may be exact: some 3 seconds
_NODE_WORK = 2_500  # what a node costs besides its tables, in entries
_DIGITS = 12  # gains equal to this are ties, which the graph's order decides


class Objective(Protocol):
    """E[Y] of a growing set."""

    start: float  # of the required variables alone

    def with_node(self, name: str) -> float:
        """E[Y] with `name` set besides."""

    def take(self, name: str) -> None:
        """Set `name` for good."""

    def final(self, names: Sequence[str]) -> float:
        """The value to report of a whole set."""


def lazy_greedy(
    objective: Objective,
    problem: Problem,
    candidates: Sequence[str],
    *,
    lazy: bool = True,
    limits: Limits | None = None,
) -> tuple[list[str], int]:
    """(the variables taken besides the required ones, sets looked at): the gain per cost decides; with a total cost the
    best single variable may beat them all (Leskovec et al. 2007). lazy=False looks at every candidate in every step. At
    a limit nothing more is added."""
    limits = limits or Limits()
    chosen: list[str] = []
    value, looked, step = objective.start, 1, 0
    alone, single = -1.0, ""
    heap = [(-np.inf, place, -1, 0.0) for place in range(len(candidates))]  # (-rate, candidate, seen in step, value)
    while heap:
        _, place, seen, new = heapq.heappop(heap)
        name = candidates[place]
        if not problem.allows([*chosen, name]):
            continue  # rules only tighten as the set grows
        if seen < step:
            if limits.reached(looked):
                break
            new = objective.with_node(name)
            looked += 1
            heapq.heappush(heap, (-_rate(new - value, problem.unit_cost(name)), place, step, new))
            if step == 0 and round(new - alone, _DIGITS) > 0:
                alone, single = new, name
            continue
        objective.take(name)
        chosen.append(name)
        value, step = new, step + 1
        if not lazy:
            heap = [(-np.inf, other, -1, 0.0) for _, other, _, _ in heap]
    return ([single] if round(alone - value, _DIGITS) > 0 else chosen), looked


def _rate(gain: float, cost: float) -> float:
    """Rounding leaves ties to the graph's order; what costs nothing comes first."""
    gain = round(gain, _DIGITS)
    return gain / cost if cost > 0.0 else gain * 1e300


def objective_of(model: WeightedModel, problem: Problem, candidates: Sequence[str]) -> Objective:
    """Exact inference while a step of it is a matter of seconds, else simulation."""
    arrays, work = model.graph.arrays, _NODE_WORK * len(model.graph) * len(candidates)
    if work <= _EXACT_WORK:
        fixed = {0, *map(model.graph.index, problem.required)}
        slots = [range(arrays.parent_ptr[v], arrays.parent_ptr[v + 1]) for v in range(len(model.graph) + 1)]
        parents = [[p for p in map(int, arrays.parent[s.start : s.stop]) if p not in fixed] for s in slots]
        families = [(*parents[v], v) for v in range(len(slots)) if v not in fixed]
        cliques = elimination.elimination_cliques(families, _EXACT_WORK.bit_length())
        if cliques and work + len(candidates) * elimination.total_entries(cliques) <= _EXACT_WORK:
            return Exact(model, problem.required)
    return CommonWorlds(model, problem.required)


class Exact:
    """By exact inference."""

    def __init__(self, model: WeightedModel, required: Sequence[str]) -> None:
        self.model, self.taken = model, list(required)
        self.start = expect(model, self.taken).value

    def with_node(self, name: str) -> float:
        return expect(self.model, [*self.taken, name]).value

    def take(self, name: str) -> None:
        self.taken.append(name)

    def final(self, names: Sequence[str]) -> float:
        return expect(self.model, names).value


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


class CommonWorlds:
    """By simulation: every set meets the same worlds, so differences between sets are sharp."""

    def __init__(self, model: WeightedModel, required: Sequence[str], worlds: int = WORLDS, seed: int = _SEED) -> None:
        p = passes_of(model)
        self.model = model
        self.number = {model.graph.nodes[int(i) - 1]: here for here, i in enumerate(p.ids) if here}
        nodes = len(p.ids)
        self.count = max(_FEWEST_WORLDS, min(worlds, _MOST_VALUES // nodes))
        need, rng = np.zeros((self.count, nodes)), np.random.default_rng(seed)
        need[:, 0] = -1.0
        for v in range(1, nodes - 1):
            slots = slice(p.parent_ptr[v], p.parent_ptr[v + 1])
            reached = float(p.theta[slots][p.parent[slots] == 0].sum()), float(p.theta[slots].sum())
            need[:, v] = thresholds(model.links[int(p.ids[v]) - 1], rng.random(self.count), reached)
        edges, on, reach = len(p.child), np.zeros(need.shape, dtype=np.bool_), np.zeros(self.count)
        stack, log = np.zeros(nodes, dtype=np.int32), np.zeros(edges, dtype=np.int32)
        self.worlds = Worlds(p.child_ptr, p.child, p.child_theta, need, on, reach, stack, log, np.zeros(edges))
        settle(self.worlds)
        for name in required:
            if name in self.number:
                self.take(name)
        self.start = self._mean()

    def _mean(self) -> float:
        link = self.model.link(self.model.target)
        return float(np.clip(link.value(self.worlds.reach), 0.0, 1.0).mean())

    def with_node(self, name: str) -> float:
        turn_on(self.worlds, self.number[name], False)
        return self._mean()

    def take(self, name: str) -> None:
        turn_on(self.worlds, self.number[name], True)

    def final(self, names: Sequence[str]) -> float:
        """Exact where that fits, else on fresh random numbers: on its own ones the best set looks too good."""
        try:
            return expect(self.model, names, "elimination").value
        except InferenceError:
            return expect(self.model, names, "monte-carlo", samples=self.count).value


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
def turn_on(p: Any, start: int, keep: bool) -> None:
    """Set `start` to 1 in every world and follow what it turns on; take it back unless it is to be kept."""
    worlds, nodes = p.need.shape
    for w in range(worlds):
        waiting, logged = 0, 0
        was_on = p.on[w, start]
        if not was_on:
            p.on[w, start] = True
            p.stack[0] = start
            waiting = 1
        while waiting:
            waiting -= 1
            v = p.stack[waiting]
            for e in range(p.child_ptr[v], p.child_ptr[v + 1]):
                c = p.child[e]
                if p.on[w, c]:
                    continue
                p.log_node[logged], p.log_need[logged] = c, p.need[w, c]
                logged += 1
                p.need[w, c] -= p.theta[e]
                if p.need[w, c] < 0.0 and c < nodes - 1:
                    p.on[w, c] = True
                    p.stack[waiting] = c
                    waiting += 1
        p.reach[w] = -p.need[w, nodes - 1]
        if not keep:
            p.on[w, start] = was_on
            for i in range(logged - 1, -1, -1):
                p.on[w, p.log_node[i]] = False
                p.need[w, p.log_node[i]] = p.log_need[i]
