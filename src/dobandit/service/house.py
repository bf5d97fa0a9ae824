"""The live experiments of a process: one object each, made when it is first needed and kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dobandit.errors import MissingError
from dobandit.experiment.experiment import Experiment
from dobandit.experiment.storage import Storage
from dobandit.experiment.storage.base import StoredExperiment
from dobandit.service.audited import audited, dumped
from dobandit.service.changes import Changes
from dobandit.service.settings import Settings
from dobandit.service.visitors import Visitor
from dobandit.version import VERSION

_MOST_ANSWERS = 64  # of one experiment
_SECONDS = 0.5


class Answered(NamedTuple):
    """An answer as JSON; tag: equal for equal states of the log, None where it cannot be said."""

    text: str
    tag: str | None


class House:
    """Experiments by id.

    Each experiment has two objects: one that is asked and told, and one that answers questions. Each has a lock of its
    own, so that a long answer never keeps an `ask` waiting.
    """

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self.storage, self.settings = audited(storage), settings
        self._lock = threading.Lock()
        self._answering: dict[int, Experiment] = {}
        self._working: dict[int, Experiment] = {}
        self.changes = Changes(self.storage, self._work_anew)
        self._answers: dict[int, dict[str, Answered]] = {}
        self._counted: dict[int, tuple[StoredExperiment, float]] = {}

    def listed(
        self, visitor: Visitor, after: str | None = None, before: str | None = None, limit: int | None = None
    ) -> Sequence[StoredExperiment]:
        """Those that a visitor knows of, by name: the first `limit` behind `after`, or the last before `before`."""
        if visitor.experiment is None:
            return self.storage.experiments_page(after, before, limit)
        one = self.storage.by_id(visitor.experiment)
        here = one and (after is None or one.name > after) and (before is None or one.name < before)
        return [one] if one is not None and here and limit != 0 else []

    def stored(self, experiment: int) -> StoredExperiment:
        """An experiment as it is kept now: its name, and how many trials it has."""
        found = self.storage.by_id(experiment) if 0 < experiment < 2**31 else None
        if found is not None:
            return found
        with self._lock:
            for kept in (self._answering, self._working, self._answers, self._counted):
                kept.pop(experiment, None)
        raise MissingError(f"there is no experiment with the id {experiment}, or it was deleted. List the experiments.")

    def experiment(self, experiment: int) -> Experiment:
        """To look at: recommend, estimates, status, diagnose, trials, explain, ..."""
        return self._kept(self._answering, self.stored(experiment))

    def at_work(self, experiment: int) -> Experiment:
        """To change: ask, tell, record, ... Whether it is still there, its storage says when it is written to."""
        return self._kept(self._working, self.counted(experiment))

    def counted(self, experiment: int) -> StoredExperiment:
        """As `stored`, and at most half a second old: for the many who only want to know whether something happened."""
        found, until = self._counted.get(experiment, (None, 0.0))
        if found is None or time.monotonic() >= until:
            found = self.stored(experiment)
            self._counted[experiment] = (found, time.monotonic() + _SECONDS)
        return found

    def _work_anew(self, experiment: int) -> None:
        """What was taken in of a log that could not be stored is forgotten."""
        with self._lock:
            self._working.pop(experiment, None)

    def answered(
        self, experiment: int, question: str, compute: Callable[[Experiment], Any], had: str | None = None
    ) -> Answered:
        """What a function of the closed trials says, as JSON: worked out once for each state of the log, and not at all
        for who has it already.

        had  the If-None-Match of the request
        """
        closed = self.stored(experiment).closed
        tag = f"{VERSION}.{experiment}.{closed}"
        if had is not None and f'"{tag}"' in had:
            return Answered("", tag)
        answers = self._answers.setdefault(experiment, {})
        kept = answers.get(question)
        if kept is None or kept.tag != tag:
            kept = Answered(dumped(compute(self.experiment(experiment))), tag)
            if self.stored(experiment).closed != closed:
                return kept._replace(tag=None)  # it may be the answer of either state
            if len(answers) >= _MOST_ANSWERS:
                answers.clear()
            answers[question] = kept
        return kept

    def forget_answers(self) -> None:
        """Those whose time is over."""
        if self.storage.experiments():  # otherwise there need not even be a database
            with self.storage.booking() as books:
                books.forget_answers(self.settings.clock() - self.settings.answer_seconds)

    def _kept(self, objects: dict[int, Experiment], stored: StoredExperiment) -> Experiment:
        with self._lock:
            found = objects.get(stored.id)
            if found is None:
                found = objects[stored.id] = Experiment(self.storage, stored, self.settings.clock)
            found.name = stored.name  # it may have been renamed
            return found
