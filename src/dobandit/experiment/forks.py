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
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

PATIENCE = 1.0  # seconds that a fork waits for those who work something out


class Forked(Protocol):
    def locks(self) -> Sequence[threading.RLock]:
        """What is held by whoever works something out, in the order in which it is taken."""

    def after_fork(self) -> None:
        """Called in the child."""


class Storages(NamedTuple):
    """What the storages of one kind do at a fork."""

    before: Callable[[], None]
    in_parent: Callable[[], None]
    in_child: Callable[[], None]


_known: weakref.WeakSet[Forked] = weakref.WeakSet()
_storages: list[Storages] = []
_held: list[threading.RLock] = []


def remember(owner: Forked) -> None:
    """From now on forks wait for `owner.locks()`, and `owner.after_fork()` is called in every child."""
    _known.add(owner)


def remember_storages(before: Callable[[], None], in_parent: Callable[[], None], in_child: Callable[[], None]) -> None:
    """From now on these are called at every fork."""
    _storages.append(Storages(before, in_parent, in_child))


def was_left_locked(lock: threading.RLock) -> bool:
    """Whether another thread held the lock: in the child, for ever."""
    if lock.acquire(blocking=False):
        lock.release()
        return False
    return True


def _before_fork() -> None:
    until = time.monotonic() + PATIENCE
    for owner in list(_known):
        for lock in owner.locks():
            if lock.acquire(timeout=max(until - time.monotonic(), 0.0)):
                _held.append(lock)
    for storages in _storages:
        storages.before()


def _release() -> None:
    while _held:
        _held.pop().release()


def _after_fork_in_parent() -> None:
    for storages in _storages:
        storages.in_parent()
    _release()


def _after_fork_in_child() -> None:
    _release()  # the thread that forked took them, and is the one that goes on
    for storages in _storages:
        storages.in_child()
    for owner in list(_known):
        owner.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
