"""Changes of one experiment that come at the same time are stored together: one transaction, and one wait for the disk.

While some are being stored, others arrive, and are the next. Nobody is answered before what he did is on the disk. What
brings news goes before those who ask: they then know of all of it, and it is learned from once, for all of them.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from dobandit.errors import StorageError
from dobandit.experiment.storage.base import Storage
from dobandit.experiment.storage.together import TakesLongError

T = TypeVar("T")

_MOST_THREADS = 16  # experiments that are changed at the same time; others wait
_SECONDS = 0.1  # for which a transaction takes in more: others, in other processes, wait for it


class _Change(NamedTuple):
    asks: bool
    act: Callable[[], Any]
    done: asyncio.Future[Any]


class Changes:
    """Used by one thread, that of the event loop.

    undone  called with an experiment's id when nothing of what was done together could be stored
    """

    def __init__(self, storage: Storage, undone: Callable[[int], None]) -> None:
        self._storage, self._undone = storage, undone
        self._waiting: dict[int, deque[_Change]] = {}  # by experiment, as long as some of its changes are under way
        self._long: dict[int, asyncio.Event] = {}  # by experiment: the end of what takes long
        self._tasks: set[asyncio.Task[None]] = set()

    @cached_property
    def _limiter(self) -> CapacityLimiter:
        return CapacityLimiter(_MOST_THREADS)

    async def make(self, experiment: int, act: Callable[[], T], asks: bool = False) -> T:
        """What `act` returns or raises, once what it wrote is stored. What takes long is done by itself, one at a time:
        who comes meanwhile, and would have to wait for it, is stored together with others after it.

        asks  whether it wants to know what is known; others bring news
        """
        while True:
            try:
                result: T = await self._together(
                    experiment, _Change(asks, act, asyncio.get_running_loop().create_future())
                )
                return result
            except TakesLongError:
                if experiment not in self._long:
                    return await self._by_itself(experiment, act)
                await self._long[experiment].wait()

    async def _by_itself(self, experiment: int, act: Callable[[], T]) -> T:
        over = self._long[experiment] = asyncio.Event()
        try:
            return await run_sync(act)
        finally:
            del self._long[experiment]
            over.set()

    def _together(self, experiment: int, change: _Change) -> asyncio.Future[Any]:
        waiting = self._waiting.get(experiment)
        if waiting is None:
            waiting = self._waiting[experiment] = deque()
            task = asyncio.create_task(self._work(experiment, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waiting.append(change)
        return change.done

    async def _work(self, experiment: int, waiting: deque[_Change]) -> None:
        """Until nobody waits."""
        batch: list[_Change] = []
        try:
            while waiting:
                batch = sorted(waiting, key=attrgetter("asks"))
                waiting.clear()
                try:
                    outcomes = await run_sync(self._made, experiment, batch, limiter=self._limiter)
                except Exception as error:
                    outcomes = [error] * len(batch)
                _tell(batch, outcomes)
                waiting.extendleft(reversed(batch[len(outcomes) :]))
        except asyncio.CancelledError:  # the service stops
            for change in (*batch, *waiting):
                change.done.cancel()
            raise
        finally:
            del self._waiting[experiment]

    def _made(self, experiment: int, batch: Sequence[_Change]) -> list[Any]:
        """What those returned or raised for whom there was time; run in a thread."""
        outcomes: list[Any] = []
        until = time.monotonic() + _SECONDS
        try:
            with self._storage.together():
                for change in batch:
                    outcomes.append(_outcome(change.act))
                    if time.monotonic() > until:
                        break
        except StorageError as error:
            self._undone(experiment)
            return [one if isinstance(one, Exception) else error for one in outcomes] or [error] * len(batch)
        return outcomes


def _outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except Exception as error:
        return error


def _tell(batch: Sequence[_Change], outcomes: Sequence[Any]) -> None:
    for change, outcome in zip(batch, outcomes, strict=False):
        if change.done.done():  # whoever waited has gone
            continue
        if isinstance(outcome, Exception):
            change.done.set_exception(outcome)
        else:
            change.done.set_result(outcome)
