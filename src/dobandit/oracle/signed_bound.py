"""What further options can add to E[Y] of a linear model with effects of any sign, at most.

S: what is set so far.  e_v: mean of v under S.  a_v: total weight of the paths from v to the target that avoid S.
Let R be further options, r of them at most. Take them one at a time, the one nearest to the target first (the last in
topological order). Setting v to x then adds (x - e_v) a_v, where
  e_v is the mean under S alone: what was taken before lies below v, or aside, and does not change it;
  a_v is over the paths that avoid S and what was taken before: setting a variable cuts the paths through it.
So a_v lies between the ends low_v and high_v of an interval pass upwards in which each variable that may still be set
passes on anything from its own interval or 0. For the one nearest to the target nothing was taken before, and a_v is
exact. Hence R adds at most one exact gain and r - 1 gains at the ends of the intervals, of different kinds (a variable,
or an exclusive group): the sum of the largest ones bounds what R can add, and with costs so does their fractional
knapsack. With one option left the bound is exact. Where no weight is negative and all is set to 1 (monotone) high_v is
the exact a_v: then the gains themselves are the ends, E[Y] is submodular, and no interval is needed.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import kernel


@kernel
def path_ranges(p: Any, s: Any) -> None:
    """The interval of every a_v, with the open variables cutting the paths through them or not."""
    last = len(p.means) - 1
    s.low[last] = s.high[last] = 1.0
    for v in range(last - 1, 0, -1):
        low, high = 0.0, 0.0
        for slot in range(p.child_ptr[v], p.child_ptr[v + 1]):
            c = p.child[slot]
            if p.is_set[c]:
                continue
            a, b = s.low[c], s.high[c]
            if s.open[c]:
                a, b = min(a, 0.0), max(b, 0.0)
            weight = p.child_theta[slot]
            if weight >= 0.0:
                low += weight * a
                high += weight * b
            else:
                low += weight * b
                high += weight * a
        s.low[v], s.high[v] = low, high


@kernel
def most_added(t: Any, s: Any, k: int, start: int, left: int) -> float:
    """The most that up to `left` of the options from position `start` on can add (exactly so many, where that counts).

    By count: the `left` largest gains of different kinds, one of them exact. By cost: the fractional knapsack. Options
    are sorted by gain, or by gain per cost where there are costs; then the count takes the largest gain so many times.
    """
    if left == 0:
        return 0.0
    if s.costly:
        return by_cost(s, k, start, left)
    s.counts[0] += 1
    met, total, last = 0, 0.0, 0.0
    for i in range(start, s.width[k]):
        gain = s.gain[k, i]
        if met == left or (gain <= 0.0 and not s.exact):
            break
        kind = t.kind[s.candidate[k, i]]
        if s.seen[kind] != s.counts[0]:
            s.seen[kind] = s.counts[0]
            total += gain
            last = gain
            met += 1
    if met < left:
        return -math.inf if s.exact else total
    if left == 1 or s.monotone:
        return total
    # One of them adds its exact gain: if its kind is among those counted, in place of its bound, else of the last one.
    # Unless the size is exact it may be one that adds nothing, set because it cuts paths for the others.
    best = -math.inf if s.exact else total - last
    for i in range(start, s.width[k]):
        option = s.candidate[k, i]
        counted = s.seen[t.kind[option]] == s.counts[0]
        best = max(best, total - (s.gain[k, i] if counted else last) + s.sharp[k, option])
    return min(total, best)


@kernel
def by_cost(s: Any, k: int, start: int, left: int) -> float:
    added, money, largest, full = 0.0, s.money[k], 0.0, False
    for i in range(start, s.width[k]):
        gain, cost = s.gain[k, i], s.cost[s.candidate[k, i]]
        largest = max(largest, gain)
        if gain > 0.0 and not full:
            if cost <= money:
                added += gain
                money -= cost
            else:
                added += gain * money / cost
                full = True
    return min(added, left * largest)
