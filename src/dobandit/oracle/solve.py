"""`solve`: the best action of a known model, by the oracle that fits.

Names are checked here, each oracle answers in ids (`Task`), and what it finds is named again.

auto        a handful of actions: exhaustive; a linear model: branch and bound, or greedy where the search would not fit
            in memory; other links: exhaustive where the actions can be looked at one by one, else greedy

A problem is monotone if no edge has a negative weight and variables are only ever set to 1: then one more variable
never lowers E[Y] (paper, Appendix G), and E[Y] of a linear model is submodular.
"""

from __future__ import annotations

import heapq
import time
import warnings
from dataclasses import dataclass, replace
from typing import Unpack, cast

from dobandit.checks import as_float, is_one_of, shown, whole_number
from dobandit.errors import DobanditWarning, InferenceError, InterventionError, closest, listed
from dobandit.model.bglm import WeightedModel
from dobandit.model.causal_model import CausalModel
from dobandit.model.inference import target_mean
from dobandit.model.weights import fixed_values
from dobandit.oracle.actions import MANY, Action, Allowed
from dobandit.oracle.branch_and_bound import search_options
from dobandit.oracle.greedy import greedy, proved_factor
from dobandit.oracle.objectives import WORLDS, LinearGains, objective_of
from dobandit.oracle.rules import Rules, RuleWords, rules_of
from dobandit.oracle.search_space import TOLERANCE, Limits, Options, Progress, highest_mean, relevant_ids


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
    stopped   whether the time limit or the node limit came before a proof

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
    stopped: bool = False

    @property
    def set(self) -> tuple[str, ...]:
        """The variables that are set, in the graph's order."""
        return tuple(self.do)


TIME_LIMIT = 60.0  # seconds, unless another is given
_FEW_SETS = 2_000  # looked at one by one before Numba is loaded
_SEARCH_MEMORY = 40_000_000  # actions x variables of a list, and twice the options x depths of branch and bound
SETS_BY_INFERENCE = 20_000
MOST_SETS = 1_000_000  # looked at one by one where that was asked for


def allowed_actions(model: CausalModel, rules: Rules) -> Allowed:
    """The actions worth looking at: what has no path to the target is not set unless it must, and then to one value."""
    relevant = set(relevant_ids(model.graph).tolist())
    allowed = Allowed(model.graph, rules, model.nonnegative and rules.at_one, relevant)
    for v in set(allowed.required) - relevant:
        allowed.values[v] = allowed.values[v][-1:]
    return allowed


class Task:
    """What is asked: the best `top` of the actions that `rules` allow on a model, within limits."""

    def __init__(self, model: CausalModel, rules: Rules, oracle: str, top: int, limits: Limits) -> None:
        self.start, self.model, self.top, self.limits = time.perf_counter(), model, top, limits
        self.allowed, self.free = allowed_actions(model, rules), fixed_values(model.graph, None)
        self.oracle, self.monotone = self._fitting(oracle), self.allowed.monotone

    def _fitting(self, oracle: str) -> str:
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
        return "branch-and-bound" if 2 * options * rows <= _SEARCH_MEMORY else "greedy"

    def _result(
        self, best: list[tuple[Action, float]], bound: float, explored: int, proved: bool, factor: float | None
    ) -> OracleResult:
        """The best actions with their values, best first; once that is proved, the value is the bound."""
        listing = tuple((action.named(self.model.graph), value) for action, value in best)
        do, value = listing[0]
        bound = value if proved else max(value, min(bound, 1.0))
        status, seconds = "optimal" if proved else "approximate", time.perf_counter() - self.start
        stopped = self.limits.stopped and not proved
        return OracleResult(do, value, bound, status, self.oracle, seconds, factor, explored, listing, stopped)

    def exhaustive(self) -> OracleResult:
        """Every action, of equals the first; where a limit comes first, those looked at until then, at least one, with
        the bound of an interval pass."""
        allowed, count = self.allowed, self.allowed.count()
        if count > MOST_SETS:
            raise InferenceError(
                f"there are {count:,}{' or more' if count == MANY else ''} sets of {len(allowed.candidates)} variables;"
                f" all of them are looked at only up to {MOST_SETS:,}. Lower the budget, make fewer variables "
                "controllable, or use another oracle."
            )
        maximal = allowed.rules.smaller is False and not allowed.budget_alone
        best: list[tuple[float, int, Action, float]] = []
        proved, looked = True, 0
        for action in allowed.every():
            if maximal and allowed.can_grow(action):
                continue
            if best and self.limits.reached(looked):
                proved = False
                break
            value, exact = target_mean(self.model, action.over(self.free))
            proved = proved and exact
            push = heapq.heappush if len(best) < self.top else heapq.heappushpop
            push(best, (round(value, 12), -looked, action, value))
            looked += 1
        listing = [(action, value) for _, _, action, value in sorted(best, reverse=True)]
        bound = 1.0 if proved else highest_mean(self.model, allowed)
        return self._result(listing, bound, looked, proved, None)

    def branch_and_bound(self) -> OracleResult:
        """A search that proves what it finds; where a limit comes first, the greedy action counts too."""
        wanted = min(self.top, self.allowed.count())
        if wanted * self.allowed.most > _SEARCH_MEMORY:
            raise InferenceError(
                f"{wanted:,} sets of up to {self.allowed.most} variables are too many to list. Lower top."
            )
        options, model = Options(self.allowed), cast(WeightedModel, self.model)
        objective, steps = LinearGains(model), None
        if self.top == 1 and not self.monotone:  # an action to beat
            steps = greedy(objective, options, Limits(), lazy=False)
        exact = options.exact and (self.top > 1 or self.allowed.rules.smaller is False)
        known = steps and (steps.chosen, steps.value)
        found, bound, done, explored = search_options(objective.ancestors, options, wanted, exact, self.limits, known)
        best = {options.action(chosen): value for chosen, value in found}
        if not done:  # the greedy action may be better, and its bound lower
            steps = steps or greedy(LinearGains(model), options, Limits(), self.monotone)
            bound = min(bound, steps.bound)
            if self.top > 1 or steps.value > max(best.values(), default=-1.0) + TOLERANCE:
                best.setdefault(options.action(steps.chosen), steps.value)
        listing = sorted(best.items(), key=lambda entry: -round(entry[1], 12))[: self.top]
        value = listing[0][1]
        bound = max(value, min(bound, 1.0))
        proved = done or (self.top == 1 and bound <= value + TOLERANCE)
        factor = None if proved else value / bound if bound > 0.0 else 1.0
        return self._result(listing, bound, explored, proved, factor)

    def greedy(self) -> OracleResult:
        """Step by step: with its factor where E[Y] is submodular, else with a bound that holds whatever the effects."""
        options = Options(self.allowed)
        steps = greedy(objective_of(self.model, options), options, self.limits, self.monotone)
        action, value, bound, exact = options.action(steps.chosen), steps.value, steps.bound, True
        if not self.model.is_linear:  # on fresh random numbers: on its own ones the best action looks too good
            value, exact = target_mean(self.model, action.over(self.free), WORLDS)
        if not self.model.is_linear or not self.monotone:
            bound = min(bound, highest_mean(self.model, self.allowed))
        factor = None
        if self.model.is_linear and self.monotone and steps.finished:
            factor = proved_factor(options)
            if factor:  # it holds for what is gained beyond the required variables
                bound = min(bound, steps.start + (value - steps.start) / factor)
        proved = exact and bound <= value + TOLERANCE  # a simulated value proves nothing
        return self._result([(action, value)], bound, steps.looked, proved, factor)


ORACLES = ("auto", "exhaustive", "branch-and-bound", "greedy")
MOST_LISTED = 1_000_000  # held in memory


def solve(
    model: CausalModel,
    budget: int | Rules | None = None,
    *,
    oracle: str = "auto",
    top: int = 1,
    time_limit: float | None = TIME_LIMIT,
    node_limit: int | None = None,
    progress: Progress | None = None,
    **rules: Unpack[RuleWords],
) -> OracleResult:
    """The allowed action with the largest E[Y | do(action)], with a certificate.

    model          what is known: weights, links or tables
    budget, rules  which actions are allowed: the words of `Rules`, or Rules as they are; with these `available` may be
                   said too, where fewer variables can be set now
    oracle         "auto", "exhaustive", "branch-and-bound" (linear models) or "greedy"
    top            how many of the best actions to list in the result (greedy lists one)
    time_limit     seconds, and node_limit actions, after which the best action found is given, with the bound that is
                   left: never less than the greedy one where branch and bound is stopped. None: no limit
    progress       called with the number of actions looked at and the seconds so far, a few times a second

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
    _check(model, given, oracle, top, time_limit, node_limit)
    task = Task(model, given, oracle, int(top), Limits(time_limit, node_limit, progress))
    if task.oracle == "greedy" and top > 1:
        warnings.warn(
            f"greedy lists one set, but the {top} best were asked for. Branch and bound and exhaustive list more.",
            DobanditWarning,
            stacklevel=2,
        )
    run = {"exhaustive": task.exhaustive, "branch-and-bound": task.branch_and_bound, "greedy": task.greedy}
    return run[task.oracle]()


def sizes_in_words(model: CausalModel, rules: Rules) -> str:
    """Which sets `solve` looks at and why, as a sentence for people."""
    allowed = allowed_actions(model, rules)
    which, reason = allowed.sizes_in_words(), allowed.reason_in_words()
    if rules.smaller is None and allowed.full_only and not allowed.budget_alone:  # which are full is found on the way
        which, reason = allowed.sizes_in_words(False), "the rules do not let every set grow to the same size"
    return f"{which}{',' if ',' in which else ''} were looked at, because {reason}"


def _check(model: object, rules: Rules, oracle: object, top: object, time_limit: object, node_limit: object) -> None:
    if not isinstance(model, CausalModel):
        raise InferenceError(
            f"the best set is that of a model, but got {type(model).__name__}. "
            "Give a BinaryGLM, a LinearModel or a TableModel."
        )
    if not is_one_of(oracle, ORACLES):
        raise InferenceError(f"oracle is one of {listed(ORACLES)}, but got {oracle!r}.{closest(oracle, ORACLES)}")
    whole_number("top", top, 1, InferenceError, MOST_LISTED)
    if node_limit is not None:
        whole_number("node_limit", node_limit, 1, InferenceError)
    if time_limit is not None and not as_float(time_limit) > 0:
        raise InferenceError(f"time_limit must be a number of seconds above 0, but got {shown(time_limit)}.")
    for name, values in rules.levers.items():
        odd = [value for value in values if value not in (0.0, 1.0)]
        if odd and not model.continuous:
            raise InterventionError(
                f"variables of a binary model are set to 0 or 1, but the levers set {name!r} to {odd[0]:g}. "
                "Give 0 and 1 only, or a continuous model, whose variables are numbers from 0 to 1."
            )
