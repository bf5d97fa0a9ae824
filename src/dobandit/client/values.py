"""What users give, as JSON, and what a service answers, as Python has it.

Files and tables are read here, since a service takes no paths. What was null for want of a number is NaN or None again;
which of the infinities it was is not known any more, but for the ends of intervals.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from dobandit.checks import absent, shown
from dobandit.errors import ExperimentError, ObservationError
from dobandit.model.links import Link
from dobandit.rows.batches import import_rows
from dobandit.rows.columns import Columns, batch_text
from dobandit.rows.readers import cells_of, is_file, is_frame, is_parquet, named, read_parquet, text_of
from dobandit.rows.stored_trial import StoredTrial

Document = Mapping[str, Any]
T = TypeVar("T")
_fields = cache(get_type_hints)
_ENDS = {"low": -math.inf, "high": math.inf}


def plain(value: Any, what: str = "a number") -> Any:
    """A value of Python's or NumPy's as JSON has it; NaN, like None, is "not seen".

    what  it is, for a message
    """
    if isinstance(value, Mapping):
        return {str(key): plain(inner, f"the value of {str(key)!r}") for key, inner in value.items()}
    if isinstance(value, Link):
        return value.to_document()
    if isinstance(value, np.generic):
        value = value.item()
    if absent(value):
        return None
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            raise ObservationError(f"{what} must be finite, but got {value}. Correct it.")
        return value
    if hasattr(value, "isoformat"):  # times of a table's own columns
        return value.isoformat()
    if isinstance(value, Iterable):
        return [plain(inner) for inner in value]
    raise ExperimentError(f"a service takes texts, numbers, lists and mappings, but got {shown(value)}.")


def seen(given: Any) -> dict[str, Any]:
    """What was seen, as a request says it: the text of a CSV file as it is, so that errors name its lines."""
    if isinstance(given, Mapping):
        return {"observation": plain(given)}
    if hasattr(given, "to_dict") and not is_frame(given):  # a row of a pandas frame
        return {"observation": plain(given.to_dict())}
    table = _table(given)
    return {"csv": table} if isinstance(table, str) else {"observation": [_row(i, row) for i, row in enumerate(table)]}


def history(source: Any) -> Any:
    """What is known from before: the text of a CSV file, or rows."""
    table = _table(source)
    return {"csv": table} if isinstance(table, str) else [plain(row) for row in table]


def _table(given: Any) -> str | Iterable[Any]:
    """The text of a CSV file, or the rows of anything else."""
    if is_parquet(given) or is_frame(given):
        header, rows = read_parquet(given) if is_parquet(given) else cells_of(given)
        return [dict(zip(header, row, strict=True)) for row in rows]
    if is_file(given):
        with named(given):
            return text_of(given)
    if isinstance(given, Iterable) and not isinstance(given, bytes):
        return given
    raise ObservationError(
        f"an observation maps names to values, or is a list of such rows, but got {type(given).__name__}."
    )


def _row(number: int, row: Any) -> Any:
    row = row.to_dict() if hasattr(row, "to_dict") else row
    if isinstance(row, Mapping):
        return plain(row)
    raise ObservationError(
        f"row {number}: what was seen is a list of rows that map names to values, but got {shown(row)}."
    )


def rounds(source: Any, columns: Columns) -> list[dict[str, Any]]:
    """The trials that the rows of any source are which `import_history` takes, checked, as rows of a log."""
    return [
        {
            "trial": number,
            "do": columns.decode(trial.do),
            "observation": columns.decode_batch(trial.observation or "", trial.counts),
        }
        for number, trial in enumerate(import_rows(source, columns).trials)
    ]


def text(value: Any) -> str:
    """A value in an address."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


# -- from JSON -------------------------------------------------------------------------------------------------------


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
