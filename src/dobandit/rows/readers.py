"""Rows of files, frames and lists, each read and checked; errors say which line or row they are of.

All that takes rows uses this reader: `tell`, `record`, `import_history`, `history=`, `fit` and `rank`.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NamedTuple

from dobandit.checks import shown
from dobandit.errors import ExperimentError, InterventionError, ObservationError, ParseError, closest
from dobandit.rows.columns import Columns, Row
from dobandit.rows.export import BOOKKEEPING, DO, TRIAL, optional_package
from dobandit.rows.stored_trial import TOLD
from dobandit.rows.table_columns import Header, Reading, count_of, key_of_cells, meaning, trial_of, was_told
from dobandit.text_files import in_file, read_text, without_gz

_DELIMITERS = ",;\t|"
_MOST_PROBLEMS = 5
_MOST_REFUSED = 1000  # rows that are looked at for more of them
_MOST_KNOWN = 100_000  # rows that are remembered
_PARQUET_ENDINGS = (".parquet", ".pq")
_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"  # what these files begin with
# With what `row_of` of an export says of a trial besides.
_KEYS = {"do", "observation", "trial", "interval", *(name.removeprefix(TRIAL) for name in BOOKKEEPING)}


Given = tuple[Row, Row | None]  # the trial whose rows are read: what it sets, and the context that was known before


class _Rows(NamedTuple):
    """Rows with their places in a source.

    unit   what the places count: lines of a file from 1, or rows from 0
    table  reads a row: what it says, what is equal for rows that say the same, and the trial that it names
    """

    rows: Iterable[tuple[int, Any]]
    unit: str
    table: Header | _Mappings


def read_rows(
    source: Any, columns: Columns, passed: list[str] | None = None, given: Given | None = None
) -> list[Reading]:
    """What the rows of a source say, in their order, or ParseError with the first problems, and where they are.

    source  the path of a CSV file (or .csv.gz, or Parquet), an open text file with CSV, a frame, or rows: pairs (do,
            observation), mappings {"do": ..., "observation": ...}, or flat mappings {"X2": 1, "Y": 0, "do:X3": 1}
    passed  where unknown columns that are like no known one are listed, and passed over; None: they are refused
    given   the trial whose rows these are; None: the rows say themselves what was set
    """
    with named(source):
        return _read_each(_rows_of(source, columns, passed, of_trial=given is not None), columns, given)


def named(source: Any) -> AbstractContextManager[None]:
    """What is wrong with a file is said with its path."""
    return in_file(source) if isinstance(source, (str, os.PathLike)) else nullcontext()


def _checked(said: Reading | None, place: str, columns: Columns, given: Given | None) -> list[Reading]:
    """What a row says, as the log keeps it: several readings where it is a trial of many rounds, as `Experiment.trials`
    gives it."""
    if said is None:
        return []
    set_to = said.do if isinstance(said.do, Mapping) else {}
    refused = {DO + name: value for name, value in columns.refused(set_to).items()}
    if isinstance(said.seen, Mapping):
        refused |= columns.refused(said.seen)
    if refused:
        raise _RefusedValuesError(refused)
    do, context = (columns.do_row(said.do), None) if given is None else given
    if given is not None and said.do and columns.do_row(said.do) != do:
        raise InterventionError(
            f"what was set is the trial's own, but this row says that {shown(dict(said.do))} was set. Leave the do: "
            "columns out, or record the row as a round of its own."
        )
    rows, trial, summed = [said], said.trial, said.summed
    if given is None and isinstance(said.seen, list):
        told = map(_Mappings(columns, of_trial=True).entry, said.seen)
        rows = [row._replace(times=row.times * said.times) for row in told if row is not None]
        trial, summed = place if trial is None else trial, True
    text = columns.encode(do)
    found = [
        Reading(text, columns.encode(columns.observation_row(row.seen, do, context)), row.times, trial, summed)
        for row in rows
    ]
    return [reading for reading in found if reading.times]


def _read_each(source: _Rows, columns: Columns, given: Given | None) -> list[Reading]:
    """What the rows say. A million rows of 0 and 1 are few: equal ones are read once."""
    found: list[Reading] = []
    problems = _Problems(columns)
    known: dict[Any, list[Reading]] = {}
    for place, row in source.rows:
        try:
            key = source.table.key(row)
            readings = None if key is None else known.get(key)
            if readings is None:
                readings = _checked(source.table.entry(row), f"{source.unit} {place}", columns, given)
                if key is not None and len(known) < _MOST_KNOWN:
                    known[key] = readings
            elif source.table.names_trials:
                trial = source.table.trial(row)
                readings = [reading._replace(trial=trial) for reading in readings]
            found += readings
        except (InterventionError, ObservationError, ParseError, _RefusedValuesError) as error:
            problems.add(place, error)
            if problems.enough():
                break
    if problems.rows:
        raise problems.error(source.unit)
    return found


class _RefusedValuesError(Exception):
    """Values that no variable can have, by column."""

    def __init__(self, values: Mapping[str, object]) -> None:
        super().__init__()
        self.values = values


class _Problems:
    """What is wrong with rows: the first problems, and of a column with values that no variable has one for all."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.rows = 0
        self._messages: list[tuple[int, str]] = []
        self._values: dict[str, dict[str, object]] = {}  # by column, as they are shown
        self._first: dict[str, int] = {}  # where each of these columns has one

    def add(self, place: int, error: Exception) -> None:
        self.rows += 1
        if not isinstance(error, _RefusedValuesError):
            self._messages.append((place, str(error)))
            return
        for column, value in error.values.items():
            self._first.setdefault(column, place)
            self._values.setdefault(column, {}).setdefault(shown(value), value)

    def enough(self) -> bool:
        return len(self._messages) + len(self._values) >= _MOST_PROBLEMS or self.rows == _MOST_REFUSED

    def error(self, unit: str) -> ParseError:
        messages = self._messages + [
            (self._first[column], self.columns.on_refused(column, [*values.values()]))
            for column, values in self._values.items()
        ]
        (place, first), *others = sorted(messages)[:_MOST_PROBLEMS]
        text = "".join([first, *(f"\n{unit} {other}: {message}" for other, message in others)])
        return ParseError(text, where=f"{unit} {place}", line=place if unit == "line" else None)


# -- sources -------------------------------------------------------------------------------------------------------


def _rows_of(source: Any, columns: Columns, passed: list[str] | None, *, of_trial: bool) -> _Rows:
    if is_file(source) and not is_parquet(source):
        return _from_csv(text_of(source), columns, passed)
    if is_file(source) or is_frame(source):
        header, rows = read_parquet(source) if is_file(source) else cells_of(source)
        _refuse_index(source, header, columns)
        return _Rows(enumerate(rows), "row", Header(header, columns, passed))
    single = isinstance(source, (Mapping, bytes)) or getattr(source, "ndim", None) == 0
    if single or not isinstance(source, Iterable):
        raise ExperimentError(
            "rounds come as the path of a CSV or Parquet file, an open text file, a DataFrame or a list of rows, but "
            f"got {type(source).__name__}."
        )
    return _Rows(enumerate(source), "row", _Mappings(columns, passed, of_trial=of_trial))


def is_file(source: Any) -> bool:
    """Whether this is a path or an open file. A frame may have a column called `read`, which is none."""
    return isinstance(source, (str, os.PathLike)) or callable(getattr(source, "read", None))


def text_of(file: Any) -> str:
    """The text of a file: its path, or an open text file."""
    if isinstance(file, (str, os.PathLike)):
        return read_text(file, too_large="Import it in parts.")
    text = file.read()
    if not isinstance(text, str):
        raise ExperimentError("a table is read from text, but this file gives bytes. Open it in text mode.")
    return text.removeprefix("\ufeff")


def _from_csv(text: str, columns: Columns, passed: list[str] | None) -> _Rows:
    if not text.strip():
        raise ParseError("a CSV file begins with the names of its columns, but this one is empty.")
    delimiter = max(_DELIMITERS, key=lambda one: _known_names(text, one, columns))
    records = _records(text, delimiter)
    line, header = next(records)
    try:
        means = Header(header, columns, passed)
    except ParseError as error:
        raise ParseError(error.message, line=line, where=f"line {line}") from None
    return _Rows(records, "line", means)


def _known_names(text: str, delimiter: str, columns: Columns) -> int:
    """How much of the header makes sense with this delimiter."""
    try:
        return sum(meaning(name, columns) is not None for name in next(_records(text, delimiter))[1])
    except ParseError:
        return 0


def _records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line on which it begins, cells) of each record; empty lines are none."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise ParseError(f"this is no CSV ({error}). Check the quotes.", line=line, where=f"line {line}") from None


Cells = tuple[list[Any], Iterable[tuple[Any, ...]]]  # of a table: its columns' names, and its rows


def is_frame(source: Any) -> bool:
    """Whether this is a table that `cells_of` reads: by what it can do, so that no package is needed for it."""
    rows = any(callable(getattr(source, name, None)) for name in ("itertuples", "iter_rows", "to_pydict"))
    return rows and (hasattr(source, "columns") or hasattr(source, "column_names"))


def cells_of(frame: Any) -> Cells:
    """The cells of a frame of pandas or polars, or of an Arrow table."""
    if hasattr(frame, "itertuples"):
        return list(frame.columns), frame.itertuples(index=False, name=None)
    if hasattr(frame, "iter_rows"):
        return list(frame.columns), frame.iter_rows()
    columns: dict[str, list[Any]] = frame.to_pydict()
    return list(columns), zip(*columns.values(), strict=True)


def _refuse_index(frame: Any, header: list[Any], columns: Columns) -> None:
    """Raises where the index of a pandas frame is what should be a column, as a sum over groups leaves it."""
    for name in getattr(getattr(frame, "index", None), "names", ()):
        ours = isinstance(name, str) and (name.removeprefix("do:") in columns.names or name == columns.count_key)
        if ours and name not in header:
            raise ParseError(
                f"variables and counts are columns of a frame, but {name!r} is its index. Give frame.reset_index()."
            )


def is_parquet(source: Any) -> bool:
    """Whether this is the path of a Parquet file, by its ending or its first bytes."""
    if not isinstance(source, (str, os.PathLike)):
        return False
    if without_gz(source).suffix.lower() in _PARQUET_ENDINGS:
        return True
    with suppress(OSError, ValueError), open(source, "rb") as file:  # whoever reads it says what is wrong
        return file.read(len(_PARQUET)) == _PARQUET
    return False


def read_parquet(path: str | os.PathLike[str]) -> Cells:
    """The cells of a Parquet file, compressed as a whole (.gz) or not (needs pyarrow)."""
    arrow = optional_package("pyarrow", "dobandit[parquet]")
    parquet = optional_package("pyarrow.parquet", "dobandit[parquet]")
    try:
        with open(path, "rb") as file:
            data = file.read()
        table = parquet.read_table(arrow.BufferReader(gzip.decompress(data) if data.startswith(_GZIP) else data))
    except (OSError, EOFError, ValueError, zlib.error, arrow.ArrowException) as error:
        raise ParseError(f"this Parquet file cannot be read ({error!s:.200}). Check the path.") from None
    return cells_of(table)


# -- rows in memory ------------------------------------------------------------------------------------------------


class _Mappings:
    """Rows of any kind: pairs, mappings with do and observation, and flat mappings.

    of_trial  whether they are what was seen in one trial, and need not say what was set
    """

    names_trials = False  # the key of a row holds all of it

    def __init__(self, columns: Columns, passed: list[str] | None = None, *, of_trial: bool) -> None:
        self.columns, self.passed, self.of_trial = columns, passed, of_trial
        self._headers: dict[tuple[Any, ...], Header] = {}  # rows of one source mostly have the same keys

    def key(self, row: Any) -> tuple[Any, ...] | None:
        """What is equal for equal rows. What is no row may have no end."""
        if isinstance(row, Mapping):
            return key_of_cells((*row, *row.values()))
        if isinstance(row, (list, tuple)):
            return key_of_cells([tuple(part.items()) if type(part) is dict else part for part in row])
        return None

    def trial(self, row: Any) -> Hashable:
        return None

    def entry(self, row: Any) -> Reading | None:
        if self.of_trial and not isinstance(row, (Mapping, tuple)):
            raise ObservationError(f"a row of what was seen maps names to values, but got {shown(row)}.")
        if self.of_trial and type(row) is dict:  # variables, whatever they are called, and a count
            seen = {name: value for name, value in row.items() if name != self.columns.count_key}
            if self.columns.holds(seen):
                return Reading(None, seen, count_of(row.get(self.columns.count_key, 1)))
        if isinstance(row, (tuple, list)) and len(row) == 2:
            if isinstance(row[1], Mapping) and "count" in row[1] and "count" not in self.columns.graph:
                way = '{"do": {...}, "observation": {...}, "count": 3}'
                raise ParseError(f"an observation holds variables, and no count. Give the row as {way}.")
            return Reading(row[0], row[1])
        if not isinstance(row, Mapping):
            raise ParseError(f"a row is a pair (do, observation) or a mapping, but got {shown(row)}.")
        if self._is_flat(row):
            names = tuple(row)
            if names not in self._headers:
                self._headers[names] = Header(names, self.columns, self.passed)
            return self._headers[names].entry(list(row.values()))
        for key in row:
            if key not in _KEYS:
                hint = closest(key, ("do", "observation"))
                raise ParseError(f"a row with do or observation has no further keys, but got {shown(key)}.{hint}")
        if not was_told(row.get("state", TOLD)):
            return None
        trial = trial_of(row.get("trial", row.get("number")), row.get("closed_at"))
        return Reading(row.get("do"), row.get("observation"), count_of(row.get("count", 1)), trial)

    def _is_flat(self, row: Mapping[Any, Any]) -> bool:
        """Whether a row has variables for keys. One with do={...} beside its variables has, too."""
        if not isinstance(row.get("do"), Mapping):
            return not isinstance(row.get("observation"), (Mapping, list))
        return "observation" not in row and any(name in self.columns.graph for name in row if name not in _KEYS)
