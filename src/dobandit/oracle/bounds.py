"""What no allowed action exceeds, for any links and any signs: one interval pass downwards.

[low_v, high_v] holds E[v | do(A)] for every allowed action A. Parents that are binary are 0 or 1 in each world, so the
weighted sum x of a node lies in a range that its weights give, and its mean lies in an interval that its parents'
intervals give; E[f(x)] is then at most the concave envelope of f over the range at the largest mean, and at least the
convex envelope at the smallest. Envelopes are taken over a grid: f does not decrease, so between two grid points it is
at most its value at the upper one and at least that at the lower one, and the bounds hold up to rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dobandit.model.bglm import WeightedModel
from dobandit.model.causal_model import CausalModel
from dobandit.model.links import Link, identity
from dobandit.oracle.actions import Allowed

Array = NDArray[np.float64]
_CELLS = 200
_MOST_NODES = 5_000  # beyond, the pass would take longer than a second


def highest_mean(model: CausalModel, allowed: Allowed) -> float:
    """An upper bound of E[Y] over all allowed actions; the budget is not looked at. 1 for models without weights."""
    if not isinstance(model, WeightedModel) or len(model.graph) > _MOST_NODES:
        return 1.0
    arrays, required = model.graph.arrays, set(allowed.required)
    low, high = np.ones(len(model.graph) + 1), np.ones(len(model.graph) + 1)
    for v in range(1, len(low)):
        ends = list(allowed.values.get(v, ()))
        if v not in required:
            slots, link = slice(arrays.parent_ptr[v], arrays.parent_ptr[v + 1]), model.links[v - 1]
            theta, least, most = model.theta[slots], low[arrays.parent[slots]], high[arrays.parent[slots]]
            means = _sums(theta, least, most)
            if link != identity:  # a parent whose mean can only be 0, or 1, is so in every world
                means = mean_range(link, _sums(theta, np.floor(least), np.ceil(most)), means)
            ends += np.clip(means, 0.0, 1.0).tolist()
        low[v], high[v] = min(ends), max(ends)
    return float(high[arrays.target])


def _sums(theta: Array, low: Array, high: Array) -> tuple[float, float]:
    """The least and the largest weighted sum of values from `low` to `high`."""
    positive = theta >= 0.0
    return float(theta @ np.where(positive, low, high)), float(theta @ np.where(positive, high, low))


def mean_range(link: Link, reach: tuple[float, float], means: tuple[float, float]) -> tuple[float, float]:
    """Between which numbers E[f(x)] lies for x within `reach` with a mean between `means`."""
    x = np.linspace(*reach, _CELLS + 1) if reach[1] > reach[0] else np.array(reach)
    f = np.asarray(link.value(x), dtype=float)
    above = np.concatenate([f[1:], f[-1:]])
    below = np.concatenate([f[:1], f[:-1]])
    low, high = (min(max(mean, reach[0]), reach[1]) for mean in means)
    return -concave_at(x, -below, low), concave_at(x, above, high)


def concave_at(x: Array, y: Array, at: float) -> float:
    """The upper concave envelope of the points (x, y), x ascending, at one place: the largest chord over it."""
    left, right = x <= at, x >= at
    start, width = x[left, None], x[right] - x[left, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(width > 0.0, (at - start) / width, 0.0)
    return float((y[left, None] + share * (y[right] - y[left, None])).max())
