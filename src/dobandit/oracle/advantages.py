"""By how much one action can be better than another at most, where both share the nodes that nobody knows well.

low(v), high(v): the interval of P(X = 1 | parents' pattern v).  s, r: states of two copies of the frontier, one under
action i, one under action j.  The copies meet the same chances: with p and q the probabilities of X = 1 in them, both
are 1 with min(p, q), both 0 with 1 - max(p, q), and they part with |p - q|.
    A(s, r) = max over p, q of  min(p, q) A(11) + max(p - q, 0) A(10) + max(q - p, 0) A(01) + (1 - max(p, q)) A(00),
p in the interval of s's pattern, q in that of r's, p = q where the patterns are the same; A(yy') = y - y' at the end.
If every interval holds its probability, E[Y | do(i)] - E[Y | do(j)] <= A at the start: by induction, as the true p and
q are among those compared. And A(s, r) <= highest(s) - lowest(r) of `oracle.anytime_values`, again by induction, so
that this is never worse than comparing the ends of two intervals. Where the copies agree and nothing more is set, it is
0.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.oracle.anytime_values import AnytimeValues
from dobandit.oracle.listing import hold

WIDEST = 64  # states of a frontier: pairs of them are looked at


class Advantages(NamedTuple):
    """Scratch: what two actions hold each node of the order to (NaN: free), and A of pairs of states, of two depths in
    turn. Without pairs the frontier is too wide, and the ends of intervals are compared."""

    mine: NDArray[np.float64]  # (depths,)
    other: NDArray[np.float64]  # (depths,)
    pairs: NDArray[np.float64]  # (2, widest * widest)


def advantages_of(bounds: AnytimeValues) -> Advantages:
    """Scratch for the actions of an oracle."""
    depths, widest = len(bounds.listing.order), int(np.diff(bounds.frontier.state_ptr).max())
    room = widest * widest if widest <= WIDEST else 0
    return Advantages(np.zeros(depths), np.zeros(depths), np.zeros((2, room)))


@inlined
def worst_pair(low: float, high: float, low2: float, high2: float, ahead: Any) -> float:
    """The largest of what p in [low, high] and q in [low2, high2] make: linear on both sides of p = q, so that the
    corners, and the ends of the diagonal, are enough. ahead: A(11), A(10), A(01), A(00)."""
    best = -math.inf
    for corner in range(6):
        p = low if corner % 2 == 0 else high
        q = low2 if corner < 2 else high2
        if corner == 4:
            p = q = max(low, low2)
        elif corner == 5:
            p = q = min(high, high2)
        if corner >= 4 and max(low, low2) > min(high, high2):
            continue
        both = min(p, q)
        value = both * ahead[0] + (p - both) * ahead[1] + (q - both) * ahead[2] + (1.0 - max(p, q)) * ahead[3]
        best = max(best, value)
    return best


@inlined
def pass_back(bounds: Any, work: Any, depth: int, apart: bool, settled: bool) -> None:
    """A of the pairs of states at `depth`. apart: the copies may be in different states; settled: nothing is set
    differently from here on."""
    frontier, last = bounds.frontier, depth == len(bounds.listing.order) - 1
    here, after, base = frontier.state_ptr[depth], frontier.state_ptr[depth + 1], frontier.table_ptr[depth]
    size, next_size = after - here, frontier.state_ptr[depth + 2] - after
    now, then = work.pairs[depth % 2], work.pairs[1 - depth % 2]
    for s in range(here, after):
        for r in range(here if apart else s, after if apart else s + 1):
            at = (s - here) * size + (r - here)
            if s == r and settled:
                now[at] = 0.0
                continue
            one, zero, one2, zero2 = (
                frontier.states["one"][s],
                frontier.states["zero"][s],
                frontier.states["one"][r],
                frontier.states["zero"][r],
            )
            ahead = (0.0, 1.0, -1.0, 0.0)
            if not last:
                ahead = (
                    then[one * next_size + one2],
                    then[one * next_size + zero2],
                    then[zero * next_size + one2],
                    then[zero * next_size + zero2],
                )
            p, q = work.mine[depth], work.other[depth]
            v, w = base + frontier.states["pattern"][s], base + frontier.states["pattern"][r]
            if v == w and math.isnan(p) and math.isnan(q):
                both = ahead[0] - ahead[3]
                now[at] = ahead[3] + both * (bounds.high[v] if both >= 0.0 else bounds.low[v])
                continue
            low, high = (bounds.low[v], bounds.high[v]) if math.isnan(p) else (p, p)
            low2, high2 = (bounds.low[w], bounds.high[w]) if math.isnan(q) else (q, q)
            now[at] = worst_pair(low, high, low2, high2, ahead)


@kernel
def advantage(bounds: Any, work: Any, fixed: Any, i: int, j: int) -> float:
    """The most that E[Y | do(i)] - E[Y | do(j)] can be, from the pattern intervals as they stand."""
    if work.pairs.shape[1] == 0:
        return bounds.listing.values[i] - bounds.lower[j]
    hold(bounds.listing, i, 0, fixed, work.mine)
    hold(bounds.listing, j, 0, fixed, work.other)
    depths = len(work.mine)
    first, last = depths, -1
    for depth in range(depths):
        p, q = work.mine[depth], work.other[depth]
        if not (p == q or (math.isnan(p) and math.isnan(q))):
            first, last = min(first, depth), depth
    if last < 0:
        return 0.0
    for depth in range(depths - 1, -1, -1):
        pass_back(bounds, work, depth, depth > first, depth > last)
    return work.pairs[0, 0]
