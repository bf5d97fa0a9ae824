"""The best set of a known linear model without negative weights, proved: depth-first search with a submodular bound.

For such weights E[Y | do(S = 1)] is monotone and submodular in S, so no extension of S by r variables is worth more
than value(S) + the sum of the r largest gains at S; with costs, than value(S) + the fractional knapsack of the gains.
Candidates are tried in the order of gain per cost; once the bound of the rest falls to the best known value the rest is
cut off. The search keeps its stack in arrays, so it can stop at a limit and tell the gap that remains.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.oracle.exhaustive import Limits
from dobandit.oracle.greedy import Arrays, rate_of
from dobandit.oracle.passes import full_pass, gain_of, toggle

# Values must differ by more than rounding to count as better.
TOLERANCE = 1e-12
_NODES_AT_ONCE = 256  # between looks at the clock
_WORK_AT_ONCE = 1_000_000  # candidates of these nodes: some 0.1 s


class Search(NamedTuple):
    """The problem and the stack. Rows are depths: variables set so far beyond the required ones."""

    most: int  # variables that may be set beyond the required ones
    exact_size: bool  # whether only sets of exactly `most` count (for lists of the best sets)
    uniform: bool  # whether all candidates cost the same
    cost: NDArray[np.float64]  # (n + 1,)
    group: NDArray[np.int64]  # (n + 1,) exclusive group, -1 for none
    taken: NDArray[np.bool_]  # (groups,)
    candidate: NDArray[np.int32]  # (depths, candidates)
    gain: NDArray[np.float64]  # (depths, candidates)
    width: NDArray[np.int64]  # (depths,) candidates at this depth
    position: NDArray[np.int64]  # (depths,) the next to try
    value: NDArray[np.float64]  # (depths,)
    money: NDArray[np.float64]  # (depths,) cost that is left
    depth: NDArray[np.int64]  # (1,) -1: done
    explored: NDArray[np.int64]  # (1,)
    top_value: NDArray[np.float64]  # (wanted,) descending
    top_set: NDArray[np.int32]  # (wanted, most) nodes, -1 for none


class Found(NamedTuple):
    """What a search came to."""

    sets: list[tuple[list[int], float]]  # nodes (-1: none) and value, best first
    bound: float  # of what was not looked at; -1 if nothing is left
    done: bool
    explored: int


def search_sets(arrays: Arrays, wanted: int, exact_size: bool, limits: Limits) -> Found:
    """Search below the required variables until done, or until a limit is reached."""
    s, p = start_search(arrays, wanted, exact_size), arrays.passes
    block = max(1, min(_NODES_AT_ONCE, _WORK_AT_ONCE // max(len(arrays.candidates), 1)))
    advance(p, s, 0)  # compiles it, which is not the search's time
    limits.restart()
    while s.depth[0] >= 0 and not limits.reached(int(s.explored[0])):
        advance(p, s, int(min(block, limits.sets - int(s.explored[0]))))
    done = bool(s.depth[0] < 0)
    sets = [(s.top_set[i].tolist(), float(s.top_value[i])) for i in range(wanted) if s.top_value[i] >= 0.0]
    return Found(sets, -1.0 if done else float(remaining_bound(s)), done, int(s.explored[0]))


def start_search(arrays: Arrays, wanted: int, exact_size: bool) -> Search:
    """A search below the required variables."""
    candidates, cost, most = arrays.candidates, arrays.cost, arrays.most
    depths, columns = most + 1, max(len(candidates), 1)
    search = Search(
        most,
        exact_size,
        bool(np.all(cost[candidates] == cost[candidates[:1]])),
        cost,
        arrays.group,
        np.zeros(arrays.group_count + 1, dtype=np.bool_),
        np.zeros((depths, columns), dtype=np.int32),
        np.zeros((depths, columns)),
        np.zeros(depths, dtype=np.int64),
        np.zeros(depths, dtype=np.int64),
        np.zeros(depths),
        np.full(depths, arrays.money),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.full(wanted, -1.0),
        np.full((wanted, max(most, 1)), -1, dtype=np.int32),
    )
    search.candidate[0, : len(candidates)] = candidates
    search.width[0] = len(candidates)
    begin(arrays.passes, search)
    return search


@kernel
def begin(p: Any, s: Any) -> None:
    s.value[0] = full_pass(p)
    settle(p, s, 0, s.width[0])


@kernel
def settle(p: Any, s: Any, k: int, count: int) -> None:
    """At a new set: note it, keep the candidates that still fit, and sort them by gain per cost."""
    s.explored[0] += 1
    kept = 0
    for i in range(count):
        v = s.candidate[k, i]
        fits = s.cost[v] <= s.money[k] and (s.group[v] < 0 or not s.taken[s.group[v]])
        if fits and k < s.most:
            s.candidate[k, kept] = v
            s.gain[k, kept] = gain_of(p, v)
            kept += 1
    s.width[k] = kept
    s.position[k] = 0
    sort_candidates(s, k, kept)
    if not s.exact_size or k == s.most:
        note(s, k)


@kernel
def better(s: Any, k: int, i: int, j: int) -> bool:
    """Whether candidate i comes before j: more gain per cost, then more gain, then the lower node."""
    a, b = s.candidate[k, i], s.candidate[k, j]
    left, right = rate_of(s.gain[k, i], s.cost[a]), rate_of(s.gain[k, j], s.cost[b])
    if left != right:
        return left > right
    if s.gain[k, i] != s.gain[k, j]:
        return s.gain[k, i] > s.gain[k, j]
    return a < b


@kernel
def swap(s: Any, k: int, i: int, j: int) -> None:
    s.candidate[k, i], s.candidate[k, j] = s.candidate[k, j], s.candidate[k, i]
    s.gain[k, i], s.gain[k, j] = s.gain[k, j], s.gain[k, i]


@kernel
def sort_candidates(s: Any, k: int, count: int) -> None:
    """Heapsort in place (no scratch, no allocation), best first."""
    for root in range(count // 2 - 1, -1, -1):
        sift(s, k, root, count)
    for end in range(count - 1, 0, -1):
        swap(s, k, 0, end)
        sift(s, k, 0, end)


@kernel
def sift(s: Any, k: int, root: int, end: int) -> None:
    """Keep the worst on top, so that the sorted order comes out best first."""
    while True:
        low = 2 * root + 1
        if low >= end:
            return
        if low + 1 < end and better(s, k, low, low + 1):
            low += 1
        if not better(s, k, root, low):
            return
        swap(s, k, root, low)
        root = low


@kernel
def bound(s: Any, k: int) -> float:
    """The most that any set below depth k can be worth, with the candidates not yet tried."""
    fractional, money, largest, full = s.value[k], s.money[k], 0.0, False
    for i in range(s.position[k], s.width[k]):
        gain, cost = s.gain[k, i], s.cost[s.candidate[k, i]]
        largest = max(largest, gain)
        if not full:
            if cost <= money:
                fractional += gain
                money -= cost
            else:
                fractional += gain * money / cost
                full = True
        elif s.uniform:
            break  # equal costs: the first gain was the largest
    return min(fractional, s.value[k] + (s.most - k) * largest)


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


@kernel
def advance(p: Any, s: Any, nodes: int) -> None:
    """Go on for so many sets, or until the search is done (depth -1)."""
    stop = s.explored[0] + nodes
    k = s.depth[0]
    while k >= 0 and s.explored[0] < stop:
        i = s.position[k]
        if i >= s.width[k] or bound(s, k) <= s.top_value[len(s.top_value) - 1] + TOLERANCE:
            k -= 1
            if k >= 0:
                leave(p, s, k)
                s.position[k] += 1
            continue
        v = s.candidate[k, i]
        s.value[k + 1] = toggle(p, v)
        if s.group[v] >= 0:
            s.taken[s.group[v]] = True
        s.money[k + 1] = s.money[k] - s.cost[v]
        rest = s.width[k] - i - 1
        for j in range(rest):
            s.candidate[k + 1, j] = s.candidate[k, i + 1 + j]
        k += 1
        settle(p, s, k, rest)
    s.depth[0] = k


@kernel
def leave(p: Any, s: Any, k: int) -> None:
    """Set free the variable that led from depth k to k + 1."""
    v = s.candidate[k, s.position[k]]
    toggle(p, v)
    if s.group[v] >= 0:
        s.taken[s.group[v]] = False


@kernel
def remaining_bound(s: Any) -> float:
    """The most that a set not yet looked at can be worth; that of the best known one when the search is done."""
    most = s.top_value[len(s.top_value) - 1]
    for k in range(s.depth[0] + 1):
        most = max(most, bound(s, k))
    return most
