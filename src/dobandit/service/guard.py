"""The door: whatever is not let in here reaches no route. A route that is added later is guarded like all others.

In this order: the name under which the service was called, how much at once, who asks, where the request comes from,
what the visitor may do, and a body of bounded size that has arrived in bounded time.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from http.cookies import CookieError, SimpleCookie
from secrets import compare_digest
from urllib.parse import parse_qs, urlsplit

from fastapi import Request
from starlette.datastructures import State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dobandit.experiment.storage.books import READ, WORK
from dobandit.service.headers import guarded
from dobandit.service.problems import Problem, respond
from dobandit.service.rates import Rates
from dobandit.service.settings import Settings
from dobandit.service.tokens import Tokens
from dobandit.service.visitors import Sessions, Visitor

LOGIN, LOGOUT = "/login", "/logout"
_log = logging.getLogger(__name__)
_OPEN = (LOGIN, "/healthz", "/readyz")  # and /static/: for those who have not said who they are
_SAFE = ("GET", "HEAD")
_METHODS = (*_SAFE, "POST", "PATCH", "DELETE", "PUT", "OPTIONS")
_STREAM = re.compile(r"/events/?$")
_OF_EXPERIMENT = re.compile(r"/(?:api/v1/)?experiments/([0-9]{1,18})(?:/.*)?$")
_OF_EVERYBODY = ("/", "/api/v1/", "/api/v1/experiments")  # to read: lists leave out what one may not know
_PREFIXES_OF_EVERYBODY = ("/static/", "/api/v1/docs", "/api/v1/openapi.json")


class Guard:
    """Around the whole app."""

    def __init__(self, app: ASGIApp, state: State) -> None:
        state.guard = self
        self.app, self.figures = app, state.figures
        self.settings: Settings = state.settings
        self.sessions: Sessions = state.sessions
        self.tokens: Tokens = state.tokens
        self.rates = Rates(self.settings)
        self.under_way, self.streams = 0, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        send = self._counted(guarded(send, self.settings), scope)
        scope.setdefault("state", {})["visitor"] = None
        request = Request(scope, receive)
        streams = bool(_STREAM.search(scope["path"]))
        try:
            self._enter(streams)
        except Problem as problem:
            await respond(request, problem)(scope, receive, send)
            return
        try:
            try:
                receive = await self._let_in(request, receive)
            except Problem as problem:
                await respond(request, problem)(scope, receive, send)
                return
            await self._run(request, receive, send)
        finally:
            self._leave(streams)

    async def _run(self, request: Request, receive: Receive, send: Send) -> None:
        """The app; what nobody foresaw in it is logged, and said to nobody else."""
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(request.scope, receive, sending)
        except Exception:
            _log.exception("a fault while answering %s %s", request.method, request.url.path)
            if begun:
                raise
            fault = Problem(500, "this is a fault of the service; its log says more. Nothing that was told is lost.")
            await respond(request, fault)(request.scope, receive, send)

    def _counted(self, send: Send, scope: Scope) -> Send:
        """`send`, that counts the answer when it begins."""
        started = time.perf_counter()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "other")
                method = scope["method"] if scope["method"] in _METHODS else "other"
                self.figures.count(method, route, message["status"], time.perf_counter() - started)
            await send(message)

        return sending

    def _enter(self, streams: bool) -> None:
        count, most = (
            (self.streams, self.settings.most_streams) if streams else (self.under_way, self.settings.most_at_once)
        )
        if count >= most:
            raise Problem(503, f"at most {most} requests are under way at once. Repeat this.", {"Retry-After": "1"})
        self._leave(streams, -1)

    def _leave(self, streams: bool, by: int = 1) -> None:
        if streams:
            self.streams -= by
        else:
            self.under_way -= by

    async def _let_in(self, request: Request, receive: Receive) -> Receive:
        """Raises a Problem, or returns where the app gets the body from."""
        self._require_host(request)
        path, method = request.url.path, request.method
        is_open = path in _OPEN or path.startswith("/static/")
        visitor, by_cookie = await self._visitor(request)
        request.scope["state"]["visitor"] = visitor
        address = request.client.host if request.client else "nobody"
        self.rates.count(visitor.name if visitor else f"address {address}", known=visitor is not None)
        if by_cookie:
            _require_own_page(request)
        if visitor is None and not is_open:
            raise _who_are_you(request)
        if method not in _SAFE:
            self._require_origin(request, always=by_cookie or path == LOGIN)
        if visitor is not None and not is_open:
            _require_scope(visitor, path, method in _SAFE)
        body = await self._body(request, receive) if _has_body(request) else b""
        if by_cookie and method not in _SAFE and visitor is not None:
            await _require_csrf(request, visitor, body)
        return _again(body, receive)

    def _require_host(self, request: Request) -> None:
        """A name that somebody else made point here (DNS rebinding) is not ours."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or _without_port(hosts[0]) not in self.settings.allowed_hosts:
            raise Problem(
                421,
                f"this service goes by {' or '.join(self.settings.allowed_hosts)}, but the request calls it "
                f"{', '.join(hosts)[:100]!r}. Start it with --allowed-host, if that is its name.",
            )

    async def _visitor(self, request: Request) -> tuple[Visitor | None, bool]:
        """Who asks, and whether a cookie said so."""
        given = request.headers.get("authorization")
        if given is not None:
            kind, _, token = given.partition(" ")
            visitor = await self.tokens.visitor(token.strip()) if kind.lower() == "bearer" else None
            if visitor is None:
                self.rates.count(f"wrong tokens {request.client.host if request.client else ''}", known=False)
                raise Problem(
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

    def _require_origin(self, request: Request, always: bool) -> None:
        """A browser says which page a request comes from: it must be ours, port included."""
        origin = request.headers.get("origin")
        if origin is None and not always:
            return
        own = urlsplit(f"//{request.headers['host']}").netloc.lower()
        parts = urlsplit(origin or "")
        if parts.scheme not in ("http", "https") or parts.netloc.lower() != own:
            raise Problem(
                403,
                f"a change comes from a page of this service itself ({own}), but this one comes from "
                f"{(origin or 'nowhere')[:100]!r}. Programs send a token as Authorization: Bearer, and no cookie.",
            )

    async def _body(self, request: Request, receive: Receive) -> bytes:
        most = self.settings.most_bytes
        if int(request.headers.get("content-length", "0") or 0) > most:
            raise _too_large(most)
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.settings.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(400, "the request ended before its body did.")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise _too_large(most)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise Problem(
                408,
                f"a request's body arrives within {self.settings.body_seconds:g} seconds, but this one did not.",
                {"Connection": "close"},
            ) from None


def cookie_name(settings: Settings) -> str:
    """Browsers send cookies to every port of a machine: with the port in the name, two services do not collide."""
    return f"{'__Host-' if settings.https else ''}dobandit-{settings.port}"


def cookie_of(request: Request, settings: Settings) -> str | None:
    try:
        morsel = SimpleCookie(request.headers.get("cookie", "")).get(cookie_name(settings))
    except CookieError:
        return None
    return None if morsel is None else morsel.value


def _without_port(host: str) -> str:
    name, separator, port = host.lower().rpartition(":")
    return name if separator and port.isdigit() else host.lower()


def _who_are_you(request: Request) -> Problem:
    if request.method in _SAFE and "text/html" in request.headers.get("accept", ""):
        return Problem(303, "Log in first.", {"Location": LOGIN})
    return Problem(
        401,
        "nobody is let in without a token, or a login with a browser. Make a token with `dobandit token create`, and "
        "send it as Authorization: Bearer TOKEN.",
        {"WWW-Authenticate": "Bearer"},
    )


def _require_own_page(request: Request) -> None:
    """A cookie travels with requests that pages elsewhere make, on other ports of this machine too: a browser says so.
    Following a link to a page is all that others may do."""
    site = request.headers.get("sec-fetch-site", "none")
    followed = request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate"
    if site not in ("same-origin", "none") and not followed:
        raise Problem(403, "this request comes from a page of another site. Open the page of this service itself.")


def _require_scope(visitor: Visitor, path: str, reads: bool) -> None:
    """What every route needs, whatever it is; a route that needs more says so itself (`require`)."""
    if path == LOGOUT:
        return
    require(visitor, READ if reads else WORK)
    if visitor.experiment is None or (reads and (path in _OF_EVERYBODY or path.startswith(_PREFIXES_OF_EVERYBODY))):
        return
    of = _OF_EXPERIMENT.match(path)
    if of is None or int(of[1]) != visitor.experiment:
        raise Problem(
            403,
            f"{visitor.name} may see the experiment with the id {visitor.experiment} only. Use a token that was made "
            "without --experiment.",
        )


def require(visitor: Visitor, scope: str) -> None:
    """Raises a Problem where the visitor may not do what needs `scope`."""
    if not visitor.may(scope):
        raise Problem(
            403,
            f"this needs the scope {scope!r}, but {visitor.name} has {visitor.scope!r}. Use a token that was made with "
            f"`dobandit token create --scope {scope}`.",
        )


async def _require_csrf(request: Request, visitor: Visitor, body: bytes) -> None:
    given = request.headers.get("x-csrf-token")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given is None and kind == "application/x-www-form-urlencoded":
        given = parse_qs(body.decode("utf-8", "replace"), max_num_fields=10_000).get("csrf", [""])[0]
    elif given is None and kind == "multipart/form-data":
        async with Request(request.scope, _again(body, request.receive)).form() as form:
            given = str(form.get("csrf", ""))
    if not compare_digest((given or "").encode(), visitor.csrf.encode()):
        raise Problem(
            403,
            "a form sends back the token of its page (the field csrf, or the header X-CSRF-Token), but this one did "
            "not. Reload the page, and send it again.",
        )


def _has_body(request: Request) -> bool:
    return "content-length" in request.headers or "transfer-encoding" in request.headers


def _too_large(most: int) -> Problem:
    return Problem(413, f"a request has at most {most:,} bytes, but this one has more. Send it in parts.")


def _again(body: bytes, receive: Receive) -> Receive:
    """The body at once, and then whatever comes: the end of the connection."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
