"""BinaryGLM: a causal graph whose nodes are 1 with probability f(theta . parents) (paper, Section 2).

theta_X: weights of X's parents, the constant's (the bias) first.  f_X: X's link.
eps_X: zero-mean noise on the probability, uniform on +-noise * min(p, 1 - p), so it never leaves [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import ModelError, closest
from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.model.links import Link, exponential, identity, link_from_document
from dobandit.model.weights import (
    Do,
    Weights,
    edge_name,
    fixed_values,
    keys_in_order,
    node_array,
    number,
    weight_array,
)

if TYPE_CHECKING:
    import os

LinkLike = Link | str | Mapping[str, object]
# Weights that are decimal fractions add up to 1 only to rounding.
TOLERANCE = 1e-9
_CHUNK = 1 << 15  # samples a block: a node's row stays in the cache
_MOST_VALUES = 1 << 32
_MOST_AT_ONCE = 1 << 22  # values a block, for graphs with very many nodes


class WeightedModel:
    """A graph with a weight for every edge and bias; the part that binary and continuous models share."""

    continuous = False

    graph: CausalGraph
    theta: NDArray[np.float64]  # one weight a slot of graph.arrays.parent
    links: tuple[Link, ...]  # by node, in the graph's order
    noise: NDArray[np.float64]  # by id

    def __init__(
        self,
        graph: CausalGraph,
        weights: Weights | NDArray[np.float64],
        links: tuple[Link, ...],
        noise: float | Mapping[str, float] | None,
    ) -> None:
        if not isinstance(graph, CausalGraph):
            raise ModelError(f"a model stands on a CausalGraph, but got {type(graph).__name__}.")
        self.graph = graph
        self.theta = weight_array(graph, weights)
        self.links = links
        self.noise = node_array(graph, noise, "noise")
        self.theta.setflags(write=False)
        self.noise.setflags(write=False)
        _refuse_bad_weights(self)

    @property
    def target(self) -> str:
        return self.graph.target

    @cached_property
    def is_linear(self) -> bool:
        """Whether every link is the identity (in the paper's words: a BLM)."""
        return all(link == identity for link in self.links)

    def link(self, name: str) -> Link:
        return self.links[self.graph.index(name) - 1]

    @cached_property
    def weights(self) -> dict[str | Edge, float]:
        """Weights by edge, and by node for the bias."""
        return dict(zip(keys_in_order(self.graph), self.theta.tolist(), strict=True))

    def parent_weights(self, name: str) -> tuple[float, dict[str, float]]:
        """(bias, weight by parent) of a node; the bias is 0 where it has none."""
        bias = self.weights.get(name, 0.0)
        return bias, {parent: self.weights[parent, name] for parent in self.graph.parents(name)}

    def sample(
        self,
        do: Do | None = None,
        size: int = 1,
        rng: np.random.Generator | int | None = None,
        *,
        latent: bool = False,
    ) -> dict[str, NDArray[Any]]:
        """`size` independent draws under do(...): an array by name, hidden variables only when asked for.

        The random numbers used for a node do not depend on `do`, so two calls with equally seeded generators
        compare interventions on common random numbers.
        """
        if not _is_whole(size) or size < 0:
            raise ModelError(f"size must be a whole number from 0, but got {size!r}.")
        if size * len(self.graph) > _MOST_VALUES:
            raise ModelError(
                f"{size} draws of {len(self.graph)} nodes are more than {_MOST_VALUES:,} values. Draw in several calls."
            )
        if rng is not None and not isinstance(rng, np.random.Generator) and not (_is_whole(rng) and rng >= 0):
            raise ModelError(f"rng is a NumPy generator or a whole number from 0, but got {rng!r}.")
        fixed = fixed_values(self.graph, do, continuous=self.continuous)
        out = np.empty((len(self.graph) + 1, size), dtype=np.float64 if self.continuous else np.uint8)
        start = 0
        for values, _ in self.draw(fixed, int(size), np.random.default_rng(rng)):
            out[:, start : start + values.shape[1]] = values
            start += values.shape[1]
        shown = self.graph.nodes if latent else self.graph.observed
        return {name: out[self.graph.index(name)] for name in shown}

    def draw(
        self, fixed: NDArray[np.float64], size: int, rng: np.random.Generator
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Blocks of draws (ids, block): the values, and each node's mean given its parents. Buffers are reused."""
        ids, ptr, parent = len(self.graph) + 1, self.graph.arrays.parent_ptr, self.graph.arrays.parent
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
                x = means[v]
                x[:] = 0.0
                for slot in range(ptr[v], ptr[v + 1]):
                    x += self.theta[slot] * values[parent[slot]]
                if self.links[v - 1] is not identity:
                    x[:] = self.links[v - 1].value(x)
                np.clip(x, 0.0, 1.0, out=x)
                self._realise(values[v], x, uniform, jitter, self.noise[v])
            yield values, means

    def _realise(
        self,
        out: NDArray[np.float64],
        mean: NDArray[np.float64],
        uniform: NDArray[np.float64],
        jitter: NDArray[np.float64] | None,
        noise: float,
    ) -> None:
        """Turn a node's conditional means into values."""
        if jitter is not None:
            mean = mean + (2.0 * jitter - 1.0) * noise * np.minimum(mean, 1.0 - mean)
        np.less(uniform, mean, out=out)

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, WeightedModel)
            and self.graph == other.graph
            and self.links == other.links
            and np.array_equal(self.theta, other.theta)
            and np.array_equal(self.noise, other.noise)
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.theta.setflags(write=False)  # arrays come writable out of a pickle
        self.noise.setflags(write=False)

    def __hash__(self) -> int:
        return hash((self.graph, self.theta.tobytes()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.graph!r})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file (JSON) that every command reads."""
        from dobandit.model.files import write_model

        write_model(self, path)


class BinaryGLM(WeightedModel):
    """A binary generalized linear model.

    weights  {("X2", "Y"): 0.1} for edges and {"X2": 0.3} for biases; nonnegative. Large models may give an
             array with one weight a slot of `graph.arrays.parent`.
    links    one link for all nodes, or by node (identity elsewhere): a Link, a name, or {"name": ..., ...}
    noise    0..1, one for all or by node: the share of the room min(p, 1 - p) that the noise may use

    >>> graph = CausalGraph([("ad", "buy")], target="buy")
    >>> model = BinaryGLM(graph, {"ad": 0.2, "buy": 0.1, ("ad", "buy"): 0.5})
    """

    def __init__(
        self,
        graph: CausalGraph,
        weights: Weights | NDArray[np.float64],
        links: LinkLike | Mapping[str, LinkLike] | None = None,
        noise: float | Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(graph, weights, links_by_node(graph, links), noise)

    @classmethod
    def blm(
        cls,
        weights: Weights,
        target: str,
        latent: Iterable[str] = (),
        controllable: Iterable[str] | None = None,
        noise: float | Mapping[str, float] | None = None,
    ) -> BinaryGLM:
        """A binary linear model; its graph is read off the weights (a bias entry gives the node the constant)."""
        return cls(graph_of_weights(weights, target, latent, controllable), weights, noise=noise)

    @classmethod
    def linear_threshold(
        cls,
        weights: Weights,
        target: str,
        latent: Iterable[str] = (),
        controllable: Iterable[str] | None = None,
    ) -> BinaryGLM:
        """The linear threshold model: a node turns 1 when the weight of its active parents reaches a uniform
        threshold. On a DAG this is the BLM with the same weights (paper, Section 2)."""
        return cls.blm(weights, target, latent, controllable)

    @classmethod
    def independent_cascade(
        cls,
        probabilities: Weights,
        target: str,
        latent: Iterable[str] = (),
        controllable: Iterable[str] | None = None,
    ) -> BinaryGLM:
        """The independent cascade model: each active parent turns its child 1 with its edge's probability.

        It is the BGLM with f(x) = 1 - exp(-x) and theta = -ln(1 - p); a bias entry is the probability that the
        node turns 1 by itself.
        """
        graph = graph_of_weights(probabilities, target, latent, controllable)
        weights: dict[str | Edge, float] = {}
        for key, value in probabilities.items():
            p = number(value, f"the probability of {key!r}")
            if not 0 <= p < 1:
                raise ModelError(
                    f"the probability of {key!r} must be at least 0 and below 1, but got {p}. "
                    "For a certain effect use a number close to 1, such as 0.999999."
                )
            weights[key] = -math.log1p(-p)
        return cls(graph, weights, links=exponential)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> BinaryGLM:
        """Read a model file; errors tell the JSON path."""
        from dobandit.model.files import read_model

        model = read_model(path)
        if not isinstance(model, cls):
            raise ModelError(f'{path} holds a continuous model ("kind": "continuous"). Read it with LinearModel.')
        return model


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def graph_of_weights(
    weights: Weights, target: str, latent: Iterable[str], controllable: Iterable[str] | None
) -> CausalGraph:
    """The graph that a set of weights speaks of."""
    if not isinstance(weights, Mapping):
        raise ModelError(f"weights are a mapping from edges and nodes to numbers, but got {type(weights).__name__}.")
    started = [key for key in weights if isinstance(key, str)]
    edges = [key for key in weights if not isinstance(key, str)]
    return CausalGraph(edges, target, latent, controllable, bias=started, nodes=started)


def links_by_node(graph: CausalGraph, links: LinkLike | Mapping[str, LinkLike] | None) -> tuple[Link, ...]:
    """One link a node, in the graph's order."""
    if links is None:
        return (identity,) * len(graph)
    if not isinstance(links, Mapping) or ("name" in links and "name" not in graph):
        return (link_from_document(links),) * len(graph)
    for name in links:
        if name not in graph:
            raise ModelError(f"links are given by node, but {name!r} is none.{closest(str(name), graph.nodes)}")
    return tuple(link_from_document(links[name]) if name in links else identity for name in graph.nodes)


def _refuse_bad_weights(model: WeightedModel) -> None:
    """Weights in the link's range, and probabilities in [0, 1] for every parent pattern.

    Weights are nonnegative and f does not decrease, so the extremes are at all parents 0 and all parents 1.
    """
    graph, theta = model.graph, model.theta
    ptr, parent = graph.arrays.parent_ptr, graph.arrays.parent
    child = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    distinct = {id(link): link for link in model.links}
    kind = np.array([-1] + [id(link) for link in model.links])
    at_zero, at_one = (
        np.bincount(child, weights=w, minlength=len(kind)).astype(float)
        for w in (np.where(parent == 0, theta, 0.0), theta)
    )
    for link in distinct.values():
        _refuse_out_of_range(model, link, np.flatnonzero(kind[child] == id(link)))
        nodes = np.flatnonzero(kind == id(link))
        for x, parents in ((at_zero[nodes], "0"), (at_one[nodes], "1")):
            _refuse_improbable(model, link, nodes, x, parents)


def _refuse_out_of_range(model: WeightedModel, link: Link, slots: NDArray[np.intp]) -> None:
    low, high = link.weight_range
    bad = slots[(model.theta[slots] < low) | (model.theta[slots] > high + TOLERANCE)]
    if len(bad):
        rule = f"between {low:g} and {high:g}" if math.isfinite(high) else f"at least {low:g}"
        key = keys_in_order(model.graph)[bad[0]]
        parent, node = (None, key) if isinstance(key, str) else key
        message = f"{edge_name(key)} must be {rule} ({link.name} link), but got {model.theta[bad[0]]:g}."
        raise ModelError(message, node=node, parent=parent)


def _refuse_improbable(
    model: WeightedModel, link: Link, nodes: NDArray[np.intp], x: NDArray[np.float64], parents: str
) -> None:
    low, high = link.domain
    outside = np.flatnonzero(~((x >= low) & (x <= high)))
    if link is not identity and len(outside):
        name = model.graph.nodes[nodes[outside[0]] - 1]
        raise ModelError(
            f"node {name!r}: with all parents at {parents} the weighted sum is {x[outside[0]]:g}, outside the "
            f"{link.name} link's domain [{low:g}, {high:g}]. Change its weights.",
            node=name,
        )
    p = np.asarray(link.value(x), dtype=float)
    bad = np.flatnonzero(~((p >= -TOLERANCE) & (p <= 1 + TOLERANCE)))
    if len(bad):
        name = model.graph.nodes[nodes[bad[0]] - 1]
        raise ModelError(
            f"node {name!r}: with all parents at {parents} its probability would be {p[bad[0]]:g}, but it must stay "
            "within [0, 1]. Change its weights.",
            node=name,
        )
