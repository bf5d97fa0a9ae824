"""The best actions of a known model by looking at all: for any link, and the truth that others are tested by."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from dobandit.errors import InferenceError
from dobandit.model.base import CausalModel
from dobandit.model.bglm import WeightedModel
from dobandit.model.inference import linear_means, target_value
from dobandit.oracle.actions import MANY, Action, Allowed

if TYPE_CHECKING:
    from dobandit.oracle.solve import Limits

MOST_SETS = 1_000_000


def best_by_enumeration(
    model: CausalModel, allowed: Allowed, wanted: int, limits: Limits
) -> tuple[list[tuple[Action, float]], bool, int]:
    """(the best actions with their values, best first, of equals the first; whether all were looked at, with exact
    values; how many were). Where a limit stops the search, those found so far, at least one."""
    count = allowed.count()
    if count > MOST_SETS:
        raise InferenceError(
            f"there are {count:,}{' or more' if count == MANY else ''} sets of {len(allowed.candidates)} variables; "
            f"all of them are looked at only up to {MOST_SETS:,}. Lower the budget, make fewer variables controllable, "
            "or use another oracle."
        )
    value_of = valuation(model)
    proved, looked = True, 0
    best: list[tuple[float, int, Action, float]] = []
    for action in worth_looking_at(allowed):
        if best and limits.reached(looked):
            proved = False
            break
        value, exact = value_of(action)
        proved = proved and exact
        entry = (round(value, 12), -looked, action, value)
        looked += 1
        if len(best) < wanted:
            heapq.heappush(best, entry)
        else:
            heapq.heappushpop(best, entry)
    return [(action, value) for _, _, action, value in sorted(best, reverse=True)], proved, looked


def worth_looking_at(allowed: Allowed) -> Iterator[Action]:
    """Every allowed action; where the rules say that smaller ones do not count, those to which nothing can be added."""
    if allowed.rules.smaller is False and not allowed.budget_alone:
        return (action for action in allowed.every() if not allowed.can_grow(action))
    return allowed.every()


def valuation(model: CausalModel) -> Callable[[Action], tuple[float, bool]]:
    """E[Y] of an action, and whether it is exact."""
    free = np.full(len(model.graph) + 1, np.nan)
    free[0] = 1.0
    target = model.graph.arrays.target

    def linear(action: Action) -> tuple[float, bool]:
        return min(max(float(linear_means(cast(WeightedModel, model), action.over(free))[target]), 0.0), 1.0), True

    def by_inference(action: Action) -> tuple[float, bool]:
        return target_value(model, action.named(model.graph))

    return linear if model.is_linear else by_inference
