"""What an experiment's log says: trials, answers, tables, and what happens in it as server-sent events."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from dobandit.documents import live as documents
from dobandit.errors import DobanditError
from dobandit.experiment.experiment import Experiment
from dobandit.rows.export import document
from dobandit.service.api import schemas
from dobandit.service.audited import dumped
from dobandit.service.error_responses import told_to_visitors
from dobandit.service.experiment_registry import ExperimentRegistry
from dobandit.service.http_requests import answering, parameter, registry_of, tagged

router = APIRouter(tags=["answers"])
Available = Annotated[list[str] | None, Query(description="What can be set; may be repeated. Default: all.")]
Context = Annotated[str | None, Query(description='What is known before the round: {"mobile":1}')]
_MOST = 1000
_SILENT = 15  # looks after which something is said, so that nobody takes the connection for dead
_LONGEST = 3600  # looks: browsers connect again by themselves


@router.get("/experiments/{experiment}/trials", openapi_extra=schemas.TRIALS)
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
        return tagged(request, dumped({"trials": found.trials(after, state=state, last=last), "next": None}))
    rows = found.trials(after, limit + 1, state)
    following = rows[limit - 1]["trial"] if len(rows) > limit else None
    return tagged(request, dumped({"trials": rows[:limit], "next": following}))


@router.get("/experiments/{experiment}/trials/{number}", openapi_extra=schemas.ONE_TRIAL)
@answering
def trial(request: Request, experiment: int, number: int) -> Response:
    """One row of the log."""
    return tagged(request, dumped(registry_of(request).experiment(experiment).trial(number)))


@router.get("/experiments/{experiment}/trials/{number}/explain", openapi_extra=schemas.EXPLAIN)
@answering
def explain(request: Request, experiment: int, number: int) -> Response:
    """Why a trial set what it set. That never changes."""

    def compute(one: Experiment) -> Any:
        return documents.explanation_document(one.explain(number), one.interval_words)

    return _answered(request, experiment, compute)


@router.get("/experiments/{experiment}/recommend", openapi_extra=schemas.RECOMMEND)
@answering
def recommend(request: Request, experiment: int, available: Available = None, context: Context = None) -> Response:
    """The set that looks best by the model, and apart from it the one that the data alone speak for."""
    known = parameter(context, "context")

    def compute(one: Experiment) -> Any:
        recommended = one.recommend(available, context=known)
        return documents.recommendation_document(recommended, one.best_observed(available, context=known))

    return _answered(request, experiment, compute)


@router.get("/experiments/{experiment}/evaluate", openapi_extra=schemas.EVALUATE)
@answering
def evaluate(request: Request, experiment: int, do: str = "{}", context: Context = None) -> Response:
    """All that `recommend` says, of an action of your choice: ?do={"coupon":1}."""
    action, known = parameter(do, "do"), parameter(context, "context")
    return _answered(request, experiment, lambda one: document(one.evaluate(action, context=known)))


@router.get("/experiments/{experiment}/best-observed", openapi_extra=schemas.OBSERVED)
@answering
def best_observed(request: Request, experiment: int, available: Available = None, context: Context = None) -> Response:
    """The allowed set that the data alone speak for; null where no round with one has seen the target yet."""
    known = parameter(context, "context")
    return _answered(request, experiment, lambda one: document(one.best_observed(available, context=known)))


@router.get("/experiments/{experiment}/estimates", openapi_extra=schemas.ESTIMATES)
@answering
def estimates(request: Request, experiment: int) -> Response:
    """Every edge's weight with its interval."""
    return _answered(request, experiment, lambda one: {"estimates": document(one.estimates())})


@router.get("/experiments/{experiment}/promises", openapi_extra=schemas.PROMISES)
@answering
def promises(request: Request, experiment: int) -> Response:
    """What the intervals of values promise, and with what probability a guaranteed gap is wrong at some round."""
    found = registry_of(request).experiment(experiment)
    return tagged(request, dumped({"interval_words": found.interval_words, "delta": found.delta}))


@router.get("/experiments/{experiment}/diagnose", openapi_extra=schemas.DIAGNOSE)
@answering
def diagnose(request: Request, experiment: int) -> Response:
    """Whether the data agree with the model."""
    return _answered(request, experiment, lambda one: one.diagnose().to_document())


@router.get("/experiments/{experiment}/export.csv", openapi_extra=schemas.TABLE)
@answering
def export_csv(request: Request, experiment: int) -> Response:
    """The whole log as CSV, which `import` reads."""
    text = registry_of(request).experiment(experiment).to_csv() or ""
    return _file(text.encode("utf-8", "backslashreplace"), "text/csv; charset=utf-8", f"experiment-{experiment}.csv")


@router.get("/experiments/{experiment}/export.parquet", openapi_extra=schemas.TABLE)
@answering
def export_parquet(request: Request, experiment: int) -> Response:
    """The whole log as a Parquet file."""
    found = registry_of(request).experiment(experiment)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.parquet")
        found.to_parquet(path)
        content = Path(path).read_bytes()
    return _file(content, "application/vnd.apache.parquet", f"experiment-{experiment}.parquet")


@router.get("/experiments/{experiment}/events", openapi_extra=schemas.EVENTS)
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
            stored = await run_sync(registry.counted, experiment)
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


def _file(content: bytes, kind: str, name: str) -> Response:
    return Response(content, 200, {"Content-Disposition": f'attachment; filename="{name}"'}, kind)


def _answered(request: Request, experiment: int, compute: Callable[[Experiment], Any]) -> Response:
    """The answer to the question that stands in the address."""
    question = f"{request.url.path}?{request.url.query}"
    return tagged(request, registry_of(request).answered(experiment, question, compute))
