"""`solve`: the best set of a known model, by the oracle that fits.

auto        a handful of sets: exhaustive; a linear model: branch and bound, or greedy where the search would not fit in
            memory; other links: exhaustive where the sets can be looked at one by one, else greedy by simulation
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from dobandit.errors import DobanditWarning, InferenceError, closest, listed
from dobandit.model.bglm import WeightedModel
from dobandit.oracle.exhaustive import Limits, best_by_enumeration, count_sets, full_size_only
from dobandit.oracle.problem import OracleResult, Problem, rules_of, shown

ORACLES = ("auto", "exhaustive", "branch-and-bound", "greedy")
_FEW_SETS = 2_000  # looked at one by one before Numba is loaded
_SEARCH_MEMORY = 40_000_000  # candidates x depths that branch and bound may hold; also sets x variables of a list
_SETS_BY_INFERENCE = 20_000
MOST_LISTED = 1_000_000
TOLERANCE = 1e-12  # a bound this close to a value proves it


def solve(
    model: WeightedModel,
    budget: int | None = None,
    *,
    costs: Mapping[str, float] | None = None,
    total_cost: float | None = None,
    require: Iterable[str] = (),
    forbid: Iterable[str] = (),
    exclusive: Iterable[Iterable[str]] = (),
    available: Iterable[str] | None = None,
    oracle: str = "auto",
    top: int = 1,
    time_limit: float | None = None,
    node_limit: int | None = None,
) -> OracleResult:
    """The allowed set with the largest E[Y | do(set = 1)]; the arguments are those of `Problem`.

    top         how many of the best sets to list in the result (greedy lists one)
    time_limit  seconds, node_limit sets, after which the best set found is given: never less than the greedy one where
                branch and bound is stopped, and with the bound that is left

    >>> from dobandit import paper
    >>> solve(paper.G1, budget=3).set
    ('X3', 'X4', 'X5')
    """
    problem = rules_of(budget, costs, total_cost, require, forbid, exclusive, available)
    return solve_problem(model, problem, oracle, top, time_limit, node_limit)


def solve_problem(
    model: WeightedModel,
    problem: Problem,
    oracle: str = "auto",
    top: int = 1,
    time_limit: float | None = None,
    node_limit: int | None = None,
) -> OracleResult:
    """`solve` for rules that are a Problem already."""
    if not isinstance(model, WeightedModel):
        raise InferenceError(
            f"the best set is that of a model with weights, but got {type(model).__name__}. "
            "Give a BinaryGLM or a LinearModel."
        )
    useless = set(model.graph.irrelevant)  # setting these gains nothing, so no set holds them unless it must
    candidates = tuple(name for name in problem.candidates(model.graph) if name not in useless)
    _check(oracle, top, time_limit, node_limit)
    start, limits = time.perf_counter(), Limits(time_limit, node_limit)
    name = _fitting(model, problem, candidates, oracle)
    if name == "exhaustive":
        result = _exhaustive(model, problem, candidates, int(top), limits)
    elif name == "branch-and-bound":
        result = _branch_and_bound(model, problem, candidates, int(top), limits)
    else:
        if top > 1:
            warnings.warn(
                f"greedy lists one set, but the {top} best were asked for. Branch and bound and exhaustive list more.",
                DobanditWarning,
                stacklevel=3,
            )
        result = _greedy(model, problem, candidates, limits)
    return replace(result, seconds=time.perf_counter() - start)


def _check(oracle: object, top: object, time_limit: object, node_limit: object) -> None:
    if not isinstance(oracle, str) or oracle not in ORACLES:
        raise InferenceError(f"oracle is one of {listed(ORACLES)}, but got {oracle!r}.{closest(oracle, ORACLES)}")
    whole = (int, np.integer)
    if isinstance(top, bool) or not isinstance(top, whole) or not 1 <= top <= MOST_LISTED:
        raise InferenceError(
            f"top must be a whole number from 1 to {MOST_LISTED:,} (the list is held in memory), but got {shown(top)}."
        )
    if node_limit is not None and (isinstance(node_limit, bool) or not isinstance(node_limit, whole) or node_limit < 1):
        raise InferenceError(f"node_limit must be a whole number from 1, but got {shown(node_limit)}.")
    real = isinstance(time_limit, (*whole, float, np.floating)) and not isinstance(time_limit, bool)
    if time_limit is not None and not (real and time_limit > 0):  # type: ignore[operator]
        raise InferenceError(f"time_limit must be a number of seconds above 0, but got {shown(time_limit)}.")


def _fitting(model: WeightedModel, problem: Problem, candidates: tuple[str, ...], oracle: str) -> str:
    if oracle == "branch-and-bound" and not model.is_linear:
        raise InferenceError(
            "branch and bound needs a linear model, whose gains bound each other, but some link is not the identity. "
            "Use the oracle 'auto'."
        )
    if oracle != "auto":
        return oracle
    sets = count_sets(problem, candidates)
    if not model.is_linear:
        return "exhaustive" if sets <= _SETS_BY_INFERENCE else "greedy"
    if sets <= _FEW_SETS and model.graph.edge_count < 20_000:
        return "exhaustive"
    if _overlapping(problem, candidates):
        return "exhaustive" if sets <= _SETS_BY_INFERENCE else "greedy"
    fits = len(candidates) * (problem.most(candidates) + 1) <= _SEARCH_MEMORY
    return "branch-and-bound" if fits else "greedy"


def _overlapping(problem: Problem, candidates: tuple[str, ...]) -> bool:
    """Whether some variable is in two exclusive groups, which the compiled searches cannot hold."""
    members = [name for group in problem.groups(candidates) for name in group]
    return len(members) > len(set(members))


def _named(model: WeightedModel, chosen: Iterable[str]) -> tuple[str, ...]:
    """In the graph's order."""
    return tuple(sorted(chosen, key=model.graph.index))


def _exhaustive(
    model: WeightedModel, problem: Problem, candidates: tuple[str, ...], top: int, limits: Limits
) -> OracleResult:
    found = best_by_enumeration(model, problem, candidates, top, limits)
    listing = tuple((_named(model, (*problem.required, *chosen)), value) for value, chosen in found.best)
    names, value = listing[0]
    status, bound = ("optimal", value) if found.proved else ("approximate", max(value, 1.0))
    return OracleResult(names, value, bound, status, "exhaustive", 0.0, None, found.looked, listing)


def _branch_and_bound(
    model: WeightedModel, problem: Problem, candidates: tuple[str, ...], top: int, limits: Limits
) -> OracleResult:
    from dobandit.oracle.branch_and_bound import search_sets
    from dobandit.oracle.greedy import Arrays, greedy

    if _overlapping(problem, candidates):
        raise InferenceError(
            "branch and bound takes each variable in one exclusive group only, but some is in two. "
            "Use the oracle 'auto'."
        )
    arrays = Arrays(model, problem, candidates)
    wanted = min(top, count_sets(problem, candidates))
    if wanted * arrays.most > _SEARCH_MEMORY:
        raise InferenceError(f"{wanted:,} sets of up to {arrays.most} variables are too many to list. Lower top.")
    found = search_sets(arrays, wanted, top > 1 and full_size_only(problem, candidates), limits)

    def named(chosen: Iterable[int]) -> tuple[str, ...]:
        return _named(model, (*problem.required, *arrays.names(chosen)))

    sets, bound = {named(chosen): value for chosen, value in found.sets}, found.bound
    if not found.done:  # then the greedy set may be better
        start = greedy(arrays)
        bound = min(bound, start.bound)
        if top > 1 or start.value > max(sets.values(), default=-1.0) + TOLERANCE:
            sets.setdefault(named(start.chosen), start.value)
    listing = tuple(sorted(sets.items(), key=lambda entry: -round(entry[1], 12))[:top])
    names, value = listing[0]
    bound = max(value, min(bound, 1.0))
    optimal = found.done or (top == 1 and bound <= value + TOLERANCE)
    factor = None if optimal else value / bound if bound > 0.0 else 1.0
    status = "optimal" if optimal else "approximate"
    return OracleResult(names, value, bound, status, "branch-and-bound", 0.0, factor, found.explored, listing)


def _greedy(model: WeightedModel, problem: Problem, candidates: tuple[str, ...], limits: Limits) -> OracleResult:
    if not model.is_linear or _overlapping(problem, candidates):
        return _greedy_by_inference(model, problem, candidates, limits)
    from dobandit.oracle.greedy import Arrays, greedy

    arrays = Arrays(model, problem, candidates)
    found = greedy(arrays, limits)
    names = _named(model, (*problem.required, *arrays.names(found.chosen)))
    status = "optimal" if found.bound <= found.value + TOLERANCE else "approximate"
    listing = ((names, found.value),)
    return OracleResult(names, found.value, found.bound, status, "greedy", 0.0, found.factor, found.looked, listing)


def _greedy_by_inference(
    model: WeightedModel, problem: Problem, candidates: tuple[str, ...], limits: Limits
) -> OracleResult:
    """Greedy for any link and any rules; no factor is known."""
    from dobandit.oracle.lazy_greedy import lazy_greedy, objective_of

    objective = objective_of(model, problem, candidates)
    chosen, looked = lazy_greedy(objective, problem, candidates, limits=limits)
    names = _named(model, (*problem.required, *chosen))
    value = objective.final(names)
    return OracleResult(names, value, 1.0, "approximate", "greedy", 0.0, None, looked, ((names, value),))
