"""Reading requests and answering them: strict JSON, forms, ETags, and threads for answers that take long."""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, ParamSpec, Self, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict
from starlette.datastructures import FormData
from starlette.responses import Response

from dobandit.checks import shown
from dobandit.errors import ObservationError, ParseError, closest
from dobandit.service.error_responses import Refusal
from dobandit.service.experiment_registry import ExperimentRegistry
from dobandit.service.page_cache import PageCache
from dobandit.service.sessions import Visitor
from dobandit.storage.contract import StoredExperiment
from dobandit.strict_json import load_json

P = ParamSpec("P")
T = TypeVar("T")
JSON, CSV = "application/json", "text/csv"
_MOST_FIELDS = 20_000  # of a form
_MOST_ANSWERS = 8  # worked out at the same time; others wait


def registry_of(request: Request) -> ExperimentRegistry:
    registry: ExperimentRegistry = request.app.state.registry
    return registry


def stored_and_pages(request: Request, experiment: int) -> tuple[StoredExperiment, PageCache]:
    """An experiment as it is kept now, and what its pages show."""
    stored = registry_of(request).stored(experiment)
    return stored, registry_of(request).pages(experiment, stored)


def visitor_of(request: Request) -> Visitor:
    visitor: Visitor = request.state.visitor
    return visitor


# -- what a request says ---------------------------------------------------------------------------------------------


class RequestBody(BaseModel):
    """A JSON object with known keys only. The fields say what the API describes; their values are checked by the
    functions that get them, so that errors are those of Python."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def of(cls, request: Request) -> Self:
        """The body of a request; nothing is set where it is empty."""
        if kind_of(request) != JSON:
            raise Refusal(415, f"this takes {JSON}, but got {shown(kind_of(request))}. Set the Content-Type.")
        text = body_text(request)
        given = load_json(text) if text.strip() else {}
        if not isinstance(given, dict):
            raise ParseError(f"a request is a JSON object, but got {shown(given)}.")
        known = list(cls.model_fields)
        for key in given:
            if key not in known:
                hint = closest(key, known) or (f" They are {', '.join(known)}." if known else "")
                raise ParseError(f"a key of this request is not known: {shown(key)}.{hint}")
        return cls.model_construct(**given)

    def words(self) -> dict[str, Any]:
        """The fields that were given, as keyword arguments."""
        return {name: getattr(self, name) for name in self.model_fields_set}


def kind_of(request: Request) -> str:
    """The media type of the body."""
    return request.headers.get("content-type", JSON).partition(";")[0].strip().lower()


def body_text(request: Request) -> str:
    """The body, which the middleware has read."""
    body: bytes = request.state.body
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ParseError(f"a request is UTF-8 text, but byte 0x{body[error.start]:02x} is none.") from None


def json_parameter(text: str | None, name: str) -> Any:
    """JSON in the address: ?context={"mobile":1}."""
    try:
        return None if text is None else load_json(text)
    except ParseError as error:
        raise error.in_source(name) from None


def observation_of(given: dict[str, Any]) -> Any:
    """What was seen, by a request: an `observation`, which is an object or a list of rows, or `csv`, a table's text."""
    table = given.get("csv")
    if table is None:
        return rows_of(given.get("observation"), "an observation")
    if "observation" in given or not isinstance(table, str):
        raise ParseError(f"csv is the text of a table, in place of an observation, but got {shown(table)}.")
    return io.StringIO(table)


def rows_of(value: object, what: str) -> Any:
    """Rows of a request: an object, or a list. A text would be the path of a file, which nobody may name from afar."""
    if isinstance(value, (dict, list)):
        return value
    came = "" if value is None else f" ({type(value).__name__})"
    raise ObservationError(
        f'{what} maps names to values, such as {{"buy": 1}}, or is a list of such rows, but got {shown(value)}{came}.'
    )


async def _form(request: Request) -> FormData:
    return await request.form(max_fields=_MOST_FIELDS, max_files=0)


Form = Annotated[FormData, Depends(_form)]


def text(form: FormData, name: str, otherwise: str = "") -> str:
    """One field of a form, without blanks around it."""
    value = form.get(name, otherwise)
    return value.strip() if isinstance(value, str) else otherwise


# -- answers ---------------------------------------------------------------------------------------------------------


@functools.cache
def _answer_threads() -> CapacityLimiter:
    return CapacityLimiter(_MOST_ANSWERS)


def answering(handler: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """A route's handler that answers a question about a log. It is run in one of a few threads for answers, which may
    take long, so that an `ask` always finds a thread that is free."""

    @functools.wraps(handler)
    async def handled(*args: P.args, **kwargs: P.kwargs) -> T:
        return await run_sync(functools.partial(handler, *args, **kwargs), limiter=_answer_threads())

    return handled


def dumped(document: Any) -> str:
    """JSON without NaN and infinity, which it has no words for."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def json_response(text: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(text.encode("utf-8", "backslashreplace"), status, headers, JSON)


def answer(document: Any) -> Response:
    return json_response(dumped(document))


def tagged(request: Request, document: Any) -> Response:
    """JSON with an ETag by its content: it is not sent again to whoever has it."""
    text = dumped(document)
    tag = f'"{hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]}"'
    given = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}  # to be kept, and asked for again each time
    return Response(None, 304, headers) if tag in given or "*" in given else json_response(text, 200, headers)


def download(content: str | bytes, kind: str, name: str) -> Response:
    """A file to keep."""
    body = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    return Response(body, 200, {"Content-Disposition": f'attachment; filename="{name}"'}, kind)
