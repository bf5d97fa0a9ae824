"""E[Y] of an action of a known model, which changes by one option at a time: what searches climb on.

  value             E[Y] of what is set
  gains(nodes, to)  what each of these nodes, which are free, would add, set to its value
  set(v, to)        set a node, or set it free (NaN)
Nodes are numbered as in `search_space`.
Linear models (`LinearGains`): e_v = E[v | do(S)]: one pass downwards.  a_v: total weight of the paths from v to the
target that avoid S: one pass upwards.  Setting v to x besides S raises E[Y] by exactly (x - e_v) a_v, whatever the
signs of the weights, so two passes over the edges give every gain.
For other links E[Y] is exact while that is cheap (`ByExpectation`); otherwise it is a mean over worlds that are drawn
once, the same for every action (`CommonWorlds`). A world is a threshold f_v^-1(U_v) for every node v: v is 1 where the
weights of its active parents exceed it. Setting a node changes some nodes below it, so that one action more costs what
it changes, not a pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

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
from dobandit.oracle.search_space import Options, relevant_ids

Array = NDArray[np.float64]
_NODE_WORK = 2_500  # what a node costs besides its tables, in entries
WORLDS = 10_000
_FEWEST_WORLDS = 100
_MOST_VALUES = 1 << 25  # worlds x nodes: 300 MB; larger graphs get fewer worlds
SEED = 1  # not 0, the seed of `expect`: the value of the set that did best here is taken on other random numbers
# Means and gains are at most about 1: changes below this are rounding, and following them through a long chain would
# visit every node (and crawl through subnormal numbers) for nothing.
NEGLIGIBLE = 1e-18
EDGE = record(node=np.int64, weight=np.float64)
CHANGE = record(node=np.int64, need=np.float64, on=np.int64)  # how a node was before, in a world
NODE = record(
    parents=np.int64,  # where its edges from parents begin; they end where those of the next node begin
    children=np.int64,
    first_parent=np.int64,  # itself where it has none
    last_child=np.int64,
    bias=np.float64,
    fixed=np.float64,  # what it is set to; NaN: free
    mean=np.float64,  # e
    paths=np.float64,  # a
    low=np.float64,  # the interval of a where some variables may still be set (`branch_and_bound`)
    high=np.float64,
    open=np.int64,  # whether it is one of them
)


class Ancestors(NamedTuple):
    """The target's ancestors with both directions of their edges, and the means and path weights under S."""

    nodes: NDArray[Any]  # (n + 2,) NODE: the constant, the nodes, and the end of the last node's edges
    parents: NDArray[Any]  # EDGE
    children: NDArray[Any]  # EDGE


def ancestors_of(model: WeightedModel) -> Ancestors:
    """The target's ancestors in a model, with nothing set."""
    ids, child = relevant_ids(model.graph), model.graph.slot_child
    number = np.zeros(len(model.graph) + 1, dtype=np.int64)
    number[ids] = np.arange(len(ids))
    slots = np.flatnonzero(number[child])
    return linked(number[child[slots]], number[model.graph.arrays.parent[slots]], model.theta[slots], len(ids))


def linked(heads: NDArray[np.int64], tails: NDArray[np.int64], weights: Array, size: int) -> Ancestors:
    """Nodes with these edges, which are sorted by head; those with tail 0 are biases."""
    nodes, biased = np.zeros(size + 1, NODE), tails == 0
    nodes["bias"][heads[biased]] = weights[biased]
    heads, tails, weights = heads[~biased], tails[~biased], weights[~biased]
    by_tail = np.argsort(tails, kind="stable")
    parents, children = np.zeros((2, len(heads)), EDGE)
    parents["node"], parents["weight"] = tails, weights
    children["node"], children["weight"] = heads[by_tail], weights[by_tail]
    nodes["parents"] = offsets(np.bincount(heads, minlength=size))
    nodes["children"] = offsets(np.bincount(tails, minlength=size))
    nodes["first_parent"] = nodes["last_child"] = np.arange(size + 1)
    np.minimum.at(nodes["first_parent"], heads, tails)
    np.maximum.at(nodes["last_child"], tails, heads)
    nodes["last_child"][0] = size - 1  # once the constant is 1, every mean is to be computed
    nodes["fixed"], nodes["paths"][size - 1] = np.nan, 1.0
    ancestors = Ancestors(nodes, parents, children)
    change(ancestors, 0, 1.0)
    change(ancestors, size - 1, math.nan)
    return ancestors


class LinearGains:
    """E[Y] of a linear model, whatever the signs of its weights: the gains of all options come from two passes."""

    def __init__(self, model: WeightedModel) -> None:
        self.ancestors = ancestors_of(model)
        self.value = float(self.ancestors.nodes["mean"][-2])

    def gains(self, which: NDArray[np.int64], to: Array) -> Array:
        nodes = self.ancestors.nodes
        gains: Array = (to - nodes["mean"][which]) * nodes["paths"][which]
        return gains

    def set(self, v: int, to: float) -> None:
        self.value = change(self.ancestors, v, to)


@kernel
def change(ancestors: Any, v: int, to: float) -> float:
    """Set a node, or set it free (NaN), and bring up to date what that changes; returns E[Y | do(S)]."""
    nodes = ancestors.nodes
    nodes[v]["fixed"] = to
    pass_down(nodes, ancestors.parents, v, v)
    pass_up(nodes, ancestors.children, v - 1, nodes[v]["first_parent"])
    return nodes[len(nodes) - 2]["mean"]


@kernel
def pass_down(nodes: Any, parents: Any, v: int, last: int) -> None:
    """The means of the nodes from v to `last`, and on as far as these change any."""
    while v <= last:
        mean = nodes[v]["fixed"]
        if math.isnan(mean):
            mean = nodes[v]["bias"]
            for slot in range(nodes[v]["parents"], nodes[v + 1]["parents"]):
                mean += parents[slot]["weight"] * nodes[parents[slot]["node"]]["mean"]
        if abs(mean - nodes[v]["mean"]) > NEGLIGIBLE:
            nodes[v]["mean"] = mean
            last = max(last, nodes[v]["last_child"])
        v += 1


@kernel
def pass_up(nodes: Any, children: Any, v: int, first: int) -> None:
    """The path weights of the nodes from v back to `first`, and on as far as these change any."""
    while v >= first:
        paths = 0.0
        for slot in range(nodes[v]["children"], nodes[v + 1]["children"]):
            child = nodes[children[slot]["node"]]
            if math.isnan(child["fixed"]):
                paths += children[slot]["weight"] * child["paths"]
        if abs(paths - nodes[v]["paths"]) > NEGLIGIBLE:
            nodes[v]["paths"] = paths if abs(paths) > NEGLIGIBLE else 0.0
            if math.isnan(nodes[v]["fixed"]):
                first = min(first, nodes[v]["first_parent"])
        v -= 1


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
