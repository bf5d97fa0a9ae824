"""Reading requests and answering them: strict JSON, forms, ETags, and changes in a visitor's name, which are done once
however often a request with an Idempotency-Key is repeated."""

from __future__ import annotations

import functools
import hashlib
import io
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, ParamSpec, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Request
from pydantic import Field
from starlette.datastructures import FormData
from starlette.responses import Response

from dobandit.checks import shown
from dobandit.errors import DobanditError, ObservationError, ParseError, closest
from dobandit.service.audited import Change, dumped, making
from dobandit.service.error_responses import Refusal
from dobandit.service.experiment_registry import ExperimentRegistry
from dobandit.service.sessions import Visitor
from dobandit.strict_json import load_json

P = ParamSpec("P")
T = TypeVar("T")
JSON, CSV = "application/json", "text/csv"
_MOST_FIELDS = 20_000  # of a form
_MOST_ANSWERS = 8  # worked out at the same time; others wait
_KEY = re.compile(r"[!-~]{1,200}")


async def _body(request: Request) -> bytes:
    return await request.body()  # which the middleware has in memory already


async def _form(request: Request) -> FormData:
    return await request.form(max_fields=_MOST_FIELDS, max_files=0)


Body = Annotated[bytes, Depends(_body)]
Form = Annotated[FormData, Depends(_form)]
Integer = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]  # as databases keep them


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


def registry_of(request: Request) -> ExperimentRegistry:
    registry: ExperimentRegistry = request.app.state.registry
    return registry


def visitor_of(request: Request) -> Visitor:
    visitor: Visitor = request.state.visitor
    return visitor


def kind_of(request: Request) -> str:
    """The media type of the body."""
    return request.headers.get("content-type", JSON).partition(";")[0].strip().lower()


def text_of(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ParseError(f"a request is UTF-8 text, but byte 0x{body[error.start]:02x} is none.") from None


def said(request: Request, body: bytes, *known: str) -> dict[str, Any]:
    """The JSON object of a request, with known keys only; {} where there is no body."""
    if kind_of(request) != JSON:
        raise Refusal(415, f"this takes {JSON}, but got {shown(kind_of(request))}. Set the Content-Type.")
    if not body.strip():
        return {}
    value = load_json(text_of(body))
    if not isinstance(value, dict):
        raise ParseError(f"a request is a JSON object, but got {shown(value)}.")
    for key in value:
        if key not in known:
            hint = closest(key, known) or (f" They are {', '.join(known)}." if known else "")
            raise ParseError(f"a key of this request is not known: {shown(key)}.{hint}")
    return value


def parameter(text: str | None, name: str) -> Any:
    """JSON in the address: ?context={"mobile":1}."""
    try:
        return None if text is None else load_json(text)
    except ParseError as error:
        raise error.in_source(name) from None


def seen_in(given: dict[str, Any]) -> Any:
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


def text(form: FormData, name: str, otherwise: str = "") -> str:
    """One field of a form, without blanks around it."""
    value = form.get(name, otherwise)
    return value.strip() if isinstance(value, str) else otherwise


def answer(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON."""
    return _json(dumped(document), status, headers)


def tagged(request: Request, text: str) -> Response:
    """JSON with an ETag by its content: it is not sent again to who says that he has it."""
    tag = f'"{hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]}"'
    given = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}  # to be kept, and asked for again each time
    return Response(None, 304, headers) if tag in given or "*" in given else _json(text, 200, headers)


def perform(
    request: Request,
    what: str,
    act: Callable[[], Any],
    document: Any = None,
    *,
    body: bytes = b"",
    name: str | None = None,
    kept: Callable[[Any], Any] | None = None,
    status: int = 200,
) -> Response:
    """Do something in the visitor's name, and answer.

    act   does it; what it returns is the answer, unless that is `document`, or `kept` makes one
    kept  the answer from what was written; with an Idempotency-Key it is stored, and given again to who repeats it
    """
    change = _change(request, what, name, body, kept)
    before = _answered(request, change)
    if before is None:
        try:
            with making(change):
                result = act()
            return _json(change.text or dumped(result if document is None else document), status)
        except DobanditError:
            before = _answered(request, change)  # where the same request came twice at once, the other was first
            if before is None:
                raise
    return _json(before, status, {"Idempotency-Replayed": "true"})


@contextmanager
def in_the_name_of(request: Request, what: str, name: str | None = None) -> Iterator[None]:
    """What a form changes inside is entered in the audit as the visitor's change."""
    with making(_change(request, what, name)):
        yield


def _answered(request: Request, change: Change) -> str | None:
    """The answer to the same request before. Raises a Refusal where another request has its key."""
    kept = None if change.key is None else registry_of(request).storage.answer(change.owner, change.key)
    if kept is not None and kept.digest != change.digest:
        raise Refusal(
            422,
            f"an Idempotency-Key belongs to one request, but {change.key!r} came with another one before. Take a new "
            "key for a new request.",
            error="ConflictError",
        )
    return None if kept is None else kept.answer


def _change(
    request: Request, what: str, name: str | None, body: bytes = b"", kept: Callable[[Any], Any] | None = None
) -> Change:
    visitor, now = visitor_of(request), registry_of(request).settings.clock()
    key = request.headers.get("idempotency-key") if kept is not None else None
    if key is not None and not _KEY.fullmatch(key):
        raise Refusal(422, f"an Idempotency-Key has 1 to 200 visible ASCII characters, but got {shown(key)}.")
    head = f"{request.method} {request.scope['path']} {kind_of(request)}\n"
    digest = hashlib.sha256(head.encode() + body).hexdigest() if key is not None else ""
    return Change(visitor.name, what, now, name, kept, visitor.owner, key, digest)


def _json(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(text.encode("utf-8", "backslashreplace"), status, headers, JSON)
