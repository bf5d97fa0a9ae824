"""Nodes that are not set, for exact inference: by weights and a link, or by a table. See `FreeNode` in `base`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dobandit.model import elimination
from dobandit.model.base import FreeNode
from dobandit.model.links import Link, identity

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WeightedNode(FreeNode):
    """x = base + weights . free parents; the node is 1 with probability f(x)."""

    base: float
    parents: tuple[int, ...]
    weights: tuple[float, ...]
    link: Link

    @property
    def affine(self) -> bool:
        return self.link is identity or super().affine

    def mean(self, means: Array) -> float:
        if self.link is identity:
            return float(self.link.probability(self.base + np.dot(self.weights, means[list(self.parents)])))
        return super().mean(means)

    def table(self) -> Array:
        return np.asarray(self.link.probability(elimination.conditional_table(self.base, self.weights)))

    def given(self, columns: list[Array]) -> Array:
        x = self.base + sum((w * column for w, column in zip(self.weights, columns, strict=True)), np.zeros(1))
        return np.asarray(self.link.probability(x))


@dataclass(frozen=True)
class TableNode(FreeNode):
    """P(node = 1) for each pattern of its free parents."""

    parents: tuple[int, ...]
    probabilities: Array

    def table(self) -> Array:
        return self.probabilities

    def given(self, columns: list[Array]) -> Array:
        return np.asarray(self.probabilities[tuple(column.astype(np.intp) for column in columns)])
