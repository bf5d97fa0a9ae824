"""A child that is forked while other threads are at work must not wait for locks that nobody will ever release.

In the child only the thread that forked goes on. A lock that another thread held at that moment stays locked in the
child, and what it guards may be half done: ours, and those of Python and of NumPy's BLAS, where even the parent may
wait for ever. So a fork waits a moment until nobody works something out, first for the experiments, then for their
storages, in the order in which threads take their locks. Where somebody takes longer, whoever has such locks says
what becomes of them in the child.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Protocol

PATIENCE = 1.0  # seconds that a fork waits for those who work something out
FOR_STORAGES = 60.0  # and for a storage, whose blocks are short


class Forked(Protocol):
    """Whoever has locks."""

    def locks(self) -> Sequence[threading.RLock | threading.Lock]:
        """What is held by whoever is at work, in the order in which it is taken."""

    def after_fork(self) -> None:
        """Called in the child."""


class ForkedStorage(Forked, Protocol):
    """A storage, which may have to let go of something."""

    def before_fork(self) -> None:
        """Called when its locks are held."""


_experiments: weakref.WeakSet[Forked] = weakref.WeakSet()
_storages: weakref.WeakSet[ForkedStorage] = weakref.WeakSet()
_held: list[threading.RLock | threading.Lock] = []


def remember(owner: Forked) -> None:
    """From now on forks wait for `owner.locks()`, and `owner.after_fork()` is called in every child."""
    _experiments.add(owner)


def remember_storage(owner: ForkedStorage) -> None:
    """From now on forks wait for a storage too, once they have the locks of all experiments, and it is told of them."""
    _storages.add(owner)


def was_left_locked(lock: threading.RLock) -> bool:
    """Whether another thread held the lock: in the child, for ever."""
    if lock.acquire(blocking=False):
        lock.release()
        return False
    return True


def _before_fork() -> None:
    _hold(list(_experiments), PATIENCE)
    for storage in list(_storages):
        _hold([storage], FOR_STORAGES)
        storage.before_fork()


def _hold(owners: Sequence[Forked], patience: float) -> None:
    until = time.monotonic() + patience
    for lock in (lock for owner in owners for lock in owner.locks()):
        if lock.acquire(timeout=max(until - time.monotonic(), 0.0)):
            _held.append(lock)


def _release() -> None:
    while _held:
        _held.pop().release()


def _after_fork_in_child() -> None:
    _release()  # the thread that forked took them, and is the one that goes on
    for owner in [*_storages, *_experiments]:
        owner.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_release, after_in_child=_after_fork_in_child)
