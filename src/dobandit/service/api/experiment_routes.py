"""Experiments: list, create, show, rename, delete; and the audit, which says who changed what."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from dobandit.checks import shown
from dobandit.documents.live import audit_document, listed_document, shown_document, status_document
from dobandit.errors import ExperimentError, MissingError, ParseError, PolicyError
from dobandit.experiment.catalogue import create_experiment
from dobandit.policy.base import Policy
from dobandit.rows.export import guarded
from dobandit.service.api import schemas
from dobandit.service.api.graph_routes import GraphWords, graph_given, hidden_given
from dobandit.service.api.schemas import Hidden, Randomised, Variables, gives, takes
from dobandit.service.auth_middleware import require
from dobandit.service.changes import perform
from dobandit.service.http_requests import (
    CSV,
    RequestBody,
    answer,
    answering,
    download,
    registry_of,
    tagged,
    visitor_of,
)
from dobandit.storage.access import MANAGE, AuditLine
from dobandit.storage.contract import StoredExperiment, Written

router, audit_router = APIRouter(tags=["experiments"]), APIRouter(tags=["audit"])
_MOST_LISTED = 1000


@router.get("/experiments", response_model=schemas.LISTED)
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


class Create(GraphWords):
    """The words of `create_experiment`, but for those that say where and when."""

    name: str = Field(min_length=1, max_length=200)
    budget: int | None = Field(None, ge=0)
    levers: dict[str, list[float]] = Field(default_factory=dict)
    costs: dict[str, float] | None = None
    total_cost: float | None = Field(None, ge=0)
    require: Variables = ()
    forbid: Variables = ()
    always_set: Variables = ()
    available: Variables | None = None
    exclusive: Sequence[Variables] = ()
    smaller: bool | None = None
    policy: str | dict[str, Any] | None = Field(None, description='A name with settings, or {"name": ...}')
    horizon: int | None = Field(None, ge=1)
    seed: int | None = Field(None, ge=0)
    lease: float | None = Field(None, gt=0, description="Seconds")
    links: str | dict[str, Any] | None = Field(None, description="A link for all variables, or by name")
    continuous: bool = False
    effects: Literal["nonnegative", "any"] | None = None
    hide: Hidden = ()
    control: float = Field(0.0, ge=0, lt=1)
    stop_within: float | None = Field(None, gt=0, lt=1)
    history: list[Any] | dict[Literal["csv"], str] | None = Field(None, description='Rows, or {"csv": text}')
    randomised: Randomised = False
    if_exists: Literal["error", "open"] = "error"


_EXAMPLE = {"name": "spring", "graph": "email -> visit\ncoupon -> visit\nvisit -> buy", "target": "buy", "budget": 1}


@router.post(
    "/experiments", status_code=201, response_model=schemas.CREATED, openapi_extra=takes(Create, _EXAMPLE, key=True)
)
def create(request: Request) -> Response:
    """A new experiment."""
    require(visitor_of(request), MANAGE)
    given, registry = Create.of(request).words(), registry_of(request)
    for needed in ("name", "graph"):
        if needed not in given:
            raise ParseError(f"an experiment has a {needed}, but the request has none. Add {needed!r}.")
    name = given["name"]
    if not isinstance(name, str):
        raise ExperimentError(f"an experiment's name is a text, but got {shown(name)}.")
    words = {word: value for word, value in given.items() if word not in GraphWords.model_fields}
    words["graph"] = graph_given(given, registry.settings)
    words["hide"] = hidden_given(given)
    words["policy"] = _policy(given.get("policy"))
    words["history"] = _history(given.get("history"))

    def act() -> dict[str, Any]:
        create_experiment(storage=registry.storage, clock=registry.settings.clock, **words)
        return _created(registry.storage.find(name), False)  # it was there already

    def created(written: Written) -> dict[str, Any] | None:
        return None if written.stored is None else _created(written.stored, True)

    return perform(request, "create", act, name=name, status=201, repeatable=created)


def _created(stored: StoredExperiment | None, created: bool) -> dict[str, Any]:
    if stored is None:
        raise MissingError("the experiment was deleted meanwhile. Create it again.")
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


@router.get("/experiments/{experiment}", response_model=schemas.SHOWN)
@answering
def show(request: Request, experiment: int) -> Response:
    """What an experiment is, and how far."""
    found = registry_of(request).experiment(experiment)
    document = shown_document(found, found.status())
    del document["storage"]  # nobody's business
    return tagged(request, {"id": experiment, **document})


@router.get("/experiments/{experiment}/status", response_model=schemas.STATUS)
@answering
def status(request: Request, experiment: int) -> Response:
    """How far an experiment is."""
    document = status_document(registry_of(request).experiment(experiment).status())
    del document["storage"]
    return tagged(request, {"id": experiment, **document})


class Rename(RequestBody):
    name: str


@router.patch(
    "/experiments/{experiment}", response_model=schemas.RENAMED, openapi_extra=takes(Rename, {"name": "spring 2026"})
)
def rename(request: Request, experiment: int) -> Response:
    """Give it another name; all else of an experiment never changes."""
    require(visitor_of(request), MANAGE)
    new: Any = Rename.of(request).words().get("name")  # the storage refuses what is no name
    storage, old = registry_of(request).storage, registry_of(request).stored(experiment).name
    document = {"id": experiment, "experiment": new, "was": old}
    return perform(request, "rename", partial(storage.rename, old, new), document, name=old, detail=f"now {new}")


@router.delete("/experiments/{experiment}", response_model=schemas.DELETED)
def delete(request: Request, experiment: int) -> Response:
    """Delete it with its whole log, for good."""
    require(visitor_of(request), MANAGE)
    storage, name = registry_of(request).storage, registry_of(request).stored(experiment).name
    document = {"id": experiment, "experiment": name, "deleted": True}
    return perform(request, "delete", partial(storage.delete, name), document, name=name, detail="")


Integer = Annotated[int, Query(ge=-(2**63), le=2**63 - 1)]  # as databases keep them


@audit_router.get("/audit", response_model=schemas.AUDIT)
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


@audit_router.get("/audit.csv", response_class=Response, responses=gives(CSV))
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
    return download(out.getvalue(), f"{CSV}; charset=utf-8", "audit.csv")
