"""RevisingEngine: a causal learner that does not stay with a graph which its own rounds refute.

Every node has alternatives with one cause more, and the evidence for them is watched (`policy.graph_evidence`). When it
reaches (nodes) / ALPHA for a cause that can be set, or for "a cause was set", it is a cause from then on: the loudest
first, one at a look. What only moves together with a node is reported and no more, since it may as well be an effect.
The rounds so far are told to a learner on the revised problem, so that nothing is learned from zero, and the evidence
is watched against the revised problem in turn. Where the graph is right, anything is ever revised with a chance of at
most ALPHA.
What is known stays a function of the rounds told, in their order: the evidence is looked at after set numbers of
rounds, which get rarer as 1 / t, so that a round costs the same however many there were; rarer still after trials of
many rounds, of which a past can have thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import PolicyError
from dobandit.oracle.actions import Action, Actions, actions_of
from dobandit.policy.beliefs import Beliefs, NodeBelief
from dobandit.policy.causal_engine import CausalEngine, Predictions
from dobandit.policy.diary import Diary
from dobandit.policy.engine import Array, Chance, Choice, Draws, Engine, Estimate, Rounds, Situation
from dobandit.policy.graph_evidence import Finding, GraphEvidence
from dobandit.policy.problem import Problem
from dobandit.policy.recording import Recorder, Tape
from dobandit.policy.revision import Flags, Revision
from dobandit.policy.world import World

ALPHA = 0.01
_STEP = 8  # rounds between looks at first
_SINGLE, _SUMMED = 7, 4  # later 2^7 looks while t doubles by rounds in their order, 2^4 by trials of many
Maker = Callable[[Problem, Flags], CausalEngine]


def next_look(t: int, ordered: bool = True) -> int:
    """The first number of rounds above t at which the evidence is looked at."""
    step = max(_STEP, 1 << max(t.bit_length() - 1 - (_SINGLE if ordered else _SUMMED), 0))
    return (t // step + 1) * step


def _of_inner(name: str) -> Any:
    """What the engine inside has under this name."""
    return property(lambda self: getattr(self.inner, name))


class RevisedBeliefs(Beliefs):
    """Beliefs of a revised problem, asked for by the given problem's ids."""

    def __init__(self, whole: Beliefs, revision: Revision) -> None:
        self.__dict__.update(whole.__dict__)
        self._revision = revision

    def node(self, v: int) -> NodeBelief:
        """What is known of node v; a flag among its parents has the id of the variable that was set, below 0."""
        revision = self._revision
        node = super().node(int(revision.ids[v]))
        parents = [-revision.given_id(p) if p in revision.flags else revision.given_id(p) for p in node.parents]
        return node._replace(parents=parents)


class RevisingEngine(Engine):
    """The engine that `make` makes, on the problem with the causes that were found to be missing.

    make   an engine for a problem whose graph may have flags (`policy.revision`)
    inner  that engine, as it is now; its attributes are this one's too
    """

    watches_graph = True

    def __init__(self, problem: Problem, make: Maker) -> None:
        self.problem, self._make = problem, make
        self.revision = Revision(problem, ())
        self.inner = make(problem, {})
        self.draws = self.inner.draws
        self._diary = Diary(len(problem.graph) + 1)
        self._watching = not problem.continuous
        self._evidence: GraphEvidence | None = None
        self._counted = 0  # rows of the diary that are in the evidence
        self._rounds = 0
        self._tape: tuple[Recorder, tuple[World, Tape, list[Action]]] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def state(self) -> Any:
        return self.inner.state

    @state.setter
    def state(self, state: Any) -> None:
        self.inner.state = state

    rounds = _of_inner("rounds")
    trusts_intervals = _of_inner("trusts_intervals")
    weighs_by_order = _of_inner("weighs_by_order")
    interval_words = _of_inner("interval_words")
    has_gap = _of_inner("has_gap")

    @property
    def revisions(self) -> tuple[Finding, ...]:
        return self.revision.findings

    def findings(self) -> list[Finding]:
        return self._counted_evidence().findings(ALPHA)

    def copy(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.inner, twin._diary, twin._tape = self.inner.copy(), self._diary.copy(), None
        twin._evidence = None if self._evidence is None else self._evidence.copy()
        return twin

    # -- learning ------------------------------------------------------------------------------------------------

    def update(self, rounds: Rounds) -> None:
        if (rounds.counts > 1).any():
            self.update_unordered(rounds)
            return
        while len(rounds.counts) and self._watches():
            upto = min(next_look(self._rounds) - self._rounds, len(rounds.counts))
            self._take(rounds.part(slice(upto)))
            rounds = rounds.part(slice(upto, None))
        if len(rounds.counts):
            self._beyond(rounds, None)

    def update_unordered(self, rounds: Rounds) -> None:
        self.update_batches(rounds, np.array([len(rounds.counts)]))

    def update_batches(self, rounds: Rounds, sizes: NDArray[np.int64]) -> None:
        """Batch after batch, those up to a look together."""
        ends, done, start = np.cumsum(sizes), 0, 0
        told = self._rounds + np.cumsum(rounds.counts)[ends - 1]  # rounds in all after each batch
        while done < len(sizes) and self._watches(int(sizes[done])):
            look = int(np.searchsorted(told, next_look(self._rounds, False))) + 1
            room = int(np.searchsorted(ends, start + self._diary.room, side="right"))
            upto = min(look, room, len(sizes))
            stop = int(ends[upto - 1])
            self._take(rounds.part(slice(start, stop)), sizes[done:upto])
            done, start = upto, stop
        if done < len(sizes):
            self._beyond(rounds.part(slice(start, None)), sizes[done:])

    def _watches(self, rows: int | None = None) -> bool:
        """Whether so many rows, or those up to the next look, can be kept; once they cannot, nothing more is."""
        rows = next_look(self._rounds) - self._rounds if rows is None else rows
        self._watching = self._watching and rows <= self._diary.room
        return self._watching

    def _take(self, rounds: Rounds, sizes: NDArray[np.int64] | None = None) -> None:
        """Rounds up to the next look, or batches whose order is lost."""
        self._diary.write(rounds, sizes)
        self._tell_inner(rounds, sizes)
        self._pass(int(rounds.counts.sum()), sizes is None)

    def _beyond(self, rounds: Rounds, sizes: NDArray[np.int64] | None) -> None:
        """Rounds that are not kept: they count as evidence, but nothing is revised any more."""
        self._counted_evidence().update(self.revision.rounds(rounds))
        self._tell_inner(rounds, sizes)

    def _tell_inner(self, rounds: Rounds, sizes: NDArray[np.int64] | None) -> None:
        told = self.revision.rounds(rounds)
        if sizes is None:
            self.inner.update(told)
        else:
            self.inner.update_batches(told, sizes)

    def _pass(self, rounds: int, ordered: bool = True) -> None:
        """Look at the evidence where it is due."""
        due = next_look(self._rounds, ordered)
        self._rounds += rounds
        if self._rounds >= due:
            self._look()

    def _counted_evidence(self) -> GraphEvidence:
        """The evidence against the problem as it is revised now, with every round that is kept."""
        if self._evidence is None:
            self._evidence = GraphEvidence(self.revision.problem, self.revision.flags)
        if self._counted < self._diary.used:
            self._evidence.update(self.revision.rounds(self._diary.read(self._counted, self._diary.used)))
            self._counted = self._diary.used
        return self._evidence

    def _look(self) -> None:
        found = self._counted_evidence().loudest_cause(ALPHA, by_set=not self.inner.searches)
        if found is not None:
            self._revise(found)

    def _revise(self, found: Finding) -> None:
        """Tell all rounds to a learner that reckons with one more cause."""
        revision = Revision(self.problem, (*self.revision.findings, found))
        try:
            inner = self._make(revision.problem, revision.flags)
        except PolicyError:
            inner = None
        if inner is None or inner.searches > self.inner.searches:  # more can matter now than can be listed
            self._watching = False
            return
        self.revision, self.inner = revision, inner
        self._evidence, self._counted, self._tape = None, 0, None
        for ordered, some in groupby(self._diary.parts(0, self._diary.used), lambda part: part.ordered):
            parts = list(some)
            rounds = self._diary.read(parts[0].start, parts[-1].stop)
            self._tell_inner(rounds, None if ordered else np.array([part.stop - part.start for part in parts]))

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, now: Situation) -> Choice:
        return self._given_choice(self.inner.choose(self._situation(now)))

    def best(self, now: Situation) -> Choice:
        return self._given_choice(self.inner.best(self._situation(now)))

    def compared(self, now: Situation) -> Sequence[tuple[Action, float]]:
        return [(self.revision.given_action(one), index) for one, index in self.inner.compared(self._situation(now))]

    def actions(self) -> Actions | None:
        actions = self.inner.actions()
        if actions is None or self.revision.same:
            return actions
        return actions_of(self._listed())

    def _given_choice(self, choice: Choice) -> Choice:
        return choice._replace(action=self.revision.given_action(choice.action))

    def _situation(self, now: Situation) -> Situation:
        now = self.revision.situation(now)
        return now._replace(draws=self._extended(now.draws[None, :])[0])

    def _extended(self, draws: Array) -> Array:
        """Rows of random numbers with as many as the learner needs now: further ones are drawn from the first."""
        more = self.inner.draws - draws.shape[1]
        if more <= 0:
            return draws
        rest = [np.random.default_rng(int(u * 2.0**53)).random(more) for u in draws[:, 0]]
        return np.hstack([draws, np.array(rest).reshape(len(draws), more)])

    # -- answers -------------------------------------------------------------------------------------------------

    def predict(self, action: Action, context: Array) -> Estimate:
        return self.inner.predict(self.revision.action(action), self.revision.values(context))

    def predict_many(self, actions: Actions, context: Array) -> Predictions:
        """What `predict` says of each of many actions, in an order of its own."""
        if self.revision.same:
            return self.inner.predict_many(actions, context)
        there = actions_of([self.revision.action(actions.row(i)) for i in range(len(actions.ids))])
        told = self.inner.predict_many(there, self.revision.values(context))
        back = [self.revision.given_action(told.actions.row(i)) for i in range(len(there.ids))]
        return told._replace(actions=actions_of(back))

    def gap(self, action: Action, now: Situation) -> float | None:
        return self.inner.gap(self.revision.action(action), self._situation(now))

    def chance(self, action: Action, now: Situation) -> Chance | None:
        return self.inner.chance(self.revision.action(action), self._situation(now))

    def beliefs(self) -> Beliefs:
        beliefs = self.inner.beliefs()
        return beliefs if not self.revision.findings else RevisedBeliefs(beliefs, self.revision)

    # -- simulation ----------------------------------------------------------------------------------------------

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        done, rounds = 0, len(draws.world)
        while True:  # also without rounds, which only compiles
            if self.inner.searches and (self.revision.findings or not world.model.is_linear):
                super().run(world, recorder, Draws(draws.world[done:], draws.policy[done:]))
                return
            upto = min(next_look(self._rounds) - self._rounds if self._watches() else rounds, rounds - done)
            self._play(world, recorder, Draws(*(part[done : done + upto] for part in draws)))
            done += upto
            if done >= rounds:
                return

    def _play(self, world: World, recorder: Recorder, draws: Draws) -> None:
        """Compiled rounds up to the next look."""
        there, tape, listed = self._there(world, recorder)
        rounds, width = len(draws.world), len(self.revision.problem.graph) + 1
        codes: NDArray[np.int8] = np.ones((rounds if self._watching else 0, width), dtype=np.int8)
        self.inner.play(there, tape, Draws(draws.world, self._extended(draws.policy)), codes)
        recorder.count_plays(tape, listed)
        if self._watching:
            self._diary.add(self.revision.given_codes(codes))
            self._pass(rounds)

    def _there(self, world: World, recorder: Recorder) -> tuple[World, Tape, list[Action]]:
        """The world, the tape and the listed actions as the revised problem has them."""
        if not self.revision.findings:
            return world, recorder.tape, []
        if self._tape is None or self._tape[0] is not recorder:
            graph, listed = self.revision.problem.graph, self._listed()
            flags = {graph.nodes[v - 1] for v in self.revision.flags}
            context = np.array([self.revision.given_id(v) for v in graph.arrays.context.tolist()], dtype=np.int32)
            tape = recorder.tape_for(listed, context, len(self.problem.graph))
            self._tape = recorder, (World(world.model, graph, flags), tape, listed)
        return self._tape[1]

    def _listed(self) -> list[Action]:
        """The actions of the revised list, in the given problem's ids; none where there is no list."""
        actions = self.inner.actions()
        return [] if actions is None else [self.revision.given_action(actions.row(i)) for i in range(len(actions.ids))]
