"""The rounds of an experiment: ask, tell, fail, abandon, record, import."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from dobandit.documents.live import imported_document, numbered_document, trial_document
from dobandit.errors import ExperimentError
from dobandit.rows.stored_trial import ABANDONED, FAILED
from dobandit.rows.trial import trial_of
from dobandit.service.api import schemas
from dobandit.service.api.schemas import CsvText, Observation, Randomised, Values, Variables, takes
from dobandit.service.changes import perform
from dobandit.service.http_requests import CSV, RequestBody, body_text, kind_of, observation_of, registry_of, rows_of
from dobandit.storage.contract import Written

router = APIRouter(tags=["rounds"])


class Ask(RequestBody):
    available: Variables | None = None
    n: int = Field(1, ge=1)
    lease: float | None = Field(None, gt=0, description="Seconds")
    size: int = Field(1, ge=1)
    control: bool | None = None
    context: Values | None = None


@router.post(
    "/experiments/{experiment}/ask",
    status_code=201,
    response_model=schemas.ASKED,
    openapi_extra=takes(Ask, {"n": 1, "lease": 1800}, key=True),
)
def ask(request: Request, experiment: int) -> Response:
    """The next trials to carry out."""
    words, found = Ask.of(request).words(), registry_of(request).experiment(experiment)
    if words.get("n", 1) is None:
        raise ExperimentError("n must be a whole number from 1, but got null. Leave it out to get one trial.")

    def asked(written: Written) -> dict[str, Any]:
        trials = [trial_of(trial, found.columns) for trial in written.trials]
        return {"trials": [trial_document(trial, found.interval_words) for trial in trials]}

    act = partial(found.ask, **words)
    return perform(request, "ask", act, name=found.name, status=201, repeatable=asked)


class Tell(RequestBody):
    observation: Observation | None = None
    csv: CsvText | None = None
    issued: int = Field(ge=1)


@router.post(
    "/experiments/{experiment}/trials/{number}/tell",
    response_model=schemas.TOLD,
    openapi_extra=takes(Tell, {"observation": {"visit": 1, "buy": 0}, "issued": 1}),
)
def tell(request: Request, experiment: int, number: int) -> Response:
    """What was seen in a trial. The same told twice changes nothing; something else is refused."""
    given = Tell.of(request).words()
    if given.get("issued") is None:
        raise ExperimentError(
            "a tell says which hand-out of the trial it is of, so that a late one can be told from others. Give "
            "'issued' as the trial says: 1, unless it was handed out again."
        )
    seen, found = observation_of(given), registry_of(request).experiment(experiment)

    def act() -> dict[str, Any]:
        return numbered_document(found.tell(number, seen, given["issued"]))

    return perform(request, "tell", act, name=found.name)


class Fail(RequestBody):
    reason: str = ""


@router.post(
    "/experiments/{experiment}/trials/{number}/fail",
    response_model=schemas.FAILED_TRIAL,
    openapi_extra=takes(Fail, {"reason": "the shop was closed"}),
)
def fail(request: Request, experiment: int, number: int) -> Response:
    """The trial was tried, but gave nothing."""
    reason, found = Fail.of(request).reason, registry_of(request).experiment(experiment)
    document = {"trial": number, "state": FAILED, "reason": reason}
    return perform(request, "fail", partial(found.tell_failed, number, reason), document, name=found.name)


class Abandon(RequestBody):
    """Nothing to say."""


@router.post(
    "/experiments/{experiment}/trials/{number}/abandon",
    response_model=schemas.ABANDONED_TRIAL,
    openapi_extra=takes(Abandon, {}),
)
def abandon(request: Request, experiment: int, number: int) -> Response:
    """Nobody will carry the trial out."""
    Abandon.of(request)
    found = registry_of(request).experiment(experiment)
    document = {"trial": number, "state": ABANDONED}
    return perform(request, "abandon", partial(found.abandon, number), document, name=found.name)


class Record(RequestBody):
    do: Values | None = None
    observation: Observation | None = None
    csv: CsvText | None = None
    randomised: Randomised = False


@router.post(
    "/experiments/{experiment}/record",
    status_code=201,
    response_model=schemas.RECORDED,
    openapi_extra=takes(Record, {"do": {"coupon": 1}, "observation": {"visit": 1, "buy": 0}}, key=True),
)
def record(request: Request, experiment: int) -> Response:
    """A round that nobody asked for."""
    given = Record.of(request).words()
    seen, found = observation_of(given), registry_of(request).experiment(experiment)

    def recorded(written: Written) -> dict[str, Any]:
        return {"trial": written.trials[0].number}

    act = partial(found.record, given.get("do"), seen, randomised=given.get("randomised", False))
    return perform(request, "record", act, name=found.name, status=201, repeatable=recorded)


class Import(RequestBody):
    rows: list[dict[str, Any] | list[Any]]
    randomised: Randomised = False


@router.post(
    "/experiments/{experiment}/import",
    status_code=201,
    response_model=schemas.IMPORTED,
    openapi_extra=takes(
        Import,
        {"rows": [{"do": {"coupon": 1}, "observation": {"visit": 1, "buy": 0}}]},
        key=True,
        csv="do:coupon,visit,buy,count\n1,1,0,105\n,0,0,880\n",
    ),
)
def import_rounds(request: Request, experiment: int, randomised: bool = False) -> Response:
    """Many rounds that nobody asked for: all of them, or none if one is wrong. JSON, or CSV as text/csv. Rows are
    summed up, and a million of them are some hundreds of trials. Rows with one trial number are one trial; so is a row
    whose observation is a list. `randomised` says that what was set was chosen at random, or by an ask: in the object,
    or in the address (?randomised=true) beside CSV."""
    found = registry_of(request).experiment(experiment)
    if kind_of(request) == CSV:
        source: Any = io.StringIO(body_text(request))
    else:
        given = Import.of(request).words()
        source, randomised = rows_of(given.get("rows"), "rows"), given.get("randomised", randomised)
    doubts: list[str] = []

    def imported(written: Written) -> dict[str, Any]:
        numbers = range(written.trials[0].number, written.trials[-1].number + 1)
        return imported_document(numbers, sum(trial.rounds for trial in written.trials), doubts)

    act = partial(found.log.import_noted, source, doubts.append, randomised)
    return perform(request, "import", act, name=found.name, status=201, repeatable=imported)
