"""How often somebody may ask: a bucket for each visitor that fills with time, and that every request takes from."""

from __future__ import annotations

import math
import time

from dobandit.service.problems import Refusal
from dobandit.service.settings import Settings

_BURST = 3.0  # seconds of requests that may come at once
_MOST = 10_000  # buckets


class Rates:
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
