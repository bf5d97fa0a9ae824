"""What users give, as JSON: files and tables are read here, since a service takes no paths."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dobandit.checks import absent, shown
from dobandit.errors import ExperimentError, ObservationError
from dobandit.experiment.batches import import_rows
from dobandit.experiment.columns import Columns
from dobandit.experiment.readers import cells_of, is_file, is_frame, is_parquet, named, read_parquet, text_of


def plain(value: Any, what: str = "a number") -> Any:
    """A value of Python's or NumPy's as JSON has it; NaN, like None, is "not seen".

    what  it is, for a message
    """
    if isinstance(value, Mapping):
        return {str(key): plain(inner, f"the value of {str(key)!r}") for key, inner in value.items()}
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
    csv = _csv(given)
    return {"observation": observation(given)} if csv is None else csv


def observation(seen: Any) -> Any:
    """One row, or the rows of a table."""
    if isinstance(seen, Mapping):
        return plain(seen)
    if is_parquet(seen) or is_frame(seen):
        header, rows = read_parquet(seen) if is_parquet(seen) else cells_of(seen)
        return [plain(dict(zip(header, row, strict=True))) for row in rows]
    if hasattr(seen, "to_dict"):  # a row of a pandas frame
        return plain(seen.to_dict())
    if isinstance(seen, Iterable) and not isinstance(seen, bytes):
        return [_row(number, row) for number, row in enumerate(seen)]
    raise ObservationError(
        f"an observation maps names to values, or is a list of such rows, but got {type(seen).__name__}."
    )


def history(source: Any) -> Any:
    """What is known from before: the text of a CSV file, or rows."""
    if is_parquet(source) or is_frame(source):
        return observation(source)
    csv = _csv(source)
    return [plain(row) for row in source] if csv is None else csv


def _csv(source: Any) -> dict[str, Any] | None:
    """The text of a CSV file; None where this is none."""
    if not is_file(source) or is_parquet(source):
        return None
    with named(source):
        return {"csv": text_of(source)}


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
