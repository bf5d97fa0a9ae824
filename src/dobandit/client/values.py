"""What users give, as JSON. Files and tables are read here, since a service takes no paths."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dobandit.checks import absent, shown
from dobandit.errors import ExperimentError, ObservationError
from dobandit.model.links import Link
from dobandit.rows.batches import import_rows
from dobandit.rows.columns import Columns
from dobandit.rows.readers import cells_of, is_file, is_frame, is_parquet, named, read_parquet, text_of


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
    return {"csv": table} if isinstance(table, str) else plain(table)


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
