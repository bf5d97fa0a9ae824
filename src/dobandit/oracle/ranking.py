"""Candidates in the order of what they promise, and the list of the best: what a depth-first search keeps in its stack.

A search has `candidate` and `gain` (depths, candidates), `cost` by candidate, `position` and `value` by depth, and
`top_value` and `top_set`, best first.
"""

from __future__ import annotations

from typing import Any

from dobandit.compiled import kernel
from dobandit.oracle.greedy import rate_of

# Values must differ by more than rounding to count as better.
TOLERANCE = 1e-12


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
