"""Live experiments as JSON, and back: trials, answers, how far each is, who changed what, and who may."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from dobandit.rows.columns import Columns, batch_text
from dobandit.rows.export import document, iso_time
from dobandit.rows.stored_trial import StoredTrial
from dobandit.storage.access import AuditLine, StoredToken
from dobandit.storage.contract import StoredExperiment

if TYPE_CHECKING:
    from dobandit.experiment.answers import BestObserved
    from dobandit.experiment.experiment import Experiment
    from dobandit.experiment.explanation import Explanation
    from dobandit.experiment.status import Status
    from dobandit.policy.answers import Recommendation
    from dobandit.rows.trial import Told, Trial

Document = Mapping[str, Any]
T = TypeVar("T")
_fields = cache(get_type_hints)
_ENDS = {"low": -math.inf, "high": math.inf}

# -- trials ------------------------------------------------------------------------------------------------------


def trial_document(trial: Trial, interval_words: str) -> dict[str, Any]:
    """A trial that was handed out, and what its interval promises."""
    said = {"lease_expires": iso_time(trial.lease_expires), "interval_words": interval_words}
    return {**numbered_document(trial), **said}


def numbered_document(value: Trial | Told | Explanation) -> dict[str, Any]:
    """What has the number of a trial: that comes first, as `trial`."""
    said = document(value)
    return {"trial": said.pop("number"), **said}


def imported_document(numbers: range, rounds: int, warnings: Sequence[str]) -> dict[str, Any]:
    return {"rounds": rounds, "first": numbers[0], "last": numbers[-1], "warnings": list(warnings)}


def explanation_document(told: Explanation, interval_words: str) -> dict[str, Any]:
    """Why a trial set what it set, and what its interval promises."""
    return {**numbered_document(told), "interval_words": interval_words}


# -- answers -----------------------------------------------------------------------------------------------------


def recommendation_document(recommended: Recommendation, observed: BestObserved | None) -> dict[str, Any]:
    """The model's answer, and apart from it the data's."""
    return {**document(recommended), "best_observed": document(observed)}


# -- experiments as a whole --------------------------------------------------------------------------------------


def listed_document(stored: StoredExperiment) -> dict[str, Any]:
    """One of a list."""
    return {
        "name": stored.name,
        "created_at": iso_time(stored.created_at),
        "trials": stored.trials,
        "closed": stored.closed,
        "pending": stored.trials - stored.closed,
    }


def status_document(status: Status) -> dict[str, Any]:
    times = {"created_at": iso_time(status.created_at), "last_told_at": iso_time(status.last_told_at)}
    return {**document(status), **times}


def shown_document(experiment: Experiment, status: Status) -> dict[str, Any]:
    """An experiment's settings and progress."""
    return {**status_document(status), "definition": experiment.definition.document}


# -- changes and tokens ------------------------------------------------------------------------------------------


def audit_document(line: AuditLine) -> dict[str, Any]:
    """A line of the audit."""
    return {**line._asdict(), "at": iso_time(line.at)}


def token_document(token: StoredToken, now: float) -> dict[str, Any]:
    """A token, without its hash."""
    state = "revoked" if token.revoked_at is not None else "valid" if token.valid(now) else "expired"
    return {
        "id": token.id,
        "name": token.name,
        "scope": token.scope,
        "experiment": token.experiment,
        "state": state,
        "created_at": iso_time(token.created_at),
        "expires_at": iso_time(token.expires_at),
        "revoked_at": iso_time(token.revoked_at),
    }


# -- and back: from JSON to Python -------------------------------------------------------------------------------


def read(kind: Callable[..., T], row: Document, /, **instead: Any) -> T:
    """A tuple with names, or a dataclass, from what JSON says of its fields: each is read by its type. Null in place
    of a number is NaN or None again; which infinity it was is known of the ends of intervals only.

    instead  fields that it does not say, or says otherwise
    """
    types = _fields(kind)
    fields = {"number": row.get("trial"), **row, **instead}  # of what has the number of a trial
    return kind(
        **{name: _value(types[name], value, _ENDS.get(name)) for name, value in fields.items() if name in types}
    )


def _value(kind: Any, value: Any, end: float | None = None) -> Any:
    """A value as its type has it. end: what null stands for at the end of an interval"""
    if isinstance(kind, UnionType):  # or None
        inner = next(one for one in get_args(kind) if one is not NoneType)
        return None if value is None else _value(inner, value)
    if kind is float and value is None:
        return math.nan if end is None else end
    if kind is float:  # or a time, in seconds since 1970
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], one) for one in value)
    if isinstance(kind, type) and kind.__module__.startswith("dobandit."):
        return read(kind, value if isinstance(value, Mapping) else dict(zip(_fields(kind), value, strict=False)))
    return value


def stored_trial_of(row: Document, columns: Columns) -> StoredTrial:
    """A row of the log as it is stored, but for times, which JSON has to the millisecond."""

    def encoded(values: Document) -> str:
        return columns.encode([values.get(name) for name in columns.names])

    seen, counts = row["observation"], None
    if isinstance(seen, Mapping):
        seen = encoded(seen)
    elif seen is not None:
        seen, counts = batch_text({encoded(one): one[columns.count_key] for one in seen}, counted=True)
    low, high = row["interval"] or (None, None)
    return read(
        StoredTrial,
        row,
        do=encoded(row["do"]),
        observation=seen,
        counts=counts,
        low=low,
        high=high,
        available=None if row["available"] is None else json.dumps(row["available"], ensure_ascii=False),
        context=None if row["context"] is None else encoded(row["context"]),
        rounds=1 if row["rounds"] is None else row["rounds"],
    )
