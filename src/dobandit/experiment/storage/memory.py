"""Experiments that live as long as the process: for tests, notebooks and simulations."""

from __future__ import annotations

from dobandit.experiment.storage.sql import SQLStorage
from dobandit.experiment.storage.sqlite import SQLiteMemory


class MemoryStorage(SQLStorage):
    """A database in memory, which no other process sees."""

    def __init__(self) -> None:
        super().__init__(SQLiteMemory())

    def close(self) -> None:
        """Whoever closes an experiment may open it again."""
