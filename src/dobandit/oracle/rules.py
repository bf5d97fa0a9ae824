"""Rules: which actions are allowed. One spelling for `solve`, `start`, `create_experiment`, `simulate` and commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypedDict

import numpy as np

from dobandit.checks import as_float, as_yes_or_no, is_whole, listable, shown
from dobandit.errors import InterventionError, closest, listed
from dobandit.graph.causal_graph import CausalGraph

_MOST_COST = 1e300  # sums of costs stay finite


class RuleWords(TypedDict, total=False):
    """The rules besides the budget, as keywords."""

    levers: Mapping[str, Iterable[float]]
    costs: Mapping[str, float] | None
    total_cost: float | None
    require: Iterable[str]
    forbid: Iterable[str]
    exclusive: Iterable[Iterable[str]]
    smaller: bool | None
    always_set: Iterable[str]
    available: Iterable[str] | None


RULE_WORDS = tuple(RuleWords.__annotations__)


@dataclass(frozen=True)
class Rules:
    """Which actions are allowed: which variables may be set together, and to what.

    budget      at most so many variables
    levers      the values that a variable may be set to, such as {"price": (0, 1)}; 1 where none are given
    costs       cost of each variable (1 where none is given), with `total_cost` the most that an action may cost
    require     variables that every action sets;  forbid: variables that no action sets
    exclusive   groups of which an action sets at most one
    smaller     whether actions count to which another variable could be added. None: where they can be best, that is,
                unless every effect is known to help (then one more variable never hurts; paper, Appendix G)
    available   the only variables that can be set (None: all controllable ones)
    always_set  required variables, set to 0 or 1 unless `levers` say otherwise, of which it is promised that every
                round sets them: what would cause them otherwise, hidden causes too, is then of no account, and rounds
                in which they were not set teach a model nothing

    >>> rules = Rules(2, levers={"price": [0, 1]}, costs={"email": 3}, total_cost=4)
    >>> rules.values_of("price"), rules.cost("email"), rules.unit_cost("price")
    ((0.0, 1.0), 3.0, 1.0)
    >>> rules.allows(["price", "email"]), rules.limited(["price"]).available
    (True, ('price',))
    >>> rules.to_document()["costs"]
    {'email': 3.0}
    """

    budget: int | None = None
    levers: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)
    total_cost: float | None = None
    require: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    exclusive: tuple[tuple[str, ...], ...] = ()
    smaller: bool | None = None
    available: tuple[str, ...] | None = None
    always_set: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        costs = self.costs if self.costs is not None else {}
        if not isinstance(costs, Mapping):
            raise InterventionError(f"costs give a number by name, such as {{'X1': 2}}, but got {costs!r}.")
        if self.smaller is not None and as_yes_or_no(self.smaller) is None:
            raise InterventionError(f"smaller is True, False or None, but got {shown(self.smaller)}.")
        always = _names(self.always_set, "always_set")
        given = {
            "levers": dict.fromkeys(always, (0.0, 1.0)) | _levers(self.levers),
            "costs": dict(costs),
            "require": tuple(dict.fromkeys((*_names(self.require, "require"), *always))),
            "always_set": always,
            "forbid": _names(self.forbid, "forbid"),
            "exclusive": _groups(self.exclusive),
            "available": None if self.available is None else _names(self.available, "available"),
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)

    # -- one variable --------------------------------------------------------------------------------------------

    def values_of(self, name: str) -> tuple[float, ...]:
        """What the variable `name` may be set to."""
        return self.levers.get(name, (1.0,))

    @property
    def at_one(self) -> bool:
        """Whether variables are only ever set to 1."""
        return all(values == (1.0,) for values in self.levers.values())

    def cost(self, name: str) -> float:
        """What setting the variable `name` costs: 1 where nothing else was said."""
        return float(self.costs.get(name, 1.0))

    def unit_cost(self, name: str) -> float:
        """What the variable `name` uses up of `money`."""
        return 1.0 if self.total_cost is None else self.cost(name)

    # -- sets of variables ---------------------------------------------------------------------------------------

    def candidates(self, graph: CausalGraph, hidden: Sequence[str] = ()) -> tuple[str, ...]:
        """Variables that may be set besides the required ones; checks that some action is allowed at all.

        graph   what causes what
        hidden  its variables that only count as hidden

        >>> graph = CausalGraph([("ad", "buy"), ("mail", "buy")], target="buy")
        >>> rules = Rules(1, forbid=["mail"])
        >>> rules.candidates(graph), rules.most(["ad"]), rules.budget_alone(["ad"]), rules.groups(["ad"])
        (('ad',), 1, True, ())
        """
        self._check_names(graph, hidden)
        if self.budget is None and self.total_cost is None:
            raise InterventionError("a problem needs a budget or a total cost, but got neither. Give one of them.")
        if self.budget is not None:
            require_budget(graph, self.budget)
        self._check_costs()
        self._check_required()
        allowed, required = set(graph.controllable if self.available is None else self.available), set(self.require)
        ruled_out = [name for group in self.exclusive if required.intersection(group) for name in group]
        out = {*self.forbid, *required, *ruled_out}
        return tuple(name for name in graph.controllable if name in allowed and name not in out)

    def limited(self, available: Iterable[str]) -> Rules:
        """These rules where only `available` variables can be set, of those that could be before."""
        names = tuple(dict.fromkeys(available))
        return replace(self, available=tuple(n for n in names if self.available is None or n in self.available))

    @property
    def money(self) -> float:
        """The cost that is left for candidates, with a hair for rounding; the budget where there are no costs."""
        if self.total_cost is None:
            return float((self.budget or 0) - len(self.require))
        return float(self.total_cost) * (1 + 1e-12) - sum(self.cost(name) for name in self.require)

    def most(self, candidates: Sequence[str]) -> int:
        """How many candidates an action can set at most."""
        count = len(candidates) if self.budget is None else min(self.budget - len(self.require), len(candidates))
        if self.total_cost is not None:
            money, affordable = self.money, 0
            for price in sorted(self.cost(name) for name in candidates):
                money -= price
                affordable += money >= 0
            count = min(count, affordable)
        return count

    def groups(self, candidates: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The exclusive groups that rule something out among the candidates: of two or more, none within another."""
        if not self.exclusive:
            return ()
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

    def budget_alone(self, candidates: Sequence[str]) -> bool:
        """Whether nothing but the budget says how many candidates go together."""
        return self.total_cost is None and not self.groups(candidates)

    def allows(self, chosen: Iterable[str]) -> bool:
        """Whether the candidates in `chosen` may be set together, besides the required ones."""
        whole = {*chosen, *self.require}
        if self.budget is not None and len(whole) > self.budget:
            return False
        if self.total_cost is not None and sum(map(self.cost, whole)) > self.total_cost * (1 + 1e-12):
            return False
        return all(sum(name in whole for name in group) <= 1 for group in self.exclusive)

    # -- to and from files ---------------------------------------------------------------------------------------

    def to_document(self) -> dict[str, Any]:
        """As JSON; what says nothing is left out, but for what files have always said."""
        document: dict[str, Any] = {
            "budget": None if self.budget is None else int(self.budget),
            "costs": {name: float(cost) for name, cost in self.costs.items()},
            "total_cost": None if self.total_cost is None else float(self.total_cost),
            "require": list(self.require),
            "forbid": list(self.forbid),
            "exclusive": [list(group) for group in self.exclusive],
        }
        if self.levers:
            document["levers"] = {name: list(values) for name, values in self.levers.items()}
        if self.smaller is not None:
            document["smaller"] = self.smaller
        if self.always_set:
            document["always_set"] = list(self.always_set)
        if self.available is not None:
            document["available"] = list(self.available)
        return document

    # -- checks --------------------------------------------------------------------------------------------------

    def _check_required(self) -> None:
        unavailable = [name for name in self.require if self.available is not None and name not in self.available]
        if unavailable:
            raise InterventionError(
                f"{listed(unavailable)} is required, but not available. No set is allowed. Require less, or wait until "
                "it can be set."
            )
        both = [name for name in self.require if name in self.forbid]
        if both:
            raise InterventionError(
                f"{listed(both)} is both required and forbidden. No set is allowed. Drop one of the two."
            )
        if self.budget is not None and len(self.require) > self.budget:
            raise InterventionError(
                f"{listed(self.require)} must be set, but the budget is {self.budget}. No set is allowed. Raise the "
                "budget, or require less."
            )
        spent = sum(self.cost(name) for name in self.require)
        if self.total_cost is not None and spent > self.total_cost * (1 + 1e-12):
            raise InterventionError(
                f"what is required has cost {spent:g}, but the total cost is {self.total_cost:g}. No set is allowed. "
                "Raise the total cost, or require less."
            )
        for group in self.exclusive:
            clash = [name for name in group if name in self.require]
            if len(clash) > 1:
                raise InterventionError(
                    f"{listed(clash)} are required, but exclude each other. No set is allowed. Require one of them."
                )

    def _check_names(self, graph: CausalGraph, hidden: Sequence[str]) -> None:
        groups = [name for group in self.exclusive for name in group]
        roles: dict[str, Iterable[str]] = {
            "what is always set are": self.always_set,
            "levers are of": self.levers,
            "costs are of": self.costs,
            "what is required are": self.require,
            "what is forbidden are": self.forbid,
            "what excludes each other are": groups,
            "what is available are": self.available or (),
        }
        known = set(graph.controllable)
        for role, names in roles.items():
            for name in names:
                if name not in known:
                    raise InterventionError(f"{role} controllable variables, but {_what_is(graph, name, hidden)}")

    def _check_costs(self) -> None:
        if self.costs and self.total_cost is None:
            raise InterventionError("costs need a total cost, but none is given. Give one, or leave the costs out.")
        if self.total_cost is not None and not _is_cost(self.total_cost):
            raise InterventionError(
                f"the total cost is {_cost_rule(self.total_cost)}, but got {shown(self.total_cost)}."
            )
        for name, cost in self.costs.items():
            if not _is_cost(cost):
                raise InterventionError(f"a cost is {_cost_rule(cost)}, but that of {name} is {shown(cost)}.")


def rules_of(budget: int | Rules | None = None, words: Mapping[str, Any] | None = None) -> Rules:
    """Rules from what users write: a budget with further words, or Rules as they are."""
    words = words or {}
    known = [name.name for name in fields(Rules)]
    for word in words:
        if word not in known:
            raise TypeError(f"rules are {', '.join(known)}, but got {word!r}.{closest(word, known)}")
    if isinstance(budget, Rules):
        if words:
            raise InterventionError(
                f"Rules hold every rule, but {listed(words)} came beside them. Put it into the Rules."
            )
        return budget
    return Rules(budget, **words)


def _is_cost(cost: object) -> bool:
    cost = float(cost) if isinstance(cost, np.number) and not isinstance(cost, np.complexfloating) else cost
    return isinstance(cost, (int, float)) and not isinstance(cost, bool) and 0 <= cost <= _MOST_COST


def _cost_rule(cost: object) -> str:
    """What a cost is, for one that is none."""
    too_large = isinstance(cost, (int, float)) and cost > _MOST_COST
    return f"at most {_MOST_COST:g}" if too_large else "a number, 0 or more"


def _what_is(graph: CausalGraph, name: object, hidden: Sequence[str]) -> str:
    """Why a name cannot be set, as the end of a sentence."""
    if name in hidden:
        return f"{name!r} counts as hidden, and what is hidden is not set. Leave it out, or do not hide it."
    if name == graph.target:
        return f"{name!r} is the target. Leave it out."
    if name in graph.latent:
        return f"{name!r} is hidden. Leave it out."
    if name in graph.effects:
        return f"{name!r} is an effect of the target {graph.target!r}: setting it changes nothing. Leave it out."
    if name in graph.context:
        return f"{name!r} is of the context, which is seen and not set. Leave it out."
    if name in graph:
        return f"{name!r} is not controllable. Leave it out, or add it to the graph's controllable variables."
    return f"{name!r} is none of {listed(graph.controllable)}.{closest(name, graph.controllable)}"


def _levers(levers: object) -> dict[str, tuple[float, ...]]:
    rule = "levers give the values that a variable may be set to, such as {'price': (0, 1)}"
    if levers is None:
        return {}
    if not isinstance(levers, Mapping):
        raise InterventionError(f"{rule}, but got {shown(levers)}.")
    found: dict[str, tuple[float, ...]] = {}
    for name, values in levers.items():
        numbers = [values] if isinstance(values, (int, float, np.number)) else listable(values)
        if numbers is None:
            raise InterventionError(f"{rule}, but got {shown(values)} for {name!r}.")
        for value in numbers:
            if not 0 <= as_float(value) <= 1 and not isinstance(value, bool):
                raise InterventionError(
                    f"a lever is a value from 0 to 1 that a variable may be set to, but {name!r} has {shown(value)}."
                )
        if not numbers:
            raise InterventionError(f"{rule}, but {name!r} has none. Forbid {name!r} if it is never set.")
        found[name] = tuple(sorted({float(value) for value in numbers}))
    return found


def _names(names: Iterable[str], what: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InterventionError(f"{what} is a list of names, but got the string {names!r}. Write [{names!r}].")
    given = listable(names)
    if given is None:
        raise InterventionError(f"{what} is a list of names, such as ['X1', 'X2'], but got {shown(names)}.")
    odd = [name for name in given if not isinstance(name, str)]
    if odd:
        raise InterventionError(
            f"{what} is a list of names, such as ['X1', 'X2'], but {shown(odd[0])} in it is no name."
        )
    return tuple(dict.fromkeys(given))


def _groups(exclusive: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    rule = "exclusive is a list of groups, each of them a list of names"
    groups = listable(exclusive)
    if groups is None:
        raise InterventionError(f"{rule}, but got {shown(exclusive)}. Write [['X1', 'X2']].")
    if groups and all(isinstance(group, str) for group in groups):
        raise InterventionError(f"{rule}, but got {groups!r:.200}. Write [{groups!r:.200}] for one group.")
    return tuple(_names(group, "each group in exclusive") for group in groups)


def require_budget(graph: CausalGraph, budget: int) -> int:
    """The budget as an int from 0 to the number of controllable variables."""
    most = len(graph.controllable)
    whole = is_whole(budget)
    if not whole or not 0 <= budget <= most:
        raise InterventionError(
            f"the budget must be a whole number from 0 to {most} (the controllable variables), but got {shown(budget)}."
            + (" Lower it, or make more variables controllable." if whole and budget > most else "")
        )
    return int(budget)
