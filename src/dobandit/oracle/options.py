"""Options: every variable with every value that it may be set to, numbered as in `linear_gains`.

An option is a pair (variable, value). Required variables with one value are set from the start; those with several are
options that must be taken; what they cost is spent already.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.ordering import offsets
from dobandit.oracle.actions import Action, Allowed
from dobandit.oracle.linear_gains import relevant_ids


class OptionArrays(NamedTuple):
    """The options as arrays. Groups are exclusive, and may overlap."""

    node: NDArray[np.int32]  # (options,)
    to: NDArray[np.float64]  # (options,)
    cost: NDArray[np.float64]  # (options,) share of the total cost, or of the budget
    kind: NDArray[np.int64]  # (options,) at most one option of a kind is taken: a variable, or the first of its groups
    must: NDArray[np.int32]  # variables of which some option must be taken, in this order
    group_ptr: NDArray[np.int64]  # (n + 2,) groups of each variable
    group: NDArray[np.int64]


class Options:
    """The options that rules allow.

    given    (node, value) of what is set from the start
    members  nodes of each exclusive group
    room     options that may be taken besides those that must;  exact: whether exactly so many count
    maximal  whether only actions count to which nothing can be added (where costs or groups limit their size)
    """

    def __init__(self, allowed: Allowed) -> None:
        self.allowed, rules = allowed, allowed.rules
        self.ids = relevant_ids(allowed.graph)
        number = {v: here for here, v in enumerate(self.ids.tolist()) if here}
        unit = rules.total_cost or 1.0
        self.money = rules.money / unit
        self.has_costs = rules.total_cost is not None
        several = [v for v in allowed.required if v in number and len(allowed.values[v]) > 1]
        free = 0.0 if self.has_costs else 1.0  # with a mere budget all options count one, which keeps them in order
        self.money += free * len(several)
        self._always = {v: allowed.values[v][-1] for v in allowed.required if v not in several}
        self.given = [(number[v], to) for v, to in self._always.items() if v in number]
        prices = [rules.unit_cost(name) / unit for name in allowed.names]
        useful = [(v, price) for v, price in zip(allowed.candidates, prices, strict=True) if price <= self.money]
        rows = [(v, to, free) for v in several for to in allowed.values[v]]
        rows += [(v, to, price) for v, price in useful for to in allowed.values[v]]
        node = np.array([number[v] for v, _, _ in rows], dtype=np.int32)
        self.members = [
            np.array([number[allowed.graph.index(name)] for name in group]) for group in rules.groups(allowed.names)
        ]
        of_node: list[list[int]] = [[] for _ in self.ids]
        for which, group in enumerate(self.members):
            for v in group.tolist():
                of_node[v].append(which)
        self.table = OptionArrays(
            node,
            np.array([to for _, to, _ in rows]),
            np.array([price for _, _, price in rows]),
            np.array([of_node[v][0] if of_node[v] else len(self.members) + v for v in node], dtype=np.int64),
            np.array([number[v] for v in several], dtype=np.int32),
            offsets([len(here) for here in of_node]),
            np.array([which for here in of_node for which in here], dtype=np.int64),
        )
        self.room = min(allowed.most, len(useful))
        self.exact = allowed.full_only and allowed.budget_alone
        self.maximal = rules.smaller is False and not allowed.budget_alone

    @property
    def depth(self) -> int:
        """The most options that an action takes."""
        return len(self.table.must) + self.room

    def action(self, chosen: Iterable[int]) -> Action:
        """What is set from the start, and these options (-1 for none)."""
        done = dict(self._always)
        for i in chosen:
            if i >= 0:
                done[int(self.ids[self.table.node[i]])] = float(self.table.to[i])
        ids = sorted(done)
        return Action(tuple(ids), tuple(done[v] for v in ids))
