"""`solve`: the best set of a known model, by the oracle that fits.

auto        a handful of sets: exhaustive; a linear model: branch and bound, or greedy where the search would not fit in
            memory; other links: exhaustive where the sets can be looked at one by one, else greedy by simulation
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import InferenceError, closest, listed
from dobandit.model.bglm import WeightedModel
from dobandit.oracle.exhaustive import best_by_enumeration, count_sets
from dobandit.oracle.problem import OracleResult, Problem, rules_of

ORACLES = ("auto", "exhaustive", "branch-and-bound", "greedy")
_FEW_SETS = 2_000  # looked at one by one before Numba is loaded
_SEARCH_MEMORY = 40_000_000  # candidates x depths that branch and bound may hold
_SETS_BY_INFERENCE = 20_000
_NODES_AT_ONCE = 256


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

    top         how many of the best sets to list in the result
    time_limit  seconds, node_limit sets, after which branch and bound gives the best set found and the bound

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
    useless = set(model.graph.irrelevant)  # setting these gains nothing, so no set holds them unless it must
    candidates = tuple(name for name in problem.candidates(model.graph) if name not in useless)
    _check(oracle, top, time_limit, node_limit)
    start = time.perf_counter()
    name = _fitting(model, problem, candidates, oracle)
    if name == "exhaustive":
        result = _exhaustive(model, problem, candidates, top)
    elif name == "branch-and-bound":
        result = _branch_and_bound(model, problem, candidates, top, time_limit, node_limit)
    else:
        result = _greedy(model, problem, candidates)
    return replace(result, seconds=time.perf_counter() - start)


def _check(oracle: str, top: int, time_limit: float | None, node_limit: int | None) -> None:
    if oracle not in ORACLES:
        raise InferenceError(f"oracle is one of {listed(ORACLES)}, but got {oracle!r}.{closest(oracle, ORACLES)}")
    for what, value in (("top", top), ("node_limit", node_limit)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InferenceError(f"{what} must be a whole number from 1, but got {value!r}.")
    if time_limit is not None and not (isinstance(time_limit, (int, float)) and time_limit > 0):
        raise InferenceError(f"time_limit must be a number of seconds above 0, but got {time_limit!r}.")


def _fitting(model: WeightedModel, problem: Problem, candidates: tuple[str, ...], oracle: str) -> str:
    if oracle == "branch-and-bound" and not model.is_linear:
        raise InferenceError(
            "branch and bound needs a linear model, whose gains bound each other, but some link is not the identity. "
            "Use oracle='auto'."
        )
    if oracle != "auto":
        return oracle
    sets = count_sets(problem, candidates)
    if not model.is_linear:
        return "exhaustive" if sets <= _SETS_BY_INFERENCE else "greedy"
    if sets <= _FEW_SETS and model.graph.edge_count < 20_000:
        return "exhaustive"
    if _overlapping(problem):
        return "exhaustive" if sets <= _SETS_BY_INFERENCE else "greedy"
    fits = len(candidates) * (problem.most(candidates) + 1) <= _SEARCH_MEMORY
    return "branch-and-bound" if fits else "greedy"


def _overlapping(problem: Problem) -> bool:
    """Whether some variable is in two exclusive groups, which the compiled searches cannot hold."""
    members = [name for group in problem.exclusive for name in group]
    return len(members) > len(set(members))


def _named(model: WeightedModel, chosen: Iterable[str]) -> tuple[str, ...]:
    """In the graph's order."""
    return tuple(sorted(chosen, key=model.graph.index))


def _exhaustive(model: WeightedModel, problem: Problem, candidates: tuple[str, ...], top: int) -> OracleResult:
    best, exact, looked = best_by_enumeration(model, problem, candidates, top)
    listing = tuple((_named(model, (*problem.required, *chosen)), value) for value, chosen in best)
    value = listing[0][1]
    status = "optimal" if exact else "approximate"
    return OracleResult(listing[0][0], value, value if exact else 1.0, status, "exhaustive", 0.0, None, looked, listing)


class _Arrays:
    """A problem in the numbers of `Passes`."""

    def __init__(self, model: WeightedModel, problem: Problem, candidates: tuple[str, ...]) -> None:
        from dobandit.oracle.passes import passes_of

        self.model, self.problem = model, problem
        self.passes = passes_of(model)
        number = {int(i): here for here, i in enumerate(self.passes.ids)}
        nodes = len(self.passes.ids)
        self.cost, self.group = np.ones(nodes), np.full(nodes, -1, dtype=np.int64)
        for name in (*candidates, *problem.required):
            here = number.get(model.graph.index(name))
            if here is not None:
                self.cost[here] = problem.unit_cost(name)
        for which, group in enumerate(problem.exclusive):
            for here in filter(None, (number.get(model.graph.index(name)) for name in group)):
                self.group[here] = which
        useful = [number[i] for i in map(model.graph.index, candidates) if i in number]
        self.candidates: NDArray[np.int32] = np.array(sorted(useful), dtype=np.int32)
        for name in problem.required:
            here = number.get(model.graph.index(name))
            if here is not None:
                self.passes.is_set[here] = True
        self.most = min(problem.most(candidates), len(self.candidates))

    def names(self, chosen: NDArray[np.int32]) -> tuple[str, ...]:
        nodes = self.model.graph.nodes
        picked = [nodes[int(self.passes.ids[v]) - 1] for v in chosen.tolist() if v]
        return _named(self.model, (*self.problem.required, *picked))


def _branch_and_bound(
    model: WeightedModel,
    problem: Problem,
    candidates: tuple[str, ...],
    top: int,
    time_limit: float | None,
    node_limit: int | None,
) -> OracleResult:
    from dobandit.oracle.branch_and_bound import advance, remaining_bound, start_search

    if _overlapping(problem):
        raise InferenceError(
            "branch and bound takes each variable in one exclusive group only, but some is in two. Use oracle='auto'."
        )
    arrays = _Arrays(model, problem, candidates)
    full_size = top > 1 and problem.total_cost is None and not problem.exclusive
    search = start_search(
        arrays.passes, arrays.candidates, arrays.most, arrays.cost, problem.money, arrays.group, top, full_size
    )
    start = time.perf_counter()
    while search.depth[0] >= 0:
        left = _NODES_AT_ONCE if node_limit is None else min(_NODES_AT_ONCE, node_limit - int(search.explored[0]))
        if left <= 0 or (time_limit is not None and time.perf_counter() - start > time_limit):
            break
        advance(arrays.passes, search, left)
    found = [i for i in range(top) if search.top_value[i] >= 0]
    listing = tuple((arrays.names(search.top_set[i]), float(search.top_value[i])) for i in found)
    done = search.depth[0] < 0
    value = listing[0][1] if listing else -1.0
    bound = value if done else max(value, float(remaining_bound(search)))
    status = "optimal" if done or bound <= value else "approximate"
    factor = None if status == "optimal" else value / bound
    explored = int(search.explored[0])
    return OracleResult(listing[0][0], value, bound, status, "branch-and-bound", 0.0, factor, explored, listing)


def _greedy(model: WeightedModel, problem: Problem, candidates: tuple[str, ...]) -> OracleResult:
    if not model.is_linear or _overlapping(problem):
        return _greedy_by_inference(model, problem, candidates)
    from dobandit.oracle.greedy import COST_FACTOR, FACTOR, best_single, greedy_steps
    from dobandit.oracle.passes import full_pass, gain_of

    arrays = _Arrays(model, problem, candidates)
    p = arrays.passes
    taken = np.zeros(int(arrays.group.max(initial=-1)) + 2, dtype=np.bool_)
    chosen = np.zeros(max(arrays.most, 1), dtype=np.int32)
    base = float(full_pass(p))
    single = best_single(p, arrays.candidates, arrays.cost, problem.money) if arrays.most else -1
    alone = base + float(gain_of(p, single)) if single >= 0 else base
    count = greedy_steps(p, arrays.candidates, arrays.most, arrays.cost, problem.money, arrays.group, taken, chosen)
    value = float(p.means[-1])
    chosen = chosen[:count]
    if alone > value:
        chosen, value = np.array([single], dtype=np.int32), alone
    factor = FACTOR if problem.total_cost is None else COST_FACTOR
    factor = 0.5 if problem.exclusive and problem.total_cost is None else factor
    # The factor holds for what is gained beyond the required set, and E[Y] never exceeds 1.
    bound = min(1.0, base + (value - base) / factor)
    names = arrays.names(chosen)
    status = "optimal" if bound <= value else "approximate"
    return OracleResult(names, value, bound, status, "greedy", 0.0, factor, count * len(candidates), ((names, value),))


def _greedy_by_inference(model: WeightedModel, problem: Problem, candidates: tuple[str, ...]) -> OracleResult:
    """Greedy for any link and any rules; no factor is known."""
    from dobandit.oracle.lazy_greedy import lazy_greedy, objective_of

    objective = objective_of(model, problem, candidates)
    chosen, looked = lazy_greedy(objective, problem, candidates)
    names = _named(model, (*problem.required, *chosen))
    value = objective.final(names)
    return OracleResult(names, value, 1.0, "approximate", "greedy", 0.0, None, looked, ((names, value),))
