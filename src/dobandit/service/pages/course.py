"""The course of an experiment: what its log looks like from afar, and what was known on the way.

A Course follows the closed trials, reading each once, and keeps a bounded amount whatever the length of the log: sums
over a bounded number of stretches of equal length. What was known at a bounded number of positions, the experiment
keeps (`experiment.milestones`); what was known between two of them is learned anew from the first.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

from dobandit.experiment.answers import EdgeEstimate, edge_estimates
from dobandit.experiment.experiment import Experiment
from dobandit.experiment.ledger import closed_parts
from dobandit.experiment.replica import Replica
from dobandit.experiment.row_encoding import split_batch
from dobandit.experiment.storage.base import TOLD
from dobandit.policy.learner import Learner

STRETCHES = 96  # at most
CONTEXTS = 12  # at most: each has answers of its own
_FIELDS = ("position", "state", "do", "observation", "counts", "predicted", "low", "high")


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
        for name in ("trials", "rounds", "total", "foretold", "predicted", "low", "high"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.tried.update(other.tried)


class Contexts(NamedTuple):
    """In which contexts the told rounds were.

    most       those seen most often, with their rounds; first comes the most frequent
    different  how many were seen
    rounds     that were told, those of which the context is not wholly known included
    """

    most: Sequence[tuple[dict[str, float], int]] = ()
    different: int = 0
    rounds: int = 0


class Known:
    """What was known after `position` closed trials."""

    def __init__(self, position: int, learner: Learner) -> None:
        self.position, self.learner = position, learner

    @cached_property
    def estimates(self) -> Sequence[EdgeEstimate]:
        return edge_estimates(self.learner) if self.learner.keeps_model else ()


class Course:
    """Of one experiment. Safe to use from several threads."""

    def __init__(self, experiment: Experiment, number: int) -> None:
        self._experiment, self._number = experiment, number
        experiment.remember_the_way()
        self._lock = threading.Lock()
        names = experiment.columns.names
        self._target = names.index(experiment.graph.target)
        self._context = [names.index(name) for name in experiment.graph.context]
        self.width = 1  # closed trials in a stretch
        self.stretches: list[Stretch] = []
        self.told = 0  # trials
        self.position = 0  # closed trials that are summed up
        self.contexts = Contexts()
        self._seen: Counter[tuple[float | None, ...]] = Counter()  # told rounds by their context
        self._begin = Known(0, Replica(experiment.definition, experiment.columns).learner)
        self._now = self._near = self._begin  # near: what was looked at last
        self._points: Sequence[Known] = (self._begin,)

    @property
    def read(self) -> int:
        """How many closed trials were read, while it is followed: by the learner, and then for the sums."""
        return (self._experiment.read_so_far + self.position) // 2

    def follow(self) -> None:
        """Read on to the end of the log."""
        storage = self._experiment.storage
        with self._lock:
            now = Known(*self._experiment.known_now())
            for part in closed_parts(storage, self._number, self.position, now.position, _FIELDS):
                self._sum_up(part)
                self.position = part[-1][0] + 1
            before = {point.position: point for point in self._points}
            way = [before.get(at) or Known(at, learner) for at, learner in self._experiment.known_on_the_way()]
            if now.position > self._now.position:
                self.contexts = self._contexts()
            self._points, self._now = (self._begin, *way), now
            for point in (*way, now):  # so that no page has to
                _ = point.estimates

    def _sum_up(self, part: Sequence[tuple[Any, ...]]) -> None:
        while part[-1][0] // self.width >= STRETCHES:
            for left, right in zip(self.stretches[::2], self.stretches[1::2], strict=False):
                left.add(right)
            self.stretches, self.width = self.stretches[::2], 2 * self.width
        for i, rows in groupby(part, key=lambda row: row[0] // self.width):
            while len(self.stretches) <= i:
                self.stretches.append(Stretch())
            self._add(self.stretches[i], list(rows))

    def _add(self, stretch: Stretch, rows: Sequence[tuple[Any, ...]]) -> None:
        stretch.trials += len(rows)
        stretch.tried.update(row[2] for row in rows)
        if self._context:
            self._count_contexts(rows)
        known: dict[tuple[str, str | None], tuple[int, float]] = {}  # rounds repeat themselves
        for _, state, _, seen, counts, predicted, low, high in rows:
            self.told += state == TOLD
            if state != TOLD or seen is None:
                continue
            if (seen, counts) not in known:
                known[seen, counts] = self._target_in(seen, counts)
            rounds, total = known[seen, counts]
            stretch.rounds += rounds
            stretch.total += total
            if predicted is not None and low is not None and high is not None:
                stretch.foretold += rounds
                stretch.predicted += rounds * predicted
                stretch.low += rounds * low
                stretch.high += rounds * high

    def _count_contexts(self, rows: Sequence[tuple[Any, ...]]) -> None:
        told = Counter((row[3], row[4]) for row in rows if row[1] == TOLD and row[3] is not None)
        for (seen, counts), trials in told.items():
            for text, count in zip(*split_batch(seen, counts), strict=True):
                values = self._experiment.columns.values(text)
                self._seen[tuple(values[i] for i in self._context)] += trials * count

    def _contexts(self) -> Contexts:
        whole = Counter({values: rounds for values, rounds in self._seen.items() if None not in values})
        names = self._experiment.graph.context
        most = [
            ({name: value for name, value in zip(names, values, strict=True) if value is not None}, rounds)
            for values, rounds in whole.most_common(CONTEXTS)
        ]
        return Contexts(most, len(whole), self._seen.total())

    def _target_in(self, seen: str, counts: str | None) -> tuple[int, float]:
        """How many rounds of a trial saw the target, and its sum over these."""
        rounds, total = 0, 0.0
        for text, count in zip(*split_batch(seen, counts), strict=True):
            value = self._experiment.columns.values(text)[self._target]
            if value is not None:
                rounds, total = rounds + count, total + count * value
        return rounds, total

    # -- questions -------------------------------------------------------------------------------------------------

    def history(self) -> list[Known]:
        """What was known at the positions that are kept, and now."""
        now = self._now
        return [*(point for point in self._points if point.position < now.position), now]

    def rounds_in(self, context: Mapping[str, float]) -> int:
        """How many told rounds were in a context."""
        return self._seen[tuple(context[name] for name in self._experiment.graph.context)]

    def at(self, position: int) -> Known:
        """What was known after so many closed trials."""
        if position >= self._now.position:
            return self._now
        before = (point for point in (*self._points, self._near) if point.position <= position)
        near = max(before, key=lambda point: point.position)
        if near.position < position:
            then = Replica(self._experiment.definition, self._experiment.columns)
            then.resume(near.position, near.learner)
            then.catch_up(self._experiment.storage, self._number, position)
            near = self._near = Known(position, then.learner)
        return near

    def parts(self, most: int) -> list[tuple[int, Stretch]]:
        """The log in at most so many stretches of equal length, each with its first closed trial."""
        found, per = [], max(1, -(-len(self.stretches) // most))
        for start in range(0, len(self.stretches), per):
            part = Stretch()
            for stretch in self.stretches[start : start + per]:
                part.add(stretch)
            found.append((start * self.width, part))
        return found

    def sets(self, most: int) -> tuple[list[str], int]:
        """What was set most often, as the log keeps it, most often first; and how many different ones there were."""
        counts: Counter[str] = Counter()
        for stretch in self.stretches:
            counts.update(stretch.tried)
        return [text for text, _ in counts.most_common(most)], len(counts)
