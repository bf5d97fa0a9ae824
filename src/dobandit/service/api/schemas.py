"""The shapes of requests and answers in the OpenAPI document: answers are made from the tuples that Python gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, create_model

from dobandit.diagnosis.diagnose import Diagnosis
from dobandit.experiment.answers import BestObserved, EdgeEstimate
from dobandit.experiment.explanation import Explanation
from dobandit.experiment.status import Status
from dobandit.policy.answers import Recommendation
from dobandit.policy.engine import Interval
from dobandit.rows.stored_trial import StoredTrial
from dobandit.rows.trial import Told, Trial
from dobandit.service.http_requests import CSV, JSON, RequestBody
from dobandit.storage.access import AuditLine

# -- requests --------------------------------------------------------------------------------------------------------

Variables = Sequence[str]
Unit = Annotated[float | None, Field(ge=0, le=1)]  # null: not seen
Values = dict[str, Unit]
Observation = Values | list[dict[str, Any]]
Hidden = Literal["auto"] | Variables
Randomised = Annotated[bool, Field(description="What was set was chosen at random, or by an ask")]
CsvText = Annotated[
    str, Field(description="A table's text, in place of an observation: a line per round, or per count")
]
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The request may be repeated with the same key: it is done once, and answered alike.",
    "schema": {"type": "string", "maxLength": 200},
}


def takes(body: type[RequestBody], example: Any, *, key: bool = False, csv: str = "") -> dict[str, Any]:
    """What the document says of a request.

    key  whether it may be repeated with an Idempotency-Key;  csv: an example of the table that it takes too
    """
    schema = body.model_json_schema()
    content: dict[str, Any] = {JSON: {"schema": schema, "example": example}}
    if csv:
        content[CSV] = {"schema": {"type": "string"}, "example": csv}
    request = {"requestBody": {"required": bool(schema.get("required")), "content": content}}
    return {**request, "parameters": [_KEY]} if key else request


# -- answers ---------------------------------------------------------------------------------------------------------

_BY_KIND: dict[type, type[BaseModel]] = {}


def _shape(name: str, /, *kinds: type, **changed: Any) -> type[BaseModel]:
    """The model of what `rows.export.document` makes of a tuple with names, or of several in one object.

    changed  types of fields that the answer has besides, or otherwise; None: it does not have that field
    """
    types = {field: _json_type(hint) for kind in kinds for field, hint in get_type_hints(kind).items()}
    fields = {field: kind for field, kind in (types | changed).items() if kind is not None}
    return create_model(name, **{field: (kind, ...) for field, kind in fields.items()})  # type: ignore[call-overload, no-any-return]


def _json_type(hint: Any) -> Any:
    """The type of a value in JSON: null stands for NaN, intervals are pairs, and tuples with names are objects."""
    if hint is Interval:
        return Annotated[list[float | None], Field(min_length=2, max_length=2)]
    if hint is float:
        return float | None
    if hasattr(hint, "_fields") or is_dataclass(hint):
        if hint not in _BY_KIND:
            _BY_KIND[hint] = _shape(hint.__name__, hint)
        return _BY_KIND[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        return reduce(or_, [_json_type(one) if one is not NoneType else None for one in inner])
    if origin in (dict, Mapping):
        return dict[str, _json_type(inner[1])]  # type: ignore[misc]
    return list[_json_type(inner[0])] if origin is not None else hint  # type: ignore[misc]


_EXAMPLE = {
    "type": "about:blank",
    "title": "Conflict",
    "status": 409,
    "detail": 'a trial is closed once, but trial 3 was already abandoned, and is now told {"buy": 1}. Nothing was '
    "changed. If both happened, record the second as a round of its own.",
    "error": "ConflictError",
}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {key: {"type": "string"} for key in ("type", "title", "detail", "error", "where")}
    | {key: {"type": "integer"} for key in ("status", "line", "column")},
}
PROBLEM: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "What went wrong (RFC 9457). `error` is the class of the error in Python.",
        "content": {"application/problem+json": {"schema": _PROBLEM, "example": _EXAMPLE}},
    }
}


def gives(kind: str, says: str = "A file", binary: bool = False) -> dict[int | str, dict[str, Any]]:
    """An answer that is no JSON: its media type."""
    schema = {"type": "string", "format": "binary"} if binary else {"type": "string"}
    return {200: {"description": says, "content": {kind: {"schema": schema}}}}


_time = str | None
_promised: dict[str, Any] = {"number": None, "trial": int, "interval_words": str}
_status: dict[str, Any] = {"storage": None, "id": int, "created_at": str, "last_told_at": _time}
_listed = _shape("Listed", id=int, name=str, created_at=str, trials=int, closed=int, pending=int)
LISTED = _shape("Experiments", experiments=list[_listed])  # type: ignore[valid-type]
CREATED = _shape("Created", id=int, experiment=str, created=bool, definition=dict[str, Any])
STATUS = _shape("Status", Status, **_status)
SHOWN = _shape("Shown", Status, **_status, definition=dict[str, Any])
RENAMED = _shape("Renamed", id=int, experiment=str, was=str)
DELETED = _shape("Deleted", id=int, experiment=str, deleted=bool)
_asked_trial = _shape("AskedTrial", Trial, **{**_promised, "lease_expires": _time})
ASKED = _shape("Asked", trials=list[_asked_trial])  # type: ignore[valid-type]
TOLD = _shape("Told", Told, number=None, trial=int)
FAILED_TRIAL = _shape("Failed", trial=int, state=str, reason=str)
ABANDONED_TRIAL = _shape("Abandoned", trial=int, state=str)
RECORDED = _shape("Recorded", trial=int)
IMPORTED = _shape("Imported", rounds=int, first=int, last=int, warnings=list[str])
LOG_ROW = _shape(
    "LogRow",
    StoredTrial,
    **{**dict.fromkeys(("number", "low", "high", "counts")), **dict.fromkeys(("asked_at", "lease_expires"), _time)},
    trial=int,
    do=dict[str, float],
    observation=Observation | None,
    interval=_json_type(Interval) | None,
    available=Variables | None,
    closed_at=_time,
    context=dict[str, float] | None,
    rounds=int | None,
)
LOG_PAGE = _shape("LogPage", trials=list[LOG_ROW], next=int | None)  # type: ignore[valid-type]
EXPLAINED = _shape("Explanation", Explanation, **_promised)
EVALUATED = _shape("Recommendation", Recommendation)
OBSERVED = _json_type(BestObserved) | None
RECOMMENDED = _shape("Recommended", Recommendation, best_observed=OBSERVED)
ESTIMATES = _shape("Estimates", estimates=list[_json_type(EdgeEstimate)])  # type: ignore[misc]
PROMISES = _shape("Promises", interval_words=str, delta=float)
DIAGNOSIS = _shape("Diagnosis", Diagnosis)
CHECKED = _shape("Checked", valid=bool, kind=str, target=str, nodes=int, edges=int, admissible=bool)
_audit_line = _shape("AuditLine", AuditLine, at=str)
AUDIT = _shape("Audit", audit=list[_audit_line], next=int | None)  # type: ignore[valid-type]
