"""Routes without the framework's reading of what a request says, which takes as long as all else that it does."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from dobandit.service.problems import nothing_at

_NUMBER = re.compile(r"[0-9]{1,18}")


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
