"""The best sets of a known model by looking at all of them: for any link, and the truth that others are tested by."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import combinations

from dobandit.errors import InferenceError
from dobandit.model.bglm import WeightedModel
from dobandit.model.inference import expect
from dobandit.oracle.problem import Problem

MOST_SETS = 1_000_000


def count_sets(problem: Problem, candidates: tuple[str, ...]) -> int:
    """How many sets `allowed_sets` goes through, at most."""
    most = problem.most(candidates)
    if problem.total_cost is None and not problem.exclusive:
        return math.comb(len(candidates), most)
    return sum(math.comb(len(candidates), size) for size in range(most + 1))


def allowed_sets(problem: Problem, candidates: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The sets worth looking at: one more variable never lowers E[Y] (paper, Appendix G), so where the budget is the
    only rule sets of full size are enough."""
    most = problem.most(candidates)
    if problem.total_cost is None and not problem.exclusive:
        yield from combinations(candidates, most)
        return
    for size in range(most, -1, -1):
        yield from (chosen for chosen in combinations(candidates, size) if problem.allows(chosen))


def best_by_enumeration(
    model: WeightedModel, problem: Problem, candidates: tuple[str, ...], wanted: int
) -> tuple[list[tuple[float, tuple[str, ...]]], bool, int]:
    """(the best sets with values, best first; whether values are exact; sets looked at). The first of equals wins."""
    count = count_sets(problem, candidates)
    if count > MOST_SETS:
        raise InferenceError(
            f"there are {count:,} sets of {len(candidates)} variables; all of them are looked at only up to "
            f"{MOST_SETS:,}. Lower the budget, or make fewer variables controllable."
        )
    exact, looked = True, 0
    best: list[tuple[float, int, tuple[str, ...]]] = []
    for chosen in allowed_sets(problem, candidates):
        answer = expect(model, (*problem.required, *chosen))
        exact = exact and answer.samples == 0
        entry = (round(answer.value, 12), -looked, chosen)
        looked += 1
        if len(best) < wanted:
            heapq.heappush(best, entry)
        else:
            heapq.heappushpop(best, entry)
    ordered = sorted(best, reverse=True)
    return [(expect(model, (*problem.required, *chosen)).value, chosen) for _, _, chosen in ordered], exact, looked
