"""The standard-oracle variant of the optimistic search: greedy at the highest weights."""

from __future__ import annotations

from typing import Any

from dobandit.compiled import kernel
from dobandit.oracle.listing import TIE
from dobandit.oracle.optimistic_plan import bound_gains, extreme_weights, means_at, release, start, take


@kernel
def greedy_search(layout: Any, s: Any, stats: Any, theta: Any, rho: Any, fixed: Any, uniform: float) -> int:
    """The standard-oracle variant (Zhang et al. 2022): the highest value of every weight, then greedy on that model.

    The highest weights are at least the true ones, so their E[Y] is optimistic for every set; greedy finds 1 - 1/e of
    its maximum as long as no node's highest weights add up to more than 1. K passes over the edges, however many sets,
    and one more for a bound that holds whatever they add up to: every variable that could be set counts as
    max(1, its mean), the second bound of `optimistic_search` at the highest weights.
    """
    extreme_weights(layout, s, stats, theta, rho)
    shift, modulus = int(uniform * len(s.is_set)), len(s.is_set)
    start(s)
    count, money = 0, s.money[0]
    while True:
        bound_gains(layout, s, fixed)
        means_at(layout, s, s.highest, fixed, s.means)
        if count == s.size:
            break
        best, largest = -1, 0.0
        for i in range(len(s.settable)):
            v = s.settable[i]
            if s.is_set[v] or s.blocked[v] or s.cost[v] > money:
                continue
            gain = (1.0 - s.means[v]) * s.high[v]
            gain = gain / s.cost[v] if s.cost[v] > 0.0 else gain * 1e300
            better = gain > largest + TIE
            tied = best >= 0 and gain >= largest - TIE and (v + shift) % modulus < (best + shift) % modulus
            if better or tied:
                best, largest = v, gain
        if best < 0:
            break
        s.best[count] = best
        money = take(s, best, money)
        count += 1
    release(s, count)
    s.report[0], s.report[2] = s.means[layout.target], count + 1.0
    s.report[1] = max(most_at_highest(layout, s, fixed), s.report[0])
    return count


@kernel
def most_at_highest(layout: Any, s: Any, fixed: Any) -> float:
    """No allowed set has a larger E[Y] at the highest weights."""
    start(s)
    for i in range(len(s.settable)):
        s.open[s.settable[i]] = s.cost[s.settable[i]] <= s.money[0]
    means_at(layout, s, s.highest, fixed, s.means)
    for i in range(len(s.settable)):
        s.open[s.settable[i]] = False
    return s.means[layout.target]
