"""How much one may ask: requests a second (a token bucket for each visitor), and bytes and seconds of a body."""

from __future__ import annotations

import asyncio
import math
import time

from fastapi import Request
from starlette.types import Receive

from dobandit.service.error_responses import Refusal
from dobandit.service.service_settings import Settings

_BURST = 3.0  # seconds of requests that may come at once
_MOST = 10_000  # buckets


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
    too_large = Refusal(413, f"a request has at most {most:,} bytes, but this one has more. Send it in parts.")
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > most:
        raise too_large
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
                    raise too_large
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Refusal(
            408, f"a request's body arrives within {seconds:g} seconds, but this one did not.", {"Connection": "close"}
        ) from None
