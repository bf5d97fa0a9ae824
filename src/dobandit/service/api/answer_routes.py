"""What an experiment's log says: trials, answers, tables, and what happens in it as server-sent events."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from dobandit.documents import live as documents
from dobandit.errors import DobanditError
from dobandit.rows.export import document
from dobandit.service.api import schemas
from dobandit.service.error_responses import told_to_visitors
from dobandit.service.experiment_registry import ExperimentRegistry
from dobandit.service.http_requests import CSV, answering, download, json_parameter, registry_of, tagged

router = APIRouter(tags=["answers"])
Available = Annotated[list[str] | None, Query(description="What can be set; may be repeated. Default: all.")]
Context = Annotated[str | None, Query(description='What is known before the round: {"mobile":1}')]
_PARQUET = "application/vnd.apache.parquet"
_MOST = 1000
_SILENT = 15  # looks after which something is said, so that nobody takes the connection for dead
_LONGEST = 3600  # looks: browsers connect again by themselves


@router.get("/experiments/{experiment}/trials", response_model=schemas.LOG_PAGE)
@answering
def trials(
    request: Request,
    experiment: int,
    after: int = -1,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = 100,
    state: str | None = None,
    last: Annotated[int | None, Query(ge=0, le=_MOST)] = None,
) -> Response:
    """A page of the log. `next` is where the next page begins: ?after=; null at the end. `last`: the last so many."""
    found = registry_of(request).experiment(experiment)
    if last is not None:
        return tagged(request, {"trials": found.trials(after, state=state, last=last), "next": None})
    rows = found.trials(after, limit + 1, state)
    following = rows[limit - 1]["trial"] if len(rows) > limit else None
    return tagged(request, {"trials": rows[:limit], "next": following})


@router.get("/experiments/{experiment}/trials/{number}", response_model=schemas.LOG_ROW)
@answering
def trial(request: Request, experiment: int, number: int) -> Response:
    """One row of the log."""
    return tagged(request, registry_of(request).experiment(experiment).trial(number))


@router.get("/experiments/{experiment}/trials/{number}/explain", response_model=schemas.EXPLAINED)
@answering
def explain(request: Request, experiment: int, number: int) -> Response:
    """Why a trial set what it set. That never changes."""
    found = registry_of(request).experiment(experiment)
    return tagged(request, documents.explanation_document(found.explain(number), found.interval_words))


@router.get("/experiments/{experiment}/recommend", response_model=schemas.RECOMMENDED)
@answering
def recommend(request: Request, experiment: int, available: Available = None, context: Context = None) -> Response:
    """The set that looks best by the model, and apart from it the one that the data alone speak for."""
    found, known = registry_of(request).experiment(experiment), json_parameter(context, "context")
    recommended = found.recommend(available, context=known)
    observed = found.best_observed(available, context=known)
    return tagged(request, documents.recommendation_document(recommended, observed))


@router.get("/experiments/{experiment}/evaluate", response_model=schemas.EVALUATED)
@answering
def evaluate(request: Request, experiment: int, do: str = "{}", context: Context = None) -> Response:
    """All that `recommend` says, of an action of your choice: ?do={"coupon":1}."""
    action, known = json_parameter(do, "do"), json_parameter(context, "context")
    return tagged(request, document(registry_of(request).experiment(experiment).evaluate(action, context=known)))


@router.get("/experiments/{experiment}/best-observed", response_model=schemas.OBSERVED)
@answering
def best_observed(request: Request, experiment: int, available: Available = None, context: Context = None) -> Response:
    """The allowed set that the data alone speak for; null where no round with one has seen the target yet."""
    found, known = registry_of(request).experiment(experiment), json_parameter(context, "context")
    return tagged(request, document(found.best_observed(available, context=known)))


@router.get("/experiments/{experiment}/estimates", response_model=schemas.ESTIMATES)
@answering
def estimates(request: Request, experiment: int) -> Response:
    """Every edge's weight with its interval."""
    return tagged(request, {"estimates": document(registry_of(request).experiment(experiment).estimates())})


@router.get("/experiments/{experiment}/promises", response_model=schemas.PROMISES)
@answering
def promises(request: Request, experiment: int) -> Response:
    """What the intervals of values promise, and with what probability a guaranteed gap is wrong at some round."""
    found = registry_of(request).experiment(experiment)
    return tagged(request, {"interval_words": found.interval_words, "delta": found.delta})


@router.get("/experiments/{experiment}/diagnose", response_model=schemas.DIAGNOSIS)
@answering
def diagnose(request: Request, experiment: int) -> Response:
    """Whether the data agree with the model."""
    return tagged(request, registry_of(request).experiment(experiment).diagnose().to_document())


@router.get("/experiments/{experiment}/export.csv", response_class=Response, responses=schemas.gives(CSV))
@answering
def export_csv(request: Request, experiment: int) -> Response:
    """The whole log as CSV, which `import` reads."""
    text = registry_of(request).experiment(experiment).to_csv() or ""
    return download(text, f"{CSV}; charset=utf-8", f"experiment-{experiment}.csv")


@router.get(
    "/experiments/{experiment}/export.parquet", response_class=Response, responses=schemas.gives(_PARQUET, binary=True)
)
@answering
def export_parquet(request: Request, experiment: int) -> Response:
    """The whole log as a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        registry_of(request).experiment(experiment).to_parquet(path)
        return download(path.read_bytes(), _PARQUET, f"experiment-{experiment}.parquet")


@router.get(
    "/experiments/{experiment}/events",
    response_class=Response,
    responses=schemas.gives("text/event-stream", "Server-sent events"),
)
async def events(request: Request, experiment: int) -> StreamingResponse:
    """An event `trials` with the numbers of trials, now and whenever one is asked, closed or recorded."""
    registry = registry_of(request)
    await run_sync(registry.stored, experiment)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_changes(request, registry, experiment), 200, headers, "text/event-stream")


async def _changes(request: Request, registry: ExperimentRegistry, experiment: int) -> AsyncIterator[str]:
    before, silent = None, 0
    for _ in range(_LONGEST):
        try:
            if not await request.app.state.auth.still_lets_in(request):
                yield _end(
                    "the token was revoked or has expired, or the session is over. Log in, or make another token."
                )
                return
            stored = await run_sync(registry.stored, experiment)
        except DobanditError as error:
            yield _end(told_to_visitors(error, registry.storage))
            return
        if stored != before:
            data = {"trials": stored.trials, "closed": stored.closed, "name": stored.name}
            yield f"event: trials\nid: {stored.trials}.{stored.closed}\ndata: {json.dumps(data)}\n\n"
            before, silent = stored, 0
        elif silent >= _SILENT:
            yield ": still here\n\n"
            silent = 0
        silent += 1
        await asyncio.sleep(registry.settings.look_seconds)


def _end(why: str) -> str:
    return f"event: end\ndata: {json.dumps({'detail': why})}\n\n"
