"""Removing hidden variables from a linear model (paper, Section 4.1, Lemmas 3 and 4).

theta'_{Xi,Xj}: sum over hidden paths from Xi to Xj of the product of their weights.
theta'_{X1,Xj}: the same from the constant, which is P(Xj = 1 | do(all other observed = 0)).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload

from dobandit.errors import ModelError, listed
from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.graph.formats.networkx_format import as_graph
from dobandit.graph.hiding import names_to_hide, with_hidden
from dobandit.graph.latent import hidden_path_sums, project_graph
from dobandit.model.bglm import BinaryGLM, LinearModel, WeightedModel
from dobandit.model.links import identity
from dobandit.model.weights import keys_in_order

Hide = str | Iterable[str]


@overload
def project(what: CausalGraph, hide: Hide = ...) -> CausalGraph: ...
@overload
def project(what: BinaryGLM, hide: Hide = ...) -> BinaryGLM: ...
@overload
def project(what: LinearModel, hide: Hide = ...) -> LinearModel: ...
def project(what: CausalGraph | BinaryGLM | LinearModel, hide: Hide = ()) -> CausalGraph | BinaryGLM | LinearModel:
    """The Markovian graph, or model with its weights, over the observed nodes; hidden ones are gone.

    what  a graph, or a linear model
    hide  variables that count as hidden too; "auto": the smallest set of those that cannot be set which makes the graph
          admissible

    Returns what came in, without its hidden nodes: edges go where hidden paths went. An inadmissible graph is refused
    with the hidden node and both paths, a nonlinear model with hidden nodes too.

    >>> from dobandit.graph.causal_graph import CausalGraph
    >>> project(CausalGraph([("ad", "mood"), ("mood", "buy")], target="buy", latent=["mood"])).parents("buy")
    ('ad',)
    """
    if not isinstance(what, WeightedModel):
        graph = as_graph(what, "a graph or a model can be projected", ModelError)
        return project_graph(with_hidden(graph, names_to_hide(graph, hide)))
    whole = with_hidden(what.graph, names_to_hide(what.graph, hide))
    if not whole.latent:
        return what
    _require_linear(what, whole)
    graph = project_graph(whole)
    names = ("", *whole.nodes)
    weights: dict[str | Edge, float] = dict.fromkeys(keys_in_order(graph), 0.0)  # G' may only allow for a bias
    for (source, sink), total in hidden_path_sums(whole, what.theta.tolist()).items():
        weights[(names[source], names[sink]) if source else names[sink]] = total
    return what.on(graph, weights)


def _require_linear(model: WeightedModel, whole: CausalGraph) -> None:
    nonlinear = [name for name in model.graph.nodes if model.link(name) is not identity]
    if nonlinear:
        raise ModelError(
            f"hidden variables can be removed from linear models only, but {listed(nonlinear)} "
            f"({model.link(nonlinear[0]).name} link) is not linear. Use the identity link, or observe "
            f"{listed(whole.latent)}."
        )
