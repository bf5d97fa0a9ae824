"""The best action of a known linear model, proved: depth-first search over options, with effects of any sign.

Options are tried in the order of what they can gain at most, per cost where there are costs; once the bound of the rest
falls to the best known value the rest is cut off. Variables that are required but may be set to
several values are decided first. The search keeps its stack in arrays, so it can stop at a limit and tell the gap that
remains.

The bound on what further options can add to E[Y]:
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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.oracle.greedy import Steps
from dobandit.oracle.linear_gains import Passes, full_pass, toggle
from dobandit.oracle.objectives import Options
from dobandit.oracle.solve import TOLERANCE, Limits


@kernel
def rate_of(gain: float, cost: float) -> float:
    """Gain per cost: what is free comes first, what gains nothing last."""
    if gain <= 0.0:
        return 0.0
    return gain / cost if cost > 0.0 else math.inf


@kernel
def better(s: Any, k: int, i: int, j: int) -> bool:
    """Whether candidate i comes before j: more gain per cost, then more gain, then the lower number."""
    a, b = s.candidate[k, i], s.candidate[k, j]
    left, right = rate_of(s.gain[k, i], s.cost[a]), rate_of(s.gain[k, j], s.cost[b])
    if left != right:
        return left > right
    if s.gain[k, i] != s.gain[k, j]:
        return s.gain[k, i] > s.gain[k, j]
    return a < b


@kernel
def sort_candidates(s: Any, k: int, count: int) -> None:
    """Best first, in place (Shell sort: quick on the nearly sorted candidates of the depth before)."""
    gap = count // 2
    while gap > 0:
        for end in range(gap, count):
            i = end
            while i >= gap and better(s, k, i, i - gap):
                s.candidate[k, i], s.candidate[k, i - gap] = s.candidate[k, i - gap], s.candidate[k, i]
                s.gain[k, i], s.gain[k, i - gap] = s.gain[k, i - gap], s.gain[k, i]
                i -= gap
        gap //= 2


@kernel
def note(s: Any, k: int) -> None:
    """Enter the set at depth k into the list of the best."""
    value, wanted, size = s.value[k], len(s.top_value), s.top_set.shape[1]
    if value <= s.top_value[wanted - 1] + TOLERANCE:
        return
    place = wanted - 1
    while place > 0 and value > s.top_value[place - 1] + TOLERANCE:
        s.top_value[place] = s.top_value[place - 1]
        for i in range(size):
            s.top_set[place, i] = s.top_set[place - 1, i]
        place -= 1
    s.top_value[place] = value
    for i in range(size):
        s.top_set[place, i] = s.candidate[i, s.position[i]] if i < k else -1


_NODES_AT_ONCE = 256  # between looks at the clock
_WORK_AT_ONCE = 1_000_000  # options and edges of these nodes: some 0.1 s


class Search(NamedTuple):
    """The stack. Rows are depths: options taken so far; candidates are options."""

    exact: bool  # whether only actions of as many options as there can be count
    maximal: bool
    costly: bool
    monotone: bool  # whether one more variable never lowers E[Y], so that the gains at hand are the most to be had
    cost: NDArray[np.float64]  # (options,)
    taken: NDArray[np.bool_]  # (groups,)
    seen: NDArray[np.int64]  # (kinds,) scratch: the last count in which a kind was met
    open: NDArray[np.bool_]  # (n + 1,) scratch: variables that may still be set
    low: NDArray[np.float64]  # (n + 1,) scratch: the interval of a
    high: NDArray[np.float64]  # (n + 1,)
    candidate: NDArray[np.int32]  # (depths, options)
    gain: NDArray[np.float64]  # (depths, options) at most
    sharp: NDArray[np.float64]  # (depths, options) exactly, by option (the others: by position); not where monotone
    width: NDArray[np.int64]  # (depths,)
    position: NDArray[np.int64]  # (depths,) the next to try
    value: NDArray[np.float64]  # (depths,)
    money: NDArray[np.float64]  # (depths,) cost that is left
    ceiling: NDArray[np.float64]  # (depths,) what nothing below exceeds
    depth: NDArray[np.int64]  # (1,) -1: done
    explored: NDArray[np.int64]  # (1,)
    counts: NDArray[np.int64]  # (1,) how often `seen` was used
    top_value: NDArray[np.float64]  # (wanted,) descending
    top_set: NDArray[np.int32]  # (wanted, depth) options, -1 for none


def search_options(
    p: Passes, options: Options, wanted: int, exact: bool, limits: Limits, known: Steps | None
) -> tuple[list[tuple[list[int], float]], float, bool, int]:
    """(the best options, -1 for none, with their values; the bound of what was not looked at, -1 if nothing is left;
    whether the search is done, and not stopped by a limit; actions looked at).

    exact: whether only full actions count. known: an action to beat, for a list of one.
    """
    p.is_set[:] = False
    for v, to in options.given:
        p.is_set[v], p.to[v] = True, to
    full_pass(p)
    s, t = start_search(p, options, wanted, options.depth + 1, exact), options.table
    if known is not None:
        s.top_set[0, : len(known.chosen)], s.top_value[0] = known.chosen, known.value
    block = max(1, min(_NODES_AT_ONCE, _WORK_AT_ONCE // max(len(p.parent) + len(t.node), 1)))
    advance(p, t, s, 0)  # compiles it, which is not the search's time
    limits.restart()
    while s.depth[0] >= 0 and not limits.reached(int(s.explored[0])):
        advance(p, t, s, int(min(block, limits.sets - int(s.explored[0]))))
    done = bool(s.depth[0] < 0)
    best = [(s.top_set[i].tolist(), float(s.top_value[i])) for i in range(wanted) if s.top_value[i] >= 0.0]
    return best, -1.0 if done else float(remaining_bound(t, s)), done, int(s.explored[0])


def bound_at(p: Passes, options: Options) -> float:
    """What no allowed action exceeds, by the gains at what is set: required variables alone, or on a monotone problem
    anything (f(O) <= f(O + S) <= f(S) + the gains of O at S)."""
    bound = float(start_search(p, options, 1, 1, options.exact).ceiling[0])
    if options.has_costs and options.allowed.monotone:  # the count alone, which with costs the search does not sort by
        t = options.table
        largest = np.zeros(len(options.members) + len(p.ids))  # by kind
        np.maximum.at(largest, t.kind, (1.0 - p.means[t.node]) * p.paths[t.node])
        bound = min(bound, float(p.means[-1] + np.sort(largest)[::-1][: options.room].sum()))
    return bound


def start_search(p: Passes, options: Options, wanted: int, rows: int, exact: bool) -> Search:
    """A search with what is set as its root, and room for so many depths; -1.0 stands for no value."""
    t, nodes, count, monotone = options.table, len(p.ids), len(options.table.node), options.allowed.monotone
    groups, columns = len(options.members), max(count, 1)
    rules: Any = exact, options.maximal, options.has_costs, monotone, t.cost
    taken, seen = np.zeros(groups + 1, dtype=np.bool_), np.zeros(groups + nodes + 1, dtype=np.int64)
    scratch: Any = taken, seen, np.zeros(nodes, dtype=np.bool_), np.zeros(nodes), np.zeros(nodes)
    candidate, sharp = np.zeros((rows, columns), dtype=np.int32), np.zeros((1 if monotone else rows, columns))
    width, position = np.zeros((2, rows), dtype=np.int64)
    by_depth: Any = width, position, np.zeros(rows), np.full(rows, options.money), np.zeros(rows)
    counters: Any = np.zeros((3, 1), dtype=np.int64)
    top: Any = np.full(wanted, -1.0), np.full((wanted, max(options.depth, 1)), -1, dtype=np.int32)
    tables: Any = candidate, np.zeros((rows, columns)), sharp
    s = Search(*rules, *scratch, *tables, *by_depth, *counters, *top)
    s.candidate[0, :count] = np.arange(count)
    s.value[0] = p.means[-1]
    settle(p, t, s, 0, count, options.depth)
    return s


@inlined
def fits(t: Any, s: Any, k: int, i: int) -> bool:
    """Whether option i may be taken besides those taken down to depth k."""
    v, fitting = t.node[i], s.cost[i] <= s.money[k]
    for j in range(t.group_ptr[v], t.group_ptr[v + 1]):
        fitting = fitting and not s.taken[t.group[j]]
    return fitting


@kernel
def settle(p: Any, t: Any, s: Any, k: int, count: int, most: int) -> None:
    """At a new action: keep the options that still fit, bound their gains, sort them, and note the action."""
    s.explored[0] += 1
    left = most - k
    kept = 0
    for i in range(count):
        option = s.candidate[k, i]
        if left > 0 and fits(t, s, k, option):
            s.candidate[k, kept] = option
            kept += 1
    loose = left > 1 and not s.monotone
    if loose:
        for i in range(kept):
            s.open[t.node[s.candidate[k, i]]] = True
        path_ranges(p, s)
        for i in range(kept):
            s.open[t.node[s.candidate[k, i]]] = False
    for i in range(kept):
        option = s.candidate[k, i]
        v = t.node[option]
        step = t.to[option] - p.means[v]
        s.gain[k, i] = step * p.paths[v]
        if loose:
            s.sharp[k, option] = s.gain[k, i]
            s.gain[k, i] = max(step * s.low[v], step * s.high[v])
    s.width[k], s.position[k] = kept, 0
    sort_candidates(s, k, kept)
    s.ceiling[k] = s.value[k] + most_added(t, s, k, 0, left)
    if k >= len(t.must) and (left == 0 if s.exact else not s.maximal or not can_grow(p, t, s, k, left)):
        note(s, k)


@kernel
def can_grow(p: Any, t: Any, s: Any, k: int, left: int) -> bool:
    if left > 0:
        for i in range(len(t.node)):
            if not p.is_set[t.node[i]] and fits(t, s, k, i):
                return True
    return False


@kernel
def bound(t: Any, s: Any, k: int) -> float:
    """The most that any action below depth k can be worth, with the options not yet tried."""
    if k < len(t.must):
        return s.ceiling[k]
    left = s.top_set.shape[1] - k
    return min(s.ceiling[k], s.value[k] + most_added(t, s, k, s.position[k], left))


@kernel
def advance(p: Any, t: Any, s: Any, nodes: int) -> None:
    """Go on for so many actions, or until the search is done (depth -1)."""
    stop = s.explored[0] + nodes
    k = s.depth[0]
    while k >= 0 and s.explored[0] < stop:
        required = k < len(t.must)
        while required and s.position[k] < s.width[k] and t.node[s.candidate[k, s.position[k]]] != t.must[k]:
            s.position[k] += 1
        i = s.position[k]
        if i >= s.width[k] or bound(t, s, k) <= s.top_value[len(s.top_value) - 1] + TOLERANCE:
            k -= 1
            if k >= 0:
                leave(p, t, s, k)
                s.position[k] += 1
            continue
        option = s.candidate[k, i]
        v = t.node[option]
        p.to[v] = t.to[option]
        s.value[k + 1] = toggle(p, v)
        for j in range(t.group_ptr[v], t.group_ptr[v + 1]):
            s.taken[t.group[j]] = True
        s.money[k + 1] = s.money[k] - s.cost[option]
        rest = 0
        for j in range(0 if required else i + 1, s.width[k]):
            if t.node[s.candidate[k, j]] != v:
                s.candidate[k + 1, rest] = s.candidate[k, j]
                rest += 1
        k += 1
        settle(p, t, s, k, rest, s.top_set.shape[1])
    s.depth[0] = k


@kernel
def leave(p: Any, t: Any, s: Any, k: int) -> None:
    """Set free the variable that led from depth k to k + 1."""
    v = t.node[s.candidate[k, s.position[k]]]
    toggle(p, v)
    for j in range(t.group_ptr[v], t.group_ptr[v + 1]):
        s.taken[t.group[j]] = False


@kernel
def remaining_bound(t: Any, s: Any) -> float:
    """The most that an action not yet looked at can be worth, and at least the last value in the list."""
    most = s.top_value[len(s.top_value) - 1]
    for k in range(s.depth[0] + 1):
        most = max(most, bound(t, s, k))
    return most


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
