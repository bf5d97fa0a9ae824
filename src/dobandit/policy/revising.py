"""RevisingEngine: a learner that does not stay with a graph which its own rounds refute.

Every node has alternatives with one cause more, and the evidence for them is watched (`policy.graph_evidence`). When it
reaches (nodes) / ALPHA for a cause that can be set, or for "a cause was set", it is a cause from then on: the loudest
first, one at a look. What only moves together with a node is reported and no more, since it may as well be an effect.
The learner then begins again on the revised problem (`with_cause`) and is told its rounds once more, so that
nothing is learned from zero, and the evidence is watched against the revised problem in turn. Where the graph is right,
anything is ever revised with a chance of at most ALPHA.
What is known stays a function of the rounds told, in their order: the evidence is looked at after set numbers of
rounds, which get rarer as 1 / t, so that a round costs the same however many there were; rarer still after trials of
many rounds, of which a past can have thousands.

A revised problem has one more cause of a node, and all ids stay as they were:
missing edge   the graph gets the edge
hidden cause   a node that answers differently when its cause W was set gets a cause more, a flag that is 1 in the
               rounds in which W was set and 0 in all others: it cannot happen by itself, and setting W sets it.
               Flags have the last ids, so that rounds and contexts get columns behind their others
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import PolicyError
from dobandit.graph.revised_graph import RevisedGraph
from dobandit.model.links import identity
from dobandit.policy.engine import Array, Draws, Rounds
from dobandit.policy.graph_evidence import HIDDEN_CAUSE, Finding, GraphEvidence
from dobandit.policy.model_engine import ModelEngine, Parts
from dobandit.policy.problem import Problem
from dobandit.policy.questions import play_rounds
from dobandit.policy.recording import Recorder, RoundLog, Sizes, Tape, decoded, encoded
from dobandit.policy.world import World


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
    links = (*problem.links, *(identity for _ in new))
    return replace(problem, graph=revised, links=links, flags=flags, prune=None)  # what can be best is open again


ALPHA = 0.01
_STEP = 8  # rounds between looks at first
_SINGLE, _SUMMED = 7, 4  # later 2^7 looks while t doubles by rounds in their order, 2^4 by trials of many
_NO_NUMBERS: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


def next_look(t: int, ordered: bool = True) -> int:
    """The first number of rounds above t at which the evidence is looked at."""
    step = max(_STEP, 1 << max(t.bit_length() - 1 - (_SINGLE if ordered else _SUMMED), 0))
    return (t // step + 1) * step


class RevisingEngine(ModelEngine):
    """A model engine that can begin again on a revised problem.

    parts          what it is made of, for a problem
    problem        what it was started on
    believed       that problem with the causes which were found to be missing
    watches_graph  whether it looks for such causes
    """

    watches_graph = True

    def __init__(self, problem: Problem, parts: Callable[[Problem], Parts]) -> None:
        self.problem, self._parts = problem, parts
        self.watches_graph = self.watches_graph and problem.mechanisms is None
        self.revisions = ()
        self._log = RoundLog(len(problem.graph) + 1)
        self._revises = not problem.continuous
        self._begin(problem.of_mechanisms)

    def _begin(self, believed: Problem) -> None:
        """Know nothing but the problem."""
        given = self.problem
        super().__init__(believed, self._parts(believed))
        self.problem = given
        self._evidence: GraphEvidence | None = None

    def findings(self) -> Sequence[Finding]:
        return [] if self._evidence is None else self._evidence.findings(ALPHA)

    def copy(self) -> Self:
        twin = super().copy()
        twin._log = self._log.copy()
        twin._evidence = None if self._evidence is None else self._evidence.copy()
        return twin

    def _take(self, rounds: Rounds, sizes: Sizes) -> None:
        """Rounds in their order, or batches, up to each look."""
        ends = np.arange(1, len(rounds.counts) + 1) if sizes is None else np.cumsum(sizes)
        told = self.rounds + np.cumsum(rounds.counts)[ends - 1]  # rounds in all after each round or batch
        start = done = 0
        while done < len(ends):
            look = next_look(self.rounds, sizes is None)
            upto = min(int(np.searchsorted(told, look)) + 1, len(ends))
            self._revises = self._keeps(look - self.rounds if sizes is None else int(ends[upto - 1]) - start)
            upto = upto if self._revises else len(ends)
            part, some = rounds.part(slice(start, int(ends[upto - 1]))), None if sizes is None else sizes[done:upto]
            if self._revises:
                self._log.add(encoded(part), part.counts, some)
            self._relearn(part, some)
            start, done = int(ends[upto - 1]), upto
            if self._revises and self.rounds >= look:
                self._look()

    def _keeps(self, rows: int) -> bool:
        """Whether rows up to the next look are kept; once they cannot be, nothing more is, nor is anything revised."""
        return self._revises and self.watches_graph and rows <= self._log.room

    def _relearn(self, rounds: Rounds, sizes: Sizes) -> None:
        """Learn, and count what the rounds say against the graph."""
        self._teach(rounds, sizes)
        self._count(self.believed.with_flags(rounds))

    def _teach(self, rounds: Rounds, sizes: Sizes) -> None:
        super()._teach(self.believed.with_flags(rounds), sizes)

    def _count(self, rounds: Rounds) -> None:
        """What rounds with flags say against the graph."""
        if self.watches_graph:
            self._evidence = self._evidence or GraphEvidence(self.believed)
            self._evidence.update(rounds)

    def _look(self) -> bool:
        """Reckon with the cause that the rounds speak for most, where they do; whether there was one."""
        found = None if self._evidence is None else self._evidence.loudest_cause(ALPHA, by_set=not self.searches)
        if found is None:
            return False
        fresh = self._bare()
        try:
            fresh._begin(with_cause(self.believed, found))
            self._revises = fresh.searches <= self.searches  # else more can matter now than can be listed
        except PolicyError:  # there are more causes now than the policy can do with
            self._revises = False
        if self._revises:
            self.__dict__ = fresh.__dict__
            self.revisions += (found,)
            for rounds, sizes in self._log.told():
                self._relearn(rounds, sizes)
        return self._revises

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        if self.searches and not world.model.is_linear:  # what is not listed is valued by a linear pass there
            play_rounds(self, world, recorder, draws)
            return
        done, rounds, width = 0, len(draws.world), self._log.width
        there, tape, numbers = self._staged(world, recorder)
        while True:  # also without rounds, which only compiles
            look = next_look(self.rounds)
            self._revises = self._keeps(look - self.rounds)
            part = slice(done, min(done + look - self.rounds, rounds) if self._revises else rounds)
            kept = part.stop - part.start if self._revises else 0
            codes: NDArray[np.int8] = np.zeros((kept, len(self.believed.graph) + 1), dtype=np.int8)
            self.play(there, tape, Draws(draws.world[part], self.enough_draws(draws.policy[part])), codes)
            recorder.count_plays(tape, numbers)
            if kept:
                once = np.ones(kept, dtype=np.int64)
                self._log.add(np.ascontiguousarray(codes[:, :width]), once)
                self._count(decoded(codes, once))
            if kept and self.rounds >= look and self._look():
                there, tape, numbers = self._staged(world, recorder)
            done = part.stop
            if done >= rounds:
                return

    def _staged(self, world: World, recorder: Recorder) -> tuple[World, Tape, NDArray[np.int64]]:
        """The world with its flags, and a tape for the actions that are listed now."""
        if self.believed is self.problem:
            return world, recorder.tape, _NO_NUMBERS
        there = World(world.model, self.believed.graph, self.believed.flags, self.believed.regimes)
        return there, *recorder.tape_for(self.actions(), len(self.problem.graph))

    def enough_draws(self, draws: Array) -> Array:
        """Rows of random numbers with as many as the revised problem needs."""
        return draws
