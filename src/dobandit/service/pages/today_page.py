"""Today's round, made for a phone: what to set, what was seen, and a look at it before it is told."""

from __future__ import annotations

import io
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from dobandit.errors import DobanditError, ObservationError
from dobandit.experiment.experiment import Experiment
from dobandit.rows.export import seen_column
from dobandit.rows.stored_trial import FAILED, PENDING, TOLD, StoredTrial
from dobandit.service.auth_middleware import require
from dobandit.service.changes import in_the_name_of
from dobandit.service.error_responses import message_for
from dobandit.service.http_requests import Form, registry_of, text
from dobandit.service.pages.rendering import page
from dobandit.storage.access import WORK

router = APIRouter(include_in_schema=False)
_SHOWN = 20  # pending trials to choose from
NOT_SEEN = "?"


class Question(NamedTuple):
    """A variable whose value is asked for. said: what was answered so far."""

    field: str
    name: str
    said: str
    is_target: bool = False
    aside: bool = False  # it is kept, and teaches nothing


@router.get("/experiments/{number}/today")
def today_page(
    request: Request,
    number: int,
    trial: Annotated[int | None, Query(ge=0)] = None,
    closed: Annotated[int | None, Query(ge=0)] = None,
    again: bool = False,
) -> Response:
    """The round to carry out, or a button to ask for one. closed: the trial that was just told, failed or abandoned."""
    require(request.state.visitor, WORK)
    done = "" if closed is None else _closed_words(registry_of(request).experiment(number), closed, again)
    return _form_page(request, number, trial, FormData(), done=done)


@router.post("/experiments/{number}/today/ask")
def ask(request: Request, number: int, form: Form) -> Response:
    experiment = registry_of(request).experiment(number)
    context = {name: text(form, f"c{i}", "0") == "1" for i, name in enumerate(experiment.graph.context)}
    try:
        with in_the_name_of(request, "ask", experiment.name):
            trial = experiment.ask(context={name: int(value) for name, value in context.items()} or None)
    except DobanditError as error:
        return _form_page(request, number, None, form, message_for(request, error), 422)
    return _to(number, trial=trial.number)


@router.post("/experiments/{number}/today/{trial}")
def tell(request: Request, number: int, trial: int, form: Form) -> Response:
    """First a look at what will be told; then, confirmed, it is told."""
    experiment = registry_of(request).experiment(number)
    try:
        row = experiment.log.stored_trial(trial)
        seen = _observation(experiment, row, form)
        if text(form, "step") != "tell":
            return _check_page(request, number, experiment, row, form)
        issued = text(form, "issued", "1")
        with in_the_name_of(request, "tell", experiment.name):
            told = experiment.tell(trial, seen, int(issued) if issued.isdigit() and issued != "0" else 1)
    except DobanditError as error:
        return _form_page(request, number, trial, form, message_for(request, error), 422)
    return _to(number, closed=trial, **({"again": 1} if told.repeated else {}))


@router.post("/experiments/{number}/today/{trial}/{what}")
def close(request: Request, number: int, trial: int, what: Literal["fail", "abandon"], form: Form) -> Response:
    experiment = registry_of(request).experiment(number)
    with in_the_name_of(request, what, experiment.name):
        if what == "fail":
            experiment.tell_failed(trial, text(form, "reason"))
        else:
            experiment.abandon(trial)
    return _to(number, closed=trial)


def _to(number: int, **query: object) -> Response:
    return RedirectResponse(f"/experiments/{number}/today?{urlencode(query)}", 303)


def _closed_words(experiment: Experiment, number: int, again: bool) -> str:
    """What became of a trial, by the log: an address that somebody made up puts no words on the page."""
    row = experiment.log.stored_trial(number)
    if row.state == PENDING:
        return ""
    if row.state != TOLD:
        became = "marked as failed" if row.state == FAILED else row.state
        return f"Trial {number} is {became}. Nothing was learned from it."
    said = f"Trial {number} was told before; nothing was changed." if again else f"Trial {number} is told."
    if row.late:
        said += " It came after its lease had run out, which is noted."
    if row.partial and row.counts is None and row.observation is not None:
        seen = experiment.columns.decode(row.observation)
        missing = experiment.columns.missing([seen.get(name) for name in experiment.columns.names])
        said += f" Not seen: {', '.join(missing)}."
    return said


# -- what was seen -----------------------------------------------------------------------------------------------


def questions(experiment: Experiment, row: StoredTrial, form: FormData) -> list[Question]:
    """The variables that this trial leaves to be seen; the target comes last, as it happens last."""
    columns, graph = experiment.columns, experiment.definition.problem.graph
    known = {*columns.decode(row.do), *([] if row.context is None else columns.decode(row.context))}
    aside = set(experiment.definition.problem.hidden)
    found = []
    for i, name in enumerate(columns.names):
        if name not in known:
            nothing = not graph.parents(name) and not graph.has_bias(name)
            said = text(form, f"v{i}", "0" if nothing and not columns.continuous else "")
            found.append(Question(f"v{i}", name, said, name == graph.target, name in aside))
    return sorted(found, key=lambda question: question.is_target)


def _observation(experiment: Experiment, row: StoredTrial, form: FormData) -> Any:
    """What the form says was seen: values, or rows for a trial of many rounds."""
    if row.size > 1:
        rows = form.get("rows", "")
        if not isinstance(rows, str) or not rows.strip():
            raise ObservationError(
                "a trial of many rounds is told as lines of CSV, but there are none. Write the names of the variables, "
                "and a line for each distinct row with its count."
            )
        return io.StringIO(rows)
    seen: dict[str, float] = {}
    for question in questions(experiment, row, form):
        if question.said in ("", NOT_SEEN):
            continue
        try:
            seen[question.name] = float(question.said.replace(",", "."))
        except ValueError:
            raise ObservationError(
                f"what was seen is a number, or left out, but for {question.name!r} it is {question.said[:40]!r}."
            ) from None
    if not seen:
        raise ObservationError(
            "nothing was seen in this round. If it could not be carried out, say so below; otherwise give at least one "
            "value."
        )
    return seen


# -- pages -----------------------------------------------------------------------------------------------


def _form_page(
    request: Request,
    number: int,
    trial: int | None,
    form: FormData,
    trouble: str = "",
    status: int = 200,
    done: str = "",
) -> Response:
    registry = registry_of(request)
    stored, experiment = registry.stored(number), registry.experiment(number)
    pending = list(experiment.storage.rows(number, state=PENDING, limit=_SHOWN))
    row = None
    if trial is not None:
        row = experiment.log.stored_trial(trial)
        if row.state != PENDING:
            done, row = done or ("" if trouble else f"Trial {trial} is {row.state} already."), None
    elif len(pending) == 1 and not done:
        row = pending[0]
    asked = [] if row is None else questions(experiment, row, form)
    names = [seen_column(question.name) for question in asked]
    return page(
        request,
        "today.html",
        status,
        stored=stored,
        experiment=experiment,
        target=experiment.graph.target,
        pending=[(one, experiment.columns.decode(one.do)) for one in pending],
        row=row,
        do={} if row is None else experiment.columns.decode(row.do),
        context={} if row is None or row.context is None else experiment.columns.decode(row.context),
        questions=asked,
        rows=text(form, "rows") if row is not None else "",
        header=",".join([*names, experiment.columns.count_key]),
        trouble=trouble,
        done=done,
    )


def _check_page(request: Request, number: int, experiment: Experiment, row: StoredTrial, form: FormData) -> Response:
    asked = questions(experiment, row, form)
    return page(
        request,
        "confirm.html",
        stored=registry_of(request).stored(number),
        row=row,
        do=experiment.columns.decode(row.do),
        questions=asked,
        unseen=[question.name for question in asked if question.said in ("", NOT_SEEN)],
        rows=text(form, "rows"),
        target=experiment.graph.target,
    )
