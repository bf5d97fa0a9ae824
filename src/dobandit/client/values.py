"""What users give, as JSON: files and tables are read here, since a service takes no paths."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dobandit.checks import absent, shown
from dobandit.errors import ExperimentError, ObservationError
from dobandit.experiment.batches import at_hand
from dobandit.experiment.columnar import cells_of, is_frame, is_parquet, read_parquet
from dobandit.experiment.export import seen_column
from dobandit.experiment.history import Rounds, read_history
from dobandit.experiment.rounds import Columns
from dobandit.experiment.tables import is_file


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
    if not isinstance(given, Mapping) and not is_frame(given) and not is_parquet(given):
        given = at_hand(given)
        if is_file(given):
            return {"csv": given.read()}
    return {"observation": observation(given)}


def observation(seen: Any) -> Any:
    """One row, or the rows of a table."""
    if isinstance(seen, Mapping):
        return plain(seen)
    if hasattr(seen, "to_dict") and not is_frame(seen):  # a row of a pandas frame
        return plain(seen.to_dict())
    if is_parquet(seen) or is_frame(seen):
        header, rows = read_parquet(seen) if is_parquet(seen) else cells_of(seen)
        return [plain(dict(zip(header, row, strict=True))) for row in rows]
    text = at_hand(seen)
    if is_file(text):
        return list(csv.DictReader(text))
    if isinstance(text, Iterable) and not isinstance(text, (str, bytes)):
        return [_row(number, row) for number, row in enumerate(text)]
    raise ObservationError(
        f"an observation maps names to values, or is a list of such rows, but got {type(seen).__name__}."
    )


def history(source: Any) -> Any:
    """What is known from before: the text of a CSV file, or rows."""
    if is_parquet(source) or is_frame(source):
        return observation(source)
    known = at_hand(source)
    if is_file(known):
        return {"csv": known.read()}
    return [plain(row) for row in known]


def _row(number: int, row: Any) -> Any:
    row = row.to_dict() if hasattr(row, "to_dict") else row
    if isinstance(row, Mapping):
        return plain(row)
    raise ObservationError(
        f"row {number}: what was seen is a list of rows that map names to values, but got {shown(row)}."
    )


def rounds(source: Any, columns: Columns) -> list[dict[str, Any]]:
    """Rounds of any source that `import_history` takes, checked, a trial each; one of many rounds is a list of rows."""
    return [
        {"do": decoded(trial[0].do, columns), "observation": _observed(trial, columns)}
        for trial in read_history(source, columns)
    ]


def _observed(trial: Rounds, columns: Columns) -> dict[str, Any] | list[dict[str, Any]]:
    if len(trial) == 1 and trial[0].times == 1:
        return decoded(trial[0].observation, columns)
    rows = [(decoded(one.observation, columns), one.times) for one in trial]
    return [{**{seen_column(name): v for name, v in row.items()}, columns.count_key: n} for row, n in rows]


def decoded(row: list[float | None], columns: Columns) -> dict[str, float]:
    return {name: value for name, value in zip(columns.names, row, strict=True) if value is not None}


def text(value: Any) -> str:
    """A value in an address."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
