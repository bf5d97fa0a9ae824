"""Tables and rows as people have them, CSV files, frames and mappings, and what their columns mean.

NAME is what was seen of a variable, do:NAME what it was set to, `count` how often the row was seen (trial.count where
a variable has that name, and in exports). An empty cell of a variable means that it was not seen. Of the other columns
of an export (see `export`), trial.state says which rows are rounds that were told, and the rest do not matter.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from dobandit import limits
from dobandit.checks import shown
from dobandit.errors import ExperimentError, ParseError, closest
from dobandit.experiment.export import BOOKKEEPING, DO, SEEN, TRIAL, headings
from dobandit.experiment.rounds import Columns, absent
from dobandit.experiment.storage.base import ABANDONED, FAILED, PENDING, TOLD
from dobandit.text_files import read_text

MOST_ROUNDS = 10_000_000  # in one trial: a slip of the finger should not make a log that takes hours to replay
_DELIMITERS = ",;\t"
_STATE, _COUNT = TRIAL + "state", TRIAL + "count"
_WORDS: dict[object, int | None] = {"0": 0, "1": 1, "false": 0, "true": 1, "no": 0, "yes": 1, 0: 0, 1: 1}
_WORDS |= {"": None, "na": None, None: None}  # NA, as NaN, is how other programs write an empty cell
_OTHER = object()
# With what `row_of` of an export says of a trial besides.
_KEYS = {"do", "observation", "trial", "interval", *(name.removeprefix(TRIAL) for name in BOOKKEEPING)}


class Spoken(NamedTuple):
    """A row in the user's words, not yet checked."""

    do: Any
    observation: Any
    times: int = 1  # how often it was seen


class Numbered(NamedTuple):
    """Rows with their places in a source. `spoken` reads one, and gives None for one that is to be passed over."""

    rows: Iterable[tuple[int, Any]]
    spoken: Callable[[Any], Spoken | None]
    unit: str  # what the places count: lines of a file from 1, or rows from 0


def is_file(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike)) or hasattr(source, "read")


def is_frame(source: Any) -> bool:
    return hasattr(source, "itertuples") and hasattr(source, "columns")


def text_of(file: Any) -> str:
    """The text of a file: its path, or an open text file."""
    if isinstance(file, (str, os.PathLike)):
        return _read(file)
    text = file.read()
    if not isinstance(text, str):
        raise ExperimentError("a table is read from text, but this file gives bytes. Open it in text mode.")
    return text.removeprefix("\ufeff")


def numbered_rows(source: Any, columns: Columns) -> Numbered:
    """The rows of a CSV file (its path, or an open text file), a pandas.DataFrame, or a list of rows."""
    if is_file(source):
        return _from_csv(text_of(source), columns)
    if is_frame(source):
        table = Table(list(source.columns), columns)
        return Numbered(enumerate(source.itertuples(index=False, name=None)), table.spoken, "row")
    return Numbered(enumerate(source), Rows(columns).spoken, "row")


# -- CSV ---------------------------------------------------------------------------------------------------------


def _read(path: str | os.PathLike[str]) -> str:
    size = 0
    with suppress(OSError, ValueError):  # read_text says what is wrong with the path
        size = os.path.getsize(path)
    if size > limits.MAX_BYTES:
        raise ParseError(f"a file has at most {limits.MAX_BYTES} bytes, but this one has {size}. Import it in parts.")
    return read_text(path)


def _from_csv(text: str, columns: Columns) -> Numbered:
    if not text.strip():
        raise ParseError("a CSV file begins with the names of its columns, but this one is empty.")
    delimiter = max(_DELIMITERS, key=lambda one: _known_names(text, one, columns))
    records = _records(text, delimiter)
    line, header = next(records)
    try:
        table = Table(header, columns)
    except ParseError as error:
        raise ParseError(error.message, line=line, where=f"line {line}") from None
    return Numbered(records, table.spoken, "line")


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


# -- rows --------------------------------------------------------------------------------------------------------


class Rows:
    """Rows of any kind: pairs, mappings with do and observation, and flat mappings."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._tables: dict[tuple[Any, ...], Table] = {}  # rows of one source mostly have the same keys

    def spoken(self, row: Any) -> Spoken | None:
        if isinstance(row, (tuple, list)) and len(row) == 2:
            return Spoken(row[0], row[1])
        if not isinstance(row, Mapping):
            raise ParseError(f"a row is a pair (do, observation) or a mapping, but got {shown(row)}.")
        if not isinstance(row.get("observation"), (Mapping, list)) and not isinstance(row.get("do"), Mapping):
            names = tuple(row)
            if names not in self._tables:
                self._tables[names] = Table(names, self.columns)
            return self._tables[names].spoken(list(row.values()))
        for key in row:
            if key not in _KEYS:
                hint = closest(key, ("do", "observation"))
                raise ParseError(f"a row with do or observation has no further keys, but got {shown(key)}.{hint}")
        if not _was_told(row.get("state", TOLD)):
            return None
        return Spoken(row.get("do"), row.get("observation"), count_of(row.get("count", 1)))


class Table:
    """What the columns of a table mean."""

    def __init__(self, header: Sequence[Any], columns: Columns) -> None:
        self.size = len(header)
        self.do: list[tuple[int, str]] = []
        self.seen: list[tuple[int, str]] = []
        self.state: int | None = None
        self.count: int | None = None
        found: set[tuple[str, str]] = set()
        for i, name in enumerate(header):
            means = meaning(name, columns)
            if means is None:
                raise _unknown(name, i, columns)
            if means in found:
                raise ParseError(f"each column stands once, but {name!r} stands twice. Keep one.")
            found.add(means)
            kind, variable = means
            if kind == DO:
                self.do.append((i, variable))
            elif kind == SEEN:
                self.seen.append((i, variable))
            elif variable == _STATE:
                self.state = i
            elif variable == _COUNT:
                self.count = i

    def spoken(self, cells: Sequence[Any]) -> Spoken | None:
        if len(cells) != self.size:
            raise ParseError(f"a row has a cell for each of the {self.size} columns, but this one has {len(cells)}.")
        if self.state is not None and not _was_told(cells[self.state]):
            return None
        do = {name: value for i, name in self.do if (value := _cell(cells[i], DO + name)) is not None}
        seen = {name: value for i, name in self.seen if (value := _cell(cells[i], name)) is not None}
        return Spoken(do, seen, 1 if self.count is None else count_of(cells[self.count]))


def meaning(name: object, columns: Columns) -> tuple[str, str] | None:
    """(DO or SEEN, variable) or (TRIAL, column) of a column's name; None where it has none."""
    for text in (name, name.strip()) if isinstance(name, str) else ():
        for prefix in (SEEN, DO):
            if text.startswith(prefix) and text.removeprefix(prefix) in columns.graph:
                return prefix, text.removeprefix(prefix)
        if text in BOOKKEEPING:
            return TRIAL, text
        if text in columns.graph:
            return SEEN, text
        if text == "count":
            return TRIAL, _COUNT
    return None


def _unknown(name: object, at: int, columns: Columns) -> ParseError:
    if not isinstance(name, str) or not name.strip():
        return ParseError(f"a column has the name of a variable, but column {at + 1} has {shown(name)}. Leave it out.")
    if name.strip().removeprefix(DO) in columns.latent:
        return ParseError(f"hidden variables cannot be set or seen, but column {name!r} is of one. Leave it out.")
    hint = closest(name.strip(), [heading.name for heading in headings(columns)]) or " Leave it out."
    return ParseError(f"a column is NAME or do:NAME of a variable, but {shown(name)} is none.{hint}")


def _was_told(state: object) -> bool:
    if state not in (PENDING, TOLD, FAILED, ABANDONED):
        raise ParseError(f"the state of a trial is told, failed, abandoned or pending, but got {shown(state)}.")
    return state == TOLD


def count_of(cell: Any) -> int:
    """How often a row was seen; 0 in a table of all patterns means that it was not."""
    try:
        count = float(cell)
        if not isinstance(cell, bool) and count.is_integer() and 0 <= count <= MOST_ROUNDS:
            return int(count)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParseError(
        f"the count of a row is a whole number from 0 to {MOST_ROUNDS:,}, how often it was seen, but got {shown(cell)}."
    )


def _cell(cell: Any, column: str) -> Any:
    """A cell's value, None where it is empty; what is no text is left for the columns to judge."""
    try:
        value = _WORDS.get(cell, _OTHER)
    except TypeError:  # not hashable: no value at all
        return cell
    if value is not _OTHER:
        return value
    if not isinstance(cell, str):
        return None if absent(cell) else cell
    try:
        number = float(cell)
    except ValueError:
        word = cell.strip().lower()
        if word not in _WORDS:
            raise ParseError(f"a cell is 0, 1, a number or empty, but {column!r} has {shown(cell)}.") from None
        return _WORDS[word]
    if "_" in cell:  # which Python allows within numbers
        raise ParseError(f"a cell is 0, 1, a number or empty, but {column!r} has {shown(cell)}.")
    return None if absent(number) else number
