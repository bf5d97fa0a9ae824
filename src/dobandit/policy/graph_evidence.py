"""GraphEvidence: whether the rounds speak against the graph, in names and sentences (`estimation.evidence`)."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import PolicyError, listed
from dobandit.estimation.evidence import count_rounds, start_evidence, weigh
from dobandit.graph.latent import observed_ends
from dobandit.policy.engine import Rounds, copied
from dobandit.policy.problem import Problem

MISSING_EDGE, HIDDEN_CAUSE = "missing edge", "hidden cause"
MOST_PARENTS = 8  # of a node that is looked at: its tables have 2^9 cells
MOST_PER_NODE = 64  # alternatives
MOST_IN_ALL = 1024


class Finding(NamedTuple):
    """A node that depends on more than its causes in the graph.

    kind   "missing edge": on another variable, `extra`; "hidden cause": on whether its cause `extra` was set
    log10  of E: 4 is ten thousand to one against the graph
    rows   the rounds that tell of it
    """

    node: str
    kind: str
    extra: str
    log10: float
    rows: int
    advice: str

    @property
    def short(self) -> str:
        """What was found, without what to do about it."""
        if self.kind == HIDDEN_CAUSE:
            return f"{self.node!r} differs between {self.extra!r} set and {self.extra!r} seen"
        return _together(self.node, self.extra)


class GraphEvidence:
    """Counts what every node did by the pattern of its causes and one bit more, and says when that bit matters.

    Where the graph is right, `findings(alpha)` is ever not empty with a chance of at most alpha, over a whole
    experiment, looked at after every round, whatever made the learner choose its actions. Values that are missing must
    be missing for reasons that have nothing to do with them.

    extras     by node (ids) what it might depend on besides its causes: (variable, False), or (cause, True) for whether
               that was set
    unwatched  what is not looked at, and why

    >>> import dobandit as dob
    >>> GraphEvidence(dob.CausalUCB().start(dob.paper.G1.graph, budget=3).problem).findings()
    []
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.graph, self._flags = problem, problem.graph, dict(problem.flags)
        self._controllable = set(problem.graph.arrays.controllable.tolist())
        self.unwatched: tuple[str, ...] = ()
        self.extras = self._extras()
        self.state = start_evidence(problem.graph.arrays, self.extras)

    def update(self, rounds: Rounds) -> None:
        """Take in rounds; their order is of no account, and a row with count c is c equal rows."""
        if self.extras:
            if self.problem.selective:
                rounds = rounds.part(self.problem.teaches(rounds.was_set))
            count_rounds(*self.state[:4], *rounds)

    def findings(self, alpha: float = 0.01) -> list[Finding]:
        """The nodes whose E is at least (nodes looked at) / alpha, each with the extra variable that speaks loudest."""
        ratio = self.state.alternatives["ratio"]
        _, nodes = self._weighed(alpha)
        return [self._finding(node, int(np.argmax(ratio[node["first"] : node["last"]]))) for node in nodes]

    def loudest_cause(self, alpha: float, by_set: bool = True) -> Finding | None:
        """Of the nodes with a finding, the one with the largest E that a cause which can be set explains by itself (or,
        with by_set, that a parent was set): what only moves together with a node may as well be its effect. A node
        without causes is left out: it more likely told people whom to set something for than the other way round."""
        found: list[tuple[float, Any, int]] = []
        least, nodes = self._weighed(alpha)
        for node in nodes[nodes["parent"] < nodes["last_parent"]]:
            extras = self.extras[int(node["node"])]
            for k, (w, flag) in enumerate(extras):
                alone = float(self.state.alternatives[node["first"] + k]["ratio"]) - math.log(len(extras))
                if alone >= least and (by_set if flag else w in self._controllable):
                    found.append((alone, node, k))
        return self._finding(*max(found, key=lambda each: each[0])[1:]) if found else None

    def copy(self) -> GraphEvidence:
        """One that has seen the same, and counts by itself from now on."""
        twin = copy.copy(self)
        twin.state = copied(self.state)
        return twin

    def _weighed(self, alpha: float) -> tuple[float, NDArray[Any]]:
        """The logarithm of (nodes looked at) / alpha, and the records of the nodes whose E is at least that."""
        if not 0.0 < alpha < 1.0:
            raise PolicyError(f"alpha is the chance of a false alarm, between 0 and 1, but got {alpha!r}. Try 0.01.")
        nodes, _, alternatives, cells, shares = self.state
        if not self.extras:
            return math.inf, nodes
        least = math.log(len(nodes) / alpha)
        weigh(nodes, alternatives, cells, shares, least)
        return least, nodes[nodes["evidence"] >= least]

    def _finding(self, node: Any, k: int) -> Finding:
        """What is found of a node's k-th alternative."""
        v = int(node["node"])
        w, by_set = self.extras[v][k]
        name, extra = self.graph.nodes[v - 1], self.graph.nodes[w - 1]
        kind = HIDDEN_CAUSE if by_set else MISSING_EDGE
        log10, rows = float(node["evidence"]) / math.log(10.0), int(self.state.alternatives[node["first"] + k]["rows"])
        advice = _advice(name, extra, kind, bool(self._below[w] >> v & 1), w in self._controllable)
        return Finding(name, kind, extra, log10, rows, advice)

    def _extras(self) -> dict[int, list[tuple[int, bool]]]:
        """By node: parents that can be set, then other variables that can be, then what is only seen, nearest first."""
        if self.problem.continuous:
            self.unwatched = ("the graph is not checked: patterns of numbers between 0 and 1 cannot be counted",)
            return {}
        if self.problem.obstacle is not None:
            self.unwatched = ("the graph is not checked: it has hidden causes that cannot be removed",)
            return {}
        given = set(self.problem.context_ids.tolist())  # their values may have been picked by whoever asked
        nodes = sorted(v for v in self.problem.order if v not in given and v not in self._flags)
        most = max(1, min(MOST_PER_NODE, MOST_IN_ALL // max(len(nodes), 1)))
        extras, wide, crowded = dict[int, list[tuple[int, bool]]](), list[str](), list[str]()
        for v in nodes:
            name, parents = self.graph.nodes[v - 1], set(self.graph.arrays.parents_of(v))
            if len(parents) > MOST_PARENTS:
                wide.append(name)
                continue
            known = {self._flags[p] for p in parents if p in self._flags}
            own, others = sorted((parents & self._controllable) - known), self._others(v, parents)
            if len(own) + len(others) > most:
                crowded.append(name)
            if own or others:
                extras[v] = [*((w, True) for w in own), *((w, False) for w in others)][:most]
        if wide:
            self.unwatched += (f"effects of more than {MOST_PARENTS} causes are not checked: {listed(wide, 3)}",)
        if crowded:
            self.unwatched += (f"no more than {most} extra causes are considered of {listed(crowded, 3)}",)
        return extras

    def _others(self, v: int, parents: set[int]) -> list[int]:
        """Ids of what v might depend on besides its parents."""
        aside = [self.graph.index(name) for name in self.problem.hidden]  # they have hidden causes by choice
        out = {v, *parents, *aside, *self._flags, *self._related[v]}
        others = [w for w in range(1, len(self.graph) + 1) if w not in out and not self._below[v] >> w & 1]
        return sorted(others, key=lambda w: (w not in self._controllable, abs(w - v)))

    @cached_property
    def _below(self) -> list[int]:
        """Of every id a bit mask of its descendants."""
        graph, below = self.graph, [0] * (len(self.graph) + 1)
        for v in map(graph.index, reversed(graph.topological_order)):
            for c in graph.arrays.children_of(v):
                below[v] |= below[c] | 1 << c
        return below

    @cached_property
    def _related(self) -> dict[int, set[int]]:
        """By id, what hidden variables of the graph as it was given move together with it: that refutes no graph."""
        related, whole = defaultdict[int, set[int]](set), self.problem.whole or self.graph
        for u, ends in observed_ends(whole):
            names = set(whole.descendants(whole.nodes[u - 1])).difference(whole.latent)
            below = {self.graph.index(name) for name in names}
            for v in ends:
                related[self.graph.index(whole.nodes[v - 1])] |= below
        return related


def _together(node: str, extra: str) -> str:
    return f"{node!r} and {extra!r} move together in ways that the graph does not explain"


def _advice(node: str, extra: str, kind: str, behind: bool, settable: bool) -> str:
    if kind == HIDDEN_CAUSE:
        return (
            f"{node!r} answers differently when {extra!r} was set than when it came by itself: they share a hidden "
            f"cause. Record that cause as a variable, or leave {extra!r} out of the graph, so that its causes act on "
            f"{node!r} directly."
        )
    otherwise = (
        f"or, if there is none, leave out what stands between them: it shares a hidden cause with {node!r}"
        if behind
        else "or record the hidden cause that they share"
    )
    advice = f"{_together(node, extra)}: add the edge {extra} -> {node}, {otherwise}."
    if settable:
        advice += f" If whoever set {extra!r} looked at {node!r} first, nothing is missing: make {node!r} context."
    return advice
