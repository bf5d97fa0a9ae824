"""Removing hidden variables from a linear model (paper, Section 4.1, Lemmas 3 and 4).

theta'_{Xi,Xj}: sum over hidden paths from Xi to Xj of the product of their weights.
theta'_{X1,Xj}: the same from the constant, which is P(Xj = 1 | do(all other observed = 0)).
"""

from __future__ import annotations

from typing import overload

import numpy as np

from dobandit.errors import ModelError, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.latent import hidden_path_sums, project_graph
from dobandit.model.bglm import BinaryGLM, WeightedModel
from dobandit.model.linear import LinearModel
from dobandit.model.links import identity


@overload
def project(what: CausalGraph) -> CausalGraph: ...
@overload
def project(what: BinaryGLM) -> BinaryGLM: ...
@overload
def project(what: LinearModel) -> LinearModel: ...
def project(what: CausalGraph | BinaryGLM | LinearModel) -> CausalGraph | BinaryGLM | LinearModel:
    """The Markovian graph, or model with its weights, over the observed nodes; hidden ones are gone.

    An inadmissible graph is refused with the hidden node and both paths, a nonlinear model with hidden nodes too.
    """
    if isinstance(what, CausalGraph):
        return project_graph(what)
    if not isinstance(what, WeightedModel):
        raise ModelError(f"a graph or a model can be projected, but got {type(what).__name__}.")
    if not what.graph.latent:
        return what
    _require_linear(what)
    graph = project_graph(what.graph)
    theta = _projected_theta(what, graph)
    noise = {name: float(what.noise[what.graph.index(name)]) for name in graph.nodes}
    if isinstance(what, LinearModel):
        return LinearModel(graph, theta, noise=noise)
    return BinaryGLM(graph, theta, noise=noise)


def _require_linear(model: WeightedModel) -> None:
    nonlinear = [name for name in model.graph.nodes if model.link(name) is not identity]
    if nonlinear:
        raise ModelError(
            f"hidden variables can be removed from linear models only, but {listed(nonlinear)} "
            f"({model.link(nonlinear[0]).name} link) is not linear. Use the identity link, or observe "
            f"{listed(model.graph.latent)}."
        )


def _projected_theta(model: WeightedModel, graph: CausalGraph) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Weights of G' in the order of its slots; biases that G' only allows for are 0."""
    sums = hidden_path_sums(model.graph, model.theta)
    new_id = np.zeros(len(model.graph) + 1, dtype=np.int64)
    for name in graph.nodes:
        new_id[model.graph.index(name)] = graph.index(name)
    size = len(graph) + 1
    slots = graph.slot_child * size + graph.arrays.parent  # ascending, since parents are
    codes = new_id[sums.sinks] * size + new_id[sums.sources]
    theta = np.zeros(len(slots))
    theta[np.searchsorted(slots, codes)] = sums.total
    return theta
