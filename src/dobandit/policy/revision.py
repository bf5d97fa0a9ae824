"""Revision: a problem with causes that its graph leaves out, because the rounds speak for them.

missing edge   the graph gets the edge
hidden cause   a node that answers differently when its cause W was set gets a cause more, a flag that is 1 in the
               rounds in which W was set and 0 in all others: it cannot happen by itself, and setting W sets it
Ids follow the topological order, which another edge may change: `Revision` translates actions, contexts and rounds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import DobanditWarning
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.links import identity
from dobandit.oracle.actions import Action, Actions, actions_of
from dobandit.oracle.listing import Listing, listing_of
from dobandit.policy.engine import Array, Pending, Rounds, Situation
from dobandit.policy.graph_evidence import HIDDEN_CAUSE, Finding
from dobandit.policy.model_engine import OracleMaker
from dobandit.policy.problem import Problem

Flags = dict[int, int]  # ids: flag -> the variable of which it says whether it was set


class Revision:
    """The problem `given` with the causes of `findings` added: `problem`, and the way from one's ids to the other's."""

    def __init__(self, given: Problem, findings: Iterable[Finding]) -> None:
        self.given, self.findings = given, tuple(findings)
        named: dict[str, str] = {}  # by the variable that is set
        edges = list(given.graph.edges)
        for finding in self.findings:
            cause = finding.extra
            if finding.kind == HIDDEN_CAUSE:
                cause = named.setdefault(finding.extra, _free_name(given.graph, f"{finding.extra} was set"))
            edges.append((cause, finding.node))
        self.problem = given if not self.findings else _with_graph(given, edges, named.values())
        graph = self.problem.graph
        self.ids = np.array([0, *map(graph.index, given.graph.nodes)], dtype=np.int64)  # (n + 1,) of the given ids
        self.flags: Flags = {graph.index(flag): graph.index(of) for of, flag in named.items()}
        self._flag_of = {of: flag for flag, of in self.flags.items()}
        self._back = {int(new): old for old, new in enumerate(self.ids)}

    @cached_property
    def same(self) -> bool:
        """Whether both problems have the same ids."""
        return not self.flags and bool((self.ids == np.arange(len(self.ids))).all())

    # -- there -----------------------------------------------------------------------------------------------------

    def action(self, action: Action) -> Action:
        """An action, with the flags of what it sets."""
        if self.same:
            return action
        pairs = [(int(self.ids[v]), to) for v, to in zip(action.ids, action.values, strict=True)]
        return flagged(Action(tuple(v for v, _ in pairs), tuple(to for _, to in pairs)), self._flag_of)

    def values(self, values: Array) -> Array:
        """Values by id, flags NaN."""
        if self.same:
            return values
        found = np.full(len(self.problem.graph) + 1, np.nan)
        found[self.ids] = values
        return found

    def situation(self, now: Situation) -> Situation:
        """All that is known before acting."""
        if self.same:
            return now
        available = None if now.available is None else tuple(sorted(int(self.ids[v]) for v in now.available))
        pending = tuple(Pending(self.action(one.action), self.values(one.context), one.size) for one in now.pending)
        return Situation(now.draws, self.values(now.context), available, pending)

    def rounds(self, rounds: Rounds) -> Rounds:
        """Rounds, with the flags of what was set in them."""
        if self.same:
            return rounds
        shape = len(rounds.values), len(self.problem.graph) + 1
        values, was_set = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
        values[:, self.ids], was_set[:, self.ids] = rounds.values, rounds.was_set
        for flag, of in self.flags.items():
            values[:, flag], was_set[:, flag] = was_set[:, of], was_set[:, of]
        return Rounds(values, was_set, rounds.counts)

    # -- and back --------------------------------------------------------------------------------------------------

    def given_action(self, action: Action) -> Action:
        """An action of the problem, without flags, in the given problem's ids."""
        if self.same:
            return action
        pairs = zip(action.ids, action.values, strict=True)
        kept = sorted((self._back[v], to) for v, to in pairs if v not in self.flags)
        return Action(tuple(v for v, _ in kept), tuple(to for _, to in kept))

    def given_id(self, v: int) -> int:
        """The given problem's id of a node; of a flag, that of the variable whose setting it is about."""
        return self._back[self.flags.get(v, v)]

    def given_codes(self, codes: NDArray[np.int8]) -> NDArray[np.int8]:
        """Rows of a diary of the problem, as rows of one of the given problem."""
        return codes if self.same else codes[:, self.ids]


def flagged(action: Action, flag_of: dict[int, int]) -> Action:
    """An action with the flags of what it sets, at 1."""
    pairs = list(zip(action.ids, action.values, strict=True))
    pairs = sorted(pairs + [(flag_of[v], 1.0) for v in action.ids if v in flag_of])
    return Action(tuple(v for v, _ in pairs), tuple(to for _, to in pairs))


def with_flags(make: OracleMaker, flags: Flags | None, relevant: bool = True) -> OracleMaker:
    """An oracle whose actions have the flags of what they set. relevant: only actions on what can matter."""
    if not flags and relevant:
        return make
    flag_of = {of: flag for flag, of in (flags or {}).items()}

    def flagging(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> object:
        if listing is None:
            rows: Actions = problem.allowed(available, relevant).rows()
            if flag_of:
                rows = actions_of([flagged(rows.row(i), flag_of) for i in range(len(rows.ids))])
            listing = listing_of(problem.order, rows)
        return make(problem, listing, available)

    return flagging


def _with_graph(given: Problem, edges: list[tuple[str, str]], flags: Iterable[str]) -> Problem:
    graph, names = given.graph, list(flags)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DobanditWarning)  # what cannot matter was said when the problem was made
        more = CausalGraph(
            edges, graph.target, (), graph.controllable, graph.bias, [*graph.nodes, *names], graph.context
        )
    link_of = dict(zip(graph.nodes, given.links, strict=True)) | dict.fromkeys(names, identity)
    return replace(given, graph=more, links=tuple(link_of[name] for name in more.nodes))


def _free_name(graph: CausalGraph, name: str) -> str:
    while name in graph:
        name += "'"
    return name
