"""Whether the service is alive and ready, and figures about it."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from itertools import accumulate

from fastapi import APIRouter, Request
from starlette.responses import Response

from dobandit.errors import DobanditError
from dobandit.service.auth_middleware import ALIVE, READY, REQUESTS, STREAMS
from dobandit.service.error_responses import Refusal
from dobandit.service.http_requests import answer, registry_of

router = APIRouter(include_in_schema=False)
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Figures:
    """Counts of requests; used by one thread, that of the event loop."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()  # by method, route and status
        self.seconds: dict[str, float] = {}  # by route
        self.within: dict[str, list[int]] = {}  # by route: how many fell into each bucket, and beyond all of them

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests[method, route, status] += 1
        self.seconds[route] = self.seconds.get(route, 0.0) + seconds
        self.within.setdefault(route, [0] * (len(_BUCKETS) + 1))[bisect_left(_BUCKETS, seconds)] += 1

    def lines(self) -> list[str]:
        """In Prometheus' words."""
        lines = [
            "# HELP dobandit_requests_total Requests that were answered.",
            "# TYPE dobandit_requests_total counter",
        ]
        for (method, route, status), count in sorted(self.requests.items()):
            lines.append(f'dobandit_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
        lines += ["# HELP dobandit_request_seconds How long they took.", "# TYPE dobandit_request_seconds histogram"]
        for route, buckets in sorted(self.within.items()):
            count = sum(buckets)
            for bucket, within in zip(_BUCKETS, accumulate(buckets), strict=False):
                lines.append(f'dobandit_request_seconds_bucket{{route="{route}",le="{bucket:g}"}} {within}')
            lines.append(f'dobandit_request_seconds_bucket{{route="{route}",le="+Inf"}} {count}')
            lines.append(f'dobandit_request_seconds_sum{{route="{route}"}} {self.seconds[route]:.6f}')
            lines.append(f'dobandit_request_seconds_count{{route="{route}"}} {count}')
        return lines


class Warmth:
    """Whether the kernels that an `ask` needs are compiled or loaded, which the first of them would wait for."""

    def __init__(self) -> None:
        self.done = threading.Event()

    def warm(self) -> None:
        from dobandit.experiment.rehearsals import warm

        try:
            for _ in warm(again=True):  # compiled, which is announced, or loaded
                pass
        finally:
            self.done.set()


@router.get(ALIVE)
async def alive() -> Response:
    """The process answers, even while all threads are busy."""
    return answer({"status": "ok"})


@router.get(READY)
def ready(request: Request) -> Response:
    """The storage can be reached, and an `ask` waits for no compiler."""
    try:
        registry_of(request).storage.find("")
    except DobanditError as error:
        raise Refusal(503, f"the storage cannot be reached ({type(error).__name__}).", {"Retry-After": "5"}) from None
    if not request.app.state.warmth.done.is_set():
        raise Refusal(503, "the kernels are being loaded.", {"Retry-After": "5"})
    return answer({"status": "ready"})


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """For Prometheus. Numbers of experiments and trials are sums, so that no name leaves the service."""
    under_way, listed = request.app.state.auth.under_way, registry_of(request).storage.experiments()
    gauges = {
        "dobandit_requests_under_way": under_way[REQUESTS],
        "dobandit_event_streams": under_way[STREAMS],
        "dobandit_experiments": len(listed),
        "dobandit_trials": sum(one.trials for one in listed),
        "dobandit_trials_closed": sum(one.closed for one in listed),
    }
    lines = [line for name, value in gauges.items() for line in (f"# TYPE {name} gauge", f"{name} {value}")]
    text = "\n".join([*lines, *request.app.state.figures.lines()]) + "\n"
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
