"""Something that is added up over the closed trials of a log, in order, each read once."""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

from dobandit.experiment.columns import Columns
from dobandit.experiment.storage.base import Storage
from dobandit.experiment.storage.errors import damaged

PART = 10_000  # closed trials in memory at a time


class Accumulator(ABC):
    """Over the first `position` closed trials. It makes no difference how many of them are taken in at once.

    fields  of a trial that it needs
    """

    fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, columns: Columns) -> None:
        self.columns, self.position = columns, 0
        self.target = columns.names.index(columns.graph.target)

    @abstractmethod
    def add(self, part: Sequence[Any]) -> None:
        """Take in the next closed trials: all of them, or none where one cannot be read."""

    def read(self, storage: Storage, experiment: int, most: int) -> Sequence[Any]:
        """The next closed trials."""
        return storage.closed_fields(experiment, self.position, most, self.fields)

    def follow(self, storage: Storage, experiment: int, until: int) -> None:
        """Take in the closed trials up to `until`, in parts: a long log is never in memory as a whole."""
        with _without_collector() if until - self.position > PART else nullcontext():
            while self.position < until:
                part = self.read(storage, experiment, min(PART, until - self.position))
                if not part:
                    storage.counters(experiment)  # which raises where it was deleted meanwhile
                    raise damaged(experiment, storage.url)
                reached = self.position + len(part)
                self.add(part)
                self.position = reached


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
