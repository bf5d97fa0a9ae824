"""A model in which some variables are known: for variables whose causes are known too, knowing is setting."""

from __future__ import annotations

from collections.abc import Mapping

from dobandit.errors import ModelError, listed
from dobandit.model.base import CausalModel
from dobandit.model.weights import fixed_values


def given(model: CausalModel, context: Mapping[str, float]) -> CausalModel:
    """The model of everyone with this context: its context variables are gone, and what they do is part of the
    biases, or of smaller tables.

    >>> from dobandit.graph.causal_graph import CausalGraph
    >>> from dobandit.model.bglm import BinaryGLM
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
    return model.knowing({name: float(known[graph.index(name)]) for name in context})
