"""`solve`: the best action of a known model, by the oracle that fits.

Names are checked here, each oracle answers in ids (`Task`), and what it finds is named again.

auto        a handful of actions: exhaustive; a linear model: branch and bound, or greedy where the search would not fit
            in memory; other links: exhaustive where the actions can be looked at one by one, else greedy

A problem is monotone if no edge has a negative weight and variables are only ever set to 1: then one more variable
never lowers E[Y] (paper, Appendix G), and E[Y] of a linear model is submodular. `submodular` is asked for by whatever
relies on it; all other problems take the general way.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Unpack, cast

import numpy as np

from dobandit.checks import is_whole, shown, whole_number
from dobandit.errors import DobanditWarning, InferenceError, InterventionError, closest, listed
from dobandit.model.base import CausalModel
from dobandit.model.bglm import WeightedModel
from dobandit.oracle.actions import Action, Allowed
from dobandit.oracle.exhaustive import best_by_enumeration
from dobandit.oracle.rules import Rules, RuleWords, rules_of

if TYPE_CHECKING:
    from dobandit.oracle.options import Options, Steps


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
_SETS_BY_INFERENCE = 20_000
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
    """What an oracle found: the best actions with their values, best first."""

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
        self.monotone = model.nonnegative and rules.at_one

    @property
    def weighted(self) -> WeightedModel:
        """The model, for the oracles of linear ones: those have weights."""
        return cast(WeightedModel, self.model)

    @cached_property
    def submodular(self) -> bool:
        """Whether the oracles for monotone problems fit: they hold no variable in two exclusive groups, and do not ask
        whether a set can grow."""
        rules, names = self.allowed.rules, self.allowed.names
        members = [name for group in rules.groups(names) for name in group]
        overlapping = len(members) > len(set(members))
        maximal = rules.smaller is False and not self.allowed.budget_alone
        return self.model.is_linear and self.monotone and not overlapping and not maximal

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
            return "exhaustive" if count <= _SETS_BY_INFERENCE else "greedy"
        if count <= _FEW_SETS and self.model.graph.edge_count < 20_000:
            return "exhaustive"
        options = sum(map(len, self.allowed.values.values()))
        rows = self.allowed.most + len(self.allowed.required) + 1
        fits = options * rows * (1 if self.submodular else 2) <= _SEARCH_MEMORY
        return "branch-and-bound" if fits else "greedy"

    def exhaustive(self) -> Answer:
        """Every action; where a limit comes first, with a bound from one interval pass."""
        best, proved, looked = best_by_enumeration(self.model, self.allowed, self.top, self.limits)
        value = best[0][1]
        bound = value if proved else max(value, self._interval_bound())
        return Answer(best, bound, proved, None, looked)

    def branch_and_bound(self) -> Answer:
        """A search that proves what it finds; where a limit comes first, the greedy action counts too."""
        from dobandit.oracle.branch_and_bound import search_options
        from dobandit.oracle.options import Options

        wanted = min(self.top, self.allowed.count())
        if wanted * self.allowed.most > _SEARCH_MEMORY:
            raise InferenceError(
                f"{wanted:,} sets of up to {self.allowed.most} variables are too many to list. Lower top."
            )
        options = Options(self.weighted, self.allowed)
        exact = options.exact and (self.top > 1 or self.allowed.rules.smaller is False)
        quick = self._steps(options) if self.top == 1 and not self.submodular else None  # an action to beat
        found = search_options(options, wanted, exact, self.limits, quick)
        best, bound = {options.action(chosen): value for chosen, value in found.best}, found.bound
        if not found.done:  # the greedy action may be better, and its bound lower
            quick = quick or self._steps(options)
            bound = min(bound, quick.bound)
            if self.top > 1 or quick.value > max(best.values(), default=-1.0) + TOLERANCE:
                best.setdefault(options.action(quick.chosen), quick.value)
        listing = sorted(best.items(), key=lambda entry: -round(entry[1], 12))[: self.top]
        value = listing[0][1]
        bound = max(value, min(bound, 1.0))
        optimal = found.done or (self.top == 1 and bound <= value + TOLERANCE)
        factor = None if optimal else value / bound if bound > 0.0 else 1.0
        return Answer(listing, bound, optimal, factor, found.explored)

    def greedy(self) -> Answer:
        """Step by step: with its factor where E[Y] is submodular, else with a bound that holds whatever the effects."""
        if not self.model.is_linear:
            from dobandit.oracle.lazy_greedy import lazy_greedy, objective_of

            objective = objective_of(self.model, self.allowed)
            action, looked = lazy_greedy(objective, self.allowed, lazy=self.monotone, limits=self.limits)
            final = objective.final(action)
            bound = max(final.value, self._interval_bound())
            optimal = not final.samples and bound <= final.value + TOLERANCE  # a simulated value proves nothing
            return Answer([(action, final.value)], bound, optimal, None, looked)
        from dobandit.oracle.branch_and_bound import root_bound
        from dobandit.oracle.options import Options

        options = Options(self.weighted, self.allowed)
        # Stopped half-way a submodular one would be a smaller set, which the rules may not allow.
        limited = not self.submodular or self.allowed.rules.smaller is not False
        found = self._steps(options, self.limits if limited else None)
        bound = found.bound
        if not self.submodular:
            bound = max(found.value, min(root_bound(options), self._interval_bound()))
        best, optimal = [(options.action(found.chosen), found.value)], bound <= found.value + TOLERANCE
        return Answer(best, bound, optimal, found.factor, found.looked)

    def _steps(self, options: Options, limits: Limits | None = None) -> Steps:
        """The greedy action of a linear model."""
        from dobandit.oracle.greedy import greedy, signed_greedy

        return (greedy if self.submodular else signed_greedy)(options, limits)

    def _interval_bound(self) -> float:
        from dobandit.oracle.bounds import highest_mean

        return min(highest_mean(self.model, self.allowed), 1.0)


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
