"""E[Y] of an action that changes by one variable at a time: what greedy steps climb on.

Linear models have all gains from two passes (`linear_gains`). For other links E[Y] is exact while that is cheap;
otherwise it is a mean over worlds that are drawn once, the same for every action (`common_worlds`).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dobandit import limits
from dobandit.errors import InferenceError
from dobandit.model import elimination
from dobandit.model.base import CausalModel
from dobandit.model.bglm import WeightedModel
from dobandit.model.inference import expect
from dobandit.oracle.actions import Action
from dobandit.oracle.common_worlds import SEED, WORLDS, CommonWorlds
from dobandit.oracle.linear_gains import LinearGains, relevant_ids
from dobandit.oracle.options import Options

_NODE_WORK = 2_500  # what a node costs besides its tables, in entries


class Objective(Protocol):
    """E[Y] of what is set. Nodes are numbered as in `linear_gains`."""

    at_once: bool  # whether all gains together cost what one costs

    @property
    def value(self) -> float:
        """E[Y]."""

    def gains(self, nodes: NDArray[np.int32], to: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each of these nodes, which are free, would add, set to its value."""

    def set(self, v: int, to: float) -> None:
        """Set a free node."""

    def free(self, v: int) -> None:
        """Set a node free."""


def objective_of(model: CausalModel, options: Options) -> Objective:
    """The objective that fits: exact inference while a step of it is a matter of seconds, else simulation."""
    if isinstance(model, WeightedModel) and model.is_linear:
        return LinearGains(model)
    arrays, count = model.graph.arrays, len(options.table.node)
    work = _NODE_WORK * len(model.graph) * count
    if work <= limits.MAX_EXACT_WORK:
        fixed = {0, *options.allowed.required}
        slots = [range(arrays.parent_ptr[v], arrays.parent_ptr[v + 1]) for v in range(len(model.graph) + 1)]
        parents = [[p for p in map(int, arrays.parent[s.start : s.stop]) if p not in fixed] for s in slots]
        families = [(*parents[v], v) for v in range(len(slots)) if v not in fixed]
        cliques = elimination.elimination_cliques(families, limits.MAX_EXACT_WORK.bit_length())
        if cliques and work + count * elimination.total_entries(cliques) <= limits.MAX_EXACT_WORK:
            return ByExpectation(model, "auto")
    if isinstance(model, WeightedModel):  # worlds are thresholds of weighted sums
        return CommonWorlds(model)
    return ByExpectation(model, "monte-carlo")


class ByExpectation:
    """By `expect`: exactly, or by simulation with the same random numbers for every action."""

    at_once = False

    def __init__(self, model: CausalModel, method: str) -> None:
        self.model, self.method, self.taken = model, method, dict[str, float]()
        self.names = [model.graph.nodes[v - 1] for v in relevant_ids(model.graph).tolist()]
        self.seen: dict[frozenset[tuple[str, float]], float] = {}

    @property
    def value(self) -> float:
        return self._value(self.taken)

    def _value(self, do: dict[str, float]) -> float:
        key = frozenset(do.items())
        if key not in self.seen:
            self.seen[key] = expect(self.model, do, self.method, samples=WORLDS, seed=SEED).value
        return self.seen[key]

    def gains(self, nodes: NDArray[np.int32], to: NDArray[np.float64]) -> NDArray[np.float64]:
        more = [(self.names[v], x) for v, x in zip(nodes, to.tolist(), strict=True)]
        return np.array([self._value({**self.taken, name: x}) - self.value for name, x in more])

    def set(self, v: int, to: float) -> None:
        self.taken[self.names[v]] = to

    def free(self, v: int) -> None:
        del self.taken[self.names[v]]


def fresh_value(model: CausalModel, action: Action) -> tuple[float, bool]:
    """E[Y] to report, and whether it is exact; else on fresh random numbers: on its own ones the best action looks too
    good."""
    do = action.named(model.graph)
    try:
        return expect(model, do, "elimination").value, True
    except InferenceError:
        return expect(model, do, "monte-carlo", samples=WORLDS).value, False
