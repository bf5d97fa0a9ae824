"""Context: variables that are observed before acting, such as the device of today's visitor.

What is learned and chosen is then for E[target | context = c, do(S)]. Once c is known it is put in like an action,
which is right only where conditioning on c is the same as setting it: everything that causes a context variable is
context too. A hidden cause would make c a clue about the hidden variable, and so about its other effects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dobandit.errors import GraphError, listed
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
