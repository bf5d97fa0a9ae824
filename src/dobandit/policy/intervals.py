"""An interval for E[target | do(...)] from the nodes' confidence regions.

Weights are nonnegative, so E[target] grows with every conditional mean. Upwards and downwards each node takes, given
its parents, the largest and the smallest value that its region allows:
linear links    e . theta -+ rho ||e||_{M^+} with e the parents' lowest (highest) means, within [0, 1];
any link        f(v . theta -+ rho ||v||_{M^+}) for each parent pattern v, then exact inference, or sampling.
If every region holds its true weights, the interval holds the true mean. Directions that no row has shown are
unbounded by the data, whatever prior or radius a policy has: there a node's mean runs from 0 to 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.kernels import kernel
from dobandit.model import elimination
from dobandit.policy.beliefs import Beliefs, NodeBelief
from dobandit.policy.problem import Problem

Array = NDArray[np.float64]
_WIDEST = 16
_SAMPLES = 20_000
_WAYS = (-1.0, 0.0, 1.0)  # down, the estimate, up


def target_interval(beliefs: Beliefs, problem: Problem, fixed: Array) -> tuple[float, float, float]:
    """(low, estimate, high) of E[target] where `fixed` is set or known (NaN: free)."""
    target = problem.graph.arrays.target
    if not math.isnan(fixed[target]):
        low = value = high = float(fixed[target])
    else:
        low, value, high = (_linear if problem.is_linear else _any_link)(beliefs, problem, fixed)
    # With few rows an estimate can lie outside [0, 1], and the recursions then cross: the interval holds all of them.
    return min(low, value, high), value, max(low, value, high)


def _linear(beliefs: Beliefs, problem: Problem, fixed: Array) -> list[float]:
    state, order = beliefs.state, np.array(problem.order, dtype=np.int64)
    unseen = beliefs.unseen(v for v in problem.order if math.isnan(fixed[v]))
    theta, null, out = np.ascontiguousarray(beliefs.theta), np.ascontiguousarray(unseen), np.zeros(3)
    arrays = state.nodes, state.slots, state.pairs, order, theta, null
    linear_passes(*arrays, fixed, beliefs.radii, np.ones(len(fixed)), out)
    return list(out.tolist())


@kernel
def linear_passes(
    nodes: Any, slots: Any, pairs: Any, order: Any, theta: Any, null: Any, fixed: Any, rho: Any, e: Any, out: Any
) -> None:
    """out = E[target] with every node, given its parents' means e, at the lowest, the estimate and the highest."""
    for way in range(3):
        for k in range(len(order)):
            v = order[k]
            if not math.isnan(fixed[v]):
                e[v] = fixed[v]
                continue
            start, at, d = nodes[v]["start"], nodes[v]["square"], nodes[v]["width"]
            mean = width = unseen = 0.0
            for i in range(d):
                x = e[slots[start + i]["parent"]]
                mean += x * theta[start + i]
                if way != 1:
                    for j in range(d):
                        y = e[slots[start + j]["parent"]]
                        width += x * pairs[at + i * d + j]["inverse"] * y
                        unseen += x * null[at + i * d + j] * y
            if unseen > 1e-9:
                mean = way / 2.0
            else:
                mean += (way - 1) * rho[v] * math.sqrt(max(width, 0.0))
            e[v] = min(max(mean, 0.0), 1.0)
        out[way] = e[order[len(order) - 1]]


def _any_link(beliefs: Beliefs, problem: Problem, fixed: Array) -> list[float]:
    nodes = {v: beliefs.node(v) for v in problem.order if math.isnan(fixed[v])}
    scopes = [(*(p for p in node.parents if math.isnan(fixed[p])), v) for v, node in nodes.items()]
    cliques = elimination.elimination_cliques(scopes, _WIDEST)
    if cliques is None:
        return [_sampled(problem.seed, nodes, fixed, way) for way in _WAYS]
    found = []
    for node, (*parents, v) in zip(nodes.values(), scopes, strict=True):
        rows = np.empty((2,) * len(parents) + (len(node.parents),))
        grid = dict(zip(parents, np.indices((2,) * len(parents)), strict=True))
        for j, p in enumerate(node.parents):
            rows[..., j] = grid.get(p, fixed[p])
        ends = _probabilities(node, rows, _WAYS)
        found.append([elimination.parents_and_self(p, parents, v) for p in ends])
    return [elimination.marginals(list(factors), cliques)[scopes[-1][-1]] for factors in zip(*found, strict=True)]


def _sampled(seed: int, nodes: dict[int, NodeBelief], fixed: Array, way: float) -> float:
    rng = np.random.default_rng([seed, 0x1A7E])
    worlds = np.tile(fixed[:, None], (1, _SAMPLES))
    p = np.zeros(_SAMPLES)
    for v, node in nodes.items():
        (p,) = _probabilities(node, worlds[node.parents].T, (way,))
        worlds[v] = rng.random(_SAMPLES) < p
    return float(p.mean())


def _probabilities(node: NodeBelief, rows: Array, ways: tuple[float, ...]) -> list[Array]:
    """f(v . theta + way rho ||v||_{M^+}) of each row v, within [0, 1] and the link's domain; 0 or 1 where the row
    has a part that was never seen, or the data ask for infinite weights, which bound nothing."""
    width = np.sqrt(np.maximum(np.einsum("...i,ij,...j->...", rows, node.inverse, rows), 0.0))
    unseen = (np.einsum("...i,ij,...j->...", rows, node.null, rows) > 1e-9) | (node.status == "separable")
    found = []
    for way in ways:
        sums = np.asarray(rows @ node.theta + way * node.radius * width, dtype=float)
        sums = np.where(unseen, way * math.inf, sums) if way else sums
        inside = np.clip(np.nan_to_num(sums, posinf=1e6, neginf=-1e6), *node.link.domain)
        p = np.clip(np.asarray(node.link.value(inside), dtype=float), 0.0, 1.0)
        found.append(np.where(np.isposinf(sums), 1.0, np.where(np.isneginf(sums), 0.0, p)))
    return found
