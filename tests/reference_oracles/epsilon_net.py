"""The epsilon-net pair-oracle of Li et al. (2020): the paper's point of comparison for Algorithm 4.

Each node's region is replaced by the points of a grid of step epsilon in [0,1]^d that lie inside it, and e . theta is
maximised by looking at all of them. The grid has (1/epsilon + 1)^d points, so this is for nodes with few parents.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import InferenceError
from dobandit.estimation.belief import Layout
from dobandit.oracle.action_list import ActionList

Array = NDArray[np.float64]
MOST_POINTS = 20_000_000


def net(center: Array, gram: Array, rho: float, epsilon: float) -> Array:
    """Grid points of [0,1]^d with ||theta - center||_M <= rho; the one nearest to the centre if there is none."""
    d = len(center)
    if not 0 < epsilon <= 1:
        raise InferenceError(f"epsilon must be above 0 and at most 1, but got {epsilon!r}.")
    axis = np.linspace(0.0, 1.0, round(1.0 / epsilon) + 1)
    if len(axis) ** d > MOST_POINTS:
        raise InferenceError(
            f"a net of step {epsilon} over {d} parents has {len(axis) ** d:.3g} points; the most is {MOST_POINTS:,}. "
            "Use a larger epsilon, or the closed form."
        )
    points = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    off = points - center
    distance = np.einsum("ki,ij,kj->k", off, gram, off)
    inside = distance <= rho * rho
    return points[inside] if inside.any() else points[[int(np.argmin(distance))]]


def score_sets_epsilon_net(
    layout: Layout, actions: ActionList, theta: Array, gram: Array, rho: Array, epsilon: float
) -> Array:
    """Optimistic E[Y | do(set)] of every action of the list."""
    nets: dict[int, Array] = {}
    for v in actions.order.tolist():
        slots = slice(int(layout.ptr[v]), int(layout.ptr[v + 1]))
        d = slots.stop - slots.start
        square = gram[layout.square[v] : layout.square[v + 1]].reshape(d, d)
        nets[v] = net(theta[slots], square, float(rho[v]), epsilon)
    values = np.zeros(len(actions.ids))
    for i in range(len(values)):
        action = actions.actions.row(i)
        chosen = dict(zip(action.ids, action.values, strict=True))
        means = np.zeros(len(layout.ptr) - 1)
        means[0] = 1.0
        for v in actions.order.tolist():
            parents = layout.parent[layout.ptr[v] : layout.ptr[v + 1]]
            means[v] = chosen[v] if v in chosen else float((nets[v] @ means[parents]).max(initial=0.0))
        values[i] = means[layout.target]
    return values
