"""BinaryGLM: a causal graph whose nodes are 1 with probability f(theta . parents) (paper, Section 2).

theta_X: weights of X's parents, the constant's (the bias) first.  f_X: X's link.
eps_X: zero-mean noise on the probability, uniform on +-noise * min(p, 1 - p), so it never leaves [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import ModelError, closest
from dobandit.graph.causal_graph import CausalGraph, Edge, Names
from dobandit.graph.formats.networkx_format import as_graph
from dobandit.graph.roles import Roles
from dobandit.model.causal_model import CausalModel, FreeNode
from dobandit.model.links import Link, auto, exponential, identity, link_from_document
from dobandit.model.weights import (
    Reach,
    Weights,
    edge_name,
    keys_in_order,
    node_array,
    number,
    refuse_bad_weights,
    weight_array,
)

if TYPE_CHECKING:
    from dobandit.model.link_kernels import NodeArrays

LinkLike = Link | str | Mapping[str, object]
Array = NDArray[np.float64]
Noise = float | Mapping[str, float] | None


class WeightedModel(CausalModel):
    """A graph with a weight for every edge and bias; the part that binary and continuous models share."""

    theta: Array  # one weight per slot of graph.arrays.parent
    links: tuple[Link, ...]  # by node, in the graph's order

    def __init__(self, graph: CausalGraph, weights: Weights | Array, links: tuple[Link, ...], noise: Noise) -> None:
        graph = as_graph(graph, "a model stands on a CausalGraph", ModelError)
        self.graph = graph
        self.theta = weight_array(graph, weights)
        if auto in links:
            raise ModelError("a model has links of its own; 'auto' is for learners, who find them out. Name one.")
        self.links = links
        self.noise = node_array(graph, noise, "noise")
        self.theta.setflags(write=False)
        self.noise.setflags(write=False)
        refuse_bad_weights(self)

    @cached_property
    def is_linear(self) -> bool:
        """Whether every link is the identity (in the paper's words: a BLM)."""
        return all(link == identity for link in self.links)

    @cached_property
    def structure(self) -> CausalGraph:
        """What causes what, as a learner is told it. A node without cause and bias whose link is above 0 there (that of
        a logistic node is) happens by itself; a graph says so with a bias."""
        graph = self.graph
        alone = [name for name in graph.observed if not graph.parents(name) and not graph.has_bias(name)]
        happens = [name for name in alone if float(self.link(name).value(0.0)) > 0.0]
        return graph.changed(bias=(*graph.bias, *happens)) if happens else graph

    @cached_property
    def nonnegative(self) -> bool:
        """Whether no edge has a negative weight, so that one more variable set to 1 never lowers E[target]; nobody
        sets biases, which do not count."""
        return not bool(np.any(self.theta[self.graph.arrays.parent > 0] < 0))

    @cached_property
    def harmful(self) -> tuple[Edge, ...]:
        """Edges with a negative weight, whose cause makes its effect less likely; in the order of `graph.edges`."""
        slots = np.flatnonzero((self.graph.arrays.parent > 0) & (self.theta < 0)).tolist()
        keys = keys_in_order(self.graph) if slots else []
        return tuple(key for key in (keys[slot] for slot in slots) if not isinstance(key, str))

    @cached_property
    def reach(self) -> Reach:
        """From the bias and the negative weights to the bias and the positive ones; 0 for the constant itself."""
        bias, child = self.graph.arrays.parent == 0, self.graph.slot_child
        low, high = (
            np.bincount(child, weights=np.where(counted | bias, self.theta, 0.0), minlength=len(self.graph) + 1)
            for counted in (self.theta < 0, self.theta > 0)
        )
        return Reach(low.astype(float), high.astype(float))

    def link(self, name: str) -> Link:
        """The link of a node.

        name  the node's

        >>> import dobandit as dob
        >>> dob.paper.G4.link("Y").name
        'identity'
        """
        return self.links[self.graph.index(name) - 1]

    @cached_property
    def weights(self) -> dict[str | Edge, float]:
        """Weights by edge, and by node for the bias."""
        return dict(zip(keys_in_order(self.graph), self.theta.tolist(), strict=True))

    def parent_weights(self, name: str) -> tuple[float, dict[str, float]]:
        """(bias, weight by parent) of a node; the bias is 0 where it has none.

        name  the node's

        >>> import dobandit as dob
        >>> dob.paper.G4.parent_weights("Y")
        (0.0, {'X2': 0.2, 'X3': 0.2, 'X4': 0.1, 'X5': 0.1})
        """
        bias = self.weights.get(name, 0.0)
        return bias, {parent: self.weights[parent, name] for parent in self.graph.parents(name)}

    def _knowing(self, context: Mapping[str, float]) -> Self:
        graph, weights = self.graph, dict[str | Edge, float]()
        for key, weight in self.weights.items():
            cause, effect = (None, key) if isinstance(key, str) else key
            if effect in context:
                continue
            if cause is None or cause in context:
                by = 1.0 if cause is None else context[cause]
                weights[effect] = weights.get(effect, 0.0) + weight * by
            else:
                weights[cause, effect] = weight
        left = [name for name in graph.nodes if name not in context]
        smaller = graph_of_weights(weights, graph.target, left, latent=graph.latent, controllable=graph.controllable)
        return self.on(smaller, weights)

    def on(self, graph: CausalGraph, weights: Weights | Array) -> Self:
        """A model of the same kind on some of its nodes, which keep their links and their noise.

        graph, weights  as in the model itself
        """
        made = object.__new__(type(self))
        noise = {name: float(self.noise[self.graph.index(name)]) for name in graph.nodes}
        WeightedModel.__init__(made, graph, weights, tuple(map(self.link, graph.nodes)), noise)
        return made

    def free_node(self, v: int, fixed: Array) -> FreeNode:
        slots = slice(self.graph.arrays.parent_ptr[v], self.graph.arrays.parent_ptr[v + 1])
        parent, theta, link = self.graph.arrays.parent[slots], self.theta[slots], self.links[v - 1]
        free = np.isnan(fixed[parent])
        base = float(theta[~free] @ fixed[parent[~free]])
        weights = tuple(theta[free].tolist())

        def table() -> Array:
            x = np.array(base)
            for weight in weights:
                x = np.stack([x, x + weight], axis=-1)
            return link.probability(x)

        return FreeNode(tuple(parent[free].tolist()), table, (base, weights) if link is identity else None)

    def node_arrays(self) -> NodeArrays:
        from dobandit.model.link_kernels import link_arrays, node_arrays  # needs Numba

        reach = np.maximum(-self.reach.low, self.reach.high)
        made = node_arrays(self.graph, self.theta, link_arrays(self.links, reach[1:].tolist()))
        made.nodes["noise"], made.nodes["continuous"] = self.noise, self.continuous
        return made

    def _means_into(self, out: Array, v: int, values: Array) -> None:
        ptr, parent = self.graph.arrays.parent_ptr, self.graph.arrays.parent
        out[:] = 0.0
        for slot in range(ptr[v], ptr[v + 1]):
            out += self.theta[slot] * values[parent[slot]]
        if self.links[v - 1] is identity:
            np.clip(out, 0.0, 1.0, out=out)
        else:
            out[:] = self.links[v - 1].probability(out)

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


class BinaryGLM(WeightedModel):
    """A binary generalized linear model.

    graph    what causes what
    weights  {("X2", "Y"): 0.1} for edges and {"X2": 0.3} for biases. A negative weight says that the cause makes its
             effect less likely; probabilities must stay within [0, 1] whatever the parents are, and the exponential
             and rational links take none. Large models may give an array with one weight per slot of
             `graph.arrays.parent`.
    links    one link for all nodes, or by node (identity elsewhere): a Link, a name, or {"name": ..., ...}
    noise    0..1, one for all or by node: the share of the room min(p, 1 - p) that the noise may use

    >>> graph = CausalGraph([("ad", "buy")], target="buy")
    >>> model = BinaryGLM(graph, {"ad": 0.2, "buy": 0.1, ("ad", "buy"): 0.5})
    >>> model.is_linear, model.weights["ad", "buy"]
    (True, 0.5)
    """

    def __init__(
        self,
        graph: CausalGraph,
        weights: Weights | Array,
        links: LinkLike | Mapping[str, LinkLike] | None = None,
        noise: Noise = None,
    ) -> None:
        graph = as_graph(graph, "a model stands on a CausalGraph", ModelError)
        super().__init__(graph, weights, links_by_node(graph, links), noise)

    @classmethod
    def blm(cls, weights: Weights, target: str, *, noise: Noise = None, **roles: Unpack[Roles]) -> BinaryGLM:
        """A binary linear model; its graph is read off the weights (a bias entry gives the node the constant).

        weights  as in `BinaryGLM`
        target   the variable to make likely
        noise    as in `BinaryGLM`
        roles    latent, controllable and context, as in `CausalGraph`

        >>> model = BinaryGLM.blm({"ad": 0.2, "buy": 0.1, ("ad", "buy"): 0.5}, target="buy")
        >>> model.graph.parents("buy")
        ('ad',)
        """
        return cls(graph_of_weights(weights, target, **roles), weights, noise=noise)

    @classmethod
    def linear_threshold(cls, weights: Weights, target: str, **roles: Unpack[Roles]) -> BinaryGLM:
        """The linear threshold model: a node turns 1 when the weight of its active parents reaches a uniform threshold.
        On a DAG this is the BLM with the same weights (paper, Section 2).

        weights  as in `BinaryGLM`, but nonnegative: an active parent never makes a node less likely. `BinaryGLM.blm`
                 takes both signs
        target   the variable to make likely
        roles    latent, controllable and context, as in `CausalGraph`

        >>> BinaryGLM.linear_threshold({"ad": 0.2, ("ad", "buy"): 0.5}, target="buy").is_linear
        True
        """
        for key, value in weights.items() if isinstance(weights, Mapping) else ():
            if number(value, edge_name(key)) < 0:
                raise ModelError(
                    f"in the linear threshold model weights are at least 0, but {edge_name(key)} is {value:g}. "
                    "Use BinaryGLM.blm for effects that make a node less likely."
                )
        return cls.blm(weights, target, **roles)

    @classmethod
    def independent_cascade(cls, probabilities: Weights, target: str, **roles: Unpack[Roles]) -> BinaryGLM:
        """The independent cascade model: each active parent turns its child 1 with its edge's probability.

        probabilities  by edge, and by node: that it turns 1 by itself
        target         the variable to make likely
        roles          latent, controllable and context, as in `CausalGraph`

        It is the BGLM with f(x) = 1 - exp(-x) and theta = -ln(1 - p), which is never negative.

        >>> model = BinaryGLM.independent_cascade({"ad": 0.2, ("ad", "buy"): 0.5}, target="buy")
        >>> model.link("buy").name
        'exponential'
        """
        graph = graph_of_weights(probabilities, target, **roles)
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


class LinearModel(WeightedModel):
    """The continuous linear model on [0, 1] (paper, Appendix F): X = theta_X . parents + eps_X, with eps_X uniform on
    +-noise * min(m, 1 - m) around the mean m. Its means are those of the BLM with the same weights.

    graph    what causes what
    weights  those of the BLM too: from -1 to 1, with means that stay within [0, 1] whatever the parents are
    noise    0..1, one for all or by node: the share of the room min(m, 1 - m) around the mean m that the noise may use

    >>> graph = CausalGraph([("share", "sales")], target="sales")
    >>> model = LinearModel(graph, {"share": 0.2, "sales": 0.1, ("share", "sales"): 0.5})
    >>> model.continuous
    True
    """

    continuous = True

    def __init__(self, graph: CausalGraph, weights: Weights | Array, noise: Noise = 0.5) -> None:
        super().__init__(graph, weights, (identity,) * len(graph), noise)

    @classmethod
    def of_weights(cls, weights: Weights, target: str, *, noise: Noise = 0.5, **roles: Unpack[Roles]) -> LinearModel:
        """The model whose graph is read off the weights (a bias entry gives the node the constant).

        weights  as in `LinearModel`
        target   the variable to make large
        noise    as in `LinearModel`
        roles    latent, controllable and context, as in `CausalGraph`

        >>> LinearModel.of_weights({"share": 0.2, ("share", "sales"): 0.5}, target="sales").graph.parents("sales")
        ('share',)
        """
        return cls(graph_of_weights(weights, target, **roles), weights, noise)

    def _realise(self, out: Array, mean: Array, uniform: Array, jitter: Array | None, noise: float) -> None:
        np.add(mean, (2.0 * uniform - 1.0) * noise * np.minimum(mean, 1.0 - mean), out=out)


def graph_of_weights(weights: Weights, target: str, nodes: Names = (), **roles: Unpack[Roles]) -> CausalGraph:
    """The graph that a set of weights speaks of. nodes: further ones, without weights"""
    if not isinstance(weights, Mapping):
        raise ModelError(f"weights are a mapping from edges and nodes to numbers, but got {type(weights).__name__}.")
    started = [key for key in weights if isinstance(key, str)]
    edges = [key for key in weights if not isinstance(key, str)]
    roles.setdefault("bias", started)
    return CausalGraph(edges, target, nodes=(*started, *nodes), **roles)


def links_by_node(graph: CausalGraph, links: LinkLike | Mapping[str, LinkLike] | None) -> tuple[Link, ...]:
    """One link per node, in the graph's order."""
    if links is None:
        return (identity,) * len(graph)
    if not isinstance(links, Mapping) or ("name" in links and "name" not in graph):
        return (link_from_document(links),) * len(graph)
    for name in links:
        if name not in graph.all_nodes:
            raise ModelError(f"links are given by node, but {name!r} is none.{closest(str(name), graph.nodes)}")
    return tuple(link_from_document(links[name]) if name in links else identity for name in graph.nodes)
