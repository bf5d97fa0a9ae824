"""What the oracles of known models choose among (options), what they climb on (objectives), and when they stop.

An option is a variable, numbered as in `linear_gains`, and a value. The objective is E[Y] of an action that changes by
one option at a time:
  value             E[Y] of what is set
  gains(nodes, to)  what each of these nodes, which are free, would add, set to its value
  set(v, to)        set a node, or set it free (NaN)
Linear models have all gains from two passes (`linear_gains`). For other links E[Y] is exact while that is cheap;
otherwise it is a mean over worlds that are drawn once, the same for every action (`CommonWorlds`). A world is a
threshold f_v^-1(U_v) for every node v: v is 1 where the weights of its active parents exceed it. Setting a node changes
some nodes below it, so that one action more costs what it changes, not a pass.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit import limits
from dobandit.graph.ordering import offsets
from dobandit.kernels import kernel, record
from dobandit.model import elimination
from dobandit.model.bglm import WeightedModel
from dobandit.model.causal_model import CausalModel
from dobandit.model.inference import expect
from dobandit.model.links import Link
from dobandit.oracle.actions import Action, Allowed
from dobandit.oracle.linear_gains import LinearGains, ancestors_of, relevant_ids

OPTION = record(
    node=np.int64,
    to=np.float64,
    cost=np.float64,  # share of the total cost, or of the budget
    kind=np.int64,  # at most one option of a kind is taken: a variable, or the first of its groups
    groups=np.int64,  # where its exclusive groups begin, and end, in `Options.groups`
    groups_end=np.int64,
)


TOLERANCE = 1e-12  # a bound this close to a value proves it


class Limits:
    """When an oracle stops: after so many seconds, or so many actions looked at."""

    def __init__(self, seconds: float | None = None, sets: int | None = None) -> None:
        self.seconds = math.inf if seconds is None else float(seconds)
        self.sets = math.inf if sets is None else int(sets)
        self.restart()

    def restart(self) -> None:
        """Time counts from now."""
        self.start = time.perf_counter()

    def reached(self, looked: int) -> bool:
        return looked >= self.sets or time.perf_counter() - self.start >= self.seconds


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


Array = NDArray[np.float64]
_NODE_WORK = 2_500  # what a node costs besides its tables, in entries


class ByExpectation:
    """By `expect`: exactly, or by simulation with the same random numbers for every action."""

    def __init__(self, model: CausalModel, method: str) -> None:
        self.names = [model.graph.nodes[v - 1] for v in relevant_ids(model.graph).tolist()]
        self.taken: frozenset[tuple[str, float]] = frozenset()
        self._value = cache(lambda taken: expect(model, dict(taken), method, samples=WORLDS, seed=SEED).value)

    @property
    def value(self) -> float:
        return self._value(self.taken)

    def gains(self, nodes: NDArray[np.int64], to: Array) -> Array:
        more = [(self.names[v], x) for v, x in zip(nodes, to.tolist(), strict=True)]
        return np.array([self._value(self.taken | {option}) - self.value for option in more])

    def set(self, v: int, to: float) -> None:
        others = [option for option in self.taken if option[0] != self.names[v]]
        self.taken = frozenset(others if math.isnan(to) else [*others, (self.names[v], to)])


WORLDS = 10_000
_FEWEST_WORLDS = 100
_MOST_VALUES = 1 << 25  # worlds x nodes: 300 MB; larger graphs get fewer worlds
SEED = 1  # not 0, the seed of `expect`: the value of the set that did best here is taken on other random numbers
CHANGE = record(node=np.int64, need=np.float64, on=np.int64)  # how a node was before


class CommonWorlds:
    """By simulation, for effects of any sign and variables set to 0 or 1: every action meets the same worlds, so that
    differences between actions are sharp.

    need  (worlds, nodes) weight still missing to turn on, below 0 once on; of the target: minus its weighted sum
    on    (worlds, nodes)
    sums  (worlds,) the target's weighted sum after the last action that was looked at
    """

    def __init__(self, model: WeightedModel, worlds: int = WORLDS, seed: int = SEED) -> None:
        self.ids, self.link = relevant_ids(model.graph), model.link(model.target)
        self.nodes, _, self.children = ancestors_of(model)
        target, rng = len(self.ids) - 1, np.random.default_rng(seed)
        self.count = max(_FEWEST_WORLDS, min(worlds, _MOST_VALUES // len(self.ids)))
        self.need, self.sums = np.zeros((self.count, target + 1)), np.zeros(self.count)
        for v, i in enumerate(self.ids[1:-1].tolist(), start=1):
            reached = float(model.reach.low[i]), float(model.reach.high[i])
            self.need[:, v] = thresholds(model.links[i - 1], rng.random(self.count), reached)
        self.need -= self.nodes["bias"][:-1]
        self.on = np.zeros(self.need.shape, dtype=np.bool_)
        self.log = np.zeros(len(self.children) + 1, CHANGE)
        self.nodes["fixed"][target] = 0.0  # only its weighted sum counts
        self.set(0, 1.0)

    def _value(self, v: int, to: float, keep: bool) -> float:
        follow(self.nodes, self.children, self.need, self.on, self.sums, self.log, v, to, keep)
        return float(np.clip(self.link.value(self.sums), 0.0, 1.0).mean())

    def gains(self, nodes: NDArray[np.int64], to: Array) -> Array:
        return np.array([self._value(v, x, False) for v, x in zip(nodes, to, strict=True)]) - self.value

    def set(self, v: int, to: float) -> None:
        self.value = self._value(v, to, True)


Objective = LinearGains | ByExpectation | CommonWorlds


def objective_of(model: CausalModel, options: Options) -> Objective:
    """The objective that fits: exact inference while a step of it is a matter of seconds, else simulation."""
    if isinstance(model, WeightedModel) and model.is_linear:
        return LinearGains(model)
    arrays, count = model.graph.arrays, len(options.table)
    work = _NODE_WORK * len(model.graph) * count
    if work <= limits.MAX_EXACT_WORK:
        fixed = {0, *options.allowed.required}
        free = [v for v in range(len(model.graph) + 1) if v not in fixed]
        families = [(*(p for p in arrays.parents_of(v) if p not in fixed), v) for v in free]
        cliques = elimination.elimination_cliques(families, limits.MAX_EXACT_WORK.bit_length())
        if cliques and work + count * elimination.total_entries(cliques) <= limits.MAX_EXACT_WORK:
            return ByExpectation(model, "auto")
    if isinstance(model, WeightedModel):  # worlds are thresholds of weighted sums
        return CommonWorlds(model)
    return ByExpectation(model, "monte-carlo")


def thresholds(link: Link, u: Array, reached: tuple[float, float]) -> Array:
    """f^-1(u): the weighted sum beyond which f exceeds u; a user's own f is inverted by bisection on the sums that are
    reached (lowest, highest)."""
    parameter = link.parameters[0][1] if link.parameters else 0.0
    if link.name in _INVERSES:
        with np.errstate(divide="ignore"):  # u may be 0
            return np.asarray(_INVERSES[link.name](u, parameter))
    low, high = np.full(len(u), reached[0]), np.full(len(u), reached[1])
    always, never = np.asarray(link.value(low)) > u, np.asarray(link.value(high)) <= u
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = np.asarray(link.value(middle)) > u
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.where(never, np.inf, np.where(always, -np.inf, low))


_INVERSES: dict[str, Callable[[Array, float], Array]] = {
    "identity": lambda u, _: u,
    "logistic": lambda u, shift: shift + np.log(u) - np.log1p(-u),
    "probit": lambda u, shift: shift + import_module("scipy.special").ndtri(u),
    "exponential": lambda u, _: -np.log1p(-u),
    "rational": lambda u, a: u / (a * (1.0 - u)),
}


@kernel
def follow(
    nodes: Any, children: Any, need: Any, on: Any, sums: Any, log: Any, start: int, to: float, keep: bool
) -> None:
    """Set a node, or set it free (NaN), and in every world turn on or off what is not as it should be then, in
    topological order; take it back unless it is kept."""
    nodes[start]["fixed"] = to
    for w in range(len(need)):
        log[0]["node"], log[0]["need"], log[0]["on"] = start, need[w, start], on[w, start]
        logged, v, last = 1, start, start
        while v <= last:
            fixed = nodes[v]["fixed"]
            active = need[w, v] < 0.0 if math.isnan(fixed) else fixed > 0.5
            if active != on[w, v]:
                on[w, v] = active
                last = max(last, nodes[v]["last_child"])
                for slot in range(nodes[v]["children"], nodes[v + 1]["children"]):
                    child, weight = children[slot]["node"], children[slot]["weight"]
                    log[logged]["node"], log[logged]["need"], log[logged]["on"] = child, need[w, child], on[w, child]
                    logged += 1
                    need[w, child] += -weight if active else weight
            v += 1
        sums[w] = -need[w, need.shape[1] - 1]
        if not keep:
            for i in range(logged - 1, -1, -1):
                need[w, log[i]["node"]], on[w, log[i]["node"]] = log[i]["need"], log[i]["on"]
    if not keep:
        nodes[start]["fixed"] = math.nan
