"""Forks while other threads are at work. In the child only the thread that forked goes on: a lock that another thread
held stays locked there for ever, and connections to a database still belong to the parent.

Storages let go of connections before a fork, and finish their short blocks; experiments take new locks in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class ForkedStorage(Protocol):
    """An owner of connections, or of locks that are held for short blocks only."""

    def before_fork(self) -> None:
        """Called in the thread that forks."""

    def after_fork(self, child: bool) -> None:
        """Called in the same thread, in the parent and in the child."""


class ForkedExperiment(Protocol):
    """An owner of locks that may be held for long."""

    def after_fork(self) -> None:
        """Called in the child."""


_storages: weakref.WeakSet[ForkedStorage] = weakref.WeakSet()
_experiments: weakref.WeakSet[ForkedExperiment] = weakref.WeakSet()


def remember_storage(storage: ForkedStorage) -> None:
    """From now on the storage is told of every fork."""
    _storages.add(storage)


def remember(experiment: ForkedExperiment) -> None:
    """From now on the experiment is told in every child."""
    _experiments.add(experiment)


def was_left_locked(lock: threading.RLock) -> bool:
    """Whether another thread held the lock: in the child, for ever."""
    if lock.acquire(blocking=False):
        lock.release()
        return False
    return True


def _before() -> None:
    for storage in list(_storages):
        storage.before_fork()


def _after(child: bool) -> None:
    for storage in list(_storages):
        storage.after_fork(child)
    for experiment in list(_experiments) if child else ():
        experiment.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=lambda: _after(False), after_in_child=lambda: _after(True))
