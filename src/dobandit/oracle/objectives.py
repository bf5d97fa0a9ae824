"""What the oracles of known models choose among, and what they climb on.

An option is a variable, numbered as in `linear_gains`, and a value. The objective is E[Y] of an action that changes by
one option at a time: linear models have all gains from two passes (`linear_gains`). For other links E[Y] is exact while
that is cheap; otherwise it is a mean over worlds that are drawn once, the same for every action (`CommonWorlds`). A
world is a threshold f_v^-1(U_v) for every node v: v is 1 where the weights of its active parents exceed it. Setting a
node changes some nodes below it, so that one action more costs what it changes, not a pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dobandit import limits
from dobandit.compiled import kernel
from dobandit.errors import InferenceError
from dobandit.graph.ordering import offsets
from dobandit.model import elimination
from dobandit.model.base import CausalModel
from dobandit.model.bglm import WeightedModel
from dobandit.model.inference import expect
from dobandit.model.links import Link
from dobandit.oracle.actions import Action, Allowed
from dobandit.oracle.linear_gains import LinearGains, passes_of, relevant_ids


class OptionArrays(NamedTuple):
    """The options as arrays. Groups are exclusive, and may overlap."""

    node: NDArray[np.int32]  # (options,)
    to: NDArray[np.float64]  # (options,)
    cost: NDArray[np.float64]  # (options,) share of the total cost, or of the budget
    kind: NDArray[np.int64]  # (options,) at most one option of a kind is taken: a variable, or the first of its groups
    must: NDArray[np.int32]  # variables of which some option must be taken, in this order
    group_ptr: NDArray[np.int64]  # (n + 2,) groups of each variable
    group: NDArray[np.int64]


class Options:
    """The options that rules allow: every variable with every value that it may be set to. Required variables with one
    value are set from the start; those with several are options that must be taken; what they cost is spent already.

    given    (node, value) of what is set from the start
    members  nodes of each exclusive group
    room     options that may be taken besides those that must;  exact: whether exactly so many count
    maximal  whether only actions count to which nothing can be added (where costs or groups limit their size)
    """

    def __init__(self, allowed: Allowed) -> None:
        self.allowed, rules = allowed, allowed.rules
        self.ids = relevant_ids(allowed.graph)
        number = {v: here for here, v in enumerate(self.ids.tolist()) if here}
        unit = rules.total_cost or 1.0
        self.money = rules.money / unit
        self.has_costs = rules.total_cost is not None
        several = [v for v in allowed.required if v in number and len(allowed.values[v]) > 1]
        free = 0.0 if self.has_costs else 1.0  # with a mere budget all options count one, which keeps them in order
        self.money += free * len(several)
        self._always = {v: allowed.values[v][-1] for v in allowed.required if v not in several}
        self.given = [(number[v], to) for v, to in self._always.items() if v in number]
        prices = [rules.unit_cost(name) / unit for name in allowed.names]
        useful = [(v, price) for v, price in zip(allowed.candidates, prices, strict=True) if price <= self.money]
        rows = [(v, to, free) for v in several for to in allowed.values[v]]
        rows += [(v, to, price) for v, price in useful for to in allowed.values[v]]
        node = np.array([number[v] for v, _, _ in rows], dtype=np.int32)
        self.members = [
            np.array([number[allowed.graph.index(name)] for name in group]) for group in rules.groups(allowed.names)
        ]
        of_node: list[list[int]] = [[] for _ in self.ids]
        for which, group in enumerate(self.members):
            for v in group.tolist():
                of_node[v].append(which)
        self.table = OptionArrays(
            node,
            np.array([to for _, to, _ in rows]),
            np.array([price for _, _, price in rows]),
            np.array([of_node[v][0] if of_node[v] else len(self.members) + v for v in node], dtype=np.int64),
            np.array([number[v] for v in several], dtype=np.int32),
            offsets([len(here) for here in of_node]),
            np.array([which for here in of_node for which in here], dtype=np.int64),
        )
        self.room = min(allowed.most, len(useful))
        self.exact = allowed.full_only and allowed.budget_alone
        self.maximal = rules.smaller is False and not allowed.budget_alone

    @property
    def depth(self) -> int:
        """The most options that an action takes."""
        return len(self.table.must) + self.room

    def action(self, chosen: Iterable[int]) -> Action:
        """What is set from the start, and these options (-1 for none)."""
        done = dict(self._always)
        for i in chosen:
            if i >= 0:
                done[int(self.ids[self.table.node[i]])] = float(self.table.to[i])
        ids = sorted(done)
        return Action(tuple(ids), tuple(done[v] for v in ids))


_NODE_WORK = 2_500  # what a node costs besides its tables, in entries


class Objective(Protocol):
    """E[Y] of what is set. Nodes are numbered as in `linear_gains`."""

    at_once: bool  # whether all gains together cost what one costs

    @property
    def value(self) -> float:
        """E[Y]."""

    def gains(self, nodes: NDArray[np.int32], to: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each of these nodes, which are free, would add, set to its value."""

    def set(self, v: int, to: float) -> None:
        """Set a free node."""

    def free(self, v: int) -> None:
        """Set a node free."""


def objective_of(model: CausalModel, options: Options) -> Objective:
    """The objective that fits: exact inference while a step of it is a matter of seconds, else simulation."""
    if isinstance(model, WeightedModel) and model.is_linear:
        return LinearGains(model)
    arrays, count = model.graph.arrays, len(options.table.node)
    work = _NODE_WORK * len(model.graph) * count
    if work <= limits.MAX_EXACT_WORK:
        fixed = {0, *options.allowed.required}
        slots = [range(arrays.parent_ptr[v], arrays.parent_ptr[v + 1]) for v in range(len(model.graph) + 1)]
        parents = [[p for p in map(int, arrays.parent[s.start : s.stop]) if p not in fixed] for s in slots]
        families = [(*parents[v], v) for v in range(len(slots)) if v not in fixed]
        cliques = elimination.elimination_cliques(families, limits.MAX_EXACT_WORK.bit_length())
        if cliques and work + count * elimination.total_entries(cliques) <= limits.MAX_EXACT_WORK:
            return ByExpectation(model, "auto")
    if isinstance(model, WeightedModel):  # worlds are thresholds of weighted sums
        return CommonWorlds(model)
    return ByExpectation(model, "monte-carlo")


class ByExpectation:
    """By `expect`: exactly, or by simulation with the same random numbers for every action."""

    at_once = False

    def __init__(self, model: CausalModel, method: str) -> None:
        self.model, self.method, self.taken = model, method, dict[str, float]()
        self.names = [model.graph.nodes[v - 1] for v in relevant_ids(model.graph).tolist()]
        self.seen: dict[frozenset[tuple[str, float]], float] = {}

    @property
    def value(self) -> float:
        return self._value(self.taken)

    def _value(self, do: dict[str, float]) -> float:
        key = frozenset(do.items())
        if key not in self.seen:
            self.seen[key] = expect(self.model, do, self.method, samples=WORLDS, seed=SEED).value
        return self.seen[key]

    def gains(self, nodes: NDArray[np.int32], to: NDArray[np.float64]) -> NDArray[np.float64]:
        more = [(self.names[v], x) for v, x in zip(nodes, to.tolist(), strict=True)]
        return np.array([self._value({**self.taken, name: x}) - self.value for name, x in more])

    def set(self, v: int, to: float) -> None:
        self.taken[self.names[v]] = to

    def free(self, v: int) -> None:
        del self.taken[self.names[v]]


def fresh_value(model: CausalModel, action: Action) -> tuple[float, bool]:
    """E[Y] to report, and whether it is exact; else on fresh random numbers: on its own ones the best action looks too
    good."""
    do = action.named(model.graph)
    try:
        return expect(model, do, "elimination").value, True
    except InferenceError:
        return expect(model, do, "monte-carlo", samples=WORLDS).value, False


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
