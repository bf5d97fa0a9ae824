"""Where a request comes from: under which name, from which page, and with the token of that page."""

from __future__ import annotations

from secrets import compare_digest
from urllib.parse import parse_qs, urlsplit

from fastapi import Request
from starlette.types import Message, Receive

from dobandit.service.error_responses import Refusal
from dobandit.service.sessions import Visitor


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
