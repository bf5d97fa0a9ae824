"""Options: every variable with every value that it may be set to, in the numbers of `Passes`.

An option is a pair (variable, value). Required variables with one value are set from the start; those with several are
options that must be taken; what they cost is spent already.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.ordering import offsets
from dobandit.model.bglm import WeightedModel
from dobandit.oracle.actions import Action, Allowed
from dobandit.oracle.passes import Passes, full_pass, passes_of


class OptionArrays(NamedTuple):
    """The options as arrays. Groups are exclusive, and may overlap."""

    node: NDArray[np.int32]  # (options,)
    to: NDArray[np.float64]  # (options,)
    cost: NDArray[np.float64]  # (options,) share of the total cost, or of the budget
    kind: NDArray[np.int64]  # (options,) at most one option of a kind is taken: a variable, or the first of its groups
    must: NDArray[np.int32]  # variables of which some option must be taken, in this order
    group_ptr: NDArray[np.int64]  # (n + 2,) groups of each variable
    group: NDArray[np.int64]


class Steps(NamedTuple):
    """What greedy steps came to."""

    chosen: list[int]  # options
    value: float
    bound: float  # what no allowed action exceeds
    factor: float | None  # of what the best gains; None where none is known, or a limit came first
    looked: int


class Options:
    """A problem for the searches, whatever the signs of effects.

    room     options that may be taken besides those that must;  exact: whether exactly so many count
    maximal  whether only actions count to which nothing can be added (where costs or groups limit their size)
    """

    def __init__(self, model: WeightedModel, allowed: Allowed) -> None:
        self.allowed, rules = allowed, allowed.rules
        self.passes: Passes = passes_of(model)
        number = {int(v): here for here, v in enumerate(self.passes.ids) if here}
        unit = rules.total_cost or 1.0
        self.money = rules.money / unit
        self.has_costs = rules.total_cost is not None
        self.monotone = allowed.monotone
        several = [v for v in allowed.required if v in number and len(allowed.values[v]) > 1]
        free = 0.0 if self.has_costs else 1.0  # with a mere budget all options count one, which keeps them in order
        self.money += free * len(several)
        self.given = {v: allowed.values[v][-1] for v in allowed.required if v not in several}
        prices = [rules.unit_cost(name) / unit for name in allowed.names]
        useful = [(v, price) for v, price in zip(allowed.candidates, prices, strict=True) if price <= self.money]
        rows = [(v, to, free) for v in several for to in allowed.values[v]]
        rows += [(v, to, price) for v, price in useful for to in allowed.values[v]]
        node = np.array([number[v] for v, _, _ in rows], dtype=np.int32)
        of_node: list[list[int]] = [[] for _ in self.passes.ids]
        groups = rules.groups(allowed.names)
        for which, group in enumerate(groups):
            for name in group:
                of_node[number[allowed.graph.index(name)]].append(which)
        self.group_count = len(groups)
        self.table = OptionArrays(
            node,
            np.array([to for _, to, _ in rows]),
            np.array([price for _, _, price in rows]),
            np.array([of_node[v][0] if of_node[v] else self.group_count + v for v in node], dtype=np.int64),
            np.array([number[v] for v in several], dtype=np.int32),
            offsets([len(here) for here in of_node]),
            np.array([which for here in of_node for which in here], dtype=np.int64),
        )
        self.room = min(allowed.most, len(useful))
        forced = allowed.full_only and rules.smaller is False
        self.exact = allowed.full_only and allowed.budget_alone
        self.maximal = forced and not allowed.budget_alone
        self.fixed = [(number[v], to) for v, to in self.given.items() if v in number]
        self.restart()

    @property
    def depth(self) -> int:
        """The most options that an action takes."""
        return len(self.table.must) + self.room

    def restart(self) -> float:
        """Back to what is given; returns its E[Y]."""
        p = self.passes
        p.is_set[:] = False
        for v, to in self.fixed:
            p.is_set[v], p.to[v] = True, to
        return float(full_pass(p))

    def action(self, chosen: Iterable[int]) -> Action:
        """What is given, and these options (-1 for none)."""
        done = dict(self.given)
        for i in chosen:
            if i >= 0:
                done[int(self.passes.ids[self.table.node[i]])] = float(self.table.to[i])
        ids = sorted(done)
        return Action(tuple(ids), tuple(done[v] for v in ids))
