"""Action: which variables are set, and to what. Allowed: every action that rules allow on a graph, in ids."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import InferenceError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.oracle.rules import Rules

MANY = 10**18  # counting stops here
MOST_LISTED = 2_000_000
_MOST_RULED = 200_000  # where rules beyond the budget are checked action by action


class Action(NamedTuple):
    """What is set, and to what: ids ascending, a value each. The empty action sets nothing."""

    ids: tuple[int, ...] = ()
    values: tuple[float, ...] = ()

    def named(self, graph: CausalGraph) -> dict[str, float]:
        """The action as users write it: {"X3": 1}."""
        names = graph.nodes
        return {names[i - 1]: plain(value) for i, value in zip(self.ids, self.values, strict=True)}

    def over(self, context: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values by id: the action's, those of the context elsewhere, NaN where neither says anything."""
        fixed = context.copy()
        fixed[list(self.ids)] = self.values
        return fixed


NOTHING = Action()


def action_of(fixed: NDArray[np.float64]) -> Action:
    """The action that an array over ids describes: the value a variable is set to, NaN where it is free."""
    ids = [v for v in np.flatnonzero(~np.isnan(fixed)).tolist() if v]
    return Action(tuple(ids), tuple(fixed[ids].tolist()))


def action_named(do: Mapping[str, float], graph: CausalGraph) -> Action:
    """The action that sets these variables of a graph: the inverse of `Action.named`."""
    to = {graph.index(name): float(value) for name, value in do.items()}
    return Action(tuple(sorted(to)), tuple(to[v] for v in sorted(to)))


def order_of(graph: CausalGraph) -> list[int]:
    """The target's ancestors and the target, in topological order."""
    return [graph.index(name) for name in graph.ancestors(graph.target)] + [graph.arrays.target]


def plain(value: float) -> float:
    """0 and 1 as whole numbers, as people write them."""
    return int(value) if value in (0.0, 1.0) else float(value)


class Actions(NamedTuple):
    """Many actions: a row each, filled up with id 0 and value 0."""

    ids: NDArray[np.int32]  # (count, size)
    values: NDArray[np.float64]  # (count, size)

    def row(self, i: int) -> Action:
        """Row i as an Action; setting nothing where i is below 0."""
        if i < 0:
            return NOTHING
        kept = [(v, to) for v, to in zip(self.ids[i].tolist(), self.values[i].tolist(), strict=True) if v]
        return Action(tuple(v for v, _ in kept), tuple(to for _, to in kept))


def actions_of(rows: Sequence[Action]) -> Actions:
    """The arrays of given actions, in their order."""
    width = max((len(row.ids) for row in rows), default=0)
    ids, values = np.zeros((len(rows), width), dtype=np.int32), np.zeros((len(rows), width))
    for i, row in enumerate(rows):
        ids[i, : len(row.ids)], values[i, : len(row.ids)] = row.ids, row.values
    return Actions(ids, values)


class Allowed:
    """Every action that `rules` allow on `graph`.

    monotone  whether one more variable set never lowers E[Y]: then actions to which nothing can be added are enough,
              unless the rules say that smaller ones count
    relevant  ids of the variables worth setting (None: all); required ones are set in any case
    """

    def __init__(
        self, graph: CausalGraph, rules: Rules, monotone: bool, relevant: Container[int] | None = None
    ) -> None:
        self.graph, self.rules, self.monotone = graph, rules, monotone
        every = [(name, graph.index(name)) for name in rules.candidates(graph)]
        useful = [(name, v) for name, v in every if relevant is None or v in relevant]
        self.names = tuple(name for name, _ in useful)
        self.candidates = tuple(v for _, v in useful)
        self.required = tuple(sorted(graph.index(name) for name in rules.require))
        self.values: dict[int, tuple[float, ...]] = {
            v: rules.values_of(graph.nodes[v - 1]) for v in (*self.required, *self.candidates)
        }
        self.most = rules.most(self.names)
        self.full_only = monotone if rules.smaller is None else not rules.smaller
        self.budget_alone = rules.budget_alone(self.names)

    @cached_property
    def at_one(self) -> bool:
        """Whether variables are only ever set to 1."""
        return all(values == (1.0,) for values in self.values.values())

    def sizes_in_words(self, full_only: bool | None = None) -> str:
        """Which sizes of sets count: "sets of exactly 3"."""
        size = self.most + len(self.required)
        if self.full_only if full_only is None else full_only:
            return f"sets of exactly {size}" if self.budget_alone else "sets to which nothing can be added"
        return f"sets of at most {size}" + ("" if self.required else ", nothing included")

    def reason_in_words(self) -> str:
        """Why these sizes: "one more variable never lowers the target here"."""
        if self.rules.smaller is not None:
            return "smaller ones count, as was asked" if self.rules.smaller else "smaller ones were ruled out"
        if self.monotone:
            return "one more variable never lowers the target here"
        return "effects may do harm" if self.rules.at_one else "variables can be set to other values than 1"

    def count(self) -> int:
        """How many actions there are; where costs or groups rule some out, how many at most. Stops at MANY."""
        levers = [len(self.values[v]) for v in self.candidates]
        total = math.prod(len(self.values[v]) for v in self.required)
        sizes = [self.most] if self.full_only and self.budget_alone else range(self.most + 1)
        if self.at_one:
            return min(sum(capped_comb(len(levers), size) for size in sizes), MANY)
        ways = [1] + [0] * self.most  # by size
        for before, levers_here in enumerate(levers):
            for size in range(min(self.most, before + 1), 0, -1):
                ways[size] = min(ways[size] + ways[size - 1] * levers_here, MANY)
            if any(ways[size] == MANY for size in sizes):
                return MANY
        return min(total * sum(ways[size] for size in sizes), MANY)

    def allows(self, chosen: Iterable[int]) -> bool:
        """Whether the rules allow to set these variables together, besides the required ones."""
        return self.rules.allows(self._names(chosen))

    def can_grow(self, action: Action) -> bool:
        """Whether another variable could be set besides."""
        chosen = set(action.ids)
        return any(v not in chosen and self.allows([*chosen, v]) for v in self.candidates)

    def every(self) -> Iterator[Action]:
        """Every allowed action. Where sets of full size are enough and nothing but the budget limits them, these alone;
        the largest first where one more never hurts, else the smallest."""
        sizes = range(self.most, self.most - 1 if self.full_only and self.budget_alone else -1, -1)
        for size in sizes if self.full_only else reversed(sizes):
            for chosen in combinations(self.candidates, size):
                if self.budget_alone or self.allows(chosen):
                    yield from self._to_values(chosen)

    @property
    def most_listed(self) -> int:
        """How many actions are listed at most."""
        return MOST_LISTED if self.budget_alone else _MOST_RULED

    def rows(self) -> Actions:
        """Every action worth trying: with costs or groups and where one more never hurts, those to which nothing can be
        added."""
        count = self.count()
        if count > self.most_listed:
            raise InferenceError(self._too_many(count))
        if self.budget_alone and self.at_one:
            return self._plain_rows()
        found = list(self.every())
        if self.full_only and not self.budget_alone:
            found = [action for action in found if not self.can_grow(action)]
        return actions_of(found)

    def _plain_rows(self) -> Actions:
        """Every set that counts, all at 1: the smallest first, those of one size in lexicographic order."""
        parts = []
        for size in [self.most] if self.full_only else range(self.most + 1):
            count = capped_comb(len(self.candidates), size)
            flat = chain.from_iterable(combinations(self.candidates, size))
            chosen = np.fromiter(flat, dtype=np.int32, count=count * size).reshape(count, size)
            required = np.tile(np.array(self.required, dtype=np.int32), (count, 1))
            ids = np.sort(np.hstack([required, chosen]), axis=1)
            parts.append(np.pad(ids, ((0, 0), (0, self.most - size))))
        every = np.concatenate(parts)
        return Actions(every, (every > 0).astype(float))

    def _to_values(self, chosen: Iterable[int]) -> Iterator[Action]:
        ids = tuple(sorted((*self.required, *chosen)))
        for values in product(*(self.values[v] for v in ids)):
            yield Action(ids, values)

    def _names(self, ids: Iterable[int]) -> list[str]:
        return [self.graph.nodes[v - 1] for v in ids]

    def _too_many(self, count: int) -> str:
        many = f"{count:,} or more" if count == MANY else f"{count:,}"
        if self.budget_alone:
            return (
                f"there are {many} sets of {self.most} out of {len(self.candidates)} variables, and looking at each of "
                f"them is done only up to {MOST_LISTED:,}. Lower the budget, or make fewer variables controllable."
            )
        return (
            f"there are up to {many} sets of {len(self.candidates)} variables, and with costs or exclusive groups "
            f"they are listed only up to {_MOST_RULED:,}. Lower the budget, or make fewer variables controllable."
        )


def capped_comb(n: int, k: int) -> int:
    """n choose k, at most `MANY`: beyond, it has too many digits to print, and to compute in time."""
    term = 1 if k <= n else 0
    for size in range(min(k, n - k)):
        term = term * (n - size) // (size + 1)
        if term >= MANY:
            return MANY
    return term
