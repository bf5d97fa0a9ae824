"""Rounds: ask, tell, fail, abandon, record, import."""

from __future__ import annotations

import io
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from dobandit.documents.live import (
    abandoned_document,
    failed_document,
    imported_document,
    numbered_document,
    recorded_document,
    trial_document,
)
from dobandit.errors import ExperimentError
from dobandit.experiment.experiment import Experiment
from dobandit.experiment.storage.base import StoredTrial
from dobandit.service.api import schemas
from dobandit.service.requests import CSV, Body, house_of, kind_of, perform, rows_of, said, seen_in, text_of
from dobandit.service.threads import Change, PlainRoute, changing, in_a_thread

router = APIRouter(tags=["rounds"], route_class=PlainRoute)
_ASK = ("available", "n", "lease", "size", "control", "context")


@router.post("/experiments/{experiment}/ask", status_code=201, openapi_extra=schemas.ASK)
@changing("ask", 201)
def ask(request: Request, experiment: int, body: Body) -> Change:
    """The next trials to carry out."""
    given = said(request, body, *_ASK)

    def kept(found: Experiment, written: list[StoredTrial]) -> dict[str, Any]:
        return {"trials": [trial_document(found.handed_out(trial), found.interval_words) for trial in written]}

    return Change(lambda found: found.ask(**given), kept)


@router.post("/experiments/{experiment}/trials/{number}/tell", openapi_extra=schemas.TELL)
@changing("tell")
def tell(request: Request, experiment: int, number: int, body: Body) -> Change:
    """What was seen in a trial. The same told twice changes nothing; something else is refused."""
    given = said(request, body, "observation", "csv", "issued")
    if given.get("issued") is None:
        raise ExperimentError(
            "a tell says which hand-out of the trial it is of, so that a late one can be told from others. Give "
            "'issued' as the trial says: 1, unless it was handed out again."
        )
    seen = seen_in(given)
    return Change(lambda found: numbered_document(found.tell(number, seen, given["issued"])))


@router.post("/experiments/{experiment}/trials/{number}/fail", openapi_extra=schemas.FAIL)
@changing("fail")
def fail(request: Request, experiment: int, number: int, body: Body) -> Change:
    """The trial was tried, but gave nothing."""
    reason = said(request, body, "reason").get("reason", "")

    def failed(found: Experiment) -> dict[str, Any]:
        found.tell_failed(number, reason)
        return failed_document(number, reason)

    return Change(failed)


@router.post("/experiments/{experiment}/trials/{number}/abandon", openapi_extra=schemas.ABANDON)
@changing("abandon")
def abandon(request: Request, experiment: int, number: int, body: Body) -> Change:
    """Nobody will carry the trial out."""
    said(request, body)

    def abandoned(found: Experiment) -> dict[str, Any]:
        found.abandon(number)
        return abandoned_document(number)

    return Change(abandoned)


@router.post("/experiments/{experiment}/record", status_code=201, openapi_extra=schemas.RECORD)
@changing("record", 201)
def record(request: Request, experiment: int, body: Body) -> Change:
    """A round that nobody asked for."""
    given = said(request, body, "do", "observation", "csv")
    seen = seen_in(given)

    def kept(found: Experiment, written: list[StoredTrial]) -> dict[str, Any]:
        return recorded_document(written[0].number)

    return Change(lambda found: found.record(given.get("do"), seen), kept)


@router.post("/experiments/{experiment}/import", status_code=201, openapi_extra=schemas.IMPORT)
@in_a_thread
def import_rounds(request: Request, experiment: int, body: Body) -> Response:
    """Many rounds that nobody asked for: all of them, or none if one is wrong. JSON, or CSV as text/csv. Rows are
    summed up, and a million of them are some hundreds of trials. Rows with one trial number are one trial; so is a row
    whose observation is a list."""
    found = house_of(request).at_work(experiment)
    if kind_of(request) == CSV:
        source: Any = io.StringIO(text_of(body))
    else:
        source = rows_of(said(request, body, "rows").get("rows"), "rows")

    noted: list[str] = []

    def kept(written: list[StoredTrial]) -> dict[str, Any]:
        numbers = range(written[0].number, written[-1].number + 1)
        return imported_document(numbers, sum(trial.rounds for trial in written), noted)

    def act() -> range:
        return found.import_noted(source, noted.append)

    return perform(request, "import", act, body=body, name=found.name, kept=kept, status=201)
