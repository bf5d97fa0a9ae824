"""The best sets of a known model by looking at all of them: for any link, and the truth that others are tested by."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from dobandit.errors import InferenceError
from dobandit.model.bglm import WeightedModel
from dobandit.model.inference import expect
from dobandit.oracle.problem import Problem

MOST_SETS = 1_000_000
MANY = 10**18


class Limits:
    """When an oracle stops: after so many seconds, or so many sets looked at."""

    def __init__(self, seconds: float | None = None, sets: int | None = None) -> None:
        self.seconds = math.inf if seconds is None else float(seconds)
        self.sets = math.inf if sets is None else int(sets)
        self.restart()

    def restart(self) -> None:
        """Time counts from now."""
        self.start = time.perf_counter()

    def reached(self, looked: int) -> bool:
        return looked >= self.sets or time.perf_counter() - self.start >= self.seconds


def count_sets(problem: Problem, candidates: tuple[str, ...]) -> int:
    """How many sets `allowed_sets` goes through, at most; counting stops at `MANY`."""
    most = problem.most(candidates)
    if full_size_only(problem, candidates):
        return capped_comb(len(candidates), most)
    total = term = 1
    for size in range(most):
        term = term * (len(candidates) - size) // (size + 1)
        total += term
        if total >= MANY:
            return MANY
    return total


def capped_comb(n: int, k: int) -> int:
    """n choose k, at most `MANY`: beyond, it has too many digits to print, and to compute in time."""
    term = 1 if k <= n else 0
    for size in range(min(k, n - k)):
        term = term * (n - size) // (size + 1)
        if term >= MANY:
            return MANY
    return term


def full_size_only(problem: Problem, candidates: tuple[str, ...]) -> bool:
    """Whether the budget is the only rule: one more variable never lowers E[Y] (paper, Appendix G), so that sets of
    full size are enough."""
    return problem.total_cost is None and not problem.groups(candidates)


def _sets(problem: Problem, candidates: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Of every size that is worth looking at, allowed or not."""
    most = problem.most(candidates)
    for size in range(most, most - 1 if full_size_only(problem, candidates) else -1, -1):
        yield from combinations(candidates, size)


def allowed_sets(problem: Problem, candidates: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The sets worth looking at."""
    if full_size_only(problem, candidates):
        return _sets(problem, candidates)
    return (chosen for chosen in _sets(problem, candidates) if problem.allows(chosen))


class Enumeration(NamedTuple):
    best: list[tuple[float, tuple[str, ...]]]  # (value, set), best first; the first of equals wins
    proved: bool  # whether all sets were looked at, with exact values
    looked: int


def best_by_enumeration(
    model: WeightedModel, problem: Problem, candidates: tuple[str, ...], wanted: int, limits: Limits | None = None
) -> Enumeration:
    """The best sets; those found so far where a limit stops the search, at least one."""
    count, limits = count_sets(problem, candidates), limits or Limits()
    if count > MOST_SETS:
        raise InferenceError(
            f"there are {count:,}{' or more' if count == MANY else ''} sets of {len(candidates)} variables; all of "
            f"them are looked at only up to {MOST_SETS:,}. Lower the budget, make fewer variables controllable, or use "
            "another oracle."
        )
    proved, looked = True, 0
    best: list[tuple[float, int, tuple[str, ...], float]] = []
    for chosen in _sets(problem, candidates):
        if limits.reached(looked):
            proved = False
            break
        if not problem.allows(chosen):
            continue
        answer = expect(model, (*problem.required, *chosen))
        proved = proved and answer.samples == 0
        entry = (round(answer.value, 12), -looked, chosen, answer.value)
        looked += 1
        if len(best) < wanted:
            heapq.heappush(best, entry)
        else:
            heapq.heappushpop(best, entry)
    if not best:  # stopped before the first allowed set
        chosen = _some_set(problem, candidates)
        best.append((0.0, 0, chosen, expect(model, (*problem.required, *chosen)).value))
    return Enumeration([(value, chosen) for _, _, chosen, value in sorted(best, reverse=True)], proved, looked)


def _some_set(problem: Problem, candidates: tuple[str, ...]) -> tuple[str, ...]:
    """An allowed set to which nothing can be added."""
    chosen: list[str] = []
    for name in candidates:
        if problem.allows([*chosen, name]):
            chosen.append(name)
    return tuple(chosen)
