"""The live experiments of a process: their objects, made when they are first needed, and kept as long as there is
room."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from dobandit.errors import MissingError
from dobandit.experiment.experiment import Experiment
from dobandit.service.audited import AuditedStorage, dumped
from dobandit.service.page_cache import PageCache
from dobandit.service.service_settings import Settings
from dobandit.service.sessions import Visitor
from dobandit.storage import Storage
from dobandit.storage.contract import StoredExperiment, page_of

_MOST_ANSWERS = 64  # of one experiment
T = TypeVar("T")


@dataclass
class _Kept:
    """Of one experiment."""

    experiment: Experiment
    pages: PageCache
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)  # by question: closed trials then, and JSON


class ExperimentRegistry:
    """Experiments by id."""

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self.storage, self.settings = cast(Storage, AuditedStorage(storage)), settings
        self._lock = threading.Lock()
        self._kept: dict[int, _Kept] = {}  # the last one used is last
        self._counted: dict[int, tuple[StoredExperiment, float]] = {}

    def listed(
        self, visitor: Visitor, after: str | None = None, before: str | None = None, limit: int | None = None
    ) -> Sequence[StoredExperiment]:
        """Those that a visitor knows of, by name: the first `limit` behind `after`, or the last before `before`."""
        if visitor.experiment is None:
            return self.storage.experiments(after, before, limit)
        one = self.storage.by_id(visitor.experiment)
        return page_of([] if one is None else [one], after, before, limit)

    def stored(self, experiment: int) -> StoredExperiment:
        """An experiment as it is kept now: its name, and how many trials it has."""
        found = self.storage.by_id(experiment) if 0 < experiment < 2**31 else None
        if found is not None:
            return found
        with self._lock:
            self._kept.pop(experiment, None)
            self._counted.pop(experiment, None)
        raise MissingError(f"there is no experiment with the id {experiment}, or it was deleted. List the experiments.")

    def experiment(self, experiment: int) -> Experiment:
        """To look at: recommend, estimates, status, diagnose, trials, explain, ..."""
        return self._of(self.stored(experiment)).experiment

    def at_work(self, experiment: int) -> Experiment:
        """To change: ask, tell, record, ... Whether it is still there, its storage says when it is written to."""
        return self._of(self.counted(experiment)).experiment

    def pages(self, experiment: int, stored: StoredExperiment | None = None) -> PageCache:
        """What its pages show. Raises MissingError where there is no such experiment. stored: as it is kept now"""
        return self._of(stored or self.stored(experiment)).pages

    def counted(self, experiment: int) -> StoredExperiment:
        """As `stored`, but some tenths of a second old: for the many who only look whether something happened."""
        found, until = self._counted.get(experiment, (None, 0.0))
        if found is None or time.monotonic() >= until:
            found = self.stored(experiment)
            with self._lock:
                self._put(self._counted, experiment, (found, time.monotonic() + self.settings.look_seconds / 2))
        return found

    def answered(self, experiment: int, question: str, compute: Callable[[Experiment], Any]) -> str:
        """The answer to a question about the closed trials, as JSON: worked out once for each state of the log."""
        stored = self.stored(experiment)
        answers = self._of(stored).answers
        closed, text = answers.get(question, (None, ""))
        if closed != stored.closed:
            text = dumped(compute(self._of(stored).experiment))
            if self.stored(experiment).closed == stored.closed:  # otherwise it may be the answer of either state
                if len(answers) >= _MOST_ANSWERS:
                    answers.clear()
                answers[question] = stored.closed, text
        return text

    def forget_answers(self) -> None:
        """Those whose time is over."""
        if self.storage.experiments():  # otherwise there need not even be a database
            with self.storage.booking() as books:
                books.forget_answers(self.settings.clock() - self.settings.answer_seconds)

    def _of(self, stored: StoredExperiment) -> _Kept:
        with self._lock:
            kept = self._kept.get(stored.id)
            if kept is None:
                experiment = Experiment(self.storage, stored, self.settings.clock)
                kept = _Kept(experiment, PageCache(experiment, self.settings))
            self._put(self._kept, stored.id, kept)
            kept.experiment.log.name = stored.name  # it may have been renamed
            return kept

    def _put(self, kept: dict[int, T], experiment: int, one: T) -> None:
        """As the last one used; the first goes where there are too many."""
        kept.pop(experiment, None)
        kept[experiment] = one
        while len(kept) > self.settings.most_kept:
            del kept[next(iter(kept))]
