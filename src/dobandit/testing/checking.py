"""What the suite of policies checks of choices, actions and estimates, with the rule in the message."""

from __future__ import annotations

import math
from typing import NoReturn

from dobandit.policy.engine import Action, Choice, Estimate
from dobandit.policy.problem import Problem

SAME = 1e-9  # numbers this close are equal: sums in another order may differ in the last digits


def fail(message: str) -> NoReturn:
    raise AssertionError(message)


def check(holds: bool, message: str) -> None:
    """Fail with a message of one's own: pytest rewrites no assertions of installed packages."""
    if not holds:
        fail(message)


def close(one: float, other: float) -> bool:
    """Whether two numbers are equal, NaN and infinite ones included."""
    return math.isclose(one, other, rel_tol=SAME, abs_tol=SAME) or (math.isnan(one) and math.isnan(other))


def check_same_choice(one: Choice, other: Choice, when: str) -> None:
    if one.action != other.action or not close(one.value, other.value):
        fail(f"a choice is a function of what was told and of the situation, but {when}: {one} and {other}.")


def check_allowed(action: Action, problem: Problem, available: tuple[int, ...] | None, who: str) -> None:
    """Fail unless the rules allow an action of the variables that can be set now."""
    graph, rules = problem.graph, problem.rules
    check(isinstance(action, Action), f"{who} gives an Action, but got {action!r}.")
    check(
        list(action.ids) == sorted({*action.ids}) and len(action.ids) == len(action.values),
        f"an action has ascending ids with a value each, but {who} gives {action}.",
    )
    check(
        all(type(v) is int and 1 <= v <= len(graph) for v in action.ids),
        f"ids are whole numbers from 1 to {len(graph)}, but {who} gives {action}.",
    )
    names = {graph.nodes[v - 1]: value for v, value in zip(action.ids, action.values, strict=True)}
    off = [name for name in names if name not in graph.controllable or name in rules.forbid]
    check(not off, f"{who} sets {off}, which are not controllable or are forbidden.")
    missing = [name for name in rules.require if name not in names]
    check(not missing, f"{who} does not set {missing}, which are required.")
    odd = {name: value for name, value in names.items() if value not in rules.values_of(name)}
    check(not odd, f"{who} sets {odd}, which are no levers.")
    check(rules.allows(names), f"{who} sets {sorted(names)} together, which the budget, costs or groups rule out.")
    absent = [v for v in action.ids if available is not None and v not in available]
    check(not absent, f"{who} sets the ids {absent}, but only {available} can be set now.")


def check_estimate(estimate: Estimate, action: Action) -> None:
    """Fail unless low <= value <= high, all from 0 to 1; a value of NaN says that nothing is known."""
    value, low, high = estimate
    check(0 <= low <= high <= 1, f"the interval of {action} lies within [0, 1], but got [{low}, {high}].")
    inside = math.isnan(value) or low - SAME <= value <= high + SAME
    check(inside, f"a prediction lies in its interval, but {action} has {value} in [{low}, {high}].")
