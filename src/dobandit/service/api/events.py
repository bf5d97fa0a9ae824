"""What happens in an experiment, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from dobandit.errors import DobanditError
from dobandit.service.api import schemas
from dobandit.service.house import House
from dobandit.service.problems import told_to_visitors
from dobandit.service.requests import house_of

router = APIRouter(tags=["answers"])
_SILENT = 15  # looks after which something is said, so that nobody takes the connection for dead
_LONGEST = 3600  # looks: browsers connect again by themselves


@router.get("/experiments/{experiment}/events", openapi_extra=schemas.EVENTS)
async def events(request: Request, experiment: int) -> StreamingResponse:
    """An event `trials` with the numbers of trials, now and whenever one is asked, closed or recorded."""
    house = house_of(request)
    await run_sync(house.stored, experiment)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_changes(request, house, experiment), 200, headers, "text/event-stream")


async def _changes(request: Request, house: House, experiment: int) -> AsyncIterator[str]:
    before, silent = None, 0
    for _ in range(_LONGEST):
        try:
            if not await request.app.state.auth.still_lets_in(request):
                yield _end(
                    "the token was revoked or has expired, or the session is over. Log in, or make another token."
                )
                return
            stored = await run_sync(house.counted, experiment)
        except DobanditError as error:
            yield _end(told_to_visitors(error, house.storage))
            return
        if stored != before:
            data = {"trials": stored.trials, "closed": stored.closed, "name": stored.name}
            yield f"event: trials\nid: {stored.trials}.{stored.closed}\ndata: {json.dumps(data)}\n\n"
            before, silent = stored, 0
        elif silent >= _SILENT:
            yield ": still here\n\n"
            silent = 0
        silent += 1
        await asyncio.sleep(house.settings.look_seconds)


def _end(why: str) -> str:
    return f"event: end\ndata: {json.dumps({'detail': why})}\n\n"
