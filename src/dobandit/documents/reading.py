"""From JSON back to what Python gives: trials, answers, diagnoses. What was null for want of a number is NaN or None
again; which of the infinities it was is not known any more, but for the ends of intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from dobandit.experiment.columns import Columns, batch_text
from dobandit.experiment.storage.base import StoredTrial

Document = Mapping[str, Any]
T = TypeVar("T")
_fields = cache(get_type_hints)
_ENDS = {"low": -math.inf, "high": math.inf}


def read(kind: Callable[..., T], said: Document, **instead: Any) -> T:
    """A tuple with names, or a dataclass, from what JSON says of its fields: each is read by its type.

    instead  fields that it does not say, or says otherwise
    """
    types = _fields(kind)
    fields = {"number": said.get("trial"), **said, **instead}  # of what has the number of a trial
    return kind(
        **{name: _value(types[name], value, _ENDS.get(name)) for name, value in fields.items() if name in types}
    )


def _value(kind: Any, said: Any, end: float | None = None) -> Any:
    """What is said, as its type has it. end: what null stands for at the end of an interval"""
    if isinstance(kind, UnionType):  # or None
        return None if said is None else _value(next(one for one in get_args(kind) if one is not NoneType), said)
    if kind is float and said is None:
        return math.nan if end is None else end
    if kind is float:  # or a time, in seconds since 1970
        return datetime.fromisoformat(said).timestamp() if isinstance(said, str) else said
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], one) for one in said)
    if isinstance(kind, type) and kind.__module__.startswith("dobandit."):
        return read(kind, said if isinstance(said, Mapping) else dict(zip(_fields(kind), said, strict=False)))
    return said


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
