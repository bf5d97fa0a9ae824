"""An interval for E[target | do(...)] from the nodes' confidence regions.

Weights are nonnegative, so E[target] grows with every conditional mean. Upwards and downwards each node takes, given
its parents, the largest and the smallest value that its region allows:
linear links    e . theta -+ rho ||e||_{M^+} with e the parents' lowest (highest) means, within [0, 1];
any link        f(v . theta -+ rho ||v||_{M^+}) for each parent pattern v, then exact inference, or sampling.
If every region holds its true weights, the interval holds the true mean. Directions that no row has shown are
unbounded by the data: there a node's mean runs from 0 to 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.model import elimination
from dobandit.model.links import Link, identity
from dobandit.policy.base import Problem
from dobandit.policy.optimist_engine import OptimistEngine

Array = NDArray[np.float64]
_WIDEST = 16
_SAMPLES = 20_000


def target_interval(
    engine: OptimistEngine, problem: Problem, fixed: Array, rho: Array | None = None
) -> tuple[float, float, float]:
    """(low, estimate, high) of E[target | do(fixed)]; `rho`: other radii than the engine's."""
    graph, radii = problem.graph, engine.radii() if rho is None else rho
    target = graph.arrays.target
    if not math.isnan(fixed[target]):
        low = value = high = float(fixed[target])
    elif problem.is_linear:
        low, value, high = _linear(engine, fixed, radii)
    else:
        needed = [graph.index(name) for name in graph.ancestors(graph.target)] + [target]
        low, value, high = (_any_link(engine, problem, needed, fixed, sign * radii) for sign in (-1.0, 0.0, 1.0))
    # With few rows an estimate can lie outside [0, 1], and the recursions then cross: the interval holds all of them.
    return min(low, value, high), value, max(low, value, high)


class _Region:
    """A node's estimate and region, ready for many parent vectors at once."""

    def __init__(self, engine: OptimistEngine, v: int, rho: float) -> None:
        layout, stats = engine.linear.layout, engine.linear_state.stats
        start, end = int(layout.ptr[v]), int(layout.ptr[v + 1])
        at = slice(int(layout.square[v]), int(layout.square[v + 1]))
        d = end - start
        self.parents = layout.parent[start:end].tolist()
        self.theta = engine.theta()[start:end]
        self.inverse, self.null = stats.inverse[at].reshape(d, d), stats.null[at].reshape(d, d)
        self.rho = rho
        self.unbounded = engine.status(v) == "separable"  # the data ask for infinite weights: they bound nothing

    def sums(self, rows: Array) -> Array:
        """v . theta + rho ||v||_{M^+} of each row; +-inf where the row has a part that was never seen."""
        width = np.sqrt(np.maximum(np.einsum("...i,ij,...j->...", rows, self.inverse, rows), 0.0))
        sums = rows @ self.theta + self.rho * width
        if self.rho:
            unseen = (np.einsum("...i,ij,...j->...", rows, self.null, rows) > 1e-9) | self.unbounded
            sums = np.where(unseen, math.copysign(math.inf, self.rho), sums)
        return np.asarray(sums, dtype=float)

    def probabilities(self, rows: Array, link: Link) -> Array:
        """f of the sums, within [0, 1] and within the link's domain."""
        sums = self.sums(rows)
        inside = np.clip(np.nan_to_num(sums, posinf=1e6, neginf=-1e6), *link.domain)
        p = np.clip(np.asarray(link.value(inside), dtype=float), 0.0, 1.0)
        return np.where(np.isposinf(sums), 1.0, np.where(np.isneginf(sums), 0.0, p))


def _linear(engine: OptimistEngine, fixed: Array, rho: Array) -> tuple[float, float, float]:
    layout, stats = engine.linear.layout, engine.linear_state.stats
    out = np.zeros(3)
    _linear_passes(
        layout.ptr,
        layout.parent,
        layout.square,
        engine.linear.tree.order,
        engine.theta(),
        stats.inverse,
        stats.null,
        fixed,
        rho,
        np.ones(len(fixed)),
        out,
    )
    low, value, high = out.tolist()
    return low, value, high


@kernel
def _linear_passes(
    ptr: Any,
    parent: Any,
    square: Any,
    order: Any,
    theta: Any,
    inverse: Any,
    null: Any,
    fixed: Any,
    rho: Any,
    e: Any,
    out: Any,
) -> None:
    """out = E[target] with every node, given its parents' means e, at the lowest, the estimate and the highest."""
    for way in range(3):
        for k in range(len(order)):
            v = order[k]
            if not math.isnan(fixed[v]):
                e[v] = fixed[v]
                continue
            start, at = ptr[v], square[v]
            d = ptr[v + 1] - start
            mean = width = unseen = 0.0
            for i in range(d):
                x = e[parent[start + i]]
                mean += x * theta[start + i]
                if way != 1:
                    for j in range(d):
                        y = e[parent[start + j]]
                        width += x * inverse[at + i * d + j] * y
                        unseen += x * null[at + i * d + j] * y
            if unseen > 1e-9 and rho[v] > 0.0:
                mean = way / 2.0
            else:
                mean += (way - 1) * rho[v] * math.sqrt(max(width, 0.0))
            e[v] = min(max(mean, 0.0), 1.0)
        out[way] = e[order[len(order) - 1]]


def _any_link(engine: OptimistEngine, problem: Problem, needed: list[int], fixed: Array, rho: Array) -> float:
    free = [v for v in needed if math.isnan(fixed[v])]
    regions = {v: _Region(engine, v, float(rho[v])) for v in free}
    scopes = [(*(p for p in regions[v].parents if math.isnan(fixed[p])), v) for v in free]
    cliques = elimination.elimination_cliques(scopes, _WIDEST)
    if cliques is None:
        return _sampled(problem, regions, fixed)
    factors = []
    for v, (*parents, _) in zip(free, scopes, strict=True):
        rows = np.empty((2,) * len(parents) + (len(regions[v].parents),))
        grid = dict(zip(parents, np.indices((2,) * len(parents)), strict=True))
        for j, p in enumerate(regions[v].parents):
            rows[..., j] = grid.get(p, fixed[p])
        table = regions[v].probabilities(rows, _link(problem, v))
        factors.append(elimination.parents_and_self(table, parents, v))
    return elimination.marginals(factors, cliques)[free[-1]]


def _sampled(problem: Problem, regions: dict[int, _Region], fixed: Array) -> float:
    rng = np.random.default_rng([problem.seed, 0x1A7E])
    worlds = np.tile(fixed[:, None], (1, _SAMPLES))
    p = np.zeros(_SAMPLES)
    for v, region in regions.items():
        p = region.probabilities(worlds[region.parents].T, _link(problem, v))
        worlds[v] = rng.random(_SAMPLES) < p
    return float(p.mean())


def _link(problem: Problem, v: int) -> Link:
    return problem.links[v - 1] if problem.links else identity
