"""The greedy set of a known model, with its guarantee.

Linear models: every step takes the variable with the largest gain (per cost, if there are costs); all gains
come from two passes, and after a step only what it changed is computed again. E[Y | do(S)] is monotone and submodular,
so for a budget K the set is worth at least 1 - 1/e of the best (Nemhauser et al. 1978). With costs the better of the
greedy set and the best single variable is worth at least (1 - 1/e) / 2 of the best (Leskovec et al. 2007).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.oracle.passes import Passes, full_pass, gain_of, toggle

FACTOR = 1.0 - 1.0 / math.e
COST_FACTOR = FACTOR / 2.0


@kernel
def greedy_steps(
    p: Any, candidates: Any, most: int, cost: Any, money: float, group: Any, taken: Any, chosen: Any
) -> int:
    """Fill `chosen` with the variables in the order taken; returns how many."""
    full_pass(p)
    count = 0
    while count < most:
        best, rate = -1, 0.0
        for i in range(len(candidates)):
            v = candidates[i]
            if p.is_set[v] or cost[v] > money * (1.0 + 1e-12) or (group[v] >= 0 and taken[group[v]]):
                continue
            gain = gain_of(p, v)
            gain = gain / cost[v] if cost[v] > 0.0 else gain * 1e300
            if best < 0 or gain > rate:
                best, rate = v, gain
        if best < 0:
            break
        toggle(p, best)
        money -= cost[best]
        if group[best] >= 0:
            taken[group[best]] = True
        chosen[count] = best
        count += 1
    return count


def best_single(p: Passes, candidates: NDArray[np.int32], cost: NDArray[np.float64], money: float) -> int:
    """The affordable variable with the largest gain at the present set, or -1."""
    affordable = candidates[cost[candidates] <= money * (1.0 + 1e-12)]
    if not len(affordable):
        return -1
    gains = (1.0 - p.means[affordable]) * p.paths[affordable]
    return int(affordable[int(np.argmax(gains))])
