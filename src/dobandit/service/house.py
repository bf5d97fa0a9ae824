"""The live experiments of a process: one object each, made when it is first needed and kept."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from dobandit.errors import MissingError
from dobandit.experiment.experiment import Experiment
from dobandit.experiment.storage import Storage
from dobandit.experiment.storage.base import StoredExperiment
from dobandit.service.settings import Settings
from dobandit.service.visitors import Visitor


class House:
    """Experiments by id.

    Each experiment has two objects: one that is asked and told, and one that answers questions. Each has a lock of its
    own, so that a long answer never keeps an `ask` waiting.
    """

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self.storage, self.settings = storage, settings
        self._lock = threading.Lock()
        self._answering: dict[int, Experiment] = {}
        self._working: dict[int, Experiment] = {}

    def listed(self, visitor: Visitor | None = None) -> Sequence[StoredExperiment]:
        """The experiments by name; of those, the ones that a visitor knows of."""
        return [one for one in self.storage.experiments() if visitor is None or visitor.knows(one.id)]

    def stored(self, experiment: int) -> StoredExperiment:
        """An experiment as it is kept now: its name, and how many trials it has."""
        for one in self.storage.experiments():
            if one.id == experiment:
                return one
        with self._lock:
            self._answering.pop(experiment, None)
            self._working.pop(experiment, None)
        raise MissingError(f"there is no experiment with the id {experiment}. List the experiments to see theirs.")

    def experiment(self, experiment: int) -> Experiment:
        """To look at: recommend, estimates, status, diagnose, trials, explain, ..."""
        return self._kept(self._answering, experiment)

    def at_work(self, experiment: int) -> Experiment:
        """To change: ask, tell, record, ..."""
        return self._kept(self._working, experiment)

    def _kept(self, objects: dict[int, Experiment], experiment: int) -> Experiment:
        stored = self.stored(experiment)
        with self._lock:
            found = objects.get(experiment)
            if found is None:
                found = objects[experiment] = Experiment(self.storage, stored, self.settings.clock)
            found.name = stored.name  # it may have been renamed
            return found
