"""A learner that follows an experiment's log: what it knows is a function of the closed trials, in order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import PolicyError, StorageError
from dobandit.experiment.definition import Definition
from dobandit.experiment.rounds import Columns
from dobandit.experiment.storage.base import TOLD, ClosedTrial
from dobandit.policy.base import Choice, Interval, round_uniforms
from dobandit.policy.learner import Learner


class Replica:
    """Knows the log up to `position`."""

    def __init__(self, definition: Definition, columns: Columns) -> None:
        self.columns = columns
        self.learner = Learner(definition.policy, definition.problem)
        self.seed = definition.seed
        self.position = 0

    def follow(self, closed: Sequence[ClosedTrial]) -> None:
        """Take in the next part of the log."""
        if not closed:
            return
        if [trial.position for trial in (closed[0], closed[-1])] != [self.position, self.position + len(closed) - 1]:
            raise StorageError(
                f"the log is damaged: after {self.position} closed trials, the next {len(closed)} are not in a row. "
                "Restore it from a backup."
            )
        told = [trial for trial in closed if trial.state == TOLD]
        if told:
            self.learner.engine.update_many(*rounds_of(told, self.columns))
        self.position = closed[-1].position + 1

    def choose(self, number: int, available: tuple[str, ...] | None, pending: Sequence[Sequence[int]]) -> Choice:
        """What trial `number` sets, given what is known and what is under way."""
        return self.learner.engine.choose(round_uniforms(self.seed, number), available, pending)

    def predict(self, ids: Sequence[int]) -> tuple[float, Interval]:
        """E[target | do(ids = 1)] and its interval under the estimate; (NaN, [0, 1]) where a policy has none."""
        fixed = np.full(len(self.learner.graph) + 1, math.nan)
        fixed[0] = 1.0
        fixed[list(ids)] = 1.0
        try:
            return self.learner.predict(fixed)
        except PolicyError:
            return math.nan, Interval(0.0, 1.0)


def rounds_of(told: Sequence[ClosedTrial], columns: Columns) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Values (NaN: not seen) and which variables were set, a row a told trial."""
    if len(told) == 1:  # the next round, as a rule
        return columns.array(told[0].observation or "")[None, :], columns.mask(told[0].do)[None, :]
    if not told:
        none = np.ones((0, len(columns.names) + 1))
        return none, none > 1.0
    values = columns.arrays([trial.observation or "" for trial in told])
    was_set = ~np.isnan(columns.arrays([trial.do for trial in told]))
    was_set[:, 0] = False
    return values, was_set
