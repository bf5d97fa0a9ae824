"""Greedy steps on any objective, then exchanges.

A step takes the option with the largest gain, or gain per cost; with costs both are tried. Where the objective is
submodular, gains never grow as an action grows: a gain seen earlier is then an upper bound, and is looked at again only
if it comes first (CELF, Leskovec et al. 2007). Elsewhere every option is looked at in every step.
Where all gains come at once, one option at a time is taken back then and the action filled up again, while that helps.

Monotone and submodular, of what the best action gains the greedy one gains (`proved_factor`)
  budget alone                    1 - 1/e         (Nemhauser et al. 1978)
  budget and disjoint groups      1/2             (Fisher et al. 1978: together they are a matroid)
  total cost alone                (1 - 1/e) / 2   (Leskovec et al. 2007: by gain per cost, or the best single variable,
                                                  with which the steps by gain begin)
For a total cost together with a budget or groups no factor is known. Whatever the rules, no action is worth more than
value(S) plus what the gains at S can add up to within them, for any S; the least of these on the way is the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.oracle.objectives import Objective, Options
from dobandit.oracle.solve import Limits

FACTOR = 1.0 - 1.0 / math.e
_DIGITS = 12  # gains equal to this are ties, which the graph's order decides
_BETTER = 1e-12
_MOST_TRIALS = 2_000  # exchanges tried
_MOST_LOOKS = 20_000_000  # options looked at
_BOUNDS = 64  # actions on the way at which the bound is computed


class Steps(NamedTuple):
    """What greedy steps came to."""

    chosen: list[int]  # options
    value: float
    start: float  # E[Y] of what is required alone
    bound: float  # what no allowed action exceeds; infinite where no gains bound it
    finished: bool  # whether no limit came first
    looked: int


def greedy(
    objective: Objective, options: Options, limits: Limits, lazy: bool, bound_here: Callable[[], float] | None = None
) -> Steps:
    """The best of the greedy actions. lazy: whether gains never grow. bound_here: what no allowed action exceeds, by
    the gains at what is set, which holds on the way only if they never grow."""
    for v, to in options.given:
        objective.set(v, to)
    start, best, finished, looked = objective.value, None, True, 0
    bound, opening = bound_here() if bound_here else math.inf, None
    bound_here = bound_here if lazy else None
    for by_rate in (True, False) if options.has_costs else (False,):
        walk = _Walk(objective, options, by_rate, limits, lazy, looked)
        if opening is not None:
            walk.gain[:], walk.fresh[:] = opening, ~np.isinf(opening)
        bound, opening = min(bound, walk.fill(bound_here)), walk.opening
        finished, looked = finished and not walk.stopped, walk.looked
        if objective.at_once:
            looked = walk.exchange()
        if bound_here:
            bound = min(bound, bound_here())
        if best is None or objective.value > best[1] + _BETTER:
            best = list(walk.chosen), objective.value
        for option in list(walk.chosen):
            walk.drop(option)
    assert best is not None
    return Steps(*best, start, bound, finished, looked)


def proved_factor(options: Options) -> float | None:
    """What is proved of greedy steps on a monotone submodular objective under these rules."""
    rules, groups = options.allowed.rules, options.members
    if options.maximal or len(set[int]().union(*map(np.ndarray.tolist, groups))) < sum(map(len, groups)):
        return None  # groups overlap
    if not options.has_costs:
        return 0.5 if groups else FACTOR
    by_cost = replace(rules, budget=None).most(options.allowed.names)
    budget_binds = rules.budget is not None and rules.budget - len(rules.require) < by_cost
    return None if budget_binds or groups else FACTOR / 2.0


class _Walk:
    def __init__(
        self, objective: Objective, options: Options, by_rate: bool, limits: Limits, lazy: bool, looked: int
    ) -> None:
        self.objective, self.options, self.table = objective, options, options.table
        self.by_rate, self.limits, self.lazy, self.looked = by_rate, limits, lazy, looked
        self.filling = options.allowed.full_only and (options.maximal or not options.has_costs)
        self.stopped = False  # whether a limit came first
        self.chosen: list[int] = []
        self.money = options.money
        self.blocked = np.zeros(len(options.ids), dtype=np.int64)  # by node: how many rules forbid to set it now
        self.gain = np.full(len(self.table.node), np.inf)  # when last looked at
        self.fresh = np.zeros(len(self.gain), dtype=np.bool_)
        self.opening: NDArray[np.float64] | None = None  # the gains of the first step, which every walk shares
        self.must = np.isin(self.table.node, self.table.must)
        for v in self.table.must:
            self.take(self.best_of(self.table.node == v, required=True))

    def take(self, option: int) -> None:
        v = int(self.table.node[option])
        self.objective.set(v, float(self.table.to[option]))
        self.chosen.append(option)
        self._count(v, option, 1)
        if not self.lazy:
            self.gain[:] = np.inf

    def drop(self, option: int) -> None:
        v = int(self.table.node[option])
        self.objective.free(v)
        self.chosen.remove(option)
        self._count(v, option, -1)
        self.gain[:] = np.inf

    def _count(self, v: int, option: int, by: int) -> None:
        self.money -= by * self.table.cost[option]
        self.blocked[v] += by
        for group in self.table.group[self.table.group_ptr[v] : self.table.group_ptr[v + 1]]:
            self.blocked[self.options.members[group]] += by
        self.fresh[:] = False

    def fitting(self) -> NDArray[np.bool_]:
        """Options that may be taken besides, the required ones left out."""
        return (self.blocked[self.table.node] == 0) & (self.table.cost <= self.money + 1e-15) & ~self.must

    def best_of(self, among: NDArray[np.bool_], required: bool = False) -> int:
        """The option with the largest gain (or gain per cost); -1 for none. Where a limit comes first, of those looked
        at before; if none was, an action is left as it is where it may be smaller."""
        where = np.flatnonzero(among)
        while len(where):
            rates = self.rates(where)
            ties = where[rates == rates.max()]
            option = int(ties[np.argmax(self.gain[ties])])
            if self.fresh[option]:
                return option
            new = where if self.objective.at_once else where[np.isinf(self.gain[where])]
            if not self.look(new if len(new) else np.array([option])):
                self.stopped = True
                if np.any(self.fresh[where]):
                    where = where[self.fresh[where]]
                elif not required and self.options.allowed.rules.smaller is not False:
                    break
                return int(where[np.argmax(self.rates(where))])
        return -1

    def rates(self, where: NDArray[np.int64]) -> NDArray[np.float64]:
        """Gain per cost where that decides: what is free and gains something comes first."""
        gain, cost = self.gain[where], self.table.cost[where]
        if not self.by_rate:
            return gain
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(gain > 0.0, np.where(cost > 0.0, gain / cost, gain * 1e300), gain)

    def look(self, which: NDArray[np.int64]) -> bool:
        """Work out gains, one by one unless they come at once; whether no limit came first."""
        for part in [which] if self.objective.at_once else which[:, None]:
            if self.limits.reached(self.looked):
                return False
            self.gain[part] = np.round(self.objective.gains(self.table.node[part], self.table.to[part]), _DIGITS)
            self.fresh[part] = True
            self.looked += len(part)
        return True

    def fill(self, bound_here: Callable[[], float] | None = None) -> float:
        """Take the best option while it helps, or while one fits where actions must be full; returns the bound."""
        bound, stride = math.inf, max(1, -(-self.options.room // _BOUNDS))
        while len(self.chosen) < self.options.depth:
            option = self.best_of(self.fitting())
            if self.opening is None:
                self.opening = self.gain.copy()
            if option < 0 or (self.gain[option] <= 0.0 and not self.filling):
                break
            self.take(option)
            if bound_here and len(self.chosen) % stride == 0:
                bound = min(bound, bound_here())
        return bound

    def exchange(self) -> int:
        """Leave out one option and fill up again, as long as that helps; returns how many options were looked at."""
        trials, improved = 0, True
        while improved:
            before, kept, improved = self.objective.value, list(self.chosen), False
            for option in kept:
                trials += 1
                if self.limits.reached(self.looked) or self.looked > _MOST_LOOKS or trials > _MOST_TRIALS:
                    return self.looked
                self.drop(option)
                if self.must[option]:
                    self.take(self.best_of(self.table.node == self.table.node[option], required=True))
                self.fill()
                if self.objective.value > before + _BETTER:
                    improved = True
                    break
                for new in [other for other in self.chosen if other not in kept]:
                    self.drop(new)
                if option not in self.chosen:
                    self.take(option)
        return self.looked
