"""A child that is forked while other threads are at work must not wait for locks that nobody will ever release.

In the child only the thread that forked goes on. A lock that another thread held at that moment stays locked in the
child, and what it guards may be half done. So whoever has such locks says what becomes of them in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forked(Protocol):
    def after_fork(self) -> None:
        """Called in the child."""


_known: weakref.WeakSet[Forked] = weakref.WeakSet()


def remember(owner: Forked) -> None:
    """From now on `owner.after_fork()` is called in every child."""
    _known.add(owner)


def was_left_locked(lock: threading.RLock) -> bool:
    """Whether another thread held the lock: in the child, for ever."""
    if lock.acquire(blocking=False):
        lock.release()
        return False
    return True


def _after_fork_in_child() -> None:
    for owner in list(_known):
        owner.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
