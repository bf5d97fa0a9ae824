"""Regimes: which mechanism each variable answers by, where observed variables share hidden causes.

The regime of an action is which variables it sets among those that share hidden causes. It decides which mechanism of
each variable is at work (`graph.mechanisms`). A learner keeps a node of its belief for every mechanism: that of a
variable whose hidden causes are cut off, or which has none, is the variable's own node; any other is a node behind all
variables, with the effective causes as its parents. A round teaches the nodes of the mechanisms that it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.interventional_borders import Mask
from dobandit.graph.mechanisms import Mechanism, Mechanisms
from dobandit.graph.revised_graph import RevisedGraph
from dobandit.oracle.actions import Action, Actions, actions_of
from dobandit.oracle.frontier import Answering
from dobandit.policy.engine import Rounds


class Regimes:
    """The regimes of some actions on a graph.

    mechanisms  of the graph over the observed variables
    sets        what the actions set, and perhaps nothing, as sets of ids
    """

    def __init__(self, mechanisms: Mechanisms, sets: Iterable[Mask]) -> None:
        self._mechanisms, given = mechanisms, mechanisms.graph
        self._confounded = [v for v in range(1, len(given) + 1) if mechanisms.shared.get(v)]
        of_all = sum(1 << v for v in self._confounded)
        self._shown: dict[Mask, tuple[bool, ...]] = {}
        self.masks = sorted({0, *(chosen & of_all for chosen in sets)})
        self._number = {mask: i for i, mask in enumerate(self.masks)}
        self.further = [one for one in mechanisms.of_sets(self.masks) if one.component != 1 << one.node]
        self._node = {one: len(given) + 1 + k for k, one in enumerate(self.further)}
        self.variable = np.array([*range(len(given) + 1), *(one.node for one in self.further)])  # of each node

    @cached_property
    def graph(self) -> CausalGraph:
        """The graph of the belief: the variables, and behind them the further mechanisms."""
        given = self._mechanisms.graph
        names: list[str] = []
        for one in self.further:
            name = self._mechanisms.in_words(one)
            while name in given or name in names:
                name += "'"
            names.append(name)
        edges = [(given.nodes[p - 1], name) for one, name in zip(self.further, names, strict=True) for p in one.causes]
        return RevisedGraph(given, edges, names, bias=names)

    @cached_property
    def answers(self) -> list[Mapping[int, Answering]]:
        """Of each regime, by variable that matters: the node of the belief, and its causes."""
        return [
            {one.node: (self._node.get(one, one.node), one.causes) for one in self._mechanisms.at_work(mask)}
            for mask in self.masks
        ]

    def of(self, actions: Actions) -> NDArray[np.int64]:
        """The regime of each action; -1 where none of the actions that this was made for is of it."""
        return np.array([self._number.get(mask, -1) for mask in self._masks_of(actions.ids)], dtype=np.int64)

    def _masks_of(self, ids: NDArray[np.int32]) -> list[Mask]:
        confounded = set(self._confounded)
        return [sum(1 << v for v in row if v in confounded) for row in ids.tolist()]

    def nodes_of(self, action: Action, order: Sequence[int]) -> list[int]:
        """The nodes by which variables answer where this action is taken, in the order of the variables; what is set,
        and what does not matter, stands for itself."""
        regime = int(self.of(actions_of([action]))[0])
        answers = {} if regime < 0 else self.answers[regime]
        variables = int(self.variable.max(initial=0))
        free = {v: node for v, (node, _) in answers.items() if v not in action.ids}
        return [free.get(v, v) for v in order if v <= variables]

    @cached_property
    def shown(self) -> NDArray[np.int8]:
        """(regimes, nodes + 1) of each regime: which nodes of the belief its rounds teach."""
        return np.array([self._shown_by(mask) for mask in self.masks], dtype=np.int8)

    def _shown_by(self, mask: Mask) -> tuple[bool, ...]:
        """Which nodes of the belief rounds teach in which these of the confounded variables are set."""
        if mask not in self._shown:
            own = [Mechanism(v, 1 << v, ()) for v in range(1, len(self._mechanisms.graph) + 1)]
            shows = (self._mechanisms.shows(mask, one) for one in (*own, *self.further))
            self._shown[mask] = (False, *shows)
        return self._shown[mask]

    def rounds(self, rounds: Rounds) -> Rounds:
        """Rounds with a column for each node of the belief; what a round does not teach counts as set there."""
        was_set, values = rounds.was_set[:, self.variable], rounds.values[:, self.variable]
        confounded = rounds.was_set[:, self._confounded]
        patterns, inverse = np.unique(confounded, axis=0, return_inverse=True)
        masks = [sum(1 << v for v, chosen in zip(self._confounded, row, strict=True) if chosen) for row in patterns]
        shown = np.array([self._shown_by(mask) for mask in masks], dtype=bool).reshape(len(masks), len(self.variable))
        return Rounds(values, was_set | ~shown[inverse.ravel()], rounds.counts)


def masks_of(rows: Sequence[Sequence[int]]) -> set[Mask]:
    """Sets of ids as masks; 0 stands for no variable."""
    return {sum(1 << v for v in row if v) for row in rows}
