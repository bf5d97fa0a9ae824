"""By how much one action can be better than another at most, where both share the nodes that nobody knows well.

low(v), high(v): the interval of P(X = 1 | parents' pattern v).  s, r: states of two copies of the frontier, one under
action i, one under action j.  The copies meet the same chances: with p and q the probabilities of X = 1 in them, both
are 1 with min(p, q), both 0 with 1 - max(p, q), and they part with |p - q|.
    A(s, r) = max over p, q of  min(p, q) A(11) + max(p - q, 0) A(10) + max(q - p, 0) A(01) + (1 - max(p, q)) A(00),
p in the interval of s's pattern, q in that of r's, p = q where the patterns are the same; A(yy') = y - y' at the end.
If every interval holds its probability, E[Y | do(i)] - E[Y | do(j)] <= A at the start: by induction, as the true p and
q are among those compared. And A(s, r) <= highest(s) - lowest(r) of `oracle.interval_pass`, again by induction, so
that this is never worse than comparing the ends of two intervals. Where the copies agree and nothing more is set, it is
0.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.kernels import inlined, kernel
from dobandit.oracle.action_list import held_at
from dobandit.oracle.interval_pass import IntervalPass

WIDEST = 64  # states of a frontier: pairs of them are looked at


class PairScratch(NamedTuple):
    """What two actions hold each node of the order to (NaN: free), and A of pairs of states, of two depths in turn.
    Without pairs the frontier is too wide, and the ends of intervals are compared."""

    mine: NDArray[np.float64]  # (depths,)
    other: NDArray[np.float64]  # (depths,)
    pairs: NDArray[np.float64]  # (2, widest * widest)


def pair_scratch(plan: IntervalPass) -> PairScratch:
    """Scratch for the actions of a plan."""
    depths, widest = len(plan.actions.order), int(np.diff(plan.steps["state"], axis=1).max())
    room = widest * widest if widest <= WIDEST else 0
    return PairScratch(np.zeros(depths), np.zeros(depths), np.zeros((2, room)))


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
def compare_states(
    steps: Any, states: Any, low: Any, high: Any, pairs: Any, depth: int, p: float, q: float, apart: bool, settled: bool
) -> None:
    """A of the pairs of states at `depth`, where the copies hold the node to p and q (NaN: free). apart: the copies may
    be in different states; settled: nothing is set differently from here on."""
    last, now, then = depth == len(steps) - 3, depth % 2, 1 - depth % 2
    here, after, base = steps[depth]["state"], steps[depth + 1]["state"], steps[depth]["table"]
    size, next_size = after - here, steps[depth + 2]["state"] - after
    for s in range(here, after):
        for r in range(here if apart else s, after if apart else s + 1):
            at = (s - here) * size + (r - here)
            if s == r and settled:
                pairs[now, at] = 0.0
                continue
            one, zero = states[s]["one"] * next_size, states[s]["zero"] * next_size
            one2, zero2 = states[r]["one"], states[r]["zero"]
            ahead = (0.0, 1.0, -1.0, 0.0)
            if not last:
                ahead = (
                    pairs[then, one + one2], pairs[then, one + zero2], pairs[then, zero + one2],
                    pairs[then, zero + zero2],
                )  # fmt: skip
            v, w = base + states[s]["pattern"], base + states[r]["pattern"]
            if v == w and math.isnan(p) and math.isnan(q):
                both = ahead[0] - ahead[3]
                pairs[now, at] = ahead[3] + both * (high[v] if both >= 0.0 else low[v])
                continue
            least, most = (low[v], high[v]) if math.isnan(p) else (p, p)
            least2, most2 = (low[w], high[w]) if math.isnan(q) else (q, q)
            pairs[now, at] = worst_pair(least, most, least2, most2, ahead)


@kernel
def advantage(plan: Any, work: Any, fixed: Any, i: int, j: int) -> float:
    """The most that E[Y | do(i)] - E[Y | do(j)] can be, from the pattern intervals as they stand."""
    actions, mine, other, pairs = plan.actions, work.mine, work.other, work.pairs
    regime = actions.scores[i]["regime"]
    if pairs.shape[1] == 0 or actions.scores[j]["regime"] != regime:
        return actions.scores[i]["high"] - actions.scores[j]["low"]
    held, order, depths = actions.held, actions.order, len(actions.order)
    first, last, at, at2 = depths, -1, 0, 0
    for depth in range(depths):
        mine[depth], at = held_at(held, i, depth, at, fixed[order[depth]])
        other[depth], at2 = held_at(held, j, depth, at2, fixed[order[depth]])
        p, q = mine[depth], other[depth]
        if not (p == q or (math.isnan(p) and math.isnan(q))):
            first, last = min(first, depth), depth
    if last < 0:
        return 0.0
    for depth in range(depths - 1, -1, -1):
        p, q = mine[depth], other[depth]
        compare_states(
            plan.steps[regime], plan.states, plan.low, plan.high, pairs, depth, p, q, depth > first, depth > last
        )
    return pairs[0, 0]
