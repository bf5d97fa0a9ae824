"""From JSON back to what Python gives: trials, answers, diagnoses. What was null for want of a number is NaN or None
again; which of the infinities it was is not known any more, but for the ends of intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from dobandit.experiment.answers import BestObserved, EdgeEstimate
from dobandit.experiment.diagnosis import Diagnosis
from dobandit.experiment.explanation import Explanation
from dobandit.experiment.rounds import Columns
from dobandit.experiment.row_texts import batch_text
from dobandit.experiment.status import Status
from dobandit.experiment.storage.base import StoredExperiment, StoredTrial
from dobandit.experiment.trial import Told, Trial
from dobandit.policy.answers import Recommendation
from dobandit.policy.engine import Interval

Document = Mapping[str, Any]
T = TypeVar("T")
_fields = cache(get_type_hints)


def seconds_of(text: str | None) -> float | None:
    """ISO 8601 as seconds since 1970."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def read(kind: Callable[..., T], said: Document, **instead: Any) -> T:
    """A tuple with names, or a dataclass, from what JSON says of its fields. instead: what it says otherwise"""
    types = _fields(kind)
    return kind(**{name: _value(types[name], value) for name, value in {**said, **instead}.items() if name in types})


def _value(kind: Any, said: Any) -> Any:
    """What is said, as its type has it."""
    if isinstance(kind, UnionType):  # or None
        return None if said is None else _value(next(one for one in get_args(kind) if one is not NoneType), said)
    if kind is Interval:
        return Interval(
            *(end if given is None else given for given, end in zip(said, (-math.inf, math.inf), strict=True))
        )
    if kind is float:
        return math.nan if said is None else said
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], one) for one in said)
    if isinstance(kind, type) and kind.__module__.startswith("dobandit."):
        return read(kind, said if isinstance(said, Mapping) else dict(zip(_fields(kind), said, strict=False)))
    return said


def trial_of(said: Document) -> Trial:
    return read(Trial, said, number=said["trial"], lease_expires=seconds_of(said["lease_expires"]))


def told_of(said: Document) -> Told:
    return read(Told, said, number=said["trial"])


def stored_trial_of(row: Document, columns: Columns) -> StoredTrial:
    """A row of the log as it is stored, but for times, which JSON has to the millisecond."""

    def encoded(values: Document) -> str:
        return columns.encode([values.get(name) for name in columns.names])

    seen, counts = row["observation"], None
    if isinstance(seen, Mapping):
        seen = encoded(seen)
    elif seen is not None:
        seen, counts = batch_text({encoded(one): one[columns.count_key] for one in seen})
    low, high = row["interval"] or (None, None)
    times = {key: seconds_of(row[key]) for key in ("asked_at", "lease_expires", "closed_at")}
    kept = {key: value for key, value in row.items() if key in StoredTrial._fields}
    return StoredTrial(
        **{
            **kept,
            **times,
            "number": row["trial"],
            "do": encoded(row["do"]),
            "observation": seen,
            "counts": counts,
            "low": low,
            "high": high,
            "available": None if row["available"] is None else json.dumps(row["available"], ensure_ascii=False),
            "context": None if row["context"] is None else encoded(row["context"]),
            "rounds": 1 if row["rounds"] is None else row["rounds"],
        }
    )


def recommendation_of(said: Document) -> Recommendation:
    return read(Recommendation, said)


def best_observed_of(said: Document | None) -> BestObserved | None:
    return None if said is None else read(BestObserved, said)


def explanation_of(said: Document) -> Explanation:
    return read(Explanation, said, number=said["trial"])


def estimates_of(said: Sequence[Document]) -> list[EdgeEstimate]:
    ends = {"low": -math.inf, "high": math.inf}
    return [
        read(EdgeEstimate, row, **{key: end if row[key] is None else row[key] for key, end in ends.items()})
        for row in said
    ]


def status_of(said: Document, storage: str) -> Status:
    """storage: where it is, for this reader."""
    times = {key: seconds_of(said[key]) for key in ("created_at", "last_told_at")}
    return read(Status, said, storage=storage, **times)


def listed_of(said: Document) -> StoredExperiment:
    """One of a list; what it is made of is not part of that."""
    created = seconds_of(said["created_at"]) or 0.0
    return StoredExperiment(said["id"], said["name"], "", created, said["trials"], said["closed"])


def diagnosis_of(said: Document) -> Diagnosis:
    return read(Diagnosis, said)
