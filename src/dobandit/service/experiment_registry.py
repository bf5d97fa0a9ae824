"""The live experiments of a process: their objects, made when they are first needed, and kept as long as there is
room."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from dobandit.errors import MissingError
from dobandit.experiment.experiment import Experiment
from dobandit.service.page_cache import PageCache
from dobandit.service.service_settings import Settings
from dobandit.service.sessions import Visitor
from dobandit.storage import Storage
from dobandit.storage.contract import StoredExperiment, page_of


class ExperimentRegistry:
    """Experiments by id. Each has one object, with what its pages show, for all threads."""

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self.storage, self.settings = storage, settings
        self._lock = threading.Lock()
        self._caches: dict[int, PageCache] = {}  # the last one used is last

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
            self._caches.pop(experiment, None)
        raise MissingError(f"there is no experiment with the id {experiment}, or it was deleted. List the experiments.")

    def experiment(self, experiment: int) -> Experiment:
        return self.pages(experiment).experiment

    def pages(self, experiment: int, stored: StoredExperiment | None = None) -> PageCache:
        """What its pages show. Raises MissingError where there is no such experiment.

        stored  the experiment as it is kept now, if that is known already
        """
        stored = stored or self.stored(experiment)
        with self._lock:
            cache = self._caches.pop(stored.id, None)
            if cache is None:
                cache = PageCache(Experiment(self.storage, stored, self.settings.clock), self.settings)
            self._caches[stored.id] = cache
            if len(self._caches) > self.settings.most_kept:
                del self._caches[next(iter(self._caches))]
            cache.experiment.log.name = stored.name  # it may have been renamed
            return cache

    def forget_answers(self) -> None:
        """Drop the answers to Idempotency-Keys whose time is over."""
        if self.storage.experiments():  # otherwise there need not even be a database
            with self.storage.booking() as books:
                books.forget_answers(self.settings.clock() - self.settings.answer_seconds)
