"""What a set is expected to do, path by path, in a linear model.

theta: weights, in [0, 1].  S: the variables that are set, or known from the context.  Y: the target.
E[Y | do(S)] is the sum, over the directed paths that start at a variable of S or at a bias (the constant's edge into a
node that is not set), enter S nowhere else and end at Y, of the product of their weights and of the value at the start.
So with the edges into S replaced by edges from the constant, whose weights are the values, it is the sum over all paths
from the constant to Y.

best[v]: the largest product from v to Y. A path that deviates from another one and then follows `best` is the largest
of those with its beginning, so each path found yields the candidates for the next: O(edges) of them, whatever the
number of paths, which can be exponential.
"""

from __future__ import annotations

import heapq
import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph

Edges = list[list[tuple[int, float]]]  # by id: (child, weight)
_Branch = tuple[int, float, "_Branch | None"]  # a path's last node, its product, and the path before


class Path(NamedTuple):
    """Variables from the first to the target; from_bias: the first one was not set, but is 1 by itself."""

    names: tuple[str, ...]
    from_bias: bool
    contribution: float


def top_paths(
    graph: CausalGraph, theta: NDArray[np.float64], fixed: NDArray[np.float64], most: int = 10
) -> tuple[list[Path], float]:
    """The `most` paths that contribute most to E[Y | do(...)], largest first, and what the others add up to.

    fixed: the value of what is set or known by id, NaN where a variable is free

    >>> from dobandit.model.weights import fixed_values
    >>> graph = CausalGraph([("ad", "visit"), ("visit", "buy"), ("ad", "buy")], target="buy", bias=["visit"])
    >>> paths, rest = top_paths(graph, np.array([0.25, 0.5, 0.125, 0.75]), fixed_values(graph, ["ad"]), most=2)
    >>> [(path.names, path.contribution) for path in paths], rest
    ([(('ad', 'visit', 'buy'), 0.375), (('visit', 'buy'), 0.1875)], 0.125)
    """
    target = graph.arrays.target
    children = _edges(graph, np.clip(theta, 0.0, 1.0), fixed)
    mean, best, follow = _passes(children, target)
    found = _largest(children, best, follow, target, most) if best[0] > 0.0 else []
    found.sort(key=lambda path: (-path[0], path[1]))
    paths = [
        Path(tuple(graph.nodes[v - 1] for v in ids), math.isnan(fixed[ids[0]]), contribution)
        for contribution, ids in found
    ]
    rest = mean[target] - math.fsum(path.contribution for path in paths)
    return paths, max(rest, 0.0)  # below 0 is rounding


def _edges(graph: CausalGraph, theta: NDArray[np.float64], fixed: NDArray[np.float64]) -> Edges:
    """Positive weights by cause; what is set or known hangs on the constant alone, by its value."""
    ptr, parent = graph.arrays.parent_ptr.tolist(), graph.arrays.parent.tolist()
    weights: list[float] = theta.tolist()
    children: Edges = [[] for _ in range(len(graph) + 1)]
    for v in range(1, len(graph) + 1):
        if not math.isnan(fixed[v]):
            if fixed[v] > 0.0:
                children[0].append((v, float(fixed[v])))
        else:
            for slot in range(ptr[v], ptr[v + 1]):
                if weights[slot] > 0.0:
                    children[parent[slot]].append((v, weights[slot]))
    return children


def _passes(children: Edges, target: int) -> tuple[list[float], list[float], list[int]]:
    """By id: the mean, the largest product to the target, and the child through which it goes (the first of equals)."""
    ids = len(children)
    mean, best, follow = [0.0] * ids, [0.0] * ids, [0] * ids
    mean[0] = best[target] = 1.0
    for v in range(ids):
        for child, weight in children[v]:
            mean[child] += mean[v] * weight
    for v in range(ids - 1, -1, -1):
        for child, weight in children[v]:
            if weight * best[child] > best[v]:
                best[v], follow[v] = weight * best[child], child
    return mean, best, follow


def _largest(
    children: Edges, best: list[float], follow: list[int], target: int, most: int
) -> list[tuple[float, tuple[int, ...]]]:
    """(product, ids after the constant) of the largest paths.

    The queue holds beginnings, each for the largest path that begins so; a path is in it at most once, because the
    first edge after its beginning that is not `best`'s tells which path it deviates from.
    """
    found: list[tuple[float, tuple[int, ...]]] = []
    queue: list[tuple[float, int, _Branch]] = [(-best[0], 0, (0, 1.0, None))]
    pushed = 0
    while queue and len(found) < most:
        branch = heapq.heappop(queue)[2]
        while branch[0] != target:
            v, product, _ = branch
            onward = branch
            for child, weight in children[v]:
                longer = (child, product * weight, branch)
                value = product * weight * best[child]
                if child == follow[v]:
                    onward = longer
                elif value > 0.0:
                    pushed += 1
                    heapq.heappush(queue, (-value, pushed, longer))
            branch = onward
        ids, back = list[int](), branch
        while back[2] is not None:  # up to the constant, which is left out
            ids.append(back[0])
            back = back[2]
        found.append((branch[1], tuple(reversed(ids))))
    return found


def path_product(graph: CausalGraph, theta: NDArray[np.float64], path: Path, fixed: NDArray[np.float64]) -> float:
    """The product of the weights along a path, which may have any sign here, and of the value it starts from."""
    product = 1.0 if path.from_bias else float(fixed[graph.index(path.names[0])])
    ids = [0, *map(graph.index, path.names)] if path.from_bias else [*map(graph.index, path.names)]
    for cause, effect in pairwise(ids):
        start, end = int(graph.arrays.parent_ptr[effect]), int(graph.arrays.parent_ptr[effect + 1])
        product *= float(theta[start + graph.arrays.parent[start:end].tolist().index(cause)])
    return product
