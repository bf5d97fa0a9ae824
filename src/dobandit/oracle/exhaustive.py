"""The best set of a known model by looking at all of them.

Setting one more variable to 1 never lowers E[Y] (paper, Appendix G), so sets of exactly K are enough.
"""

from __future__ import annotations

import math
import time
from itertools import combinations

from dobandit.errors import InferenceError
from dobandit.model.bglm import WeightedModel
from dobandit.model.inference import expect
from dobandit.oracle.problem import OracleResult, require_budget

_MOST_SETS = 1_000_000


def solve(model: WeightedModel, budget: int) -> OracleResult:
    """The set of `budget` controllable variables with the largest E[Y | do(set = 1)]; ties go to the first.

    >>> from dobandit import paper
    >>> solve(paper.G1, budget=3).set
    ('X3', 'X4', 'X5')
    """
    budget = require_budget(model.graph, budget)
    settable = model.graph.controllable
    count = math.comb(len(settable), budget)
    if count > _MOST_SETS:
        raise InferenceError(
            f"there are {count:,} sets of {budget} out of {len(settable)} variables; all of them are looked at only "
            f"up to {_MOST_SETS:,}. Lower the budget, or make fewer variables controllable."
        )
    start = time.perf_counter()
    best: tuple[str, ...] = ()
    value, error = -1.0, 0.0
    for chosen in combinations(settable, budget):
        answer = expect(model, chosen)
        if answer.value > value + 1e-12:
            best, value, error = chosen, answer.value, answer.standard_errors.get(model.target, 0.0)
    exact = error == 0.0
    return OracleResult(
        set=best,
        value=value,
        bound=value if exact else 1.0,
        status="optimal" if exact else "approximate",
        oracle="exhaustive",
        seconds=time.perf_counter() - start,
    )
