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
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.oracle.branch_and_bound import bound_at
from dobandit.oracle.objectives import LinearGains, Objective
from dobandit.oracle.search_space import Limits, Options

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


def greedy(objective: Objective, options: Options, limits: Limits, lazy: bool) -> Steps:
    """The best of the greedy actions. lazy: whether gains never grow."""
    for v, to in options.given:
        objective.set(v, to)
    start, walk, best = objective.value, _Walk(objective, options, limits, lazy), (list[int](), -math.inf)
    for by_rate in (True, False) if options.has_costs else (False,):
        walk.climb(by_rate)
        if objective.value > best[1] + _BETTER:
            best = list(walk.chosen), objective.value
        for option in list(walk.chosen):
            walk.put(option, -1)
    return Steps(*best, start, min(walk.bounds), walk.finished, walk.looked)


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
    def __init__(self, objective: Objective, options: Options, limits: Limits, lazy: bool) -> None:
        self.objective, self.options, self.limits, self.lazy = objective, options, limits, lazy
        self.at_once = isinstance(objective, LinearGains)  # all gains together cost what one costs
        self.node, self.to, self.cost = (options.table[name].copy() for name in ("node", "to", "cost"))
        self.must = np.isin(self.node, options.must)
        self.filling = options.allowed.full_only and (options.maximal or not options.has_costs)
        self.chosen: list[int] = []
        self.money = options.money
        self.blocked = np.zeros(len(options.ids), dtype=np.int64)  # by node: how many rules forbid to set it now
        self.gain = np.full(len(self.node), np.inf)  # when last looked at
        self.fresh = np.zeros(len(self.node), dtype=np.bool_)
        self.opening: NDArray[np.float64] | None = None  # the gains of the first step, which every climb shares
        self.stopped, self.finished = False, True  # whether a limit came first
        self.looked, self.bounds = 0, [math.inf]
        self.note_bound()

    def put(self, option: int, sign: int) -> None:
        """Take an option (1), or take it back (-1)."""
        v, row = int(self.node[option]), self.options.table[option]
        self.objective.set(v, float(self.to[option]) if sign > 0 else math.nan)
        (self.chosen.append if sign > 0 else self.chosen.remove)(option)
        self.money -= sign * self.cost[option]
        self.blocked[v] += sign
        for group in self.options.groups[row["groups"] : row["groups_end"]]:
            self.blocked[self.options.members[group]] += sign
        self.fresh[:] = False
        if sign < 0 or not self.lazy:  # gains may have grown
            self.gain[:] = np.inf

    def note_bound(self) -> None:
        """By the gains at what is set: at what is required, or anywhere if gains never grow."""
        if isinstance(self.objective, LinearGains):
            self.bounds.append(bound_at(self.objective.ancestors, self.options))

    def climb(self, by_rate: bool) -> None:
        """The required variables, then steps, then exchanges."""
        self.stopped = False
        self.unit = np.where(self.cost > 0.0, self.cost, 1e-300) if by_rate else np.ones(len(self.cost))
        for v in self.options.must:
            self.put(self.best_of(self.node == v, required=True), 1)
        if self.opening is not None:
            self.gain[:], self.fresh[:] = self.opening, ~np.isinf(self.opening)
        self.fill(bounding=self.lazy)
        self.finished = self.finished and not self.stopped
        if self.at_once:
            self.exchange()
        if self.lazy:
            self.note_bound()

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
            new = where if self.at_once else where[np.isinf(self.gain[where])]
            if not self.look(new if len(new) else np.array([option])):
                self.stopped = True
                if np.any(self.fresh[where]):
                    where = where[self.fresh[where]]
                elif not required and self.options.allowed.rules.smaller is not False:
                    break
                return int(where[np.argmax(self.rates(where))])
        return -1

    def rates(self, where: NDArray[np.int64]) -> NDArray[np.float64]:
        """What decides: gains, or gains per cost."""
        gain = self.gain[where]
        with np.errstate(over="ignore"):
            return np.where(gain > 0.0, gain / self.unit[where], gain)

    def look(self, which: NDArray[np.int64]) -> bool:
        """Work out gains, one by one unless they come at once; whether no limit came first."""
        for part in [which] if self.at_once else which[:, None]:
            if self.limits.reached(self.looked):
                return False
            self.gain[part] = np.round(self.objective.gains(self.node[part], self.to[part]), _DIGITS)
            self.fresh[part] = True
            self.looked += len(part)
        return True

    def fill(self, bounding: bool = False) -> None:
        """Take the best option while it helps, or while one fits where actions must be full."""
        stride = max(1, -(-self.options.room // _BOUNDS))
        while len(self.chosen) < self.options.depth:
            fitting = (self.blocked[self.node] == 0) & (self.cost <= self.money + 1e-15) & ~self.must
            option = self.best_of(fitting)
            if self.opening is None:
                self.opening = self.gain.copy()
            if option < 0 or (self.gain[option] <= 0.0 and not self.filling):
                break
            self.put(option, 1)
            if bounding and len(self.chosen) % stride == 0:
                self.note_bound()

    def exchange(self) -> None:
        """Leave out one option and fill up again, as long as that helps."""
        trials = 0
        while True:
            before, kept = self.objective.value, list(self.chosen)
            for option in kept:
                trials += 1
                if self.limits.reached(self.looked) or self.looked > _MOST_LOOKS or trials > _MOST_TRIALS:
                    return
                self.put(option, -1)
                if self.must[option]:
                    self.put(self.best_of(self.node == self.node[option], required=True), 1)
                self.fill()
                if self.objective.value > before + _BETTER:
                    break
                for new in [other for other in self.chosen if other not in kept]:
                    self.put(new, -1)
                if option not in self.chosen:
                    self.put(option, 1)
            else:
                return
