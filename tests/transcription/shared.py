"""What all algorithms of the transcription share: sets, arg max, features."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph

Array = NDArray[np.float64]

Set = tuple[str, ...]  # names in the order of graph.controllable

Values = Mapping[str, float]

TIE = 1e-9

# Eigenvalues of a singular Gram matrix come out as rounding errors; below this share of the largest they are 0.
PSEUDO_INVERSE_CUTOFF = 1e-10


class Learner(Protocol):
    def propose(self, u: Sequence[float]) -> Set: ...
    def update(self, action_set: Set, observation: Values) -> None: ...


def candidate_sets(graph: CausalGraph, budget: int) -> list[Set]:
    """Every S with |S| = K of the controllable variables with a path to Y; all of them if there are fewer."""
    relevant = [name for name in graph.controllable if graph.target in graph.descendants(name)]
    return list(itertools.combinations(relevant, min(budget, len(relevant))))


def all_arms(graph: CausalGraph, budget: int) -> list[Set]:
    """The baselines' arms: every K-subset of the controllable variables (Appendix H.2)."""
    return list(itertools.combinations(graph.controllable, min(budget, len(graph.controllable))))


def pick(values: Sequence[float], u0: float) -> int:
    """Position of the largest value; values within 1e-9 of it tie, and u0 chooses among them."""
    best = max(values)
    tied = [i for i, value in enumerate(values) if value >= best - TIE * max(1.0, abs(best))]
    return tied[int(u0 * len(tied))]


def dimension(graph: CausalGraph, name: str) -> int:
    """|Pa(X)|, the constant counted where it is a parent."""
    return int(graph.has_bias(name)) + len(graph.parents(name))


def features(graph: CausalGraph, name: str, values: Values) -> Array:
    """V_X: the values of X's parents, the constant first."""
    constant = [1.0] if graph.has_bias(name) else []
    return np.array(constant + [float(values[parent]) for parent in graph.parents(name)])


def pseudo_inverse(M: Array) -> Array:
    return np.linalg.pinv(M, rcond=PSEUDO_INVERSE_CUTOFF, hermitian=True)


def width(v: Array, M_inverse: Array) -> float:
    """||v|| in the norm of M^-1; rounding must not make the square negative."""
    return math.sqrt(max(0.0, float(v @ M_inverse @ v)))
