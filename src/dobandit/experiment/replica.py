"""A learner that follows an experiment's log: what it knows is a function of the closed trials, in order."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from itertools import groupby
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from dobandit.experiment.columns import Columns
from dobandit.experiment.definition import Definition
from dobandit.experiment.milestones import Milestones
from dobandit.experiment.row_encoding import split_batch
from dobandit.experiment.storage.base import TOLD, ClosedTrial, Storage, StoredTrial
from dobandit.experiment.storage.errors import damaged
from dobandit.oracle.actions import Action
from dobandit.policy.base import round_draws
from dobandit.policy.engine import UNIFORMS, Array, Estimate, Pending, Rounds, Situation, no_context
from dobandit.policy.graph_evidence import GraphEvidence
from dobandit.policy.learner import Learner

PART = 10_000  # closed trials in memory at a time
RECKONED = ", which the learner now reckons with"


class Replica:
    """Knows the log up to `position`."""

    def __init__(self, definition: Definition, columns: Columns) -> None:
        self.columns = columns
        self.learner = definition.learner.copy()
        self.seed, self.control = definition.seed, definition.control
        self.position = 0
        unwatched = self.learner.keeps_model and not self.learner.engine.watches_graph
        self._evidence = GraphEvidence(self.learner.problem) if unwatched else None  # else the engine counts
        self._doubts: tuple[str, ...] | None = ()  # None: to be worked out anew

    def resume(self, position: int, learner: Learner) -> None:
        """Go on from what a learner knew after `position` closed trials; what these say against the graph is left out
        where the learner's engine does not count it."""
        self.position, self.learner, self._evidence = position, learner.copy(), None

    def copy(self) -> Replica:
        """One that knows the same, and follows the log by itself from now on."""
        twin = copy(self)
        twin.learner = self.learner.copy()
        twin._evidence = None if self._evidence is None else self._evidence.copy()
        return twin

    def catch_up(self, storage: Storage, experiment: int, until: int, way: Milestones | None = None) -> None:
        """Take in the closed trials up to `until`, in parts: a long log is never in memory as a whole.

        way  keeps copies of what is known on the way
        """
        with _without_collector() if until - self.position > PART else nullcontext():
            while self.position < until:
                part = storage.closed_since(experiment, self.position, min(PART, until - self.position))
                if not part:
                    storage.counters(experiment)  # which raises where it was deleted meanwhile
                    raise damaged(experiment, storage.url)
                self._follow_on_the_way(part, way)

    def _follow_on_the_way(self, part: Sequence[ClosedTrial], way: Milestones | None) -> None:
        while part:
            room = len(part) if way is None else way.room(self.position)
            self.follow(part[:room])
            part = part[room:]
            if way is not None:
                way.passed(self)

    def follow(self, closed: Sequence[ClosedTrial]) -> None:
        """Take in the next part of the log."""
        if not closed:
            return
        # A trial of many rows is a batch whose rows have no order; all others are rounds in the order of the log.
        # It makes no difference how much of the log is taken in at once.
        told = [trial for trial in closed if trial.state == TOLD]
        groups = [(False, told)]
        if any(map(attrgetter("counts"), told)):
            groups = [(summed, list(part)) for summed, part in groupby(told, lambda trial: trial.counts is not None)]
        parts = [(summed, *batches_of(part, self.columns)) for summed, part in groups if part]
        for summed, rounds, sizes in parts:  # all can be read, or nothing is taken in
            self._learn(summed, rounds, sizes)
        self.position = closed[-1].position + 1

    def _learn(self, summed: bool, rounds: Rounds, sizes: NDArray[np.int64]) -> None:
        if summed:
            self.learner.take_batches(rounds, sizes)
        else:
            self.learner.take(rounds)
        if self._evidence is not None:
            self._evidence.update(rounds)
        self._doubts = None

    @property
    def doubts(self) -> tuple[str, ...]:
        """What the rounds say against the graph, briefly."""
        if self._doubts is None:
            found = self.learner.engine.findings() if self._evidence is None else self._evidence.findings()
            known = {finding.short: None for finding in self.learner.engine.revisions}
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

    def gap(self, available: Iterable[str] | None, context: Array) -> float | None:
        """By how much any allowed action may be better than the recommended one at most; None: nobody knows."""
        engine = self.learner.engine
        now = Situation(np.zeros(engine.draws), context, self.learner.available(available))
        return engine.gap(engine.best(now).action, now)

    def predict(self, action: Action, context: Array) -> Estimate:
        """E[target] of an action under the estimate, with its interval; NaN where no model can tell."""
        if self.learner.unknowable(action):
            return Estimate(math.nan, 0.0, 1.0)
        return self.learner.engine.predict(action, context)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Rows of a log hold no cycles, but a million of them make Python look for some again and again, in all that is in
    memory: that takes nearly half of the time in which a log is read."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def trial_draws(seed: int, number: int, count: int) -> Array:
    """The policy's random numbers in trial `number`; the one that decides on control rounds is left out."""
    if count <= UNIFORMS:
        return round_draws(seed, number, count)
    return np.delete(round_draws(seed, number, count + 1), UNIFORMS)


def batches_of(told: Sequence[ClosedTrial], columns: Columns) -> tuple[Rounds, NDArray[np.int64]]:
    """What told trials teach, a row per distinct round of a trial, in the order of the log; and how many rows each of
    them has."""
    _, _, _, actions, observations, given, _ = zip(*told, strict=True)
    was_set = columns.masks(list(actions))
    if set(given) == {None}:  # a round each, as a rule: quicker
        once = np.ones(len(told), dtype=np.int64)
        return Rounds(columns.arrays([seen or "" for seen in observations]), was_set, once), once
    batches = [split_batch(trial.observation or "", trial.counts) for trial in told]
    sizes = np.array([len(rows) for rows, _ in batches], dtype=np.int64)
    values, was_set = columns.arrays([row for rows, _ in batches for row in rows]), np.repeat(was_set, sizes, axis=0)
    counts = np.array([count for _, counts in batches for count in counts], dtype=np.int64)
    return Rounds(values, was_set, counts), sizes
