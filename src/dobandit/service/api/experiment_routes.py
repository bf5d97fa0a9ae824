"""Experiments: list, create, show, rename, delete; and the audit, which says who changed what."""

from __future__ import annotations

import csv
import io
import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from dobandit.checks import shown
from dobandit.documents.live import audit_document, listed_document, shown_document, status_document
from dobandit.errors import ExperimentError, ParseError, PolicyError
from dobandit.experiment.catalogue import create_experiment
from dobandit.experiment.definition import SETTING_WORDS
from dobandit.oracle.rules import RULE_WORDS
from dobandit.policy.base import Policy
from dobandit.rows.export import guarded
from dobandit.service.api import schemas
from dobandit.service.api.graph_routes import ROLES, graph_given, names
from dobandit.service.audited import dumped
from dobandit.service.auth_middleware import require
from dobandit.service.http_requests import (
    Body,
    Integer,
    answer,
    answering,
    perform,
    registry_of,
    said,
    tagged,
    visitor_of,
)
from dobandit.storage.access import MANAGE, AuditLine
from dobandit.storage.contract import StoredExperiment

router, audit_router = APIRouter(tags=["experiments"]), APIRouter(tags=["audit"])
_WORDS = ("budget", *SETTING_WORDS, "randomised")
_MOST_LISTED = 1000


@router.get("/experiments", openapi_extra=schemas.LISTED)
def list_experiments(
    request: Request,
    name: str | None = None,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_LISTED)] = _MOST_LISTED,
) -> Response:
    """The experiments by name. `name`: the one of that name only; `after`: those behind a name."""
    registry, visitor = registry_of(request), visitor_of(request)
    if name is not None:
        one = registry.storage.find(name)
        found = [one] if one is not None and visitor.knows(one.id) else []
    else:
        found = list(registry.listed(visitor, after, limit=limit))
    return answer({"experiments": [{"id": one.id, **listed_document(one)} for one in found]})


@router.post("/experiments", status_code=201, openapi_extra=schemas.CREATE)
def create(request: Request, body: Body) -> Response:
    """A new experiment."""
    visitor = visitor_of(request)
    require(visitor, MANAGE)
    given = said(request, body, "name", "graph", "policy", "history", "if_exists", *ROLES, *_WORDS, *RULE_WORDS)
    for needed in ("name", "graph"):
        if needed not in given:
            raise ParseError(f"an experiment has a {needed}, but the request has none. Add {needed!r}.")
    if not isinstance(given["name"], str):
        raise ExperimentError(f"an experiment's name is a text, but got {shown(given['name'])}.")
    registry = registry_of(request)
    graph = graph_given(given, registry.settings)
    words = {key: given[key] for key in (*_WORDS, *RULE_WORDS) if key in given}
    if words.get("hide", "auto") != "auto":
        words["hide"] = names(words["hide"], "hide")

    def act() -> dict[str, Any]:
        experiment = create_experiment(
            given["name"],
            graph,
            policy=_policy(given.get("policy")),
            storage=registry.storage,
            history=_history(given.get("history")),
            if_exists=given.get("if_exists", "error"),
            clock=registry.settings.clock,
            **words,
        )
        stored = registry.storage.find(experiment.name)
        return _created(stored, False) if stored is not None else {}

    return perform(request, "create", act, body=body, kept=lambda stored: _created(stored, True), status=201)


def _created(stored: StoredExperiment, created: bool) -> dict[str, Any]:
    definition = json.loads(stored.document)
    return {"id": stored.id, "experiment": stored.name, "created": created, "definition": definition}


def _policy(given: object) -> Policy | str | None:
    """A name with settings, or an object {"name": "ucb", "scale": 0.5}."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, dict) and isinstance(given.get("name"), str) and given["name"] != "oracle":
        from dobandit.policy.registry import policy_from_document

        return policy_from_document(given)
    raise PolicyError(f'a policy is a text such as "ucb:scale=0.5" or {{"name": "ucb"}}, but got {shown(given)}.')


def _history(given: object) -> Any:
    """Rows, or {"csv": text}: never a text alone, which would be the path of a file."""
    if given is None or isinstance(given, list):
        return given
    if isinstance(given, dict) and list(given) == ["csv"] and isinstance(given["csv"], str):
        return io.StringIO(given["csv"])
    raise ParseError(f'a history is a list of rows, or {{"csv": "email,buy\\n1,0\\n"}}, but got {shown(given)}.')


@router.get("/experiments/{experiment}", openapi_extra=schemas.SHOWN)
@answering
def show(request: Request, experiment: int) -> Response:
    """What an experiment is, and how far."""
    found = registry_of(request).experiment(experiment)
    document = shown_document(found, found.status())
    del document["storage"]  # nobody's business
    return tagged(request, dumped({"id": experiment, **document}))


@router.get("/experiments/{experiment}/status", openapi_extra=schemas.STATUS)
@answering
def status(request: Request, experiment: int) -> Response:
    """How far an experiment is."""
    document = status_document(registry_of(request).experiment(experiment).status())
    del document["storage"]
    return tagged(request, dumped({"id": experiment, **document}))


@router.patch("/experiments/{experiment}", openapi_extra=schemas.RENAME)
def rename(request: Request, experiment: int, body: Body) -> Response:
    """Give it another name; all else of an experiment never changes."""
    require(visitor_of(request), MANAGE)
    given, registry = said(request, body, "name"), registry_of(request)
    old = registry.stored(experiment).name
    new: Any = given.get("name")
    document = {"id": experiment, "experiment": new, "was": old}
    return perform(request, "rename", lambda: registry.storage.rename(old, new), document, name=old)


@router.delete("/experiments/{experiment}", openapi_extra=schemas.DELETE)
def delete(request: Request, experiment: int) -> Response:
    """Delete it with its whole log, for good."""
    require(visitor_of(request), MANAGE)
    registry = registry_of(request)
    name = registry.stored(experiment).name
    document = {"id": experiment, "experiment": name, "deleted": True}
    return perform(request, "delete", lambda: registry.storage.delete(name), document, name=name)


@audit_router.get("/audit", openapi_extra=schemas.AUDIT)
def audit(
    request: Request,
    after: Integer = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_LISTED)] = 100,
    experiment: Integer | None = None,
) -> Response:
    """A page of the audit, of one experiment or of all. `next` is where the next page begins: ?after=."""
    require(visitor_of(request), MANAGE)
    lines = registry_of(request).storage.audit(max(after, 0), limit + 1, experiment)
    page = [audit_document(line) for line in lines[:limit]]
    return answer({"audit": page, "next": page[-1]["number"] if len(lines) > limit else None})


@audit_router.get("/audit.csv", openapi_extra=schemas.TABLE)
def audit_csv(request: Request, experiment: Integer | None = None) -> Response:
    """The whole audit as CSV."""
    require(visitor_of(request), MANAGE)
    out, after, registry = io.StringIO(newline=""), 0, registry_of(request)
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(AuditLine._fields)
    while lines := registry.storage.audit(after, _MOST_LISTED, experiment):
        for line in lines:
            cells = audit_document(line).values()
            writer.writerow(guarded(cell) if isinstance(cell, str) else cell for cell in cells)
        after = lines[-1].number
    headers = {"Content-Disposition": 'attachment; filename="audit.csv"'}
    return Response(out.getvalue().encode("utf-8", "backslashreplace"), 200, headers, "text/csv; charset=utf-8")
