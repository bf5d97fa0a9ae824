"""Greedy for any link, lazily (CELF, Leskovec et al. 2007): a stale gain counts until it comes to the top of a heap.

Where E[Y] is submodular (independent cascades, linear thresholds) gains never grow, so this is plain greedy with fewer
evaluations; elsewhere it is a heuristic, and where effects have both signs every candidate is looked at in every step.
E[Y] is exact while that is cheap; otherwise it is a mean over worlds drawn once, the same for every action.
"""

from __future__ import annotations

import heapq
from typing import Protocol

import numpy as np

from dobandit.model import elimination
from dobandit.model.base import CausalModel
from dobandit.model.bglm import WeightedModel
from dobandit.model.inference import Expectation, expect
from dobandit.oracle.actions import Action, Allowed
from dobandit.oracle.common_worlds import SEED, WORLDS, CommonWorlds, final_means
from dobandit.oracle.solve import Limits

_EXACT_WORK = 1 << 26  # table entries of a step that may be exact: some 3 seconds
_NODE_WORK = 2_500  # what a node costs besides its tables, in entries
_DIGITS = 12  # gains equal to this are ties, which the graph's order decides


class Objective(Protocol):
    """E[Y] of a growing action."""

    start: float  # of what is set from the start

    def with_set(self, v: int, to: float) -> float:
        """E[Y] with v set besides."""

    def take(self, v: int, to: float) -> None:
        """Set v for good."""

    def final(self, action: Action) -> Expectation:
        """The means to report of a whole action."""


def lazy_greedy(
    objective: Objective, allowed: Allowed, *, lazy: bool = True, limits: Limits | None = None
) -> tuple[Action, int]:
    """(the action, actions looked at), from the objective's start on: `start_of(allowed)`.

    The gain per cost decides; with a total cost the best single variable may beat them all (Leskovec et al. 2007).
    Unless only full actions count, nothing is set that lowers E[Y]. lazy=False looks at every option in every step:
    right whatever the effects, where lazy is right only if setting more never makes another variable gain more. At a
    limit nothing more is added.
    """
    limits = limits or Limits()
    done: dict[int, float] = dict(zip(*start_of(allowed), strict=True))
    value, looked, step = objective.start, 1, 0
    for v in allowed.required:
        if v not in done:
            values = [(round(objective.with_set(v, to), _DIGITS), to) for to in allowed.values[v]]
            looked += len(values)
            value, done[v] = max(values)
            objective.take(v, done[v])
    chosen: dict[int, float] = {}
    alone, single = -1.0, (0, 0.0)
    options = [(v, to) for v in allowed.candidates for to in reversed(allowed.values[v])]
    price = {v: allowed.rules.unit_cost(name) for v, name in zip(allowed.candidates, allowed.names, strict=True)}
    heap = [(-np.inf, place, -1, 0.0) for place in range(len(options))]  # (-rate, option, seen in step, value)
    while heap:
        rate, place, seen, new = heapq.heappop(heap)
        v, to = options[place]
        if v in chosen or not allowed.allows([*chosen, v]):
            continue  # rules only tighten as the action grows
        if seen < step:
            if limits.reached(looked):
                break
            new = objective.with_set(v, to)
            looked += 1
            heapq.heappush(heap, (-_rate(new - value, price[v]), place, step, new))
            if step == 0 and round(new - alone, _DIGITS) > 0:
                alone, single = new, (v, to)
            continue
        if rate >= 0.0 and not allowed.full_only:
            break
        objective.take(v, to)
        chosen[v] = to
        value, step = new, step + 1
        if not lazy:
            heap = [(-np.inf, other, -1, 0.0) for _, other, _, _ in heap]
    if allowed.rules.smaller is False:  # a limit came first, but only full actions count
        for v in allowed.candidates:
            if v not in chosen and allowed.allows([*chosen, v]):
                chosen[v] = allowed.values[v][-1]
    elif round(alone - value, _DIGITS) > 0:
        chosen = dict([single])
    done |= chosen
    ids = tuple(sorted(done))
    return Action(ids, tuple(done[v] for v in ids)), looked


def start_of(allowed: Allowed) -> Action:
    """The required variables that can be set to one value only."""
    given = {v: allowed.values[v][0] for v in allowed.required if len(allowed.values[v]) == 1}
    return Action(tuple(given), tuple(given.values()))


def _rate(gain: float, cost: float) -> float:
    """Rounding leaves ties to the graph's order; what costs nothing comes first."""
    gain = round(gain, _DIGITS)
    return gain / cost if cost > 0.0 else gain * 1e300


def objective_of(model: CausalModel, allowed: Allowed) -> Objective:
    """Exact inference while a step of it is a matter of seconds, else simulation."""
    arrays, options = model.graph.arrays, sum(len(allowed.values[v]) for v in allowed.candidates)
    work = _NODE_WORK * len(model.graph) * options
    if work <= _EXACT_WORK:
        fixed = {0, *allowed.required}
        slots = [range(arrays.parent_ptr[v], arrays.parent_ptr[v + 1]) for v in range(len(model.graph) + 1)]
        parents = [[p for p in map(int, arrays.parent[s.start : s.stop]) if p not in fixed] for s in slots]
        families = [(*parents[v], v) for v in range(len(slots)) if v not in fixed]
        cliques = elimination.elimination_cliques(families, _EXACT_WORK.bit_length())
        if cliques and work + options * elimination.total_entries(cliques) <= _EXACT_WORK:
            return Exact(model, start_of(allowed))
    if isinstance(model, WeightedModel):  # worlds are thresholds of weighted sums
        return CommonWorlds(model, start_of(allowed))
    return Sampled(model, start_of(allowed))


class Exact:
    """By exact inference."""

    def __init__(self, model: CausalModel, start: Action) -> None:
        self.model, self.taken = model, start.named(model.graph)
        self.start = self.value(self.taken)

    def value(self, do: dict[str, float]) -> float:
        return expect(self.model, do).value

    def with_set(self, v: int, to: float) -> float:
        return self.value({**self.taken, self.model.graph.nodes[v - 1]: to})

    def take(self, v: int, to: float) -> None:
        self.taken[self.model.graph.nodes[v - 1]] = to

    def final(self, action: Action) -> Expectation:
        return final_means(self.model, action, WORLDS)


class Sampled(Exact):
    """By simulation, whatever the signs: every action meets the same random numbers."""

    def value(self, do: dict[str, float]) -> float:
        return expect(self.model, do, "monte-carlo", samples=WORLDS, seed=SEED).value
