"""Greedy actions of a known linear model, with what is proved about them.

Without negative weights (`greedy`) every step takes the variable with the largest gain; all gains come from two passes,
and after a step only what it changed is computed again. E[Y | do(S)] is monotone and submodular, so of what the best
set gains the greedy set gains
  budget alone                    1 - 1/e         (Nemhauser et al. 1978)
  budget and disjoint groups      1/2             (Fisher et al. 1978: together they are a matroid)
  total cost alone                (1 - 1/e) / 2   (Leskovec et al. 2007: by gain per cost, or the best single variable)
With a total cost three sets are tried: by gain per cost, by plain gain, and the best single one. For a total cost
together with a budget or groups no factor is known. In all cases no set is worth more than value(S) plus what the gains
at S can add up to within the rules, whatever S; the least of these over the sets on the way is the bound.
With effects of any sign (`signed_greedy`) greedy steps are followed by exchanges while they help. Every gain is exact,
(x - e_v) a_v, from two passes (`passes.py`). Nothing is proved of the result but what a bound beside it proves: E[Y] is
neither monotone nor submodular then.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.oracle.options import Options, Steps
from dobandit.oracle.passes import gain_of, toggle
from dobandit.oracle.solve import Limits

FACTOR = 1.0 - 1.0 / math.e
COST_FACTOR = FACTOR / 2.0
_BOUNDS = 64  # sets on the way at which the bound is computed


def greedy(options: Options, limits: Limits | None = None) -> Steps:
    """The best of the greedy sets that fit the rules; by gain per cost first, which wins ties. Variables are set to 1
    only, and exclusive groups are disjoint."""
    limits = limits or Limits()
    base = options.restart()
    bound, looked, finished = bound_at(options), 0, True
    gains = gains_at(options)
    single = int(np.argmax(gains)) if options.room else 0
    best, value = list[int](), base
    for by_rate in (True, False) if options.has_costs else (False,):
        chosen, bound_here, steps, done = _one_run(options, by_rate, limits, looked)
        reached, finished = float(options.passes.means[-1]), finished and done
        bound, looked = min(bound, bound_here), looked + steps * len(options.table.node)
        if reached > value or not best:
            best, value = chosen, reached
    if options.room and base + gains[single] > value:
        best, value = [single], base + float(gains[single])
    factor = proved_factor(options) if finished else None
    if factor:  # it holds for what is gained beyond the required set
        bound = min(bound, base + (value - base) / factor)
    return Steps(best, value, max(value, min(bound, 1.0)), factor, looked)


def proved_factor(options: Options) -> float | None:
    """What is proved of a greedy answer under these rules."""
    if not options.has_costs:
        return 0.5 if options.group_count else FACTOR
    rules = options.allowed.rules
    by_cost = replace(rules, budget=None).most(options.allowed.names)
    budget_binds = rules.budget is not None and rules.budget - len(rules.require) < by_cost
    return None if budget_binds or options.group_count else COST_FACTOR


def _one_run(options: Options, by_rate: bool, limits: Limits, looked: int) -> tuple[list[int], float, int, bool]:
    """(the options in the order taken, the bound, steps, whether no limit came first). With costs variables without
    gain are left out; sets under a mere budget are filled up."""
    options.restart()
    chosen: NDArray[np.int32] = np.zeros(max(options.room, 1), dtype=np.int32)
    kinds = options.group_count + len(options.passes.ids)
    taken, money, bound = np.zeros(kinds, dtype=np.bool_), np.full(1, options.money), math.inf
    count, stride = 0, max(1, -(-options.room // _BOUNDS))
    while count < options.room:
        if limits.reached(looked + count * len(options.table.node)):
            return chosen[:count].tolist(), bound, count, False
        before, stop = count, min(count + stride, options.room)
        state = taken, money, chosen, before, stop
        count = int(take_steps(options.passes, options.table, by_rate, not options.has_costs, *state))
        bound = min(bound, bound_at(options))
        if count < stop:
            break
    return chosen[:count].tolist(), bound, count, True


@kernel
def rate_of(gain: float, cost: float) -> float:
    """Gain per cost: what is free comes first, what gains nothing last."""
    if gain <= 0.0:
        return 0.0
    return gain / cost if cost > 0.0 else math.inf


@kernel
def take_steps(
    p: Any, t: Any, by_rate: bool, fill: bool, taken: Any, money: Any, chosen: Any, count: int, stop: int
) -> int:
    """Go on from `count` options in `chosen` to `stop`; returns how many there are then (fewer: nothing is left).
    taken: by kind, whether one of it was."""
    while count < stop:
        best, most, gained = -1, 0.0, 0.0
        for i in range(len(t.node)):
            if taken[t.kind[i]] or t.cost[i] > money[0]:
                continue
            gain = gain_of(p, t.node[i])
            if gain <= 0.0 and not fill:
                continue
            rate = rate_of(gain, t.cost[i]) if by_rate else gain
            if best < 0 or rate > most or (rate == most and gain > gained):
                best, most, gained = i, rate, gain
        if best < 0:
            break
        toggle(p, t.node[best])
        money[0] -= t.cost[best]
        taken[t.kind[best]] = True
        chosen[count] = best
        count += 1
    return count


def gains_at(options: Options) -> NDArray[np.float64]:
    """What each option gains at the present set."""
    p, here = options.passes, options.table.node
    return np.maximum((1.0 - p.means[here]) * p.paths[here], 0.0)


def bound_at(options: Options) -> float:
    """What no allowed set exceeds, by the gains at the present set S: f(O) <= f(O + S) <= f(S) + the gains of O. The
    gains of O are bounded by the largest ones, one a kind, and by the fractional knapsack of all money."""
    gains, cost = gains_at(options), options.table.cost
    kinds, of = np.unique(options.table.kind, return_inverse=True)
    pool = np.zeros(len(kinds))
    np.maximum.at(pool, of, gains)
    pool = np.sort(pool)[::-1]
    most = float(pool[: options.room].sum())
    if options.has_costs and len(gains):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            order = np.argsort(-np.where(gains > 0.0, gains / cost, 0.0), kind="stable")
        spent = np.cumsum(cost[order])
        whole = int(np.searchsorted(spent, options.money, side="right"))
        knapsack = float(gains[order[:whole]].sum())
        if whole < len(order):
            left = options.money - (float(spent[whole - 1]) if whole else 0.0)
            knapsack += float(gains[order[whole]]) * left / float(cost[order[whole]])
        most = min(most, knapsack)
    return float(options.passes.means[-1]) + most


_BETTER = 1e-12
_MOST_EXCHANGES = 200
_MOST_LOOKS = 20_000_000  # options looked at: some 0.2 s


def signed_greedy(options: Options, limits: Limits | None = None) -> Steps:
    """By gain, and with costs also by gain per cost; the better of the two, after exchanges."""
    best: _Walk | None = None
    looked = 0
    for by_rate in (True, False) if options.has_costs else (False,):
        walk = _Walk(options, by_rate, limits or Limits(), looked)
        walk.fill()
        walk.exchange()
        looked = walk.looked
        if best is None or walk.value > best.value + _BETTER:
            best = walk
    assert best is not None
    return Steps(best.chosen, best.value, 1.0, None, looked)


class _Walk:
    def __init__(self, options: Options, by_rate: bool, limits: Limits, looked: int) -> None:
        self.options, self.by_rate, self.limits, self.looked = options, by_rate, limits, looked
        self.value = options.restart()
        self.chosen: list[int] = []
        self.money = options.money
        self.taken = np.zeros(options.group_count + 1, dtype=np.int64)
        t = options.table
        self.must = np.isin(t.node, t.must)
        for v in t.must:
            self.take(self.best_of(t.node == v))

    @property
    def filling(self) -> bool:
        """Whether variables are added even where they lower E[Y]."""
        return self.options.exact or self.options.maximal

    def take(self, option: int) -> None:
        self._turn(option)
        self.chosen.append(option)
        self.money -= self.options.table.cost[option]

    def drop(self, option: int) -> None:
        self._turn(option, -1)
        self.chosen.remove(option)
        self.money += self.options.table.cost[option]

    def _turn(self, option: int, by: int = 1) -> None:
        t, p = self.options.table, self.options.passes
        v = t.node[option]
        p.to[v] = t.to[option]
        self.value = float(toggle(p, v))
        self.taken[t.group[t.group_ptr[v] : t.group_ptr[v + 1]]] += by

    def gains(self) -> NDArray[np.float64]:
        t, p = self.options.table, self.options.passes
        self.looked += len(t.node)
        return (t.to - p.means[t.node]) * p.paths[t.node]

    def fitting(self) -> NDArray[np.bool_]:
        """Options that may be taken besides, the required ones left out."""
        t = self.options.table
        room = len(self.chosen) < self.options.depth
        fits = room & ~self.options.passes.is_set[t.node] & (t.cost <= self.money + 1e-15) & ~self.must
        if self.options.group_count:
            full = np.flatnonzero(self.taken > 0)
            owner = np.repeat(np.arange(len(t.group_ptr) - 1), np.diff(t.group_ptr))
            fits &= ~np.isin(t.node, owner[np.isin(t.group, full)])
        return fits

    def best_of(self, among: NDArray[np.bool_]) -> int:
        """The option with the largest gain (or gain per cost); -1 where there is none."""
        where = np.flatnonzero(among)
        if not len(where):
            return -1
        gains = self.gains()[where]
        if self.by_rate:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                gains = np.where(gains > 0.0, gains / self.options.table.cost[where], gains)
        return int(where[np.argmax(gains)])

    def fill(self) -> None:
        """Take the best option while it helps, or while one fits where actions must be full."""
        while not (self.chosen and self.limits.reached(self.looked) and not self.filling):
            option = self.best_of(self.fitting())
            if option < 0 or (not self.filling and self.gain_of(option) <= _BETTER):
                break
            self.take(option)

    def gain_of(self, option: int) -> float:
        t, p = self.options.table, self.options.passes
        return float((t.to[option] - p.means[t.node[option]]) * p.paths[t.node[option]])

    def exchange(self) -> None:
        """Leave out one option and fill up again, as long as that helps."""
        t = self.options.table
        for _ in range(_MOST_EXCHANGES):
            before, kept = self.value, list(self.chosen)
            for option in kept:
                if self.limits.reached(self.looked) or self.looked > _MOST_LOOKS:
                    return
                self.drop(option)
                if self.must[option]:
                    self.take(self.best_of(t.node == t.node[option]))
                self.fill()
                if self.value > before + _BETTER:
                    break
                for new in [o for o in self.chosen if o not in kept]:
                    self.drop(new)
                if option not in self.chosen:
                    self.take(option)
            else:
                return
