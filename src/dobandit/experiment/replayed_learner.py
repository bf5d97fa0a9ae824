"""A learner that follows an experiment's log: what it knows is a function of the closed trials, in order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dobandit.experiment.accumulator import Accumulator
from dobandit.experiment.definition import Definition
from dobandit.experiment.plain_work import learning
from dobandit.oracle.actions import Action
from dobandit.policy.base import round_draws
from dobandit.policy.engine import UNIFORMS, Array, Estimate, Pending, Rounds, Situation, no_context
from dobandit.policy.graph_evidence import GraphEvidence
from dobandit.policy.questions import Believes, KeepsOutcomes, best, gap
from dobandit.rows.columns import Columns, split_batch
from dobandit.rows.stored_trial import OWN, TOLD, ClosedTrial, StoredTrial
from dobandit.storage.contract import Storage

if TYPE_CHECKING:
    from dobandit.experiment.state import Checkpoints

RECKONED = ", which the learner now reckons with"


class ReplayedLearner(Accumulator):
    """A learner that has taken in the first `position` closed trials.

    checkpoints  keeps copies of it on the way
    """

    def __init__(self, definition: Definition, columns: Columns, checkpoints: Checkpoints | None = None) -> None:
        super().__init__(columns)
        self.learner = definition.learner.copy()
        self.seed, self.control = definition.seed, definition.control
        self._checkpoints = checkpoints
        unwatched = isinstance(self.learner.engine, Believes) and not self.learner.engine.watches_graph
        self._evidence = GraphEvidence(self.learner.problem) if unwatched else None  # else the engine counts
        self._doubts: tuple[str, ...] | None = ()  # None: to be worked out anew
        self._was_set: set[tuple[int, float]] = set()  # levers, and what some round has set them to

    def copy(self) -> ReplayedLearner:
        """One that knows the same, and follows the log by itself from now on."""
        twin = copy(self)
        twin.learner = self.learner.copy()
        twin._evidence = None if self._evidence is None else self._evidence.copy()
        twin._was_set = set(self._was_set)
        return twin

    def read(self, storage: Storage, experiment: int, most: int) -> Sequence[ClosedTrial]:
        """With their checksums compared."""
        return storage.closed_since(experiment, self.position, most)

    def add(self, part: Sequence[ClosedTrial]) -> None:
        while part:
            room = len(part) if self._checkpoints is None else self._checkpoints.room(self.position)
            self._take(part[:room])
            part = part[room:]
            if self._checkpoints is not None:
                self._checkpoints.passed(self)

    def _take(self, closed: Sequence[ClosedTrial]) -> None:
        # A trial of many rows is a batch whose rows have no order; all others are rounds in the order of the log.
        told = [trial for trial in closed if trial.state == TOLD]
        apart = isinstance(self.learner.engine, KeepsOutcomes)
        groups = groupby(told, lambda trial: (trial.counts is not None, apart and trial.source not in OWN))
        parts = [(*kind, *batches_of(list(part), self.columns)) for kind, part in groups]
        for summed, history, rounds, sizes in parts:  # all can be read, or nothing is taken in
            with learning(self.learner.engine, len(rounds.counts)):
                self.learner.take(rounds, sizes if summed else None, history=history)
                if self._evidence is not None:
                    self._evidence.update(rounds)
            self._doubts = None
            rows, columns = np.nonzero(rounds.was_set)
            self._was_set.update(zip(columns.tolist(), rounds.values[rows, columns].tolist(), strict=True))
        self.position = closed[-1].position + 1

    @property
    def doubts(self) -> tuple[str, ...]:
        """What the rounds say against the graph, briefly."""
        if self._doubts is None:
            with learning(self.learner.engine, 1):
                found = self.learner.findings() if self._evidence is None else self._evidence.findings()
            known = {finding.short: None for finding in self.learner.revisions}
            every = dict.fromkeys([*known, *(finding.short for finding in found)])
            self._doubts = tuple(f"{one}{RECKONED}" if one in known else one for one in every)
        return self._doubts

    def situation(
        self, number: int, available: Iterable[str] | None, pending: Sequence[Pending], context: Array
    ) -> Situation:
        """All that is known before trial `number` is chosen."""
        draws = trial_draws(self.seed, number, self.learner.engine.draws)
        return Situation(draws, context, self.learner.available(available), tuple(pending))

    def known(self, context: str | None) -> Array:
        """A context as the log keeps it, by id: 1 for the constant, NaN for what is not known."""
        return no_context(len(self.columns.names)) if context is None else self.columns.arrays([context])[0]

    def pending(self, trial: StoredTrial) -> Pending:
        """A trial as something that is under way."""
        return Pending(self.action(trial), self.known(trial.context), trial.size)

    def action(self, trial: StoredTrial) -> Action:
        """What a trial sets."""
        return self.columns.action(trial.do)

    def is_control(self, number: int) -> bool:
        """Whether nothing is set in trial `number`, by a random number of its own that no policy uses."""
        return self.control > 0.0 and bool(round_draws(self.seed, number, UNIFORMS + 1)[UNIFORMS] < self.control)

    def gap(self, available: Iterable[str] | None, context: Array) -> float:
        """By how much any allowed action may be better than the recommended one at most."""
        engine = self.learner.engine
        now = Situation(np.zeros(engine.draws), context, self.learner.available(available))
        return gap(engine, best(engine, now).action, now).gap

    def untried(self, available: Sequence[str] | None, pending: Sequence[Pending]) -> Action | None:
        """The first allowed action that sets one lever, with a path to the target, to what no round has set it to;
        None where there is none, or no model is kept that could have concluded what it brings."""
        problem, graph = self.learner.problem, self.learner.graph
        idle, under_way = problem.idle(), [one.action for one in pending]
        names = [] if not self.learner.keeps_model else graph.controllable if available is None else available
        for name in names:
            v = graph.index(name)
            if name in graph.irrelevant or v in idle.ids:
                continue
            for value in problem.rules.values_of(name):
                setting = sorted([*zip(idle.ids, idle.values, strict=True), (v, float(value))])
                action = Action(tuple(i for i, _ in setting), tuple(to for _, to in setting))
                if (v, float(value)) not in self._was_set and action not in under_way and problem.allows(action):
                    return action
        return None

    def predict(self, action: Action, context: Array) -> Estimate:
        """E[target] of an action under the estimate, with its interval; NaN where no model can tell."""
        if self.learner.unknowable(action):
            return Estimate(math.nan, 0.0, 1.0)
        return self.learner.engine.predict(action, context)


def trial_draws(seed: int, number: int, count: int) -> Array:
    """The policy's random numbers in trial `number`; the one that decides on control rounds is left out."""
    if count <= UNIFORMS:
        return round_draws(seed, number, count)
    return np.delete(round_draws(seed, number, count + 1), UNIFORMS)


def batches_of(told: Sequence[ClosedTrial], columns: Columns) -> tuple[Rounds, NDArray[np.int64]]:
    """What told trials teach, a row per distinct round of a trial, in the order of the log; and how many rows each of
    them has."""
    _, _, _, actions, observations, given, *_ = zip(*told, strict=True)
    was_set = columns.masks(list(actions))
    if set(given) == {None}:  # a round each, as a rule: quicker
        once = np.ones(len(told), dtype=np.int64)
        return Rounds(columns.arrays([seen or "" for seen in observations]), was_set, once), once
    batches = [split_batch(trial.observation or "", trial.counts) for trial in told]
    sizes = np.array([len(rows) for rows, _ in batches], dtype=np.int64)
    values, was_set = columns.arrays([row for rows, _ in batches for row in rows]), np.repeat(was_set, sizes, axis=0)
    counts = np.array([count for _, counts in batches for count in counts], dtype=np.int64)
    return Rounds(values, was_set, counts), sizes
