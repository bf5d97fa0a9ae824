"""The headers that every answer has: nothing from elsewhere is loaded, and nobody else may frame, read or keep it."""

from __future__ import annotations

from starlette.types import Message

from dobandit.service.settings import Settings

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: with that, browsers send `Origin: null` with the forms of our own pages.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_HTTPS = {"strict-transport-security": "max-age=31536000"}


def wanted(settings: Settings) -> list[tuple[bytes, bytes]]:
    """These headers, as they are sent. Nothing is kept by caches unless a route says so."""
    every = {**_HEADERS, "cache-control": "no-store", **(_HTTPS if settings.https else {})}
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in every.items()]


def with_wanted(message: Message, headers: list[tuple[bytes, bytes]]) -> Message:
    """The beginning of an answer, with these headers; what a route sets itself stays."""
    own = list(message.get("headers", ()))
    names = {name.lower() for name, _ in own}
    return {**message, "headers": own + [one for one in headers if one[0] not in names]}
