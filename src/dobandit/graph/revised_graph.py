"""A graph with more edges and nodes than one that was given, whose nodes keep their ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from dobandit.graph.causal_graph import CausalGraph, Edge


class RevisedGraph(CausalGraph):
    """A graph with more edges, and with more nodes behind its own, which keep their ids. A cause may have a larger id
    than its effect: `topological_order` is what it is in the plain graph with these edges, and ids do not follow it."""

    def __init__(
        self, given: CausalGraph, edges: Iterable[Edge], nodes: Iterable[str] = (), bias: Iterable[str] = ()
    ) -> None:
        self._given = given, tuple(edges), tuple(nodes), tuple(bias)
        names = [*given.nodes, *self._given[2]]
        index = {name: i for i, name in enumerate(names)}
        sources, destinations = zip(*((index[a], index[b]) for a, b in (*given.edges, *self._given[1])), strict=True)
        bias = (*given.bias, *self._given[3])
        roles = given.target, given.latent, given.controllable, bias, given.context
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
