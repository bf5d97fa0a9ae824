"""Rows of files, frames and lists, each read and checked; errors say which line or row they are of.

All that takes rows uses this reader: `tell`, `record`, `import_history`, `history=`, `fit` and `rank`.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dobandit.checks import shown
from dobandit.errors import DobanditError, ExperimentError, InterventionError, ObservationError, ParseError, closest
from dobandit.rows.columns import Columns, Row
from dobandit.rows.export import BOOKKEEPING, DO, TRIAL, optional_package
from dobandit.rows.stored_trial import TOLD
from dobandit.rows.table_columns import Header, Reading, count_of, key_of_cells, meaning, trial_of, was_told
from dobandit.text_files import in_file, read_text

if TYPE_CHECKING:
    from narwhals import DataFrame, Series

_DELIMITERS = ",;\t|"
_MOST_PROBLEMS = 5
_MOST_REFUSED = 1000  # rows that are looked at for more of them
_ROWS_AT_ONCE = 20_000  # of a frame
_MOST_REMEMBERED = 100_000  # rows
_PARQUET_ENDINGS = (".parquet", ".pq")
# With what `row_of` of an export says of a trial besides.
_KEYS = {"do", "observation", "trial", "interval", *(name.removeprefix(TRIAL) for name in BOOKKEEPING)}


Given = tuple[Row, Row | None]  # the trial whose rows are read: what it sets, and the context that was known before


def read_rows(
    source: Any, columns: Columns, passed: list[str] | None = None, given: Given | None = None
) -> list[Reading]:
    """What the rows of a source say, in their order, or ParseError with the first problems, and where they are.

    A million rows of 0 and 1 are few: equal ones are read once.

    source  the path of a CSV file (or .csv.gz, or Parquet), an open text file with CSV, a frame, or rows: pairs (do,
            observation), mappings {"do": ..., "observation": ...}, or flat mappings {"X2": 1, "Y": 0, "do:X3": 1}
    passed  where unknown columns that are like no known one are listed, and passed over; None: they are refused
    given   the trial whose rows these are; None: the rows say themselves what was set
    """
    readings: list[Reading] = []
    by_key: dict[Any, list[Reading]] = {}
    with named(source):
        unit, rows, table = _rows_of(source, columns, passed, of_trial=given is not None)
        problems = _Problems(columns, unit)
        for place, row in rows:
            try:
                key = table.key(row)
                try:
                    of_row = by_key.get(key)
                except TypeError:  # a cell that is a list or an array: for the reader to judge
                    key = of_row = None
                if of_row is None:
                    of_row = _encoded(table.entry(row), f"{unit} {place}", columns, given)
                    if key is not None and len(by_key) < _MOST_REMEMBERED:
                        by_key[key] = of_row
                elif table.names_trials:
                    trial = table.trial(row)
                    of_row = [reading._replace(trial=trial) for reading in of_row]
                readings += of_row
            except (InterventionError, ObservationError, ParseError, _RefusedValuesError) as error:
                problems.add(place, error)
                if problems.enough():
                    break
        if problems.rows:
            raise problems.error()
    return readings


def _encoded(row: Reading | None, place: str, columns: Columns, given: Given | None) -> list[Reading]:
    """What a row says, as the log keeps it: several readings where it is a trial of many rounds, as `Experiment.trials`
    gives it."""
    if row is None:
        return []
    set_to = row.do if isinstance(row.do, Mapping) else {}
    refused = {DO + name: value for name, value in columns.refused(set_to).items()}
    if isinstance(row.seen, Mapping):
        refused |= columns.refused(row.seen)
    if refused:
        raise _RefusedValuesError(refused)
    do, context = (columns.do_row(row.do), None) if given is None else given
    if given is not None and row.do and columns.do_row(row.do) != do:
        raise InterventionError(
            f"what was set is the trial's own, but this row says that {shown(dict(row.do))} was set. Leave the do: "
            "columns out, or record the row as a round of its own."
        )
    distinct, trial, summed = [row], row.trial, row.summed
    if given is None and isinstance(row.seen, list):
        inner = map(_Mappings(columns, of_trial=True).entry, row.seen)
        distinct = [one._replace(times=one.times * row.times) for one in inner if one is not None]
        trial, summed = place if trial is None else trial, True
    text = columns.encode(do)
    readings = [
        Reading(text, columns.encode(columns.observation_row(one.seen, do, context)), one.times, trial, summed)
        for one in distinct
    ]
    return [reading for reading in readings if reading.times]


class _RefusedValuesError(Exception):
    """Values that no variable can have, by column."""

    def __init__(self, values: Mapping[str, object]) -> None:
        super().__init__()
        self.values = values


class _Problems:
    """What is wrong with rows: the first problems, and one for each column with values that no variable can have."""

    def __init__(self, columns: Columns, unit: str) -> None:
        self.columns, self.unit, self.rows = columns, unit, 0
        self._messages: list[tuple[int, str]] = []
        self._values: dict[str, dict[str, object]] = {}  # by column, as they are shown
        self._first: dict[str, int] = {}  # where each of these columns has one

    def add(self, place: int, error: DobanditError | _RefusedValuesError) -> None:
        self.rows += 1
        if not isinstance(error, _RefusedValuesError):
            self._messages.append((place, error.marked))
            return
        for column, value in error.values.items():
            self._first.setdefault(column, place)
            self._values.setdefault(column, {}).setdefault(shown(value), value)

    def enough(self) -> bool:
        return len(self._messages) + len(self._values) >= _MOST_PROBLEMS or self.rows == _MOST_REFUSED

    def error(self) -> ParseError:
        messages = self._messages + [
            (self._first[column], self.columns.on_refused(column, [*values.values()]))
            for column, values in self._values.items()
        ]
        (place, first), *others = sorted(messages, key=itemgetter(0))[:_MOST_PROBLEMS]
        text = "".join([first, *(f"\n{self.unit} {other}: {message}" for other, message in others)])
        return ParseError(text, where=f"{self.unit} {place}", line=place if self.unit == "line" else None)


# -- sources -------------------------------------------------------------------------------------------------------

Rows = Iterable[tuple[int, Any]]  # with their places: lines of a file from 1, or rows from 0


def named(source: Any) -> AbstractContextManager[None]:
    """What is wrong with a file is said with its path."""
    return in_file(source) if isinstance(source, (str, os.PathLike)) else nullcontext()


def _rows_of(
    source: Any, columns: Columns, passed: list[str] | None, *, of_trial: bool
) -> tuple[str, Rows, Header | _Mappings]:
    """What the places of the rows count, the rows, and what reads each of them."""
    if is_file(source) and not is_parquet(source):
        return "line", *_from_csv(text_of(source), columns, passed)
    if is_file(source) or is_frame(source):
        header, rows = read_parquet(source) if is_file(source) else cells_of(source)
        _refuse_index(source, header, columns)
        return "row", enumerate(rows), Header(header, columns, passed)
    single = isinstance(source, (Mapping, bytes)) or getattr(source, "ndim", None) == 0
    if single or not isinstance(source, Iterable):
        way_out = " Give frame.collect()." if callable(getattr(source, "collect", None)) else ""
        raise ExperimentError(
            "rounds come as the path of a CSV or Parquet file, an open text file, a DataFrame or a list of rows, but "
            f"got {type(source).__name__}.{way_out}"
        )
    return "row", enumerate(source), _Mappings(columns, passed, of_trial=of_trial)


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


def _from_csv(text: str, columns: Columns, passed: list[str] | None) -> tuple[Rows, Header]:
    if not text.strip():
        raise ParseError("a CSV file begins with the names of its columns, but this one is empty.")
    delimiter = max(_DELIMITERS, key=lambda mark: _meant_by_header(text, mark, columns))
    records = _records(text, delimiter)
    line, header = next(records)
    try:
        return records, Header(header, columns, passed)
    except ParseError as error:
        raise ParseError(error.message, line=line, where=f"line {line}") from None


def _meant_by_header(text: str, delimiter: str, columns: Columns) -> int:
    """How many names of the header make sense with this delimiter."""
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
    """Whether this is a frame of pandas, Polars or the like, or an Arrow table."""
    if not hasattr(type(source), "columns"):  # of the type: a lazy frame would work its columns out
        return False
    from narwhals.dependencies import is_into_dataframe

    return is_into_dataframe(source)


def cells_of(frame: Any) -> Cells:
    """The cells of a frame."""
    import narwhals
    from narwhals.exceptions import DuplicateError

    try:
        table = narwhals.from_native(frame, eager_only=True)
    except DuplicateError:
        raise ParseError("each column stands once, but one of this frame stands twice. Keep one.") from None
    return table.columns, _rows_in(table)


def _rows_in(table: DataFrame[Any]) -> Iterator[tuple[Any, ...]]:
    """Columns are turned into lists and zipped, which for pandas takes half as long as going row by row."""
    for start in range(0, len(table), _ROWS_AT_ONCE):
        part = table[start : start + _ROWS_AT_ONCE]
        yield from zip(*map(_cells_in, part.iter_columns()), strict=True)


def _cells_in(column: Series[Any]) -> list[Any]:
    """None where a cell is empty: the NaN that pandas has there is not equal to itself, so that no row would be."""
    cells, empty = column.to_list(), column.is_null()
    return [None if none else cell for cell, none in zip(cells, empty.to_list(), strict=True)] if empty.any() else cells


def _refuse_index(frame: Any, header: list[Any], columns: Columns) -> None:
    """Raises where the index of a pandas frame is what should be a column, as a sum over groups leaves it."""
    for name in getattr(getattr(frame, "index", None), "names", ()):
        ours = isinstance(name, str) and (name.removeprefix("do:") in columns.names or name == columns.count_key)
        if ours and name not in header:
            raise ParseError(
                f"variables and counts are columns of a frame, but {name!r} is its index. Give frame.reset_index()."
            )


def is_parquet(source: Any) -> bool:
    """Whether this is the path of a Parquet file, by its ending."""
    return isinstance(source, (str, os.PathLike)) and Path(source).suffix.lower() in _PARQUET_ENDINGS


def read_parquet(path: str | os.PathLike[str]) -> Cells:
    """The cells of a Parquet file (needs pyarrow)."""
    arrow = optional_package("pyarrow", "dobandit[parquet]")
    parquet = optional_package("pyarrow.parquet", "dobandit[parquet]")
    try:
        with open(path, "rb") as file:
            return cells_of(parquet.read_table(file))
    except (OSError, ValueError, arrow.ArrowException) as error:
        raise ParseError(f"this Parquet file cannot be read ({error!s:.200}). Check the path.") from None


# -- rows in memory ------------------------------------------------------------------------------------------------


class _Mappings:
    """Rows of any kind: pairs, mappings with do and observation, and flat mappings.

    of_trial  whether they are what was seen in one trial, and need not say what was set
    """

    names_trials = False  # the key of a row holds all of it

    def __init__(self, columns: Columns, passed: list[str] | None = None, *, of_trial: bool) -> None:
        self.columns, self.passed, self.of_trial = columns, passed, of_trial
        self._headers: dict[tuple[Any, ...], Header] = {}  # rows of one source mostly have the same keys

    def key(self, row: Any) -> Hashable:
        """What is equal for equal rows. What is no row may have no end."""
        if type(row) is dict or isinstance(row, Mapping):
            return key_of_cells([*row, *row.values()])
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
