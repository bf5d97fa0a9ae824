"""View: what the learner of a study believes of the world, where that differs from what is true."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dobandit.checks import is_one_of, listable, shown
from dobandit.errors import SimulationError, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import as_graph, parse_graph, print_graph
from dobandit.model.base import CausalModel
from dobandit.model.bglm import links_by_node
from dobandit.model.links import BUILDERS, Link, identity, link_from_document
from dobandit.policy.hidden_causes import Hide
from dobandit.policy.problem import EFFECTS, Links


@dataclass(frozen=True)
class View:
    """The learner's graph, links and promise; None: what is true.

    graph    some or all of the world's observed variables; it may have hidden ones of its own
    links    by node of the learner's graph, in its order
    effects  "nonnegative" or "any"
    hide     observed variables that count as hidden, or "auto"
    """

    graph: CausalGraph | None = None
    links: tuple[Link, ...] | None = None
    effects: str | None = None
    hide: str | tuple[str, ...] = ()

    def graph_in(self, world: CausalModel) -> CausalGraph:
        return world.graph if self.graph is None else self.graph

    def links_in(self, world: CausalModel) -> tuple[Link, ...]:
        """Its own, else the world's; identity where the world has none (`Study.problem_for` asks the policy)."""
        if self.links is not None:
            return self.links
        graph = self.graph_in(world)
        if world.links is None:
            return (identity,) * len(graph)
        by_name = dict(zip(world.graph.nodes, world.links, strict=True))
        return tuple(by_name.get(name, identity) for name in graph.nodes)

    def effects_in(self, world: CausalModel) -> str:
        """What is promised: on another graph than the world's nothing follows from the world's signs."""
        if self.effects is not None:
            return self.effects
        own = self.graph is None or self.graph in (world.graph, world.structure)
        return "nonnegative" if own and world.nonnegative else "any"

    def to_document(self) -> dict[str, Any]:
        """What differs from the world, as JSON."""
        document: dict[str, Any] = {}
        if self.graph is not None:
            document["graph"] = json.loads(print_graph(self.graph, "json"))
        if self.links is not None:
            foreign = [link.name for link in self.links if link.name not in BUILDERS]
            if foreign:
                raise SimulationError(
                    f"a file holds built-in links only, but {foreign[0]!r} is your own. Keep the study in code."
                )
            document["links"] = [link.to_document() for link in self.links]
        if self.effects is not None:
            document["effects"] = self.effects
        if self.hide:
            document["hide"] = self.hide if isinstance(self.hide, str) else list(self.hide)
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any], world: CausalModel) -> View:
        graph = parse_graph(json.dumps(document["graph"]), "json") if "graph" in document else None
        links = tuple(map(link_from_document, document["links"])) if "links" in document else None
        if links is not None and len(links) != len(world.graph if graph is None else graph):
            raise SimulationError("the learner has one link per node, but the document has another number of them.")
        hide = document.get("hide", ())
        return cls(graph, links, document.get("effects"), hide if isinstance(hide, str) else tuple(hide))


TRUTHFUL = View()


def view_of(world: CausalModel, graph: CausalGraph | None, links: Links, effects: str | None, hide: Hide = ()) -> View:
    """Check what the learner is to believe."""
    if graph is not None:
        graph = as_graph(graph, "the learner's graph is a CausalGraph", SimulationError)
        _check_graph(world.graph, graph)
    if effects is not None and not is_one_of(effects, EFFECTS):
        raise SimulationError(f"effects are 'nonnegative' (no cause does harm) or 'any', but got {shown(effects)}.")
    own = world.graph if graph is None else graph
    names = listable(hide)
    if names is None and not isinstance(hide, str):
        raise SimulationError(f"hide is a list of names or 'auto', but got {shown(hide)}.")
    hidden = hide if isinstance(hide, str) else tuple(names or ())
    if links is None:
        return View(graph, None, effects, hidden)
    given = links_by_node(own, links)
    if isinstance(links, Mapping) and links.keys() <= set(own.nodes):  # of nodes that are not named: what is true
        true = View(graph).links_in(world)
        given = tuple(one if name in links else other for name, one, other in zip(own.nodes, given, true, strict=True))
    return View(graph, given, effects, hidden)


def _check_graph(world: CausalGraph, graph: CausalGraph) -> None:
    if graph.target != world.target:
        raise SimulationError(
            f"the learner's target is the world's, {world.target!r}, but its graph has {graph.target!r}."
        )
    strange = [name for name in graph.observed if name not in set(world.observed)]
    if strange:
        raise SimulationError(
            f"the learner observes variables of the world, but {listed(strange)} is none of {listed(world.observed)}. "
            "List it as latent, or leave it out of the learner's graph."
        )
    for role in ("controllable", "context"):
        wanted, got = set(getattr(world, role)), set(getattr(graph, role))
        if wanted != got:
            raise SimulationError(
                f"the learner's {role} variables are the world's, {listed(sorted(wanted)) or 'none'}, but its graph "
                f"has {listed(sorted(got)) or 'none'}. Give the learner's graph {role}={sorted(wanted)}."
            )
