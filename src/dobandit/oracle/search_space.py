"""What the oracles of known models choose among (options), when they stop (limits), and what no choice exceeds.

An option is a variable and a value. Only the target's ancestors matter: they are numbered 1..n in topological order,
the target last, 0 the constant.

The bound (`highest_mean`) is one interval pass downwards, for any links, tables and signs: [low_v, high_v] holds
E[v | do(A)] for every allowed action A. Parents that are binary are 0 or 1 in each world, so the weighted sum x of a
node lies in a range that its weights give, and its mean lies in an interval that its parents' intervals give; E[f(x)]
is then at most the concave envelope of f over the range at the largest mean, and at least the convex envelope at the
smallest. Envelopes are taken over a grid: f does not decrease, so between two grid points it is at most its value at
the upper one and at least that at the lower one, and the bounds hold up to rounding. Of a table with one parent p
looked at, E[v] is at most the mean of the largest entries for p = 0 and p = 1, at the worst P(p = 1).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.kernels import kernel, record
from dobandit.model.bglm import WeightedModel
from dobandit.model.causal_model import CausalModel
from dobandit.model.links import Link, identity
from dobandit.oracle.actions import Action, Allowed

Array = NDArray[np.float64]
Progress = Callable[[int, float], None]  # called with the number of actions looked at, and the seconds so far
TOLERANCE = 1e-12  # a bound this close to a value proves it
_TELL_EVERY = 0.25  # seconds between two calls of `Progress`
_CELLS = 200
_MOST_NODES = 5_000  # beyond, the pass of the bound would take longer than a second

OPTION = record(
    node=np.int64,
    to=np.float64,
    cost=np.float64,  # share of the total cost, or of the budget
    kind=np.int64,  # at most one option of a kind is taken: a variable, or the first of its groups
    groups=np.int64,  # where its exclusive groups begin, and end, in `Options.groups`
    groups_end=np.int64,
)


class Limits:
    """When an oracle stops: after so many seconds, or so many actions looked at. `stopped`: whether it did."""

    def __init__(self, seconds: float | None = None, sets: int | None = None, progress: Progress | None = None) -> None:
        self.seconds = math.inf if seconds is None else float(seconds)
        self.sets = math.inf if sets is None else int(sets)
        self.progress, self.stopped = progress, False
        self.restart()

    def restart(self) -> None:
        """Time counts from now."""
        self.start, self.next_call = time.perf_counter(), _TELL_EVERY

    def reached(self, looked: int) -> bool:
        passed = time.perf_counter() - self.start
        if self.progress is not None and passed >= self.next_call:
            self.progress(looked, passed)
            self.next_call = passed + _TELL_EVERY
        self.stopped = looked >= self.sets or passed >= self.seconds
        return self.stopped


def relevant_ids(graph: CausalGraph) -> NDArray[np.int64]:
    """Ids of the constant, the target's ancestors and the target: nodes are numbered by their place in it."""
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


class Options:
    """The options that rules allow: every variable with every value that it may be set to. Required variables with one
    value are set from the start; those with several are options that must be taken; what they cost is spent already.

    table    OPTION records
    must     nodes of which some option must be taken, in this order
    given    (node, value) of what is set from the start
    groups   exclusive groups of each option, which may overlap;  members: nodes of each group
    room     options that may be taken besides those that must;  depth: those and the others
    exact    whether only actions of `depth` options count
    maximal  whether only actions count to which nothing can be added (where costs or groups limit their size)
    """

    def __init__(self, allowed: Allowed) -> None:
        self.allowed, rules = allowed, allowed.rules
        self.ids = relevant_ids(allowed.graph)
        number = {v: here for here, v in enumerate(self.ids.tolist()) if here}
        unit = rules.total_cost or 1.0
        self.money, self.has_costs = rules.money / unit, rules.total_cost is not None
        several = [v for v in allowed.required if v in number and len(allowed.values[v]) > 1]
        free = 0.0 if self.has_costs else 1.0  # with a mere budget all options count one, which keeps them in order
        self.money += free * len(several)
        self.must = [number[v] for v in several]
        self._always = {v: allowed.values[v][-1] for v in allowed.required if v not in several}
        self.given = [(number[v], to) for v, to in self._always.items() if v in number]
        prices = [rules.unit_cost(name) / unit for name in allowed.names]
        useful = [(v, price) for v, price in zip(allowed.candidates, prices, strict=True) if price <= self.money]
        priced = [*((v, free) for v in several), *useful]
        rows = [(number[v], to, cost) for v, cost in priced for to in allowed.values[v]]
        named = rules.groups(allowed.names)
        self.members = [np.array([number[allowed.graph.index(name)] for name in group]) for group in named]
        groups: dict[int, list[int]] = {v: [] for v, _, _ in rows}
        for which, members in enumerate(self.members):
            for v in groups.keys() & set(members.tolist()):
                groups[v].append(which)
        self.groups = np.array([which for v, _, _ in rows for which in groups[v]], dtype=np.int64)
        ends = offsets([len(groups[v]) for v, _, _ in rows]).tolist()
        kinds = [groups[v][0] if groups[v] else len(named) + v for v, _, _ in rows]
        table = [(*row, *rest) for row, *rest in zip(rows, kinds, ends[:-1], ends[1:], strict=True)]
        self.table = np.array(table, OPTION)
        self.room = min(allowed.most, len(useful))
        self.depth = len(self.must) + self.room
        self.exact = allowed.full_only and allowed.budget_alone
        self.maximal = rules.smaller is False and not allowed.budget_alone

    def action(self, chosen: Iterable[int]) -> Action:
        """What is set from the start, and these options."""
        taken = {int(self.ids[self.table[i]["node"]]): float(self.table[i]["to"]) for i in chosen}
        done = sorted((self._always | taken).items())
        return Action(tuple(v for v, _ in done), tuple(to for _, to in done))


def highest_mean(model: CausalModel, allowed: Allowed) -> float:
    """An upper bound of E[Y] over all allowed actions; the budget is not looked at."""
    if len(model.graph) > _MOST_NODES:
        return 1.0
    low, high = np.ones((2, len(model.graph) + 1))
    for v in range(1, len(low)):
        ends = list(allowed.values.get(v, ()))
        if v not in allowed.required:
            if isinstance(model, WeightedModel):
                means = _weighted_range(model, v, low, high)
            else:
                means = _table_range(model, v, low, high)
            ends += [min(max(mean, 0.0), 1.0) for mean in means]
        low[v], high[v] = min(ends), max(ends)
    return float(high[model.graph.arrays.target])


def _weighted_range(model: WeightedModel, v: int, low: Array, high: Array) -> tuple[float, float]:
    """Between which numbers the mean of a free node lies, whose parents' means lie between `low` and `high`."""
    arrays, link = model.graph.arrays, model.links[v - 1]
    slots = slice(arrays.parent_ptr[v], arrays.parent_ptr[v + 1])
    theta, least, most = model.theta[slots], low[arrays.parent[slots]], high[arrays.parent[slots]]
    means = _sums(theta, least, most)
    if link == identity:
        return means
    # a parent whose mean can only be 0, or 1, is so in every world
    return _curved_range(link, _sums(theta, np.floor(least), np.ceil(most)), means)


def _table_range(model: CausalModel, v: int, low: Array, high: Array) -> tuple[float, float]:
    certain = np.where((low == high) & (low % 1.0 == 0.0), low, np.nan)
    node = model.free_node(v, certain)
    table = node.table()
    least, most = float(table.min()), float(table.max())
    for axis, p in enumerate(node.parents):
        if_zero, if_one = np.moveaxis(table, axis, 0)
        shares = np.array([low[p], high[p]])
        least = max(least, float(np.min((1.0 - shares) * if_zero.min() + shares * if_one.min())))
        most = min(most, float(np.max((1.0 - shares) * if_zero.max() + shares * if_one.max())))
    return least, most


def _sums(theta: Array, low: Array, high: Array) -> tuple[float, float]:
    """The least and the largest weighted sum of values from `low` to `high`."""
    positive = theta >= 0.0
    return float(theta @ np.where(positive, low, high)), float(theta @ np.where(positive, high, low))


def _curved_range(link: Link, reach: tuple[float, float], means: tuple[float, float]) -> tuple[float, float]:
    """Between which numbers E[f(x)] lies for x within `reach` with a mean between `means`."""
    x = np.linspace(*reach, _CELLS + 1) if reach[1] > reach[0] else np.array(reach)
    f = np.asarray(link.value(x), dtype=float)
    above = np.concatenate([f[1:], f[-1:]])
    below = np.concatenate([f[:1], f[:-1]])
    low, high = (min(max(mean, reach[0]), reach[1]) for mean in means)
    return -_concave_at(x, -below, low), _concave_at(x, above, high)


def _concave_at(x: Array, y: Array, at: float) -> float:
    """The upper concave envelope of the points (x, y), x ascending, at one place: the largest chord over it."""
    left, right = x <= at, x >= at
    start, width = x[left, None], x[right] - x[left, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(width > 0.0, (at - start) / width, 0.0)
    return float((y[left, None] + share * (y[right] - y[left, None])).max())
