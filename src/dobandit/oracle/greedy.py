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
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.oracle.exhaustive import Limits
from dobandit.oracle.options import Options, Steps
from dobandit.oracle.passes import gain_of, toggle

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
