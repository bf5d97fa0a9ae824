"""What a request must satisfy before it reaches a route: where it comes from (under which name, from which page, with
the token of that page), how often, and how large its body is."""

from __future__ import annotations

import asyncio
import math
import time
from secrets import compare_digest
from urllib.parse import parse_qs, urlsplit

from fastapi import Request
from starlette.types import Message, Receive

from dobandit.service.error_responses import Refusal
from dobandit.service.service_settings import Settings
from dobandit.service.sessions import Visitor

_BURST = 3.0  # seconds of requests that may come at once
_MOST = 10_000  # buckets

# -- where it comes from ---------------------------------------------------------------------------------------------


def require_host(request: Request, allowed: tuple[str, ...]) -> None:
    """A name that somebody else made point here (DNS rebinding) is not ours."""
    hosts = request.headers.getlist("host")
    if len(hosts) != 1 or _without_port(hosts[0]) not in allowed:
        raise Refusal(
            421,
            f"this service goes by {' or '.join(allowed)}, but the request calls it "
            f"{', '.join(hosts)[:100]!r}. Start it with --allowed-host, if that is its name.",
        )


def require_origin(request: Request, always: bool) -> None:
    """A browser says which page a request comes from: it must be ours, port included."""
    origin = request.headers.get("origin")
    if origin is None and not always:
        return
    own = urlsplit(f"//{request.headers['host']}").netloc.lower()
    parts = urlsplit(origin or "")
    if parts.scheme not in ("http", "https") or parts.netloc.lower() != own:
        raise Refusal(
            403,
            f"a change comes from a page of this service itself ({own}), but this one comes from "
            f"{(origin or 'nowhere')[:100]!r}. Programs send a token as Authorization: Bearer, and no cookie.",
        )


def require_own_page(request: Request) -> None:
    """A cookie travels with requests that pages elsewhere make, on other ports of this machine too: a browser says so.
    Following a link to a page is all that others may do."""
    site = request.headers.get("sec-fetch-site", "none")
    followed = request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate"
    if site not in ("same-origin", "none") and not followed:
        raise Refusal(403, "this request comes from a page of another site. Open the page of this service itself.")


async def require_csrf(request: Request, visitor: Visitor, body: bytes) -> None:
    given = request.headers.get("x-csrf-token")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given is None and kind == "application/x-www-form-urlencoded":
        given = parse_qs(body.decode("utf-8", "replace"), max_num_fields=10_000).get("csrf", [""])[0]
    elif given is None and kind == "multipart/form-data":
        async with Request(request.scope, again(body, request.receive)).form() as form:
            given = str(form.get("csrf", ""))
    if not compare_digest((given or "").encode(), visitor.csrf.encode()):
        raise Refusal(
            403,
            "a form sends back the token of its page (the field csrf, or the header X-CSRF-Token), but this one did "
            "not. Reload the page, and send it again.",
        )


def again(body: bytes, receive: Receive) -> Receive:
    """The body at once, and then whatever comes: the end of the connection."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _without_port(host: str) -> str:
    name, separator, port = host.lower().rpartition(":")
    return name if separator and port.isdigit() else host.lower()


# -- how much one may ask --------------------------------------------------------------------------------------------


class RateLimit:
    """Used by one thread, that of the event loop."""

    def __init__(self, settings: Settings) -> None:
        self._rates = {True: settings.rate, False: settings.stranger_rate}
        self._buckets: dict[str, tuple[float, float]] = {}  # what is left, and when that was

    def count(self, who: str, known: bool) -> None:
        """Raises a Refusal where this is one request too many."""
        rate, now = self._rates[known], time.monotonic()
        left, since = self._buckets.get(who, (rate * _BURST, now))
        left = min(left + (now - since) * rate, rate * _BURST)
        if left < 1.0:
            raise Refusal(
                429,
                f"one may send {rate:g} requests a second here. Wait a moment, then repeat this.",
                {"Retry-After": str(math.ceil((1.0 - left) / rate))},
            )
        if len(self._buckets) >= _MOST and who not in self._buckets:
            self._buckets = {key: one for key, one in self._buckets.items() if now - one[1] < _BURST}
        self._buckets[who] = (left - 1.0, now)


async def read_body(request: Request, receive: Receive, most: int, seconds: float) -> bytes:
    """The whole body. Raises a Refusal where it has more than `most` bytes, or takes longer than `seconds`."""
    headings = {"content-length", "transfer-encoding"} & set(request.headers)
    if not headings:
        return b""
    if len(headings) > 1:  # a proxy may take the other for true, and pass on a second request within the first
        raise Refusal(400, "a request has a Content-Length or a Transfer-Encoding, but this one has both.")
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > most:
        raise _too_large(most)
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "the request ended before its body did.")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    raise _too_large(most)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Refusal(
            408, f"a request's body arrives within {seconds:g} seconds, but this one did not.", {"Connection": "close"}
        ) from None


def _too_large(most: int) -> Refusal:
    return Refusal(413, f"a request has at most {most:,} bytes, but this one has more. Send it in parts.")
