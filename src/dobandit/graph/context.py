"""Context: variables that are observed before acting, such as the device of today's visitor.

What is learned and chosen is then for E[target | context = c, do(S)]. Once c is known it is put in like an action,
which is right only where conditioning on c is the same as setting it: everything that causes a context variable is
context too. A hidden cause would make c a clue about the hidden variable, and so about its other effects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dobandit.checks import absent, as_float, shown
from dobandit.errors import GraphError, ObservationError, closest, listed
from dobandit.graph.ordering import natural_key

if TYPE_CHECKING:
    from dobandit.graph.causal_graph import CausalGraph


def refuse_bad_context(graph: CausalGraph) -> None:
    """Refuse a context variable that is hidden, set or the target, or whose causes are not all context."""
    context, latent = set(graph.context), set(graph.latent)
    if graph.target in context:
        raise GraphError(
            f"context is known before acting, but {graph.target!r} is the target, which comes last. Remove it from "
            "context."
        )
    for others, rule, role, way_out in (
        (latent, "observed", "latent", "Remove it from latent, or from context if nobody sees it."),
        (set(graph.controllable), "observed and not set", "controllable", "Remove it from one of the two."),
    ):
        both = sorted(context & others, key=natural_key)
        if both:
            raise GraphError(f"context is {rule}, but {listed(both)} is both context and {role}. {way_out}")
    for name in sorted(context, key=natural_key):
        causes = [parent for parent in graph.parents(name) if parent not in context]
        hidden = [parent for parent in causes if parent in latent]
        if hidden:
            raise GraphError(
                f"context has no hidden causes, but {hidden[0]!r} -> {name!r} is an edge and {hidden[0]!r} is latent: "
                f"seeing {name!r} would tell something about {hidden[0]!r} and so about its other effects, which "
                f"setting {name!r} does not. Observe {hidden[0]!r} as context too, or take {name!r} out of context."
            )
        if causes:
            raise GraphError(
                f"every cause of a context variable is context too, so that seeing it is the same as setting it, but "
                f"{listed(causes)} -> {name!r} comes from outside. Add {listed(causes)} to context, or take {name!r} "
                "out of it."
            )


_MOST_NAMED = 5  # in an error


def context_values(
    graph: CausalGraph, given: object, *, continuous: bool = False, whole: bool = True
) -> dict[str, float]:
    """The value of each context variable that was given; None and NaN say nothing.

    whole  whether every context variable of the graph must be given

    >>> from dobandit import CausalGraph
    >>> graph = CausalGraph([("mobile", "buy"), ("ad", "buy")], target="buy", context=["mobile"])
    >>> context_values(graph, {"mobile": 1})
    {'mobile': 1.0}
    """
    names = {} if given is None else given
    if not isinstance(names, Mapping):
        raise ObservationError(f"a context maps names to values, but got {shown(given)}. Write {{'NAME': 1}}.")
    for name in names:
        if name not in graph.context and not graph.context:
            raise ObservationError(
                f"a context is for graphs with context variables, but this one has none, and {shown(name)} was given. "
                "Leave it out, or make it a context variable of the graph."
            )
        if name not in graph.context:
            hint = closest(name, graph.context) or f" They are {listed(graph.context)}."
            raise ObservationError(f"a context is of context variables, but {shown(name)} is none.{hint}")
    known = {name: _value(name, value, continuous) for name, value in names.items() if not absent(value)}
    missing = [name for name in graph.context if name not in known]
    if missing and whole:
        values = ", ".join(f"{name!r}: 1" for name in missing[:_MOST_NAMED])
        raise ObservationError(
            f"every variable of the context is given before a round, but {listed(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing. Add context={{{values}}}."
        )
    return known


def _value(name: str, given: object, continuous: bool) -> float:
    value = float(given) if isinstance(given, (bool, np.bool_)) else as_float(given)
    if not (0.0 <= value <= 1.0 if continuous else value in (0.0, 1.0)):
        allowed = "a number from 0 to 1" if continuous else "0 or 1"
        raise ObservationError(
            f"the value of the context variable {name!r} must be {allowed}, as it is in the round to come, but got "
            f"{shown(given)}. Rounds with other values are asked for by themselves."
        )
    return value
