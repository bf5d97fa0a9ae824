"""What `PolicySuite` checks of choices, actions, estimates and arrays, with the rule in the message; and
`PlainExecutor`, simulation without compiled rounds, for comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.kernels import Kernel
from dobandit.policy.engine import Action, Choice, Draws, Engine, Estimate
from dobandit.policy.problem import Problem
from dobandit.policy.questions import play_rounds
from dobandit.policy.recording import Recorder
from dobandit.simulation.run import Block, Prepared, Runner
from dobandit.simulation.study import Study

_NEVER_CHANGE = (Problem, CausalGraph, Kernel, str, bytes, type)
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


def contents(engine: Engine) -> list[tuple[NDArray[Any], bytes]]:
    """Every array that an engine can reach, with what is in it now: two engines must not write to the same one."""
    return [(array, array.tobytes()) for array in _arrays(engine, set())]


def _arrays(value: Any, seen: set[int]) -> Iterator[NDArray[Any]]:
    if id(value) in seen or isinstance(value, _NEVER_CHANGE):
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value
        return
    fields = value if isinstance(value, (Mapping, tuple, list)) else getattr(value, "__dict__", {})
    for part in list(fields.values() if isinstance(fields, Mapping) else fields):
        yield from _arrays(part, seen)


class PlainRunner(Runner):
    """Plays every round by `choose` and `update`, whatever the engine's own `run` does."""

    def play(self, engine: Engine, recorder: Recorder, draws: Draws) -> None:
        play_rounds(engine, self.world, recorder, draws)


class PlainExecutor:
    """For `run_study`: replications without compiled rounds, one after the other."""

    workers = 1

    def run(self, study: Study, prepared: Prepared, blocks: Sequence[Sequence[int]]) -> Iterator[Block]:
        return map(PlainRunner(study, prepared).run, blocks)
