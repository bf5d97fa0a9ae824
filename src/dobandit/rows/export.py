"""The log for other programs: JSON rows, CSV, Parquet, pandas.

A table has a line per distinct row of a trial: one for a trial that was carried out once, several with their
trial.count where it was carried out many times. The columns, of which no two can have one name, whatever the variables
are called:

trial.NAME  the log's own, e.g. trial.state
do:NAME     what a variable was set to in that round, empty where it was not set
NAME        what was seen of a variable (or what it was set to), empty where it was not seen;
            seen:NAME, if NAME itself begins with "trial.", "do:" or "seen:"
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from operator import attrgetter
from typing import Any, BinaryIO

from dobandit.checks import shown
from dobandit.errors import ExperimentError, StorageError
from dobandit.rows.columns import Columns, split_batch
from dobandit.rows.stored_trial import TOLD, StoredTrial, types_of
from dobandit.text_files import write_atomically

_AT_ONCE = 1 << 20  # characters of CSV in memory
_GROUP = 20_000  # trials of a Parquet file in memory
DO, SEEN, TRIAL = "do:", "seen:", "trial."
JsonRow = dict[str, Any]

Kind = str  # "int", "float", "bool", "text" or "time"
_TIMES = ("asked_at", "lease_expires", "closed_at")
_KINDS = {int: "int", float: "float", bool: "bool", str: "text"}
_KIND_OF: dict[str, Kind] = {name: _KINDS[kind] for name, (kind, *_) in types_of(StoredTrial).items()}
_KIND_OF |= dict.fromkeys(_TIMES, "time")
_FIRST = ("number", "state", "source")
_ASKED = ("predicted", "low", "high", "optimistic", "why", "available", "asked_after", "asked_at", "lease_expires")
_CLOSED = ("issued", "closed_at", "position", "late", "partial", "reason", "context", "size", "control", "rounds")
_LAST = (*_ASKED, *_CLOSED)
_first, _last = attrgetter(*_FIRST), attrgetter(*_LAST)
_LINE: dict[str, Kind] = {"count": "int", "summed": "bool"}  # of the line: how often; its rounds have lost their order
_PLAIN = (str, int, bool, type(None))
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how spreadsheets know a formula
BOOKKEEPING = tuple(TRIAL + field for field in (*_FIRST, *_LAST, *_LINE))


def seen_column(variable: str) -> str:
    """The column of what was seen of a variable: its name, where that means nothing else, to a spreadsheet neither."""
    return SEEN + variable if variable.startswith((DO, SEEN, TRIAL, *_FORMULA)) else variable


def headings(columns: Columns) -> dict[str, Kind]:
    """The columns of a table, in order, and what is in them."""
    settable = [name for name in columns.names if name != columns.graph.target]
    return {
        **{TRIAL + field: _KIND_OF[field] for field in _FIRST},
        **{DO + name: "float" for name in settable},
        **{seen_column(name): "float" for name in columns.names},
        **{TRIAL + field: _KIND_OF[field] for field in _LAST},
        **{TRIAL + field: kind for field, kind in _LINE.items()},
    }


def row_of(trial: StoredTrial, columns: Columns) -> JsonRow:
    """A trial as JSON says it; times are ISO 8601 in UTC."""
    interval = [document(trial.low), document(trial.high)]
    row = {
        "trial": trial.number,
        "state": trial.state,
        "source": trial.source,
        "do": columns.decode(trial.do),
        "observation": None if trial.observation is None else columns.decode_batch(trial.observation, trial.counts),
        "predicted": document(trial.predicted),
        "interval": None if None in interval else interval,
    }
    for field in _LAST[_LAST.index("optimistic") :]:
        value = getattr(trial, field)
        row[field] = iso_time(value) if field in _TIMES else document(value)
    row["available"] = None if trial.available is None else columns.listed(trial.available)
    row["context"] = None if trial.context is None else columns.decode(trial.context)
    row["rounds"] = _rounds(trial)
    return row


def document(value: Any) -> Any:
    """As JSON can say it: tuples with names become objects, intervals pairs, and NaN and infinity null."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "_asdict"):
        fields = value._asdict()
        return [document(end) for end in value] if tuple(fields) == ("low", "high") else document(fields)
    if isinstance(value, Mapping):
        return {str(key): document(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [document(inner) for inner in value]
    return value


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula: one that begins like a formula gets an apostrophe in front, as
    spreadsheets write it themselves.

    >>> guarded("=1+1"), guarded("closed")
    ("'=1+1", 'closed')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def write_csv(rows: Iterable[StoredTrial], columns: Columns, path: str | os.PathLike[str] | None) -> str | None:
    """Write the log as CSV (UTF-8), or return it as text where `path` is None."""
    parts = csv_parts(rows, columns)
    if path is None:
        return "".join(parts)
    write_atomically(path, lambda file: file.writelines(part.encode() for part in parts))
    return None


def csv_parts(rows: Iterable[StoredTrial], columns: Columns) -> Iterator[str]:
    """The log as CSV, some lines at a time."""
    out, headed = io.StringIO(newline=""), headings(columns)
    plain = csv.writer(out, lineterminator="\n")
    quoting = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    times = [i for i, kind in enumerate(headed.values()) if kind == "time"]

    def write(cells: list[Any]) -> None:
        cells = [guarded(cell) if type(cell) is str else cell for cell in cells]
        # Until Python 3.13 the writer leaves a lone \r unquoted, at which readers end the line.
        unsafe = any(type(cell) is str and "\r" in cell for cell in cells)
        (quoting if unsafe else plain).writerow(cells)

    write([*headed])
    for trial in rows:
        for cells in _lines(trial, columns):
            for i in times:
                cells[i] = iso_time(cells[i])
            write(cells)
        if out.tell() > _AT_ONCE:
            yield out.getvalue()
            out.seek(0)
            out.truncate()
    yield out.getvalue()


def write_parquet(rows: Iterable[StoredTrial], columns: Columns, path: str | os.PathLike[str]) -> None:
    """Write the log as a Parquet file with typed columns; times are timestamps in UTC."""
    arrow = optional_package("pyarrow", "dobandit[parquet]")
    parquet = optional_package("pyarrow.parquet", "dobandit[parquet]")
    types = {"int": arrow.int64(), "float": arrow.float64(), "bool": arrow.bool_(), "text": arrow.string()}
    types["time"] = arrow.timestamp("us", tz="UTC")
    schema = arrow.schema([(name, types[kind]) for name, kind in headings(columns).items()])
    trials = iter(rows)

    def write(file: BinaryIO) -> None:
        with parquet.ParquetWriter(file, schema) as writer:
            while part := list(islice(trials, _GROUP)):
                cells = _by_column(part, columns, lambda cells, kind: arrow.array(cells, types[kind]))
                writer.write_table(arrow.table(cells, schema=schema))

    write_atomically(path, write)


def to_pandas(rows: Iterable[StoredTrial], columns: Columns) -> Any:
    """The log as a pandas.DataFrame with the columns of a table."""
    pandas = optional_package("pandas", "pandas")
    types = {"int": "Int64", "float": "float64", "bool": "bool", "text": "object", "time": "datetime64[us, UTC]"}
    cells = _by_column(rows, columns, lambda cells, kind: pandas.Series(cells, dtype=types[kind]))
    return pandas.DataFrame(cells, columns=[*cells])


def _by_column(
    rows: Iterable[StoredTrial], columns: Columns, typed: Callable[[list[Any], Kind], Any]
) -> Mapping[str, Any]:
    headed = headings(columns)
    cells: dict[str, list[Any]] = {name: [] for name in headed}
    for trial in rows:
        for line in _lines(trial, columns):
            for column, cell in zip(cells.values(), line, strict=True):
                column.append(cell)
    for name, kind in headed.items():
        if kind == "time":
            cells[name] = [None if at is None else _moment(at) for at in cells[name]]
    return {name: typed(cells[name], kind) for name, kind in headed.items()}


def _lines(trial: StoredTrial, columns: Columns) -> Iterator[list[Any]]:
    """A line per distinct row, in the order of `headings`; times are seconds."""
    target = columns.names.index(columns.graph.target)
    done = columns.values(trial.do)
    context = None if trial.context is None else json.dumps(columns.decode(trial.context), ensure_ascii=False)
    first = [*_first(trial), *done[:target], *done[target + 1 :]]
    last = _last(trial._replace(context=context))[:-1]
    if trial.observation is None:
        yield [*first, *[None] * len(done), *last, None, None, False]
        return
    for text, count in zip(*split_batch(trial.observation, trial.counts), strict=True):
        yield [*first, *columns.values(text), *last, _rounds(trial), count, trial.counts is not None]


def _rounds(trial: StoredTrial) -> int | None:
    return trial.rounds if trial.state == TOLD else None


def _moment(at: Any) -> datetime:
    try:
        return datetime.fromtimestamp(at, UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        raise StorageError(
            f"the log keeps times as seconds since 1970, but one is {shown(at)}. Restore it from a backup."
        ) from None


def iso_time(at: Any) -> str | None:
    """Seconds since 1970 as ISO 8601 in UTC: "2026-11-16T07:29:07.000Z"."""
    if at is None:
        return None
    return _moment(at).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def optional_package(name: str, install: str) -> Any:
    """A package of an extra, or how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ExperimentError(
            f"this needs the package {name.partition('.')[0]}, which is not installed. "
            f"Install it with: pip install '{install}'"
        ) from None
