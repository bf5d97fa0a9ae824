"""Forks while other threads are at work. In the child only the thread that forked goes on: a lock that another thread
held stays locked there for ever, and connections to a database still belong to the parent.

Storages let go of connections before a fork, and finish their short blocks; experiments take new locks in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_owners: weakref.WeakSet[Any] = weakref.WeakSet()


def remember(owner: Any) -> None:
    """From now on its `before_fork()` and `after_fork(child)` are called in the thread that forks."""
    _owners.add(owner)


def was_left_locked(lock: threading.RLock) -> bool:
    """Whether another thread held the lock: in the child, for ever."""
    if lock.acquire(blocking=False):
        lock.release()
        return False
    return True


def _before() -> None:
    for owner in list(_owners):
        owner.before_fork()


def _after(child: bool) -> None:
    for owner in list(_owners):
        owner.after_fork(child)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=lambda: _after(False), after_in_child=lambda: _after(True))
