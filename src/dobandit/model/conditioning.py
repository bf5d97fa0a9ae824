"""A model in which some variables are known: for variables whose causes are known too, knowing is setting."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dobandit.errors import ModelError, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.base import CausalModel
from dobandit.model.bglm import BinaryGLM, WeightedModel
from dobandit.model.linear import LinearModel
from dobandit.model.tables import TableModel
from dobandit.model.weights import fixed_values


def given(model: CausalModel, context: Mapping[str, float]) -> CausalModel:
    """The model of everyone with this context: its context variables are gone, and what they do is part of the
    biases, or of smaller tables.

    >>> graph = CausalGraph([("mobile", "buy"), ("ad", "buy")], target="buy", context=["mobile"])
    >>> model = BinaryGLM(graph, {"mobile": 0.5, "ad": 0.1, "buy": 0.1, ("mobile", "buy"): 0.2, ("ad", "buy"): 0.3})
    >>> given(model, {"mobile": 1}).parent_weights("buy")
    (0.30000000000000004, {'ad': 0.3})
    """
    graph = model.graph
    wrong = sorted(set(graph.context) ^ set(context))
    if wrong:
        raise ModelError(
            f"a context gives a value to each of {listed(graph.context) or 'no variables'}, but {listed(wrong)} is "
            f"{'missing' if wrong[0] in graph.context else 'none of them'}."
        )
    if not context:
        return model
    known = fixed_values(graph, context, continuous=model.continuous)
    if isinstance(model, TableModel):
        return model.knowing({name: float(known[graph.index(name)]) for name in context})
    if not isinstance(model, WeightedModel):
        raise ModelError(f"contexts are known in models with weights or tables, but got {type(model).__name__}.")
    left = [name for name in graph.nodes if name not in context]
    ptr, parent = graph.arrays.parent_ptr, graph.arrays.parent
    weights: dict[str | tuple[str, str], float] = {}
    for name in left:
        v = graph.index(name)
        for slot in range(ptr[v], ptr[v + 1]):
            cause, weight = int(parent[slot]), float(model.theta[slot])
            if np.isnan(known[cause]):
                weights[graph.nodes[cause - 1], name] = weight
            else:
                weights[name] = weights.get(name, 0.0) + weight * float(known[cause])
    edges = [key for key in weights if not isinstance(key, str)]
    bias = [key for key in weights if isinstance(key, str)]
    smaller = CausalGraph(edges, graph.target, graph.latent, graph.controllable, bias, left)
    noise = {name: float(model.noise[graph.index(name)]) for name in left}
    if isinstance(model, LinearModel):
        return LinearModel(smaller, weights, noise=noise)
    return BinaryGLM(smaller, weights, links={name: model.link(name) for name in left}, noise=noise)
