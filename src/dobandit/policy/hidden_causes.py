"""What a learner sees of a graph with hidden variables: a graph without them, the links that are left, and where hidden
causes cannot be removed, the error that says so, for the policies that would need it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dobandit.errors import DobanditError, GraphError, ModelError
from dobandit.graph import hiding
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.latent import RULE, admissible
from dobandit.graph.mechanisms import Mechanisms, mechanisms_of
from dobandit.model.links import Link, auto, identity

Hide = str | Iterable[str]


class Visible(NamedTuple):
    """graph     over the observed variables; those that count as hidden stand in it without causes and effects
    links     by node of `graph`
    whole     the graph with its hidden variables; None: there are none
    hidden    observed variables that count as hidden
    obstacle  why no model can be learned on `graph`; None: one can
    mechanisms  how each variable answers, by what is set, where hidden causes are shared and some link is to be learned
    """

    graph: CausalGraph
    links: tuple[Link, ...]
    whole: CausalGraph | None
    hidden: tuple[str, ...]
    obstacle: DobanditError | None
    mechanisms: Mechanisms | None = None


def visible(graph: CausalGraph, links: tuple[Link, ...], hide: Hide = (), always_set: Iterable[str] = ()) -> Visible:
    """Remove hidden variables, those that are named too.

    Where every link is a straight line, the paper's rule for linear models decides whether they can be removed. Other
    links need that no two observed nodes share a hidden cause: a node with hidden causes has a table of its own, which
    the learned link finds. Where they do share one, each has a mechanism for what is set (`graph.mechanisms`).
    """
    free, by_name = hiding.without_causes(graph, always_set), dict(zip(graph.nodes, links, strict=True))
    curved = [name for name, link in by_name.items() if link != identity]
    rule = hiding.unshared if curved else admissible
    hidden = hiding.names_to_hide(free, hide, rule)
    whole = hiding.with_hidden(free, hidden)
    if not whole.latent:
        return Visible(free, links, None, (), None)
    seen, witness = hiding.reduced(whole, hidden), rule(whole).witness
    latent = set(whole.latent)
    touched = {name for name in whole.observed if latent & set(whole.parents(name))}
    kept = tuple(auto if curved and name in touched else by_name[name] for name in seen.nodes)
    if witness is None:
        return Visible(seen, kept, whole, tuple(hidden), None)
    ways = hiding.ways_out(free, witness, rule)
    ways = f"{hiding.why_none(free, rule)} {ways}" if hide == hiding.AUTO else ways
    error: DobanditError = GraphError(f"{RULE}, but {witness}. {ways}")
    if promised := [name for name in curved if by_name[name] != auto]:
        error = ModelError(
            f"hidden variables that several observed ones share are handled in linear models only, but "
            f"{promised[0]!r} has the {by_name[promised[0]].name} link, and {witness}. Use identity links if they "
            f"fit. {ways}"
        )
    return Visible(seen, kept, whole, tuple(hidden), error, mechanisms=mechanisms_of(whole, seen) if curved else None)
