"""What an oracle is asked (Problem) and what it answers (OracleResult)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dobandit.errors import InterventionError, closest, listed
from dobandit.graph.causal_graph import CausalGraph

_MOST_COST = 1e300  # sums of costs stay finite


@dataclass(frozen=True)
class OracleResult:
    """A set with its certificate: no allowed set is worth more than `bound`.

    status    "optimal": proved; "approximate": the best that was found, worth at least `factor` of the best where a
              factor is known
    explored  sets looked at;  top: the best sets with their values, best first, as many as were asked for
    """

    set: tuple[str, ...]
    value: float
    bound: float
    status: str
    oracle: str
    seconds: float
    factor: float | None = None
    explored: int = 0
    top: tuple[tuple[tuple[str, ...], float], ...] = ()


@dataclass(frozen=True)
class Problem:
    """Which sets are allowed.

    budget      at most so many variables
    costs       cost of each variable (1 where none is given), with `total_cost` the most a set may cost
    required    variables that every set holds;  forbidden: variables that no set holds
    exclusive   groups of which a set holds at most one
    available   the variables that can be set now (default: all controllable ones)
    """

    budget: int | None = None
    costs: Mapping[str, float] = field(default_factory=dict)
    total_cost: float | None = None
    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    exclusive: tuple[tuple[str, ...], ...] = ()
    available: tuple[str, ...] | None = None

    def candidates(self, graph: CausalGraph) -> tuple[str, ...]:
        """Variables that may be set besides the required ones; checks that some set is allowed at all."""
        self._check_names(graph)
        if self.budget is None and self.total_cost is None:
            raise InterventionError("a problem needs a budget or a total cost, but got neither. Give one of them.")
        if self.budget is not None:
            require_budget(graph, self.budget)
        self._check_costs()
        unavailable = [name for name in self.required if self.available is not None and name not in self.available]
        if unavailable:
            raise InterventionError(f"{listed(unavailable)} is required, but not available. No set is allowed.")
        both = [name for name in self.required if name in self.forbidden]
        if both:
            raise InterventionError(f"{listed(both)} is both required and forbidden. No set is allowed.")
        if self.budget is not None and len(self.required) > self.budget:
            raise InterventionError(
                f"{len(self.required)} variables are required, but the budget is {self.budget}. No set is allowed."
            )
        spent = sum(self.cost(name) for name in self.required)
        if self.total_cost is not None and spent > self.total_cost * (1 + 1e-12):
            raise InterventionError(
                f"the required variables cost {spent:g}, but the total cost is {self.total_cost:g}. No set is allowed."
            )
        for group in self.exclusive:
            clash = [name for name in group if name in self.required]
            if len(clash) > 1:
                raise InterventionError(f"{listed(clash)} are required, but exclude each other. No set is allowed.")
        allowed, required = set(graph.controllable if self.available is None else self.available), set(self.required)
        ruled_out = [name for group in self.exclusive if required.intersection(group) for name in group]
        out = {*self.forbidden, *required, *ruled_out}
        return tuple(name for name in graph.controllable if name in allowed and name not in out)

    def limited(self, available: Iterable[str]) -> Problem:
        """The same problem where only `available` variables can be set."""
        names = tuple(dict.fromkeys(available))
        return replace(self, available=tuple(n for n in names if self.available is None or n in self.available))

    def cost(self, name: str) -> float:
        return float(self.costs.get(name, 1.0))

    @property
    def money(self) -> float:
        """The cost that is left for candidates, with a hair for rounding; the budget where there are no costs."""
        if self.total_cost is None:
            return float((self.budget or 0) - len(self.required))
        return float(self.total_cost) * (1 + 1e-12) - sum(self.cost(name) for name in self.required)

    def unit_cost(self, name: str) -> float:
        """What a variable uses up of `money`."""
        return 1.0 if self.total_cost is None else self.cost(name)

    def most(self, candidates: tuple[str, ...]) -> int:
        """How many candidates a set can hold at most."""
        count = len(candidates) if self.budget is None else min(self.budget - len(self.required), len(candidates))
        if self.total_cost is not None:
            money, affordable = self.money, 0
            for price in sorted(self.cost(name) for name in candidates):
                money -= price
                affordable += money >= 0
            count = min(count, affordable)
        return count

    def groups(self, candidates: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The exclusive groups that rule something out among the candidates: of two or more, none within another."""
        here = set(candidates)
        left = (frozenset(name for name in group if name in here) for group in self.exclusive)
        kept: list[frozenset[str]] = []
        holding: dict[str, list[frozenset[str]]] = {}
        for group in sorted(dict.fromkeys(left), key=len, reverse=True):
            if len(group) > 1 and not any(group <= other for other in holding.get(next(iter(group)), ())):
                kept.append(group)
                for name in group:
                    holding.setdefault(name, []).append(group)
        return tuple(tuple(sorted(group)) for group in kept)

    def allows(self, chosen: Iterable[str]) -> bool:
        """Whether the candidates in `chosen` may be set together, besides the required ones."""
        whole = {*chosen, *self.required}
        if self.budget is not None and len(whole) > self.budget:
            return False
        if self.total_cost is not None and sum(map(self.cost, whole)) > self.total_cost * (1 + 1e-12):
            return False
        return all(sum(name in whole for name in group) <= 1 for group in self.exclusive)

    def _check_names(self, graph: CausalGraph) -> None:
        groups = [name for group in self.exclusive for name in group]
        roles = {
            "costs": self.costs,
            "require": self.required,
            "forbid": self.forbidden,
            "exclusive": groups,
            "available": self.available or (),
        }
        known = set(graph.controllable)
        for role, names in roles.items():
            for name in names:
                if name not in known:
                    raise InterventionError(f"{role} is about controllable variables, but {_what_is(graph, name)}")

    def _check_costs(self) -> None:
        if self.costs and self.total_cost is None:
            raise InterventionError("costs need a total cost, but none is given. Give one, or leave the costs out.")
        if self.total_cost is not None and not _is_cost(self.total_cost):
            raise InterventionError(
                f"the total cost is a number from 0 to {_MOST_COST:g}, but got {shown(self.total_cost)}."
            )
        for name, cost in self.costs.items():
            if not _is_cost(cost):
                raise InterventionError(
                    f"a cost is a number from 0 to {_MOST_COST:g}, but that of {name} is {shown(cost)}."
                )


def shown(value: object) -> str:
    """A value for a message; Python refuses to print the largest whole numbers."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= 80 else text[:77] + "..."


def _is_cost(cost: object) -> bool:
    cost = float(cost) if isinstance(cost, np.number) and not isinstance(cost, np.complexfloating) else cost
    return isinstance(cost, (int, float)) and not isinstance(cost, bool) and 0 <= cost <= _MOST_COST


def _what_is(graph: CausalGraph, name: object) -> str:
    """Why a name cannot be set, as the end of a sentence."""
    if name == graph.target:
        return f"{name!r} is the target. Leave it out."
    if name in graph.latent:
        return f"{name!r} is hidden. Leave it out."
    if name in graph:
        return f"{name!r} is not controllable. Leave it out, or add it to the graph's controllable variables."
    return f"{name!r} is none of {listed(graph.controllable)}.{closest(name, graph.controllable)}"


def rules_of(
    budget: int | None = None,
    costs: Mapping[str, float] | None = None,
    total_cost: float | None = None,
    require: Iterable[str] = (),
    forbid: Iterable[str] = (),
    exclusive: Iterable[Iterable[str]] = (),
    available: Iterable[str] | None = None,
) -> Problem:
    """A problem from what users write."""
    if costs is not None and not isinstance(costs, Mapping):
        raise InterventionError(f"costs give a number by name, such as {{'X1': 2}}, but got {costs!r}.")
    return Problem(
        budget,
        dict(costs or {}),
        total_cost,
        _names(require, "require"),
        _names(forbid, "forbid"),
        _groups(exclusive),
        None if available is None else _names(available, "available"),
    )


def _names(names: Iterable[str], what: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InterventionError(f"{what} is a list of names, but got the string {names!r}. Write [{names!r}].")
    if not isinstance(names, Iterable):
        raise InterventionError(f"{what} is a list of names, such as ['X1', 'X2'], but got {names!r}.")
    given = list(names)
    odd = [name for name in given if not isinstance(name, str)]
    if odd:
        raise InterventionError(f"{what} is a list of names, such as ['X1', 'X2'], but {odd[0]!r} in it is no name.")
    return tuple(dict.fromkeys(given))


def _groups(exclusive: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    rule = "exclusive is a list of groups, each of them a list of names"
    if isinstance(exclusive, str) or not isinstance(exclusive, Iterable):
        raise InterventionError(f"{rule}, but got {exclusive!r}. Write [['X1', 'X2']].")
    groups = list(exclusive)
    if groups and all(isinstance(group, str) for group in groups):
        raise InterventionError(f"{rule}, but got {groups!r:.200}. Write [{groups!r:.200}] for one group.")
    return tuple(_names(group, "each group in exclusive") for group in groups)


def require_budget(graph: CausalGraph, budget: int) -> int:
    """The budget as an int from 0 to the number of controllable variables."""
    most = len(graph.controllable)
    whole = isinstance(budget, (int, np.integer)) and not isinstance(budget, bool)
    if not whole or not 0 <= budget <= most:
        raise InterventionError(
            f"budget must be a whole number from 0 to {most} (the controllable variables), but got {shown(budget)}."
            + (" Lower it, or make more variables controllable." if whole and budget > most else "")
        )
    return int(budget)
