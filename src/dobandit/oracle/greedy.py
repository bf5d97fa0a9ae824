"""The greedy set of a known linear model without negative weights, with what is proved about it.

Every step takes the variable with the largest gain; all gains come from two passes, and after a step only what it
changed is computed again. E[Y | do(S)] is monotone and submodular, so of what the best set gains the greedy set gains
  budget alone                    1 - 1/e         (Nemhauser et al. 1978)
  budget and disjoint groups      1/2             (Fisher et al. 1978: together they are a matroid)
  total cost alone                (1 - 1/e) / 2   (Leskovec et al. 2007: by gain per cost, or the best single variable)
With a total cost three sets are tried: by gain per cost, by plain gain, and the best single one. For a total cost
together with a budget or groups no factor is known. In all cases no set is worth more than value(S) plus what the gains
at S can add up to within the rules, whatever S; the least of these over the sets on the way is the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.model.bglm import WeightedModel
from dobandit.oracle.actions import Action, Allowed
from dobandit.oracle.exhaustive import Limits
from dobandit.oracle.options import Options
from dobandit.oracle.passes import gain_of, toggle

FACTOR = 1.0 - 1.0 / math.e
COST_FACTOR = FACTOR / 2.0
_BOUNDS = 64  # sets on the way at which the bound is computed


class Arrays(Options):
    """The options of a monotone problem, where variables are set to 1 only, by variable. Exclusive groups are taken to
    be disjoint."""

    def __init__(self, model: WeightedModel, allowed: Allowed) -> None:
        super().__init__(model, allowed)
        table, rules = self.table, allowed.rules
        self.candidates = np.sort(table.node)
        self.cost, self.group = np.ones(len(self.passes.ids)), np.full(len(self.passes.ids), -1, dtype=np.int64)
        self.cost[table.node] = table.cost
        grouped = np.flatnonzero(np.diff(table.group_ptr))
        self.group[grouped] = table.group[table.group_ptr[grouped]]
        by_cost = replace(rules, budget=None).most(allowed.names) if self.has_costs else 0
        room = by_cost if rules.budget is None else rules.budget - len(rules.require)
        self.budget_binds = room < by_cost

    def action_on(self, chosen: Iterable[int]) -> Action:
        """What is given, and these variables (numbers of `Passes`) at 1."""
        option = {int(v): i for i, v in enumerate(self.table.node)}
        return self.action(option[int(v)] for v in chosen)

    def factor(self) -> float | None:
        """What is proved of a greedy answer under these rules."""
        if self.has_costs:
            return None if self.budget_binds or self.group_count else COST_FACTOR
        return 0.5 if self.group_count else FACTOR


class GreedyAnswer(NamedTuple):
    chosen: NDArray[np.int32]
    value: float
    bound: float
    factor: float | None  # None also where a limit stopped it
    looked: int


def greedy(arrays: Arrays, limits: Limits | None = None) -> GreedyAnswer:
    """The best of the greedy sets that fit the rules; by gain per cost first, which wins ties."""
    limits = limits or Limits()
    base = arrays.restart()
    bound, looked, finished = bound_at(arrays), 0, True
    gains = gains_at(arrays)
    single = int(np.argmax(gains)) if arrays.room else 0
    best, value = np.zeros(0, dtype=np.int32), base
    for by_rate in (True, False) if arrays.has_costs else (False,):
        chosen, bound_here, steps, done = _one_run(arrays, by_rate, limits, looked)
        reached, finished = float(arrays.passes.means[-1]), finished and done
        bound, looked = min(bound, bound_here), looked + steps * len(arrays.candidates)
        if reached > value or not len(best):
            best, value = chosen, reached
    if arrays.room and base + gains[single] > value:
        best, value = arrays.candidates[single : single + 1], base + float(gains[single])
    factor = arrays.factor() if finished else None
    if factor:  # it holds for what is gained beyond the required set
        bound = min(bound, base + (value - base) / factor)
    return GreedyAnswer(best, value, max(value, min(bound, 1.0)), factor, looked)


def _one_run(arrays: Arrays, by_rate: bool, limits: Limits, looked: int) -> tuple[NDArray[np.int32], float, int, bool]:
    """(the variables in the order taken, the bound, steps, whether no limit came first). With costs variables without
    gain are left out; sets under a mere budget are filled up."""
    arrays.restart()
    chosen: NDArray[np.int32] = np.zeros(max(arrays.room, 1), dtype=np.int32)
    taken, money, bound = np.zeros(arrays.group_count + 1, dtype=np.bool_), np.full(1, arrays.money), math.inf
    rules = arrays.candidates, arrays.cost, arrays.group, by_rate, not arrays.has_costs
    count, stride = 0, max(1, -(-arrays.room // _BOUNDS))
    while count < arrays.room:
        if limits.reached(looked + count * len(arrays.candidates)):
            return chosen[:count], bound, count, False
        before, stop = count, min(count + stride, arrays.room)
        count = int(take_steps(arrays.passes, *rules, taken, money, chosen, before, stop))
        bound = min(bound, bound_at(arrays))
        if count < stop:
            break
    return chosen[:count], bound, count, True


@kernel
def rate_of(gain: float, cost: float) -> float:
    """Gain per cost: what is free comes first, what gains nothing last."""
    if gain <= 0.0:
        return 0.0
    return gain / cost if cost > 0.0 else math.inf


@kernel
def take_steps(
    p: Any,
    candidates: Any,
    cost: Any,
    group: Any,
    by_rate: bool,
    fill: bool,
    taken: Any,
    money: Any,
    chosen: Any,
    count: int,
    stop: int,
) -> int:
    """Go on from `count` variables in `chosen` to `stop`; returns how many there are then (fewer: nothing is left)."""
    while count < stop:
        best, most, gained = -1, 0.0, 0.0
        for i in range(len(candidates)):
            v = candidates[i]
            if p.is_set[v] or cost[v] > money[0] or (group[v] >= 0 and taken[group[v]]):
                continue
            gain = gain_of(p, v)
            if gain <= 0.0 and not fill:
                continue
            rate = rate_of(gain, cost[v]) if by_rate else gain
            if best < 0 or rate > most or (rate == most and gain > gained):
                best, most, gained = v, rate, gain
        if best < 0:
            break
        toggle(p, best)
        money[0] -= cost[best]
        if group[best] >= 0:
            taken[group[best]] = True
        chosen[count] = best
        count += 1
    return count


def gains_at(arrays: Arrays) -> NDArray[np.float64]:
    """The candidates' gains at the present set."""
    p, here = arrays.passes, arrays.candidates
    return np.maximum((1.0 - p.means[here]) * p.paths[here], 0.0)


def bound_at(arrays: Arrays) -> float:
    """What no allowed set exceeds, by the gains at the present set S: f(O) <= f(O + S) <= f(S) + the gains of O. The
    gains of O are bounded by the largest ones, one a group, and by the fractional knapsack of all money."""
    gains = gains_at(arrays)
    group = arrays.group[arrays.candidates]
    of_group = np.zeros(arrays.group_count)
    np.maximum.at(of_group, group[group >= 0], gains[group >= 0])
    pool = np.sort(np.concatenate([gains[group < 0], of_group]))[::-1]
    most = float(pool[: arrays.room].sum())
    if arrays.has_costs and len(gains):
        cost = arrays.cost[arrays.candidates]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            order = np.argsort(-np.where(gains > 0.0, gains / cost, 0.0), kind="stable")
        spent = np.cumsum(cost[order])
        whole = int(np.searchsorted(spent, arrays.money, side="right"))
        knapsack = float(gains[order[:whole]].sum())
        if whole < len(order):
            left = arrays.money - (float(spent[whole - 1]) if whole else 0.0)
            knapsack += float(gains[order[whole]]) * left / float(cost[order[whole]])
        most = min(most, knapsack)
    return float(arrays.passes.means[-1]) + most
