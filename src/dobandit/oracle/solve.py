"""`solve`: the best action of a known model, by the oracle that fits.

Names are checked here, each oracle answers in ids (`Task`), and what it finds is named again.

auto        a handful of actions: exhaustive; a linear model: branch and bound, or greedy where the search would not fit
            in memory; other links: exhaustive where the actions can be looked at one by one, else greedy

A problem is monotone if no edge has a negative weight and variables are only ever set to 1: then one more variable
never lowers E[Y] (paper, Appendix G), and E[Y] of a linear model is submodular.
"""

from __future__ import annotations

import heapq
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Unpack, cast

import numpy as np

from dobandit.checks import is_whole, shown, whole_number
from dobandit.errors import DobanditWarning, InferenceError, InterventionError, closest, listed
from dobandit.model.base import CausalModel
from dobandit.model.bglm import WeightedModel
from dobandit.model.inference import linear_means, target_value
from dobandit.oracle.actions import MANY, Action, Allowed
from dobandit.oracle.rules import Rules, RuleWords, rules_of

if TYPE_CHECKING:
    from dobandit.oracle.greedy import Steps
    from dobandit.oracle.objectives import Objective, Options


@dataclass(frozen=True)
class OracleResult:
    """An action with its certificate: no allowed action is worth more than `bound`.

    do        what to set, and to what, by name;  set: the names alone
    value     E[Y] under it
    bound     what no allowed action exceeds
    status    "optimal": proved; "approximate": the best that was found, worth at least `factor` of the best where a
              factor is known
    oracle    which one found it, in how many `seconds`
    explored  actions looked at;  top: the best actions with their values, best first, as many as were asked for

    >>> import dobandit as dob
    >>> found = dob.solve(dob.paper.G4, budget=1)
    >>> found.set, found.status, found.bound == found.value
    (('X2',), 'optimal', True)
    """

    do: dict[str, float]
    value: float
    bound: float
    status: str
    oracle: str
    seconds: float
    factor: float | None = None
    explored: int = 0
    top: tuple[tuple[dict[str, float], float], ...] = ()

    @property
    def set(self) -> tuple[str, ...]:
        """The variables that are set, in the graph's order."""
        return tuple(self.do)


_FEW_SETS = 2_000  # looked at one by one before Numba is loaded
_SEARCH_MEMORY = 40_000_000  # candidates x depths that branch and bound may hold; also actions x variables of a list
SETS_BY_INFERENCE = 20_000
MOST_SETS = 1_000_000  # looked at one by one where that was asked for
TOLERANCE = 1e-12  # a bound this close to a value proves it


class Limits:
    """When an oracle stops: after so many seconds, or so many actions looked at."""

    def __init__(self, seconds: float | None = None, sets: int | None = None) -> None:
        self.seconds = math.inf if seconds is None else float(seconds)
        self.sets = math.inf if sets is None else int(sets)
        self.restart()

    def restart(self) -> None:
        """Time counts from now."""
        self.start = time.perf_counter()

    def reached(self, looked: int) -> bool:
        return looked >= self.sets or time.perf_counter() - self.start >= self.seconds


class Answer(NamedTuple):
    """The best actions with their values, best first, and the certificate of `OracleResult`."""

    best: list[tuple[Action, float]]
    bound: float
    optimal: bool
    factor: float | None
    explored: int


def allowed_actions(model: CausalModel, rules: Rules) -> Allowed:
    """The actions worth looking at: what has no path to the target is not set unless it must, and then to one value."""
    graph = model.graph
    useless = {graph.index(name) for name in graph.irrelevant}
    relevant = set(graph.arrays.controllable.tolist()) - useless
    allowed = Allowed(graph, rules, model.nonnegative and rules.at_one, relevant)
    for v in useless.intersection(allowed.required):
        allowed.values[v] = allowed.values[v][-1:]
    return allowed


class Task:
    """What is asked: the best `top` of the actions that `rules` allow on a model, within limits."""

    def __init__(self, model: CausalModel, rules: Rules, top: int, limits: Limits) -> None:
        self.model, self.top, self.limits = model, top, limits
        self.allowed = allowed_actions(model, rules)
        self.monotone = self.allowed.monotone

    def fitting(self, oracle: str) -> str:
        """The oracle that "auto" stands for, or the one asked for."""
        if oracle == "branch-and-bound" and not self.model.is_linear:
            raise InferenceError(
                "branch and bound needs a linear model, whose gains bound each other, but some link is not the "
                "identity. Use the oracle 'auto'."
            )
        if oracle != "auto":
            return oracle
        count = self.allowed.count()
        if not self.model.is_linear:
            return "exhaustive" if count <= SETS_BY_INFERENCE else "greedy"
        if count <= _FEW_SETS and self.model.graph.edge_count < 20_000:
            return "exhaustive"
        options = sum(map(len, self.allowed.values.values()))
        rows = self.allowed.most + len(self.allowed.required) + 1
        fits = options * rows * (1 if self.monotone else 2) <= _SEARCH_MEMORY
        return "branch-and-bound" if fits else "greedy"

    def _certified(
        self, best: list[tuple[Action, float]], bound: float, explored: int, proved: bool, factor: float | None
    ) -> Answer:
        """The answer; once it is proved, its value is the bound."""
        value = best[0][1]
        return Answer(best, value if proved else max(value, min(bound, 1.0)), proved, factor, explored)

    def exhaustive(self) -> Answer:
        """Every action; where a limit comes first, with a bound from one interval pass."""
        best, proved, looked = best_by_enumeration(self.model, self.allowed, self.top, self.limits)
        return self._certified(best, 1.0 if proved else self._interval_bound(), looked, proved, None)

    def branch_and_bound(self) -> Answer:
        """A search that proves what it finds; where a limit comes first, the greedy action counts too."""
        from dobandit.oracle.branch_and_bound import search_options
        from dobandit.oracle.greedy import greedy
        from dobandit.oracle.linear_gains import LinearGains
        from dobandit.oracle.objectives import Options

        wanted = min(self.top, self.allowed.count())
        if wanted * self.allowed.most > _SEARCH_MEMORY:
            raise InferenceError(
                f"{wanted:,} sets of up to {self.allowed.most} variables are too many to list. Lower top."
            )
        options = Options(self.allowed)
        linear = cast(WeightedModel, self.model)
        objective = LinearGains(linear)
        exact = options.exact and (self.top > 1 or self.allowed.rules.smaller is False)
        steps = None
        if self.top == 1 and not self.monotone:  # an action to beat
            steps = greedy(objective, options, Limits(), lazy=False)
        found, bound, done, explored = search_options(objective.passes, options, wanted, exact, self.limits, steps)
        best = {options.action(chosen): value for chosen, value in found}
        if not done:  # the greedy action may be better, and its bound lower
            steps = steps or self._steps(LinearGains(linear), options, Limits())
            bound = min(bound, steps.bound)
            if self.top > 1 or steps.value > max(best.values(), default=-1.0) + TOLERANCE:
                best.setdefault(options.action(steps.chosen), steps.value)
        listing = sorted(best.items(), key=lambda entry: -round(entry[1], 12))[: self.top]
        value = listing[0][1]
        bound = max(value, min(bound, 1.0))
        proved = done or (self.top == 1 and bound <= value + TOLERANCE)
        factor = None if proved else value / bound if bound > 0.0 else 1.0
        return self._certified(listing, bound, explored, proved, factor)

    def greedy(self) -> Answer:
        """Step by step: with its factor where E[Y] is submodular, else with a bound that holds whatever the effects."""
        from dobandit.oracle.greedy import proved_factor
        from dobandit.oracle.objectives import Options, fresh_value, objective_of

        options = Options(self.allowed)
        steps = self._steps(objective_of(self.model, options), options, self.limits)
        action, value, bound, exact = options.action(steps.chosen), steps.value, steps.bound, True
        if not self.model.is_linear:
            value, exact = fresh_value(self.model, action)
        if not self.model.is_linear or not self.monotone:
            bound = min(bound, self._interval_bound())
        factor = None
        if self.model.is_linear and self.monotone and steps.finished:
            factor = proved_factor(options)
            if factor:  # it holds for what is gained beyond the required variables
                bound = min(bound, steps.start + (value - steps.start) / factor)
        proved = exact and bound <= value + TOLERANCE  # a simulated value proves nothing
        return self._certified([(action, value)], bound, steps.looked, proved, factor)

    def _steps(self, objective: Objective, options: Options, limits: Limits) -> Steps:
        """Greedy steps; on a linear model with the bound of the search."""
        from dobandit.oracle.branch_and_bound import bound_at
        from dobandit.oracle.greedy import greedy
        from dobandit.oracle.linear_gains import LinearGains

        bound = partial(bound_at, objective.passes, options) if isinstance(objective, LinearGains) else None
        return greedy(objective, options, limits, self.monotone, bound)

    def _interval_bound(self) -> float:
        from dobandit.oracle.bounds import highest_mean

        return highest_mean(self.model, self.allowed)


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
