"""The course of an experiment: what its log looks like from afar, and what was known on the way.

A Course follows the closed trials, reading each once, and keeps a bounded amount whatever the length of the log: sums
over a bounded number of stretches of equal length, and the learner as it was at a bounded number of positions.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dobandit.experiment.answers import EdgeEstimate, edge_estimates
from dobandit.experiment.experiment import Experiment
from dobandit.experiment.replica import Replica
from dobandit.experiment.row_texts import split_batch
from dobandit.experiment.storage.base import TOLD, ClosedTrial, StoredTrial
from dobandit.policy.learner import Learner

STRETCHES = 96  # at most
POINTS = 64  # positions at which the learner is kept, at most
EXACT = 4_096  # closed trials up to which the learner can be had at every position
_CHUNK = 2_000  # trials taken in at once


@dataclass
class Stretch:
    """Sums over consecutive closed trials."""

    trials: int = 0
    rounds: int = 0  # that saw the target
    total: float = 0.0  # of the target over these
    foretold: float = 0.0  # rounds that saw the target and had a prediction
    predicted: float = 0.0  # sums over these
    low: float = 0.0
    high: float = 0.0
    tried: Counter[str] = field(default_factory=Counter)  # trials by what was set, as the log keeps it

    def add(self, other: Stretch) -> None:
        self.trials += other.trials
        self.rounds += other.rounds
        self.total += other.total
        self.foretold += other.foretold
        self.predicted += other.predicted
        self.low += other.low
        self.high += other.high
        self.tried.update(other.tried)


class Known(NamedTuple):
    """What was known after `position` closed trials."""

    position: int
    learner: Learner
    estimates: Sequence[EdgeEstimate]


class Course:
    """Of one experiment. Safe to use from several threads."""

    def __init__(self, experiment: Experiment, number: int) -> None:
        self._experiment, self._number = experiment, number
        self._lock = threading.Lock()
        self._replica = Replica(experiment.definition, experiment.columns)
        self._target = experiment.columns.names.index(experiment.graph.target)
        self.width, self.stride = 1, 1  # closed trials in a stretch, and between two positions that are kept
        self.stretches: list[Stretch] = []
        self.told = 0  # trials
        self.points: list[Known] = [self._known()]

    @property
    def position(self) -> int:
        """How many closed trials were read."""
        return self._replica.position

    def follow(self) -> None:
        """Read on to the end of the log."""
        with self._lock:
            closed = self._experiment.storage.closed_since(self._number, self.position)
            for start in range(0, len(closed), _CHUNK):
                self._take(closed[start : start + _CHUNK])

    def _take(self, chunk: Sequence[ClosedTrial]) -> None:
        asked = self._asked(chunk)
        self.told += sum(trial.state == TOLD for trial in chunk)
        for trial in chunk:
            self._add(trial.position, self._summed(trial, asked.get(trial.number)))
        done = 0
        while done < len(chunk):
            step = self.stride - self.position % self.stride
            self._replica.follow(chunk[done : done + step])
            done += step
            if self.position % self.stride == 0:
                self._keep()

    def _asked(self, chunk: Sequence[ClosedTrial]) -> Mapping[int, StoredTrial]:
        """The rows of closed trials, by number: mostly they stand side by side."""
        storage, numbers = self._experiment.storage, {trial.number for trial in chunk}
        first, last = min(numbers), max(numbers)
        if last - first < 2 * len(numbers) + 100:
            rows: Iterator[StoredTrial | None] = storage.rows(self._number, first - 1, last - first + 1)
        else:
            rows = (storage.trial(self._number, number) for number in sorted(numbers))
        return {row.number: row for row in rows if row is not None and row.number in numbers}

    def _summed(self, trial: ClosedTrial, row: StoredTrial | None) -> Stretch:
        found = Stretch(trials=1, tried=Counter([trial.do]))
        if trial.state != TOLD or trial.observation is None:
            return found
        values = self._experiment.columns.values
        for text, count in zip(*split_batch(trial.observation, trial.counts), strict=True):
            value = values(text)[self._target]
            if value is not None:
                found.rounds += count
                found.total += count * value
        if row is not None and row.predicted is not None and row.low is not None and row.high is not None:
            found.foretold = found.rounds
            found.predicted, found.low, found.high = (
                found.rounds * part for part in (row.predicted, row.low, row.high)
            )
        return found

    def _add(self, position: int, one: Stretch) -> None:
        while position // self.width >= STRETCHES:
            for left, right in zip(self.stretches[::2], self.stretches[1::2], strict=False):
                left.add(right)
            self.stretches, self.width = self.stretches[::2], 2 * self.width
        while len(self.stretches) <= position // self.width:
            self.stretches.append(Stretch())
        self.stretches[position // self.width].add(one)

    def _known(self) -> Known:
        learner = self._replica.learner.copy()
        return Known(self._replica.position, learner, edge_estimates(learner) if learner.keeps_model else ())

    def _keep(self) -> None:
        self.points.append(self._known())
        if len(self.points) > POINTS:
            self.stride *= 2
            self.points = [point for point in self.points if point.position % self.stride == 0]

    # -- questions -------------------------------------------------------------------------------------------------

    def history(self) -> list[Known]:
        """The positions that are kept, and now."""
        with self._lock:
            return [*self.points, *([self._known()] if self.points[-1].position < self.position else [])]

    def at(self, position: int) -> Known:
        """What was known after so many closed trials; in a long log, after the last position before that is kept."""
        with self._lock:
            if position >= self.position:
                return self._known()
            before = max((p for p in self.points if p.position <= position), key=lambda p: p.position)
            if before.position == position or self.position > EXACT:
                return before
            then = Replica(self._experiment.definition, self._experiment.columns)
            then.learner, then.position = before.learner.copy(), before.position
            closed = self._experiment.storage.closed_since(self._number, before.position)
            then.follow(closed[: position - before.position])
            return Known(position, then.learner, edge_estimates(then.learner) if then.learner.keeps_model else ())

    def sets(self, most: int) -> tuple[list[str], int]:
        """What was set most often, as the log keeps it, most often first; and how many different ones there were."""
        counts: Counter[str] = Counter()
        for stretch in self.stretches:
            counts.update(stretch.tried)
        return [text for text, _ in counts.most_common(most)], len(counts)
