"""The sets to choose from, walked so that neighbours share work.

Where the budget is the only rule: sets of exactly K relevant controllable variables (those with a path to the target;
all of them if there are fewer than K). With more rules: the allowed sets to which nothing can be added. Either way in
lexicographic order. Every objective here is a pass over the target's ancestors in topological order: what was computed
for the variables before the first one on which a set differs from the set before it stays valid, and only the rest is
computed again.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.errors import InferenceError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.oracle.exhaustive import MANY, allowed_sets, capped_comb, count_sets, full_size_only
from dobandit.oracle.problem import Problem

MOST_SETS = 2_000_000
_MOST_RULED_SETS = 200_000  # where rules beyond the budget are checked set by set
# Values this close (relative, at least absolute) are ties: rounding must not choose for us.
TIE = 1e-9


class SetTree(NamedTuple):
    """The target's ancestors in topological order, the target last, and sets of them."""

    order: NDArray[np.int64]  # (depths,) ids
    sets: NDArray[np.int32]  # (count, size) ids; 0 for none
    member: NDArray[np.int64]  # (count, size) where in `order` a set's variables stand, ascending; depths for none
    first: NDArray[np.int64]  # (count,) depth from which a set differs from the one before it
    values: NDArray[np.float64]  # (count,) scratch


def set_tree(graph: CausalGraph, rules: Problem | int) -> SetTree:
    """The sets that `rules` (or a mere budget) allow."""
    order = [graph.index(name) for name in graph.ancestors(graph.target)] + [graph.index(graph.target)]
    return tree_of_sets(order, sets_allowed(graph, rules, set(order)))


def tree_of_sets(order: list[int], sets: NDArray[np.int32]) -> SetTree:
    """A tree of given sets; rows that hold relevant variables in lexicographic order share the most work."""
    depths = len(order)
    place = np.full(max([*order, int(sets.max(initial=0))]) + 1, depths, dtype=np.int64)
    place[order] = np.arange(depths)
    member = np.sort(place[sets], axis=1)
    ranking = np.lexsort(member.T[::-1]) if member.shape[1] else np.arange(len(sets))
    sets, member = np.ascontiguousarray(sets[ranking]), np.ascontiguousarray(member[ranking])
    first = np.zeros(len(sets), dtype=np.int64)
    if member.shape[1]:
        differs = member[1:] != member[:-1]
        lower = np.where(differs, np.minimum(member[1:], member[:-1]), depths)
        first[1:] = lower.min(axis=1)
    return SetTree(np.array(order, dtype=np.int64), sets, member, first, np.zeros(len(sets)))


def sets_allowed(graph: CausalGraph, rules: Problem | int, relevant: set[int] | None = None) -> NDArray[np.int32]:
    """Every set worth looking at, a row each; of variables outside `relevant` only the required ones."""
    rules = rules if isinstance(rules, Problem) else Problem(rules)
    candidates = tuple(name for name in rules.candidates(graph) if relevant is None or graph.index(name) in relevant)
    required = [graph.index(name) for name in rules.required]
    if full_size_only(rules, candidates):
        chosen = all_sets([graph.index(name) for name in candidates], rules.most(candidates))
        return np.sort(np.hstack([np.tile(np.array(required, dtype=np.int32), (len(chosen), 1)), chosen]), axis=1)
    count = count_sets(rules, candidates)
    if count > _MOST_RULED_SETS:
        raise InferenceError(
            f"there are up to {_shown(count)} sets of {len(candidates)} variables, and with costs or exclusive groups "
            f"they are listed only up to {_MOST_RULED_SETS:,}. Give region='boxed' (branch and bound, for linear "
            "models), lower the budget, or make fewer variables controllable."
        )
    rows = [
        sorted([*required, *map(graph.index, names)])
        for names in allowed_sets(rules, candidates)
        if not any(other not in names and rules.allows([*names, other]) for other in candidates)
    ]
    width = max(map(len, rows))
    return np.array([row + [0] * (width - len(row)) for row in rows], dtype=np.int32).reshape(len(rows), width)


def all_sets(ids: list[int], size: int) -> NDArray[np.int32]:
    """Every set of `size` out of `ids`, a row each, in lexicographic order."""
    count = capped_comb(len(ids), size)
    if count > MOST_SETS:
        raise InferenceError(
            f"there are {_shown(count)} sets of {size} out of {len(ids)} variables, and looking at each of them is "
            f"done only up to {MOST_SETS:,}. Lower the budget, or make fewer variables controllable."
        )
    flat = np.fromiter((i for chosen in combinations(ids, size) for i in chosen), dtype=np.int32, count=count * size)
    return flat.reshape(count, size)


def _shown(count: int) -> str:
    return f"{count:,} or more" if count == MANY else f"{count:,}"


@inlined
def members_before(member: Any, i: int, depth: int) -> int:
    """How many variables of set i stand before `depth`."""
    count = 0
    while count < member.shape[1] and member[i, count] < depth:
        count += 1
    return count


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
