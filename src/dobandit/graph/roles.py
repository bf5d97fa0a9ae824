"""Roles of variables in a graph: hidden, settable, starting by themselves, known before acting; and their rules.

Context variables are observed before acting, such as the device of today's visitor. What is learned and chosen is then
for E[target | context = c, do(S)]. Once c is known it is put in like an action, which is right only where conditioning
on c is the same as setting it: everything that causes a context variable is context too. A hidden cause would make c a
clue about the hidden variable, and so about its other effects.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from dobandit.errors import DobanditWarning, GraphError, listed
from dobandit.graph.ordering import natural_key

if TYPE_CHECKING:
    from dobandit.graph.causal_graph import CausalGraph

ROLES = ("latent", "controllable", "bias", "context")


class Roles(TypedDict, total=False):
    """Who has which role, as callers say it; `CausalGraph` explains each."""

    latent: Iterable[str]
    controllable: Iterable[str] | None
    bias: Iterable[str] | None
    context: Iterable[str]


def refuse_bad_roles(graph: CausalGraph) -> None:
    """Refuse roles that exclude each other, context with causes outside of it, and a graph without a lever."""
    target, latent = graph.target, set(graph.latent)
    controllable, context = set(graph.controllable), set(graph.context)
    if target in latent:
        raise GraphError(f"the target must be observed, but {target!r} is latent. Choose another target.")
    if target in controllable:
        raise GraphError(f"the target cannot be set, but {target!r} is listed as controllable. Remove it.")
    if target in context:
        raise GraphError(
            f"context is known before acting, but {target!r} is the target, which comes last. Remove it from context."
        )
    for both, rule, roles, way_out in (
        (latent & controllable, "only observed variables can be set", "both latent and controllable", "one of the two"),
        (
            latent & context,
            "context is observed",
            "both context and latent",
            "latent, or from context if nobody sees it",
        ),
        (controllable & context, "context is observed and not set", "both context and controllable", "one of the two"),
    ):
        if both:
            names = listed(sorted(both, key=natural_key))
            raise GraphError(f"{rule}, but {names} is {roles}. Remove it from {way_out}.")
    for name in sorted(context, key=natural_key):
        _refuse_outside_causes(graph, name)
    if not controllable - set(graph.irrelevant):
        named = (*graph.controllable, *graph.levers_aside)
        raise GraphError(
            f"some controllable variable must have a path to {target!r}, but "
            + (f"none of {listed(named)} has. " if named else "there is none. ")
            + "Check the direction of the edges, the target and the list of controllable variables."
        )


def _refuse_outside_causes(graph: CausalGraph, name: str) -> None:
    """Refuse a context variable that has causes which are not context."""
    causes = [parent for parent in graph.parents(name) if parent not in graph.context]
    hidden = next((parent for parent in causes if parent in graph.latent), None)
    if hidden is not None:
        raise GraphError(
            f"context has no hidden causes, but {hidden!r} -> {name!r} is an edge and {hidden!r} is latent: seeing "
            f"{name!r} would tell something about {hidden!r} and so about its other effects, which setting {name!r} "
            f"does not. Observe {hidden!r} as context too, or take {name!r} out of context."
        )
    if causes:
        raise GraphError(
            f"every cause of a context variable is context too, so that seeing it is the same as setting it, but "
            f"{listed(causes)} -> {name!r} comes from outside. Add {listed(causes)} to context, or take {name!r} out "
            "of it."
        )


def warn_about_useless(graph: CausalGraph, stacklevel: int) -> None:
    """Warn of variables whose setting cannot change the target, and of effects of the target."""
    notes = []
    if graph.irrelevant:
        notes.append(
            f"setting {listed(graph.irrelevant)} cannot change {graph.target!r}: there is no path to it. "
            "Leave them out of controllable, or add the missing edges."
        )
    if graph.levers_aside:
        notes.append(
            f"setting {listed(graph.levers_aside)} cannot change {graph.target!r}: it is an effect of it. "
            "Leave it out of controllable."
        )
    elif graph.effects:
        notes.append(
            f"{listed(graph.effects)} is an effect of the target {graph.target!r}: it is left aside, and nothing is "
            "learned from it. If it is a cause, turn the edge round."
        )
    for note in notes:
        warnings.warn(note, DobanditWarning, stacklevel=stacklevel)


def usual_controllable(graph: CausalGraph) -> bool:
    """Whether the controllable variables are the default: every observed one but the target and the context."""
    return len(graph.controllable) == len(graph.observed) - 1 - len(graph.context)


def usual_bias(graph: CausalGraph) -> bool:
    """Whether the nodes with a bias are the default: every observed one."""
    return graph.bias == graph.observed
