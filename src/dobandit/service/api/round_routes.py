"""Rounds: ask, tell, fail, abandon, record, import."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from dobandit.documents.live import imported_document, numbered_document, trial_document
from dobandit.errors import ExperimentError
from dobandit.rows.stored_trial import ABANDONED, FAILED, StoredTrial
from dobandit.rows.trial import trial_of
from dobandit.service.api import schemas
from dobandit.service.http_requests import CSV, Body, kind_of, perform, registry_of, rows_of, said, seen_in, text_of

router = APIRouter(tags=["rounds"])
_ASK = ("available", "n", "lease", "size", "control", "context")


@router.post("/experiments/{experiment}/ask", status_code=201, openapi_extra=schemas.ASK)
def ask(request: Request, experiment: int, body: Body) -> Response:
    """The next trials to carry out."""
    given, found = said(request, body, *_ASK), registry_of(request).at_work(experiment)

    def kept(written: list[StoredTrial]) -> dict[str, Any]:
        return {"trials": [trial_document(trial_of(trial, found.columns), found.interval_words) for trial in written]}

    return perform(request, "ask", lambda: found.ask(**given), body=body, name=found.name, kept=kept, status=201)


@router.post("/experiments/{experiment}/trials/{number}/tell", openapi_extra=schemas.TELL)
def tell(request: Request, experiment: int, number: int, body: Body) -> Response:
    """What was seen in a trial. The same told twice changes nothing; something else is refused."""
    given = said(request, body, "observation", "csv", "issued")
    if given.get("issued") is None:
        raise ExperimentError(
            "a tell says which hand-out of the trial it is of, so that a late one can be told from others. Give "
            "'issued' as the trial says: 1, unless it was handed out again."
        )
    seen, found = seen_in(given), registry_of(request).at_work(experiment)
    return perform(
        request, "tell", lambda: numbered_document(found.tell(number, seen, given["issued"])), name=found.name
    )


@router.post("/experiments/{experiment}/trials/{number}/fail", openapi_extra=schemas.FAIL)
def fail(request: Request, experiment: int, number: int, body: Body) -> Response:
    """The trial was tried, but gave nothing."""
    reason, found = said(request, body, "reason").get("reason", ""), registry_of(request).at_work(experiment)
    answer = {"trial": number, "state": FAILED, "reason": reason}
    return perform(request, "fail", lambda: found.tell_failed(number, reason), answer, name=found.name)


@router.post("/experiments/{experiment}/trials/{number}/abandon", openapi_extra=schemas.ABANDON)
def abandon(request: Request, experiment: int, number: int, body: Body) -> Response:
    """Nobody will carry the trial out."""
    said(request, body)
    found = registry_of(request).at_work(experiment)
    answer = {"trial": number, "state": ABANDONED}
    return perform(request, "abandon", lambda: found.abandon(number), answer, name=found.name)


@router.post("/experiments/{experiment}/record", status_code=201, openapi_extra=schemas.RECORD)
def record(request: Request, experiment: int, body: Body) -> Response:
    """A round that nobody asked for."""
    given = said(request, body, "do", "observation", "csv", "randomised")
    seen, found = seen_in(given), registry_of(request).at_work(experiment)

    def kept(written: list[StoredTrial]) -> dict[str, Any]:
        return {"trial": written[0].number}

    act = partial(found.record, given.get("do"), seen, randomised=given.get("randomised", False))
    return perform(request, "record", act, body=body, name=found.name, kept=kept, status=201)


@router.post("/experiments/{experiment}/import", status_code=201, openapi_extra=schemas.IMPORT)
def import_rounds(request: Request, experiment: int, body: Body, randomised: bool = False) -> Response:
    """Many rounds that nobody asked for: all of them, or none if one is wrong. JSON, or CSV as text/csv. Rows are
    summed up, and a million of them are some hundreds of trials. Rows with one trial number are one trial; so is a row
    whose observation is a list. `randomised` says that what was set was chosen at random, or by an ask: in the object,
    or in the address (?randomised=true) beside CSV."""
    found = registry_of(request).at_work(experiment)
    if kind_of(request) == CSV:
        source: Any = io.StringIO(text_of(body))
    else:
        given = said(request, body, "rows", "randomised")
        source, randomised = rows_of(given.get("rows"), "rows"), given.get("randomised", randomised)

    noted: list[str] = []

    def kept(written: list[StoredTrial]) -> dict[str, Any]:
        numbers = range(written[0].number, written[-1].number + 1)
        return imported_document(numbers, sum(trial.rounds for trial in written), noted)

    act = partial(found.log.import_noted, source, noted.append, randomised)
    return perform(request, "import", act, body=body, name=found.name, kept=kept, status=201)
