"""CausalModel: what every model of a world offers, whatever its nodes are made of.

Inference, oracles, worlds and studies ask a model for no more than this:
    graph, target, links, continuous, noise    what there is
    is_linear, nonnegative                     what may be relied on
    sample, draw                               random worlds
    free_node                                  P(node | parents) once some nodes are set, for exact inference
    node_arrays                                the same for compiled loops
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import is_whole
from dobandit.errors import ModelError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.links import Link
from dobandit.model.weights import Do, fixed_values

if TYPE_CHECKING:
    import os

    from dobandit.model.link_kernels import NodeArrays

Array = NDArray[np.float64]
_CHUNK = 1 << 15  # samples per block: a node's row stays in the cache
_MOST_VALUES = 1 << 32
_MOST_AT_ONCE = 1 << 22  # values per block, for graphs with very many nodes


@dataclass(frozen=True)
class FreeNode:
    """A node that is not set, with the values of its set parents folded in.

    parents  the ids of those that are free too
    table    P(node = 1 | free parents), one axis of length 2 per free parent: worked out when asked, as it may be large
    linear   (base, weight by parent) where the node's mean is base + weights . parents
    """

    parents: tuple[int, ...]
    table: Callable[[], Array]
    linear: tuple[float, tuple[float, ...]] | None = None

    @property
    def affine(self) -> bool:
        """Whether its mean follows from its parents' means alone."""
        return self.linear is not None or len(self.parents) <= 1

    def mean(self, means: Array) -> float:
        """E[node] from the means of all nodes by id; right where the node is affine."""
        if self.linear is not None:
            base, weights = self.linear
            return min(max(base + float(np.dot(weights, means[list(self.parents)])), 0.0), 1.0)
        if not self.parents:
            return float(self.table())
        at_zero, at_one = self.table().tolist()
        return float(at_zero + (at_one - at_zero) * means[self.parents[0]])


class CausalModel(ABC):
    """A causal graph together with how likely each node is, given its parents."""

    continuous = False

    graph: CausalGraph
    links: tuple[Link, ...] | None = None  # by node, in the graph's order; None where nodes have no links
    noise: Array  # by id

    @property
    def target(self) -> str:
        """The name of the variable to make likely."""
        return self.graph.target

    @property
    def structure(self) -> CausalGraph:
        """What causes what, as a learner is told it."""
        return self.graph

    @property
    @abstractmethod
    def is_linear(self) -> bool:
        """Whether every node's mean is the weighted sum of its parents' values (in the paper's words: a BLM)."""

    @property
    @abstractmethod
    def nonnegative(self) -> bool:
        """Whether no parent ever makes its child less likely, so that one more variable set to 1 never lowers
        E[target]. The paper's algorithms and sets of exactly K variables rest on this."""

    @abstractmethod
    def free_node(self, v: int, fixed: Array) -> FreeNode:
        """Node v where some nodes are set.

        v      the node's id
        fixed  by id, the values of the nodes that are set; NaN: free
        """

    @abstractmethod
    def node_arrays(self) -> NodeArrays:
        """The nodes for compiled loops."""

    @abstractmethod
    def _means_into(self, out: Array, v: int, values: Array) -> None:
        """Put v's mean given its parents into `out`, a number per draw; `values` is (ids, draws)."""

    def sample(
        self, do: Do | None = None, size: int = 1, rng: np.random.Generator | int | None = None, *, latent: bool = False
    ) -> dict[str, NDArray[Any]]:
        """Independent draws under do(...): an array by name.

        do      as in `expect`
        size    how many
        rng     a NumPy generator, or a seed
        latent  whether hidden variables are given too

        The random numbers used for a node do not depend on `do`, so two calls with equally seeded generators
        compare interventions on common random numbers.

        >>> import dobandit as dob
        >>> dob.paper.G4.sample({"X2": 1}, size=3, rng=0)["X2"]
        array([1, 1, 1], dtype=uint8)
        """
        if not is_whole(size) or size < 0:
            raise ModelError(f"size must be a whole number from 0, but got {size!r}.")
        if size * len(self.graph) > _MOST_VALUES:
            raise ModelError(
                f"{size} draws of {len(self.graph)} nodes are more than {_MOST_VALUES:,} values. Draw in several calls."
            )
        if rng is not None and not isinstance(rng, np.random.Generator) and not (is_whole(rng) and rng >= 0):
            raise ModelError(f"rng is a NumPy generator or a whole number from 0, but got {rng!r}.")
        fixed = fixed_values(self.graph, do, continuous=self.continuous)
        out = np.empty((len(self.graph) + 1, size), dtype=np.float64 if self.continuous else np.uint8)
        start = 0
        for values, _ in self.draw(fixed, int(size), np.random.default_rng(rng)):
            out[:, start : start + values.shape[1]] = values
            start += values.shape[1]
        shown = self.graph.nodes if latent else self.graph.observed
        return {name: out[self.graph.index(name)] for name in shown}

    def draw(self, fixed: Array, size: int, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
        """Draws in blocks, for loops over very many.

        fixed  by id, the values of the nodes that are set; NaN: free
        size   how many draws
        rng    a NumPy generator

        Gives pairs of arrays (ids, block): the values, and each node's mean given its parents. Buffers are reused.
        """
        ids = len(self.graph) + 1
        most = max(1, min(_CHUNK, _MOST_AT_ONCE // ids))
        buffers = np.empty((2, ids, min(most, size)))
        for start in range(0, size, most):
            block = min(most, size - start)
            values, means = buffers[:, :, :block]
            values[0] = means[0] = 1.0
            for v in range(1, ids):
                uniform = rng.random(block)
                jitter = rng.random(block) if self.noise[v] else None
                if not math.isnan(fixed[v]):
                    values[v] = means[v] = fixed[v]
                    continue
                self._means_into(means[v], v, values)
                self._realise(values[v], means[v], uniform, jitter, self.noise[v])
            yield values, means

    def _realise(self, out: Array, mean: Array, uniform: Array, jitter: Array | None, noise: float) -> None:
        """Turn a node's conditional means into values."""
        if jitter is not None:
            mean = mean + (2.0 * jitter - 1.0) * noise * np.minimum(mean, 1.0 - mean)
        np.less(uniform, mean, out=out)

    def knowing(self, context: Mapping[str, float]) -> CausalModel:
        """The model of everyone with this context: its variables are gone, and what they do is part of the biases, or
        of smaller tables.

        context  the values of some variables, whose causes must be among them

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("mobile", "buy"), ("ad", "buy")], target="buy", context=["mobile"])
        >>> weights = {"mobile": 0.5, "ad": 0.1, "buy": 0.1, ("mobile", "buy"): 0.2, ("ad", "buy"): 0.3}
        >>> dob.BinaryGLM(graph, weights).knowing({"mobile": 1}).parent_weights("buy")
        (0.30000000000000004, {'ad': 0.3})
        """
        return self._knowing(context) if context else self

    def _knowing(self, context: Mapping[str, float]) -> CausalModel:
        raise ModelError(f"contexts are known in models with weights or tables, but got {type(self).__name__}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.graph!r})"

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model of this kind from a model file (JSON); errors tell the JSON path. `read_model` reads any kind.

        path  the file
        """
        from dobandit.model.model_files import read_model

        model = read_model(path)
        if not isinstance(model, cls):
            raise ModelError(f"{path} holds a {type(model).__name__}. Read it with read_model.")
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file (JSON) that every command reads.

        path  the file

        >>> import dobandit as dob
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     dob.paper.G4.save(f"{folder}/model.json")
        ...     dob.BinaryGLM.from_file(f"{folder}/model.json") == dob.paper.G4
        True
        """
        from dobandit.model.model_files import write_model

        write_model(self, path)
