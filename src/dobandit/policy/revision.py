"""Revision: a problem with one more cause of a node, because the rounds speak for it. All ids stay as they were.

missing edge   the graph gets the edge
hidden cause   a node that answers differently when its cause W was set gets a cause more, a flag that is 1 in the
               rounds in which W was set and 0 in all others: it cannot happen by itself, and setting W sets it.
               Flags have the last ids, so that rounds and contexts get columns behind their others
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.model.links import identity
from dobandit.policy.graph_evidence import HIDDEN_CAUSE, Finding
from dobandit.policy.problem import Problem


class RevisedGraph(CausalGraph):
    """A graph with more edges, and with more nodes behind its own, which keep their ids. A cause may have a larger id
    than its effect: `topological_order` is what it is in the plain graph with these edges, and ids do not follow it."""

    def __init__(self, given: CausalGraph, edges: Iterable[Edge], nodes: Iterable[str] = ()) -> None:
        self._given = given, tuple(edges), tuple(nodes)
        names = [*given.nodes, *self._given[2]]
        index = {name: i for i, name in enumerate(names)}
        sources, destinations = zip(*((index[a], index[b]) for a, b in (*given.edges, *self._given[1])), strict=True)
        roles = given.target, given.latent, given.controllable, given.bias, given.context
        self._build(names, np.array(sources), np.array(destinations), *roles)

    def _numbered(self, ordered: tuple[str, ...]) -> tuple[str, ...]:
        self._ordered = ordered
        return (*self._given[0].nodes, *self._given[2])

    @property
    def topological_order(self) -> tuple[str, ...]:
        return self._ordered

    def _reached(self, name: str, neighbours: Callable[[int], list[int]]) -> tuple[str, ...]:
        found = set(super()._reached(name, neighbours))
        return tuple(each for each in self._ordered if each in found)

    def canonical(self) -> CausalGraph:
        """The plain graph with these edges, whose ids follow its topological order."""
        make, arguments = super().__reduce__()
        return make(*arguments)

    def __reduce__(self) -> tuple[Callable[..., CausalGraph], tuple[object, ...]]:
        return RevisedGraph, self._given


def with_cause(problem: Problem, finding: Finding) -> Problem:
    """The problem with the cause that was found."""
    graph, cause, new = problem.graph, finding.extra, []
    if finding.kind == HIDDEN_CAUSE:
        of = graph.index(finding.extra)
        flag = next((flag for flag, variable in problem.flags if variable == of), 0)
        cause = graph.nodes[flag - 1] if flag else f"{finding.extra} was set"
        while not flag and cause in graph:
            cause += "'"
        new = [] if flag else [cause]
    revised = RevisedGraph(graph, [(cause, finding.node)], new)
    flags = (*problem.flags, *((revised.index(name), revised.index(finding.extra)) for name in new))
    return replace(problem, graph=revised, links=(*problem.links, *(identity for _ in new)), flags=flags)
