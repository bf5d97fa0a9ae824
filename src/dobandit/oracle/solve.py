"""`solve`: the best action of a known model, by the oracle that fits.

Names are checked here, and what the oracles find in ids is named again (`task.py`).

auto        a handful of actions: exhaustive; a linear model: branch and bound, or greedy where the search would not fit
            in memory; other links: exhaustive where the actions can be looked at one by one, else greedy
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Unpack

import numpy as np

from dobandit.checks import is_whole, shown, whole_number
from dobandit.errors import DobanditWarning, InferenceError, InterventionError, closest, listed
from dobandit.model.base import CausalModel
from dobandit.oracle.exhaustive import Limits
from dobandit.oracle.result import OracleResult
from dobandit.oracle.rules import Rules, RuleWords, rules_of
from dobandit.oracle.task import Task, allowed_actions

ORACLES = ("auto", "exhaustive", "branch-and-bound", "greedy")
MOST_LISTED = 1_000_000


def solve(
    model: CausalModel,
    budget: int | Rules | None = None,
    *,
    oracle: str = "auto",
    top: int = 1,
    time_limit: float | None = None,
    node_limit: int | None = None,
    **rules: Unpack[RuleWords],
) -> OracleResult:
    """The allowed action with the largest E[Y | do(action)], with a certificate.

    model          what is known: weights, links or tables
    budget, rules  which actions are allowed: the words of `Rules`, or Rules as they are; with these `available` may be
                   said too, where fewer variables can be set now
    oracle         "auto", "exhaustive", "branch-and-bound" (linear models) or "greedy"
    top            how many of the best actions to list in the result (greedy lists one)
    time_limit     seconds, and node_limit actions, after which the best action found is given, with the bound that is
                   left: never less than the greedy one where branch and bound is stopped

    Returns an `OracleResult`. Raises InterventionError where the rules allow nothing, and InferenceError for an oracle
    that does not fit.

    >>> from dobandit import paper
    >>> solve(paper.G1, budget=3).set
    ('X3', 'X4', 'X5')
    >>> solve(paper.G1, budget=2, levers={"X3": (0,)}, require=["X3"]).do
    {'X3': 0, 'X5': 1}
    """
    available = rules.pop("available", None)
    given = rules_of(budget, rules)
    if available is not None:
        now = replace(given, available=available)  # type: ignore[arg-type]
        given = now if given.available is None else given.limited(now.available or ())
    _check(model, oracle, top, time_limit, node_limit)
    _check_values(model, given)
    start = time.perf_counter()
    task = Task(model, given, int(top), Limits(time_limit, node_limit))
    name = task.fitting(oracle)
    if name == "greedy" and top > 1:
        warnings.warn(
            f"greedy lists one set, but the {top} best were asked for. Branch and bound and exhaustive list more.",
            DobanditWarning,
            stacklevel=2,
        )
    answer = {"exhaustive": task.exhaustive, "branch-and-bound": task.branch_and_bound, "greedy": task.greedy}[name]()
    listing = tuple((action.named(model.graph), value) for action, value in answer.best)
    do, value = listing[0]
    status = "optimal" if answer.optimal else "approximate"
    seconds = time.perf_counter() - start
    return OracleResult(do, value, answer.bound, status, name, seconds, answer.factor, answer.explored, listing)


def sizes_in_words(model: CausalModel, rules: Rules) -> str:
    """Which sets `solve` looks at and why, as a sentence for people."""
    allowed = allowed_actions(model, rules)
    which, reason = allowed.sizes_in_words(), allowed.reason_in_words()
    if rules.smaller is None and allowed.full_only and not allowed.budget_alone:  # which are full is found on the way
        which, reason = allowed.sizes_in_words(False), "the rules do not let every set grow to the same size"
    return f"{which}{',' if ',' in which else ''} were looked at, because {reason}"


def _check(model: object, oracle: object, top: object, time_limit: object, node_limit: object) -> None:
    if not isinstance(model, CausalModel):
        raise InferenceError(
            f"the best set is that of a model, but got {type(model).__name__}. "
            "Give a BinaryGLM, a LinearModel or a TableModel."
        )
    if not isinstance(oracle, str) or oracle not in ORACLES:
        raise InferenceError(f"oracle is one of {listed(ORACLES)}, but got {oracle!r}.{closest(oracle, ORACLES)}")
    if not is_whole(top) or not 1 <= top <= MOST_LISTED:  # type: ignore[operator]
        raise InferenceError(
            f"top must be a whole number from 1 to {MOST_LISTED:,} (the list is held in memory), but got {shown(top)}."
        )
    if node_limit is not None:
        whole_number("node_limit", node_limit, 1, InferenceError)
    real = isinstance(time_limit, (int, np.integer, float, np.floating)) and not isinstance(time_limit, bool)
    if time_limit is not None and not (real and time_limit > 0):  # type: ignore[operator]
        raise InferenceError(f"time_limit must be a number of seconds above 0, but got {shown(time_limit)}.")


def _check_values(model: CausalModel, rules: Rules) -> None:
    for name, values in rules.levers.items():
        odd = [value for value in values if value not in (0.0, 1.0)]
        if odd and not model.continuous:
            raise InterventionError(
                f"variables of a binary model are set to 0 or 1, but the levers set {name!r} to {odd[0]:g}. "
                "Give 0 and 1 only, or a continuous model, whose variables are numbers from 0 to 1."
            )
