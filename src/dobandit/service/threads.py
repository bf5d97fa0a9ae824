"""Threads of their own for what may take long, so that an `ask` always finds one that is free."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

P = ParamSpec("P")
T = TypeVar("T")

_MOST_ANSWERS = 8  # worked out at the same time; others wait


@functools.cache
def _limiter() -> CapacityLimiter:
    return CapacityLimiter(_MOST_ANSWERS)


def answering(handler: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """A route's handler that answers a question about a log."""

    @functools.wraps(handler)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> T:
        return await run_sync(functools.partial(handler, *args, **kwargs), limiter=_limiter())

    return answered
