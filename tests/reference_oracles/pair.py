"""The literal line 9 of Algorithm 1 for any link: one theta per node, in its region, that maximises E[Y | do(S)].

A reference for small graphs: E[Y] and its gradient are sums over all worlds. The regions are convex and the exact
maximum of a linear function over one is known (`boxed_maximum`), so theta climbs by conditional gradients, one node at
a time, from several starts. Every step stays in the region and never goes down, but a start may end in a local
maximum: the answer is a lower bound of line 9, and never below the value at the estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import InferenceError
from dobandit.estimation.belief import PAIR, Layout, layout_of
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.links import Link
from dobandit.oracle.boxed import COORDINATE, boxed_maximum

Array = NDArray[np.float64]
_MOST_FREE = 14
_STEPS = 200


@dataclass(frozen=True)
class Regions:
    """theta in [0,1]^d with ||theta - center||_M <= rho, for every node: flat arrays in the order of the layout."""

    graph: CausalGraph
    links: tuple[Link, ...]
    center: Array
    gram: Array
    rho: Array  # by id

    @property
    def layout(self) -> Layout:
        return layout_of(self.graph)


def pair_value(regions: Regions, chosen: Sequence[str], starts: int = 4, seed: int = 0) -> tuple[float, Array]:
    """(value, theta): a maximum of E[Y | do(chosen = 1)] over one theta per node."""
    worlds = _Worlds(regions, chosen)
    rng = np.random.default_rng(seed)
    best, argument = -1.0, regions.center
    for start in range(starts):
        theta = worlds.nearest() if start == 0 else worlds.corner(rng.random(len(regions.center)))
        value = worlds.climb(theta)
        if value > best:
            best, argument = value, theta
    return best, argument


class _Worlds:
    """Every world of the target's free ancestors, with the nodes' rows and probabilities in each."""

    def __init__(self, regions: Regions, chosen: Sequence[str]) -> None:
        graph, self.regions, self.layout = regions.graph, regions, regions.layout
        fixed = {graph.index(name) for name in chosen}
        needed = [graph.index(name) for name in graph.ancestors(graph.target)] + [graph.arrays.target]
        self.free = [v for v in needed if v not in fixed]
        if len(self.free) > _MOST_FREE:
            raise InferenceError(
                f"the pair oracle sums over 2^(free nodes) worlds, here 2^{len(self.free)}; the most is "
                f"2^{_MOST_FREE}. Use the per-pattern oracle."
            )
        self.values = np.ones((len(graph) + 1, 1 << len(self.free)))
        for bit, v in enumerate(self.free):
            self.values[v] = (np.arange(1 << len(self.free)) >> bit) & 1
        self.pairs = np.zeros(len(regions.gram), PAIR)
        self.pairs["gram"] = regions.gram
        self.reward = self.values[graph.arrays.target]

    def slots(self, v: int) -> slice:
        return slice(int(self.layout.ptr[v]), int(self.layout.ptr[v + 1]))

    def factor(self, v: int, theta: Array) -> tuple[Array, Array, Array]:
        """(P(v's value | parents), d/dx P(v = 1), rows) in each world."""
        slots, link = self.slots(v), self.regions.links[v - 1]
        rows = self.values[self.layout.parent[slots]]
        x = np.clip(theta[slots] @ rows, *link.domain)
        p = np.clip(np.asarray(link.value(x), dtype=float), 0.0, 1.0)
        return np.where(self.values[v] > 0, p, 1.0 - p), np.asarray(link.slope(x), dtype=float), rows

    def value(self, theta: Array) -> float:
        probability = np.ones(self.values.shape[1])
        for v in self.free:
            probability = probability * self.factor(v, theta)[0]
        return float(probability @ self.reward)

    def gradient(self, theta: Array, v: int) -> Array:
        """d value / d theta_v."""
        others = self.reward.copy()
        for u in self.free:
            if u != v:
                others = others * self.factor(u, theta)[0]
        _, slope, rows = self.factor(v, theta)
        return np.asarray(rows @ (others * slope * np.where(self.values[v] > 0, 1.0, -1.0)), dtype=float)

    def farthest(self, v: int, direction: Array) -> Array:
        """The theta of v's region that goes farthest along `direction`."""
        d, slots = len(direction), self.slots(v)
        box, work = np.zeros(d, COORDINATE), np.zeros(d * d + d)
        box["weight"], box["center"] = direction, self.regions.center[slots]
        boxed_maximum(self.pairs, int(self.layout.square[v]), d, float(self.regions.rho[v]), box, work)
        return box["theta"].copy()

    def nearest(self) -> Array:
        """The estimate itself, or the nearest point of each region."""
        theta = np.zeros_like(self.regions.center)
        for v in self.free:
            theta[self.slots(v)] = self.farthest(v, np.zeros(self.slots(v).stop - self.slots(v).start))
        return theta

    def corner(self, direction: Array) -> Array:
        theta = np.zeros_like(self.regions.center)
        for v in self.free:
            theta[self.slots(v)] = self.farthest(v, direction[self.slots(v)])
        return theta

    def climb(self, theta: Array) -> float:
        """Raise theta in place until no node can improve."""
        value = self.value(theta)
        for _ in range(_STEPS):
            before = value
            for v in self.free:
                slots = self.slots(v)
                old = theta[slots].copy()
                goal = self.farthest(v, self.gradient(theta, v))
                best_share = 0.0
                for share in (1.0, 0.5, 0.25, 0.125, 0.03125, 0.0078125):
                    theta[slots] = old + share * (goal - old)
                    trial = self.value(theta)
                    if trial > value:
                        value, best_share = trial, share
                theta[slots] = old + best_share * (goal - old)
            if value - before < 1e-12:
                break
        return value
