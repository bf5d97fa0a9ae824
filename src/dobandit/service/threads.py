"""How handlers are run: threads of their own for what may take long, so that an `ask` always finds one that is free;
and changes without the framework's reading of what a request says, which takes as long as all else that it does."""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, ParamSpec, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from dobandit.experiment.experiment import Experiment
from dobandit.service.problems import nothing_at
from dobandit.service.requests import house_of, perform

P = ParamSpec("P")
T = TypeVar("T")

_NUMBER = re.compile(r"[0-9]{1,18}")
_MOST_ANSWERS = 8  # worked out at the same time; others wait


@functools.cache
def _of_answers() -> CapacityLimiter:
    return CapacityLimiter(_MOST_ANSWERS)


def in_a_thread(
    handler: Callable[P, T], limiter: Callable[[], CapacityLimiter | None] = lambda: None
) -> Callable[P, Awaitable[T]]:
    """A route's handler that may take long, where its route would not give it a thread. limiter: of such threads"""

    @functools.wraps(handler)
    async def handled(*args: P.args, **kwargs: P.kwargs) -> T:
        return await run_sync(functools.partial(handler, *args, **kwargs), limiter=limiter())

    return handled


def answering(handler: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """A route's handler that answers a question about a log."""
    return in_a_thread(handler, _of_answers)


class Change(NamedTuple):
    """What a request does to an experiment. act, kept: see `perform`"""

    act: Callable[[Experiment], Any]
    kept: Callable[[Experiment, Any], Any] | None = None


def changing(what: str, status: int = 200) -> Callable[[Callable[..., Change]], Callable[..., Awaitable[Response]]]:
    """A route's handler that reads what a request says, and returns the change of an experiment that is then made, in
    a thread.

    what, status  see `perform`
    """

    def decorated(handler: Callable[..., Change]) -> Callable[..., Awaitable[Response]]:
        @functools.wraps(handler)
        def changed(request: Request, experiment: int, body: bytes, **words: Any) -> Response:
            change = handler(request, experiment=experiment, body=body, **words)
            found = house_of(request).at_work(experiment)
            act = functools.partial(change.act, found)
            kept = None if change.kept is None else functools.partial(change.kept, found)
            return perform(request, what, act, body=body, name=found.name, kept=kept, status=status)

        return in_a_thread(changed)

    return decorated


class PlainRoute(APIRoute):
    """A route whose handler is given the request, the numbers in its address by name, and the body. Its signature says
    so, for the API's description."""

    def __init__(self, *arguments: Any, **words: Any) -> None:
        super().__init__(*arguments, **{**words, "response_model": None})

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = self.endpoint

        async def handle(request: Request) -> Response:
            numbers: dict[str, str] = request.path_params
            if not all(map(_NUMBER.fullmatch, numbers.values())):
                raise nothing_at(request)
            answered: Response = await handler(
                request, body=await request.body(), **{name: int(number) for name, number in numbers.items()}
            )
            return answered

        return handle
