"""What went wrong, as application/problem+json (RFC 9457), with the message that Python gives; a page for browsers."""

from __future__ import annotations

import json
import logging
import re
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match

from dobandit.checks import shown
from dobandit.errors import ConflictError, DobanditError, MissingError, ParseError, StorageError, TakenError
from dobandit.storage import Storage
from dobandit.storage.storage_errors import NOTHING_STORED
from dobandit.texts import message

_RETRY = {"Retry-After": "2"}
_IN_ITS_WORDS = re.compile(rf" \(.*\)(?=\. {re.escape(NOTHING_STORED)})", re.DOTALL)
_log = logging.getLogger(__name__)


class Refusal(Exception):  # noqa: N818 (no fault: an answer)
    """A request that is answered with a problem."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.more = status, detail, headers or {}, more

    @property
    def title(self) -> str:
        return HTTPStatus(self.status).phrase

    def document(self) -> dict[str, Any]:
        return {"type": "about:blank", "title": self.title, "status": self.status, "detail": self.detail, **self.more}


def refusal_of(error: DobanditError, storage: Storage) -> Refusal:
    """An error of dobandit's as the answer to a request; `error` names its class, for the client."""
    said = told_to_visitors(error, storage)
    more: dict[str, Any] = {"error": type(error).__name__}
    if isinstance(error, ParseError):
        places = {"line": error.line, "column": error.column, "where": error.where}
        more |= {key: place for key, place in places.items() if place is not None}
    if isinstance(error, StorageError):
        return Refusal(503, said, _RETRY, **more)
    if isinstance(error, MissingError):
        return Refusal(404, said, **more)
    return Refusal(409 if isinstance(error, (ConflictError, TakenError)) else 422, said, **more)


def told_to_visitors(error: DobanditError, storage: Storage) -> str:
    """The message of an error, without the storage's address: a path, or the name of a server, is nobody's business.
    What a database said in its own words may hold either; it is for the log of the service."""
    text = str(error).replace(storage.url, "the storage")
    if not isinstance(error, StorageError):
        return text
    _log.warning("the storage: %s", error)
    return _IN_ITS_WORDS.sub("", text)


def message_for(request: Request, error: DobanditError) -> str:
    """The message of an error, for a page."""
    return told_to_visitors(error, request.app.state.registry.storage)


def respond(request: Request, problem: Refusal) -> Response:
    """As JSON, or as a page where a browser asks for one."""
    wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")
    if wants_page:
        from dobandit.service.pages.rendering import error_page

        return error_page(request, problem)
    text = json.dumps(problem.document(), ensure_ascii=False, allow_nan=False)
    return Response(
        text.encode("utf-8", "backslashreplace"), problem.status, problem.headers, "application/problem+json"
    )


def nothing_at(request: Request) -> Refusal:
    hint = " See /api/v1/docs for what there is." if request.url.path.startswith("/api/") else ""
    return Refusal(404, message(f"there is nothing at {request.url.path}.{hint}"))


def _not_taken(fault: dict[str, Any]) -> Refusal:
    """A parameter that is not as it should be, in our words."""
    place, limits = " ".join(map(str, fault["loc"])), fault.get("ctx", {})
    rules = {
        "int_parsing": "a whole number",
        "int_type": "a whole number",
        "bool_parsing": "true or false",
        "greater_than_equal": f"at least {limits.get('ge')}",
        "less_than_equal": f"at most {limits.get('le')}",
    }
    rule = rules.get(fault["type"])
    said = f"{place} is {rule}, but got {shown(fault['input'])}." if rule else f"{place}: {fault['msg']}."
    return Refusal(422, said, where=place)


def _takes(request: Request, **changed: str) -> bool:
    """Whether some route takes the request with another path or method."""
    return any(route.matches({**request.scope, **changed})[0] is Match.FULL for route in request.app.routes)


def _without_slash(request: Request) -> str:
    """The address of a request that has a slash too many at its end; empty where there is nothing at it. Without scheme
    and host, which a reverse proxy may have changed: the redirects of Starlette lead from https to http."""
    path = request.scope["path"].rstrip("/")
    if path == request.scope["path"] or not _takes(request, path=path):
        return ""
    query = request.url.query
    return quote(path) + (f"?{query}" if query else "")


def install(app: FastAPI) -> None:
    """Let every error of the app, the framework's own included, be answered in this form."""

    @app.exception_handler(Refusal)
    def _problem(request: Request, error: Refusal) -> Response:
        return respond(request, error)

    @app.exception_handler(DobanditError)
    def _known(request: Request, error: DobanditError) -> Response:
        return respond(request, refusal_of(error, request.app.state.registry.storage))

    @app.exception_handler(HTTPException)
    def _framework(request: Request, error: HTTPException) -> Response:
        problem = Refusal(error.status_code, str(error.detail), dict(error.headers or {}))
        if error.status_code == 404:
            address = _without_slash(request)
            if address:
                return RedirectResponse(address, 307)
            problem = nothing_at(request)
        if error.status_code == 405:
            problem.headers = {
                "Allow": ", ".join(m for m in ("DELETE", "GET", "PATCH", "POST") if _takes(request, method=m))
            }
            problem.detail = f"{request.url.path} does not take {request.method}. See /api/v1/docs for what it takes."
        return respond(request, problem)

    @app.exception_handler(RequestValidationError)
    def _validation(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["loc"][0] == "path":  # a number that is none, of an experiment or a trial
            return respond(request, nothing_at(request))
        return respond(request, _not_taken(first))
