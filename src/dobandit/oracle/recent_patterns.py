"""g of single patterns, for nodes with too many parents for a table of all of them.

Where sets are compared in the same sampled world, most of them leave a node with a pattern that another set had there
already: 780 pairs of 40 parents of which half are 1 by themselves make some 200 patterns. What was worked out lately is
looked up. It is the same number, to the last bit, since it depends on nothing but the pattern.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.model.link_kernels import link_value

_SLOTS = 4096  # a power of 2; a few times the patterns of a node in one world
_BITS = 31  # of a word: products of two such numbers fit in 64, so that nothing overflows, compiled or not


class RecentPatterns(NamedTuple):
    """A slot holds the last pattern that fell to it. It is of no use in another round, or at another node: then its
    stamp is another one."""

    stamp: NDArray[np.int64]  # (slots,)
    pattern: NDArray[np.int64]  # (slots, words) bit by bit, which parents are 1
    value: NDArray[np.float64]  # (slots,)
    wanted: NDArray[np.int64]  # (words,) scratch: the pattern in question
    ones: NDArray[np.int64]  # (D,) scratch: the parents that are 1 in it
    clock: NDArray[np.int64]  # (1,) rounds


def recent_patterns(widest: int, needed: bool) -> RecentPatterns:
    """Room for the patterns of nodes with at most `widest` parents."""
    slots, words = _SLOTS if needed else 1, widest // _BITS + 1
    return RecentPatterns(
        np.full(slots, -1, dtype=np.int64),
        np.zeros((slots, words), dtype=np.int64),
        np.zeros(slots),
        np.zeros(words, dtype=np.int64),
        np.zeros(max(widest, 1), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@kernel
def optimistic_probability(links: Any, v: int, lin: float, quad: float, rho: float) -> float:
    """min(1, f(lin + rho sqrt(quad))), not below 0."""
    return min(max(link_value(links, v, lin + rho * math.sqrt(max(quad, 0.0))), 0.0), 1.0)


@kernel
def read_pattern(layout: Any, recent: Any, world: Any, v: int) -> int:
    """Leave v's pattern in `wanted`, and its parents that are 1 in `ones`; returns how many these are."""
    start, count = layout.ptr[v], 0
    for word in range(len(recent.wanted)):
        recent.wanted[word] = 0
    for j in range(layout.ptr[v + 1] - start):
        if world[layout.parent[start + j]] > 0.5:
            recent.wanted[j // _BITS] |= 1 << (j % _BITS)
            recent.ones[count] = j
            count += 1
    return count


@kernel
def slot_of(recent: Any) -> int:
    """Where the wanted pattern is held, if it is."""
    key = 0
    for word in range(len(recent.wanted)):
        key = ((key ^ recent.wanted[word]) * 1640531527) & 0x7FFFFFFF
        key ^= key >> 15
    return int(key & (len(recent.stamp) - 1))


@kernel
def pattern_probability(
    layout: Any, links: Any, recent: Any, world: Any, theta: Any, inverse: Any, rho: float, v: int, stamp: int
) -> float:
    """g_v at the values that v's parents have in `world`."""
    count, slot = read_pattern(layout, recent, world, v), slot_of(recent)
    held = recent.stamp[slot] == stamp
    for word in range(len(recent.wanted)):
        held = held and recent.pattern[slot, word] == recent.wanted[word]
    if not held:
        start, at = layout.ptr[v], layout.square[v]
        d = layout.ptr[v + 1] - start
        lin = quad = 0.0
        for i in range(count):
            lin += theta[start + recent.ones[i]]
            base = at + recent.ones[i] * d
            for j in range(count):
                quad += inverse[base + recent.ones[j]]
        recent.stamp[slot], recent.value[slot] = stamp, optimistic_probability(links, v, lin, quad, rho)
        for word in range(len(recent.wanted)):
            recent.pattern[slot, word] = recent.wanted[word]
    return recent.value[slot]
