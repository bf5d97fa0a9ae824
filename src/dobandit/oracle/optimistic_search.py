"""The set with the largest optimistic E[Y], proved, without looking at every set: for linear models and boxed regions.

f(S): the largest E_theta[Y | do(S)] over one theta per region, by the forward recursion of `boxed`.
low_v: E[v | do(S)] at the lowest weights of every region.  high_v: total weight, at the highest weights, of the paths
from v to Y that avoid S.  For any nonnegative theta, adding variables R to S from the target's side backwards leaves
the means of those still to be added unchanged, so with |R| <= r
    f(S + R) <= f(S) + the sum of the r largest max(0, 1 - low_v) high_v                                (first bound)
and no row of weights has to add up to 1. Where regions are wide and weights of paths explode, a second bound cuts in:
    f(S + R) <= the recursion in which every variable that may still be set counts as max(1, its mean)  (second bound)
Sets hold at most K variables: where optimistic means exceed 1, setting a variable can lower f, and nothing is gained.
Required variables are set from the start; a variable that costs more than is left, or excludes one that is set, is no
candidate below that set, and leaving it out only sharpens the bounds.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import kernel
from dobandit.oracle.boxed import boxed_mean
from dobandit.oracle.listing import TIE, propose
from dobandit.oracle.optimistic_greedy import greedy_search
from dobandit.oracle.optimistic_plan import (
    OptimisticSearch,
    block_rivals,
    bound_gains,
    extreme_weights,
    release,
    start,
    take,
    write_found,
)


@kernel
def optimistic_value(layout: Any, s: Any, theta: Any, gram: Any, rho: Any, fixed: Any) -> float:
    """f(S), or the second bound, where variables are open."""
    s.means[0] = 1.0
    for k in range(len(s.listing.order)):
        v = s.listing.order[k]
        if s.is_set[v]:
            s.means[v] = 1.0
            continue
        if not math.isnan(fixed[v]):
            s.means[v] = fixed[v]
            continue
        mean = boxed_mean(layout, s.box, s.means, theta, gram, rho[v], v)
        s.means[v] = max(mean, 1.0) if s.open[v] else mean
    return s.means[layout.target]


@kernel
def enter(layout: Any, s: Any, theta: Any, gram: Any, rho: Any, fixed: Any, k: int, count: int, shift: int) -> None:
    """At a new set: its value, and its candidates sorted by what they can gain at most."""
    s.value[k] = optimistic_value(layout, s, theta, gram, rho, fixed)
    s.report[2] += 1.0
    if s.value[k] > s.report[0] + TIE * max(1.0, abs(s.report[0])):
        s.report[0] = s.value[k]
        for i in range(len(s.best)):
            s.best[i] = s.candidate[i, s.position[i]] if i < k else 0
    s.position[k] = 0
    s.width[k] = count if k < s.size else 0
    if k == s.size:
        return
    bound_gains(layout, s, fixed)
    for i in range(count):
        v = s.candidate[k, i]
        s.gain[k, i] = max(1.0 - s.low[v], 0.0) * s.high[v]
    # Insertion sort: lists arrive nearly sorted from the depth above. Equal gains in an order that the round draws.
    modulus = len(s.is_set)
    for i in range(1, count):
        v, gain = s.candidate[k, i], s.gain[k, i]
        j = i - 1
        while j >= 0 and (
            s.gain[k, j] < gain
            or (s.gain[k, j] == gain and (s.candidate[k, j] + shift) % modulus > (v + shift) % modulus)
        ):
            s.candidate[k, j + 1], s.gain[k, j + 1] = s.candidate[k, j], s.gain[k, j]
            j -= 1
        s.candidate[k, j + 1], s.gain[k, j + 1] = v, gain


@kernel
def first_bound(s: Any, k: int) -> float:
    total, left = s.value[k], s.size - k
    for i in range(s.position[k], min(s.position[k] + left, s.width[k])):
        total += s.gain[k, i]
    return total


@kernel
def second_bound(layout: Any, s: Any, theta: Any, gram: Any, rho: Any, fixed: Any, k: int) -> float:
    for i in range(s.position[k], s.width[k]):
        s.open[s.candidate[k, i]] = True
    relaxed = optimistic_value(layout, s, theta, gram, rho, fixed)
    for i in range(s.position[k], s.width[k]):
        s.open[s.candidate[k, i]] = False
    return relaxed


@kernel
def hopeless(layout: Any, s: Any, theta: Any, gram: Any, rho: Any, fixed: Any, k: int) -> bool:
    """Whether no set below depth k, with the candidates not yet tried, can beat the best."""
    goal = s.report[0] + TIE * max(1.0, abs(s.report[0]))
    if s.position[k] >= s.width[k] or first_bound(s, k) <= goal:
        return True
    return second_bound(layout, s, theta, gram, rho, fixed, k) <= goal


@kernel
def bound_unseen(layout: Any, s: Any, theta: Any, gram: Any, rho: Any, fixed: Any, k: int) -> float:
    """No set has a larger value, where the search stopped at depth k: the smaller bound of what is left at each depth.
    Takes the stack down."""
    most = s.report[0]
    for depth in range(k, -1, -1):
        if depth < k:  # the candidate that the search was below is bounded at the depths below
            s.is_set[s.candidate[depth, s.position[depth]]] = False
            s.position[depth] += 1
        if s.position[depth] < s.width[depth]:
            relaxed = second_bound(layout, s, theta, gram, rho, fixed, depth)
            most = max(most, min(first_bound(s, depth), relaxed))
    return most


@kernel
def descend(s: Any, k: int) -> int:
    """Set the next candidate of depth k; leaves the candidates that remain allowed at depth k + 1: how many."""
    i = s.position[k]
    v = s.candidate[k, i]
    s.is_set[v] = True
    s.money[k + 1] = s.money[k] - s.cost[v]
    block_rivals(s, v, True)
    count = 0
    for j in range(i + 1, s.width[k]):
        other = s.candidate[k, j]
        if not s.blocked[other] and s.cost[other] <= s.money[k + 1]:
            s.candidate[k + 1, count] = other
            count += 1
    block_rivals(s, v, False)
    return count


@kernel
def search(layout: Any, s: Any, stats: Any, theta: Any, rho: Any, fixed: Any, uniform: float) -> int:
    """Find the best set into s.best; returns its size. s.report holds its value, a bound, and the sets looked at."""
    gram = stats.gram
    extreme_weights(layout, s, stats, theta, rho)
    shift = int(uniform * len(s.is_set))
    s.report[0], s.report[1], s.report[2] = -1.0, -1.0, 0.0
    start(s)
    count = 0
    for i in range(len(s.settable)):
        if s.cost[s.settable[i]] <= s.money[0]:
            s.candidate[0, count] = s.settable[i]
            count += 1
    enter(layout, s, theta, gram, rho, fixed, 0, count, shift)
    k = 0
    while k >= 0:
        if s.report[2] >= s.most_sets:
            break
        if hopeless(layout, s, theta, gram, rho, fixed, k):
            k -= 1
            if k >= 0:
                s.is_set[s.candidate[k, s.position[k]]] = False
                s.position[k] += 1
            continue
        rest = descend(s, k)
        k += 1
        enter(layout, s, theta, gram, rho, fixed, k, rest, shift)
    s.report[1] = bound_unseen(layout, s, theta, gram, rho, fixed, k)
    return fill_up(layout, s, theta, gram, rho, fixed, shift)


@kernel
def fill_up(layout: Any, s: Any, theta: Any, gram: Any, rho: Any, fixed: Any, shift: int) -> int:
    """Add variables that cost nothing to the best set until it holds K, in an order that the round draws.

    A variable whose optimistic mean is at most 1 does not lower f when it is set. Without this, sets that tie with the
    empty one, as all do in the first rounds, would never be tried.
    """
    start(s)
    count, money = 0, s.money[0]
    while count < s.size and s.best[count] > 0:
        money = take(s, s.best[count], money)
        count += 1
    i = 0
    while count < s.size and i < len(s.settable):
        optimistic_value(layout, s, theta, gram, rho, fixed)
        while i < len(s.settable):
            v = s.settable[(i + shift) % len(s.settable)]
            i += 1
            if not s.is_set[v] and not s.blocked[v] and s.cost[v] <= money and s.means[v] <= 1.0 + TIE:
                s.best[count] = v
                money = take(s, v, money)
                count += 1
                break
    release(s, count)
    return count


@propose.of(OptimisticSearch)
def propose_searched(s: Any, layout: Any, state: Any, rho: Any, fixed: Any, draws: Any) -> int:
    """Branch and bound, or greedy; the set stands in the list's one row."""
    if s.greedy:
        return write_found(s, greedy_search(layout, s, state.stats, state.theta, rho, fixed, draws[0]))
    return write_found(s, search(layout, s, state.stats, state.theta, rho, fixed, draws[0]))
