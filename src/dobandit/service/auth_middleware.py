"""The middleware around the whole app: a request that it refuses reaches no route, so new routes are covered too.

It checks, in this order: the name under which the service was called, who asks, how often, which page the request comes
from, what the visitor may do, and a body of bounded size that has arrived in bounded time.
"""

from __future__ import annotations

import logging
import re
import time
from http.cookies import CookieError, SimpleCookie

from fastapi import Request
from starlette.datastructures import MutableHeaders, State
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dobandit.errors import DobanditError
from dobandit.service.error_responses import Refusal, respond
from dobandit.service.request_checks import (
    RateLimit,
    again,
    read_body,
    require_csrf,
    require_host,
    require_origin,
    require_own_page,
)
from dobandit.service.service_settings import Settings
from dobandit.service.sessions import Sessions, Tokens, Visitor
from dobandit.storage.access import READ, SCOPES, WORK

REQUESTS, STREAMS = "requests", "event streams"
LOGIN, LOGOUT, ALIVE, READY = "/login", "/logout", "/healthz", "/readyz"
_log = logging.getLogger(__name__)
_OPEN = (LOGIN, ALIVE, READY)  # and /static/: for strangers too
_OF_STRANGERS = 64 * 1024  # bytes of a stranger's body
_SAFE = ("GET", "HEAD")
_METHODS = (*_SAFE, "POST", "PATCH", "DELETE", "PUT", "OPTIONS")
_STREAM = re.compile(r"/events/?$")
_OF_EXPERIMENT = re.compile(r"/(?:api/v1/)?experiments/([0-9]{1,18})(?:/.*)?$")
_OF_EVERYBODY = ("/", "/api/v1", "/api/v1/", "/api/v1/experiments")  # to read: lists leave out what one may not know
_PREFIXES_OF_EVERYBODY = ("/static/", "/api/v1/docs", "/api/v1/openapi.json")
_HEADERS = {  # of every answer, unless its route sets them: nothing from elsewhere is loaded, nobody may frame it
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: with that, browsers send `Origin: null` with the forms of our own pages.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}
_HTTPS = {"strict-transport-security": "max-age=31536000"}


class AuthMiddleware:
    def __init__(self, app: ASGIApp, state: State) -> None:
        state.auth = self
        self.app, self.figures = app, state.figures
        self.settings: Settings = state.settings
        self.sessions: Sessions = state.sessions
        self.tokens: Tokens = state.tokens
        self.rates = RateLimit(self.settings)
        self.headers = {**_HEADERS, **(_HTTPS if self.settings.https else {})}
        self.under_way = {REQUESTS: 0, STREAMS: 0}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        begun, send = self._counted(send, scope)
        scope.setdefault("state", {})["visitor"] = None
        request = Request(scope, receive)
        try:
            receive = await self._let_in(request, receive)
            kind = self._place(scope["path"])
        except Refusal as problem:
            refused = problem
        except DobanditError as error:  # the storage, when a token is looked up
            _log.warning("a token could not be looked up: %s", error)
            said = "the storage cannot be reached. Repeat this."
            refused = Refusal(503, said, {"Retry-After": "2"}, error="StorageError")
        except (ValueError, HTTPException):  # an address in a header, or a form, that is none
            refused = Refusal(400, "the head or the form of this request cannot be read.")
        else:
            self.under_way[kind] += 1
            try:
                await self._run(request, receive, send, begun)
            finally:
                self.under_way[kind] -= 1
            return
        await respond(request, refused)(scope, receive, send)

    async def _run(self, request: Request, receive: Receive, send: Send, begun: list[int]) -> None:
        """The app; what nobody foresaw in it is logged, and said to nobody else."""
        scope = request.scope
        if request.method == "HEAD" and scope["path"] != LOGIN and not _STREAM.search(scope["path"]):
            scope = {**scope, "method": "GET"}  # its head alone; a login link is not used up
        try:
            await self.app(scope, receive, send)
        except Exception:
            _log.exception("a fault while answering %s %s", request.method, request.scope["path"])
            if begun:
                raise
            fault = Refusal(500, "this is a fault of the service; its log says more. Nothing that was told is lost.")
            await respond(request, fault)(request.scope, receive, send)

    def _counted(self, send: Send, scope: Scope) -> tuple[list[int], Send]:
        """`send`, that counts an answer when it begins, and gives it the headers of all answers; and the statuses of
        what has begun."""
        started = time.perf_counter()
        begun: list[int] = []

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun.append(message["status"])
                route = getattr(scope.get("route"), "path", "other")
                method = scope["method"] if scope["method"] in _METHODS else "other"
                self.figures.count(method, route, message["status"], time.perf_counter() - started)
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
            await send(message)

        return begun, sending

    def _place(self, path: str) -> str:
        """The kind of a request, of which there may be one more. Those whose bodies are still arriving do not count; a
        service that is busy is alive."""
        streams = _STREAM.search(path)
        kind = STREAMS if streams else REQUESTS
        most = self.settings.most_streams if streams else self.settings.most_at_once
        if self.under_way[kind] >= most and path != ALIVE:
            raise Refusal(503, f"at most {most} {kind} are under way at once. Repeat this.", {"Retry-After": "1"})
        return kind

    async def _let_in(self, request: Request, receive: Receive) -> Receive:
        """Raises a Refusal, or returns where the app gets the body from."""
        require_host(request, self.settings.allowed_hosts)
        path, method = request.scope["path"], request.method  # by which a route is found
        is_open = path in _OPEN or path.startswith("/static/")
        visitor, by_cookie = await self._visitor(request)
        request.scope["state"]["visitor"] = visitor
        self._count(request, visitor)
        if by_cookie:
            require_own_page(request)
        if visitor is None and not is_open:
            raise _who_are_you(request)
        if method not in _SAFE:
            require_origin(request, always=by_cookie or path == LOGIN)
        if visitor is not None and not is_open:
            _require_scope(visitor, path, method in _SAFE)
        most = self.settings.most_bytes if visitor is not None else min(_OF_STRANGERS, self.settings.most_bytes)
        body = await read_body(request, receive, most, self.settings.body_seconds)
        request.scope["state"]["body"] = body
        if by_cookie and method not in _SAFE and path != LOGIN and visitor is not None:
            await require_csrf(request, visitor, body)
        return again(body, receive)

    def _count(self, request: Request, visitor: Visitor | None) -> None:
        """Probes do not share the strangers' limit: behind a proxy all of them come from one address."""
        path = request.scope["path"]
        if path != ALIVE:
            stranger = f"{'probe' if path == READY else 'address'} {_address(request)}"
            self.rates.count(visitor.name if visitor else stranger, known=visitor is not None)

    async def _visitor(self, request: Request) -> tuple[Visitor | None, bool]:
        """Who asks, and whether a cookie said so."""
        given = request.headers.get("authorization")
        if given is not None:
            kind, _, token = given.partition(" ")
            visitor = await self.tokens.visitor(token.strip()) if kind.lower() == "bearer" else None
            if visitor is None:
                self.rates.count(f"wrong tokens {_address(request)}", known=False)
                raise Refusal(
                    401,
                    "the token is not known here, or it was revoked or has expired. Make one with "
                    "`dobandit token create`, and send it as Authorization: Bearer TOKEN.",
                    {"WWW-Authenticate": 'Bearer error="invalid_token"'},
                )
            return visitor, False
        cookie = cookie_of(request, self.settings)
        session = None if cookie is None else self.sessions.find(cookie)
        if session is not None and session.token is not None and not await self.tokens.still_valid(session.token):
            session = None
        return session, session is not None

    async def still_lets_in(self, request: Request) -> bool:
        """Whether who sent a request that takes long would be let in with it again."""
        try:
            return (await self._visitor(request))[0] is not None
        except Refusal:
            return False


def _address(request: Request) -> str:
    return request.client.host if request.client else "nobody"


def cookie_name(settings: Settings) -> str:
    """Browsers send cookies to every port of a machine: with the port in the name, two services do not collide."""
    return f"{'__Host-' if settings.https else ''}dobandit-{settings.port}"


def cookie_of(request: Request, settings: Settings) -> str | None:
    try:
        morsel = SimpleCookie(request.headers.get("cookie", "")).get(cookie_name(settings))
    except CookieError:
        return None
    return None if morsel is None else morsel.value


def _who_are_you(request: Request) -> Refusal:
    if request.method in _SAFE and "text/html" in request.headers.get("accept", ""):
        return Refusal(303, "Log in first.", {"Location": LOGIN})
    return Refusal(
        401,
        "nobody is let in without a token, or a login with a browser. Make a token with `dobandit token create`, and "
        "send it as Authorization: Bearer TOKEN.",
        {"WWW-Authenticate": "Bearer"},
    )


def _require_scope(visitor: Visitor, path: str, reads: bool) -> None:
    """What every route needs, whatever it is; a route that needs more says so itself (`require`)."""
    if path == LOGOUT:
        return
    require(visitor, READ if reads else WORK)
    if visitor.experiment is None or (reads and (path in _OF_EVERYBODY or path.startswith(_PREFIXES_OF_EVERYBODY))):
        return
    of = _OF_EXPERIMENT.match(path)
    if of is None or int(of[1]) != visitor.experiment:
        raise Refusal(
            403,
            f"{visitor.name} may see the experiment with the id {visitor.experiment} only. Use a token that was made "
            "without --experiment.",
        )


def require(visitor: Visitor, scope: str) -> None:
    """Raises a Refusal where the visitor may not do what needs `scope`."""
    if not visitor.may(scope):
        raise Refusal(
            403,
            f"this needs the scope {scope!r}{'' if scope == SCOPES[-1] else ' or a wider one'}, but {visitor.name} has "
            f"{visitor.scope!r}. Use a token that was made with `dobandit token create --scope {scope}`.",
        )
