"""GraphEvidence: whether the rounds speak against the graph, in names and sentences (`estimation.evidence`)."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import PolicyError, listed
from dobandit.estimation.belief import layout_of
from dobandit.estimation.evidence import Alternative, count_rounds, watch_of, weigh
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

    unwatched  what is not looked at, and why

    >>> import dobandit as dob
    >>> GraphEvidence(dob.CausalUCB().start(dob.paper.G1.graph, budget=3).problem).findings()
    []
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.graph, self._flags = problem, problem.graph, dict(problem.flags)
        self._layout = layout_of(problem.graph)
        self._controllable = set(problem.graph.arrays.controllable.tolist())
        self.unwatched: tuple[str, ...] = ()
        self.alternatives = tuple(self._alternatives())
        self.watch, self.state = watch_of(self._layout, self.alternatives)
        self._total = np.zeros(len(self.watch.nodes))
        self._single = np.zeros(len(self.alternatives))

    def update(self, rounds: Rounds) -> None:
        """Take in rounds; their order is of no account, and a row with count c is c equal rows."""
        if self.alternatives:
            if self.problem.selective:
                rounds = rounds.part(self.problem.teaches(rounds.was_set))
            count_rounds(self._layout, self.watch, self.state, rounds.values, rounds.was_set, rounds.counts)

    def findings(self, alpha: float = 0.01) -> list[Finding]:
        """The nodes whose E is at least (nodes looked at) / alpha, each with the extra variable that speaks loudest."""
        if not 0.0 < alpha < 1.0:
            raise PolicyError(f"alpha is the chance of a false alarm, between 0 and 1, but got {alpha!r}. Try 0.01.")
        if not self.alternatives:
            return []
        least = math.log(len(self.watch.nodes) / alpha)
        weigh(self.watch, self.state, least, self._total, self._single)
        return [self._finding(i) for i in np.flatnonzero(self._total >= least).tolist()]

    def loudest_cause(self, alpha: float, by_set: bool = True) -> Finding | None:
        """Of the nodes with a finding, the one with the largest E that a cause which can be set explains by itself (or,
        with by_set, that a parent was set): what only moves together with a node may as well be its effect. A node
        without causes is left out: it more likely told people whom to set something for than the other way round."""
        found: tuple[float, int, int] | None = None
        least = math.log(len(self.watch.nodes) / alpha) if self.findings(alpha) else math.inf
        for i in np.flatnonzero(self._total >= least).tolist():
            begin, end = self.watch.first[i : i + 2].tolist()
            if not self.graph.arrays.parents_of(int(self.watch.nodes[i])):
                continue
            for a in range(begin, end):
                _, w, flag = self.alternatives[a]
                alone = float(self._single[a]) - math.log(end - begin)
                if alone >= least and (by_set if flag else w in self._controllable) and (not found or alone > found[0]):
                    found = alone, i, a
        return None if found is None else self._finding(*found[1:])

    def copy(self) -> GraphEvidence:
        """One that has seen the same, and counts by itself from now on."""
        twin = copy.copy(self)
        twin.state, twin._total, twin._single = copied(self.state), self._total.copy(), self._single.copy()
        return twin

    def _finding(self, i: int, a: int | None = None) -> Finding:
        begin, end = self.watch.first[i : i + 2].tolist()
        a = begin + int(np.argmax(self._single[begin:end])) if a is None else a
        v, w, by_set = self.alternatives[a]
        node, extra = self.graph.nodes[v - 1], self.graph.nodes[w - 1]
        kind = HIDDEN_CAUSE if by_set else MISSING_EDGE
        log10, rows = float(self._total[i]) / math.log(10.0), int(self.state.rows[a])
        advice = _advice(node, extra, kind, bool(self._below[w] >> v & 1), w in self._controllable)
        return Finding(node, kind, extra, log10, rows, advice)

    # -- what is looked at ----------------------------------------------------------------------------------------

    def _alternatives(self) -> Iterator[Alternative]:
        """By node: parents that can be set, then other variables that can be, then what is only seen, nearest first."""
        if self.problem.continuous:
            self.unwatched = ("the graph is not checked: patterns of numbers between 0 and 1 cannot be counted",)
            return
        if self.problem.obstacle is not None:
            self.unwatched = ("the graph is not checked: it has hidden causes that cannot be removed",)
            return
        given = set(self.problem.context_ids.tolist())  # their values may have been picked by whoever asked
        nodes = sorted(v for v in self.problem.order if v not in given and v not in self._flags)
        most = max(1, min(MOST_PER_NODE, MOST_IN_ALL // max(len(nodes), 1)))
        wide: list[str] = []
        crowded: list[str] = []
        for v in nodes:
            name, parents = self.graph.nodes[v - 1], set(self.graph.arrays.parents_of(v))
            if len(parents) > MOST_PARENTS:
                wide.append(name)
                continue
            known = {self._flags[p] for p in parents if p in self._flags}
            own, others = sorted((parents & self._controllable) - known), self._others(v, parents)
            if len(own) + len(others) > most:
                crowded.append(name)
            yield from (Alternative(v, w, True) for w in own[:most])
            yield from (Alternative(v, w, False) for w in others[: max(most - len(own), 0)].tolist())
        if wide:
            self.unwatched += (f"effects of more than {MOST_PARENTS} causes are not checked: {listed(wide, 3)}",)
        if crowded:
            self.unwatched += (f"no more than {most} extra causes are considered of {listed(crowded, 3)}",)

    def _others(self, v: int, parents: set[int]) -> NDArray[np.int64]:
        """Ids of what v might depend on besides its parents."""
        aside = [self.graph.index(name) for name in self.problem.hidden]  # they have hidden causes by choice
        out = np.array([0, v, *parents, *aside, *self._flags, *self._related(v)], dtype=np.int64)
        octets = np.frombuffer(self._below[v].to_bytes(len(self.graph) // 8 + 1, "little"), dtype=np.uint8)
        free = np.unpackbits(octets, bitorder="little", count=len(self.graph) + 1) == 0
        free[out] = False
        others = np.flatnonzero(free)
        only_seen = ~np.isin(others, self.graph.arrays.controllable)
        return others[np.lexsort((np.abs(others - v), only_seen))]

    @cached_property
    def _below(self) -> list[int]:
        """Of every id a bit mask of its descendants."""
        graph, below = self.graph, [0] * (len(self.graph) + 1)
        for v in map(graph.index, reversed(graph.topological_order)):
            for c in graph.arrays.children_of(v):
                below[v] |= below[c] | 1 << c
        return below

    def _related(self, v: int) -> set[int]:
        """What a hidden variable of the graph as it was given moves together with v: no graph is wrong for that."""
        whole = self.problem.whole
        if whole is None:
            return set()
        hidden, waiting, latent = set(), [self.graph.nodes[v - 1]], set(whole.latent)
        while waiting:
            for name in whole.parents(waiting.pop()):
                if name in latent and name not in hidden:
                    hidden.add(name)
                    waiting.append(name)
        below = {name for u in hidden for name in whole.descendants(u)}
        return {self.graph.index(name) for name in below if name not in latent}


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
