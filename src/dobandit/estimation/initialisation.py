"""How long BGLM-OFU would observe before its first intervention, found by simulating pure observation."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from dobandit.model.bglm import BinaryGLM, LinearModel
from dobandit.model.projection import project

Array = NDArray[np.float64]


def lambda_min_rounds(
    model: BinaryGLM | LinearModel, thresholds: Mapping[str, float], most: int, rng: np.random.Generator
) -> int | None:
    """Rounds of pure observation until lambda_min(M_{t,X}) >= thresholds[X] for every X; None if not within `most`.

    "Do no intervention until Eq. (3) holds for every X" (Section 3), simulated once; see `Assumptions.thresholds`.
    Observing more never lowers an eigenvalue, so each node's first such round is found by bisection.
    """
    graph = project(model).graph
    if any(least > most for least in thresholds.values()):
        return None  # values are at most 1, so lambda_min is at most t
    waiting = {name: least for name, least in thresholds.items() if graph.parents(name) or graph.has_bias(name)}
    gram: dict[str, Array] = {name: np.zeros(()) for name in waiting}
    start = reached = 0
    for size in block_sizes(most):
        sample = model.sample(None, size, rng)
        for name, least in list(waiting.items()):
            V = np.array([np.ones(size)] * graph.has_bias(name) + [sample[p] for p in graph.parents(name)], float).T
            if _least_eigenvalue(gram[name] + V.T @ V) >= least:
                reached = max(reached, start + _first_round(gram[name], V, least))
                del waiting[name]
            else:
                gram[name] = gram[name] + V.T @ V
        if not waiting:
            return reached
        start += size
    return None


def block_sizes(most: int) -> Iterator[int]:
    """64, 128, ... up to 16384 at a time, `most` in all: the rounds that are sampled together."""
    size = 64
    while most > 0:
        yield min(size, most)
        most -= min(size, most)
        size = min(2 * size, 1 << 14)


def _first_round(before: Array, V: Array, least: float) -> int:
    return bisect.bisect_left(
        range(len(V) + 1), True, key=lambda rows: _least_eigenvalue(before + V[:rows].T @ V[:rows]) >= least
    )


def _least_eigenvalue(M: Array) -> float:
    """lambda_min, raised by what rounding may have taken: a matrix with lambda_min = 1 must pass for 1."""
    return float(np.linalg.eigvalsh(M)[0]) + 1e-13 * float(np.trace(M))
