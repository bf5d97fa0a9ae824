"""Task: one question about a known model, and each oracle's answer to it, in ids.

A problem is monotone if no edge has a negative weight and variables are only ever set to 1: then one more variable
never lowers E[Y] (paper, Appendix G), and E[Y] of a linear model is submodular. `submodular` is asked for by whatever
relies on it; all other problems take the general way.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

from dobandit.errors import InferenceError
from dobandit.model.base import CausalModel
from dobandit.model.bglm import WeightedModel
from dobandit.oracle.actions import Action, Allowed
from dobandit.oracle.exhaustive import Limits, best_by_enumeration
from dobandit.oracle.rules import Rules

if TYPE_CHECKING:
    from dobandit.oracle.options import Options, Steps

_FEW_SETS = 2_000  # looked at one by one before Numba is loaded
_SEARCH_MEMORY = 40_000_000  # candidates x depths that branch and bound may hold; also actions x variables of a list
_SETS_BY_INFERENCE = 20_000
TOLERANCE = 1e-12  # a bound this close to a value proves it


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

            objective = objective_of(self.model, self.allowed, self.monotone)
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
        from dobandit.oracle.greedy import greedy
        from dobandit.oracle.signed_greedy import signed_greedy

        return (greedy if self.submodular else signed_greedy)(options, limits)

    def _interval_bound(self) -> float:
        from dobandit.oracle.bounds import highest_mean

        return min(highest_mean(self.model, self.allowed), 1.0)
