"""The sets to choose from, walked so that neighbours share work.

Sets of exactly K relevant controllable variables (those with a path to the target; all of them if there are fewer
than K), in lexicographic order. Every objective here is a pass over the target's ancestors in topological order, so
sets are the leaves of a tree that decides one variable after another, `set` before `not set`: what was computed for
the variables already decided stays valid, and going to the next set redoes only what lies behind the last change.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.errors import InferenceError
from dobandit.graph.causal_graph import CausalGraph

MOST_SETS = 2_000_000
# Values this close (relative, at least absolute) are ties: rounding must not choose for us.
TIE = 1e-9


class SetTree(NamedTuple):
    """The target's ancestors in topological order, the target last, and which of them may be set."""

    order: NDArray[np.int64]  # (depths,) ids
    settable: NDArray[np.bool_]  # (depths,)
    ahead: NDArray[np.int64]  # (depths + 1,) settable ones at this depth and beyond
    size: int
    sets: NDArray[np.int32]  # (count, size) ids, lexicographic
    # scratch
    decision: NDArray[np.int64]  # (depths,) 0 open, 1 set, 2 not set
    values: NDArray[np.float64]  # (count,)


def set_tree(graph: CausalGraph, budget: int) -> SetTree:
    order = [graph.index(name) for name in graph.ancestors(graph.target)] + [graph.index(graph.target)]
    relevant = [i for i in graph.arrays.controllable.tolist() if i in set(order)]
    size = min(budget, len(relevant))
    sets = all_sets(relevant, size)
    settable = np.isin(order, relevant)
    ahead = np.concatenate([np.cumsum(settable[::-1])[::-1], [0]]).astype(np.int64)
    return SetTree(
        np.array(order, dtype=np.int64),
        settable,
        ahead,
        size,
        sets,
        np.zeros(len(order), dtype=np.int64),
        np.zeros(len(sets)),
    )


def all_sets(ids: list[int], size: int) -> NDArray[np.int32]:
    """Every set of `size` out of `ids`, a row each, in lexicographic order."""
    count = math.comb(len(ids), size)
    if count > MOST_SETS:
        raise InferenceError(
            f"there are {count:,} sets of {size} out of {len(ids)} variables, and looking at each of them is done "
            f"only up to {MOST_SETS:,}. Lower the budget, or make fewer variables controllable."
        )
    flat = np.fromiter((i for chosen in combinations(ids, size) for i in chosen), dtype=np.int32, count=count * size)
    return flat.reshape(count, size)


@inlined
def decide(settable: Any, decision: Any, depth: int, left: int) -> int:
    """Decide the variable at `depth` if it is open (set it while something is left); returns what is left."""
    if decision[depth] == 0:
        if settable[depth] and left > 0:
            decision[depth] = 1
            left -= 1
        else:
            decision[depth] = 2
    return left


@inlined
def go_back(ahead: Any, decision: Any, left: int) -> tuple[int, int]:
    """From a leaf to the last variable that can turn to `not set`: (its depth, what is left); -1 at the end."""
    depth = len(decision) - 1
    while depth >= 0:
        if decision[depth] == 1:
            left += 1
            if ahead[depth + 1] >= left:
                decision[depth] = 2
                return depth, left
        decision[depth] = 0
        depth -= 1
    return -1, left


@kernel
def pick(values: Any, uniform: float) -> int:
    """The index of the largest value; ties are broken by the given uniform number."""
    best = values[0]
    for i in range(1, len(values)):
        best = max(best, values[i])
    floor = best - TIE * max(1.0, abs(best))
    ties = 0
    for i in range(len(values)):
        if values[i] >= floor:
            ties += 1
    wanted = min(int(uniform * ties), ties - 1)
    for i in range(len(values)):
        if values[i] >= floor:
            if wanted == 0:
                return i
            wanted -= 1
    return 0
