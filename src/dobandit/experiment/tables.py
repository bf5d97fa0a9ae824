"""Tables and rows as people have them, files, frames and mappings, and what their columns mean.

NAME is what was seen of a variable, do:NAME what it was set to, `intervention_targets` or `do` which variables were set
(see `marks`), `count` how often the row was seen (trial.count where a variable has that name, and in exports). An empty
cell of a variable means that it was not seen. Of the other columns of an export (see `export`), trial.state says which
rows are rounds that were told, trial.number which rows are of one trial, and the rest do not matter.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NamedTuple, TypeVar

from dobandit.checks import absent, is_whole, shown
from dobandit.errors import ExperimentError, InterventionError, ObservationError, ParseError, closest, listed
from dobandit.experiment.columnar import cells_of, is_frame, is_parquet, read_parquet
from dobandit.experiment.export import BOOKKEEPING, DO, SEEN, TRIAL, headings
from dobandit.experiment.marks import MARKS, marked
from dobandit.experiment.rounds import Columns
from dobandit.experiment.storage.base import ABANDONED, FAILED, PENDING, TOLD
from dobandit.text_files import in_file, read_text

MOST_ROUNDS = 10_000_000  # in one trial: a slip of the finger should not make a log that takes hours to replay
_DELIMITERS = ",;\t|"
_MOST_PROBLEMS = 5
_MOST_KNOWN = 100_000  # rows that are remembered
Read = TypeVar("Read")
MARK = "mark"  # the kind of a column that names what was set
_STATE, _COUNT, _NUMBER = TRIAL + "state", TRIAL + "count", TRIAL + "number"
_WORDS: dict[object, int | None] = {"0": 0, "1": 1, "false": 0, "true": 1, "no": 0, "yes": 1, 0: 0, 1: 1}
_WORDS |= {"y": 1, "n": 0, "t": 1, "f": 0}
_WORDS |= dict.fromkeys(["", "na", "n/a", "null", "none", None])  # as other programs write an empty cell, and NaN
_OTHER = object()
# With what `row_of` of an export says of a trial besides.
_KEYS = {"do", "observation", "trial", "interval", *(name.removeprefix(TRIAL) for name in BOOKKEEPING)}


class Spoken(NamedTuple):
    """A row in the user's words, not yet checked."""

    do: Any
    observation: Any
    times: int = 1  # how often it was seen
    trial: int | None = None  # the number of its trial, where the source has one


class Numbered(NamedTuple):
    """Rows with their places in a source. `spoken` reads one, and gives None for one that is to be passed over."""

    rows: Iterable[tuple[int, Any]]
    spoken: Callable[[Any], Spoken | None]
    unit: str  # what the places count: lines of a file from 1, or rows from 0


def named(source: Any) -> AbstractContextManager[None]:
    """What is wrong with a file is said with its path."""
    return in_file(source) if isinstance(source, (str, os.PathLike)) else nullcontext()


def is_file(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike)) or hasattr(source, "read")


def text_of(file: Any) -> str:
    """The text of a file: its path, or an open text file."""
    if isinstance(file, (str, os.PathLike)):
        return read_text(file, too_large="Import it in parts.")
    text = file.read()
    if not isinstance(text, str):
        raise ExperimentError("a table is read from text, but this file gives bytes. Open it in text mode.")
    return text.removeprefix("\ufeff")


def numbered_rows(source: Any, columns: Columns, passed: list[str] | None = None) -> Numbered:
    """The rows of a CSV or Parquet file (its path, or an open text file), a frame, or a list of rows.

    passed  where unknown columns that are like no known one are listed, and passed over; None: they are refused
    """
    if is_file(source) and not is_parquet(source):
        return _from_csv(text_of(source), columns, passed)
    if is_file(source) or is_frame(source):
        cells = read_parquet(source) if is_file(source) else cells_of(source)
        _refuse_index(source, cells.header, columns)
        return Numbered(enumerate(cells.rows), Header(cells.header, columns, passed).spoken, "row")
    if getattr(source, "ndim", None) == 0:  # an array without dimensions: a single value
        raise ExperimentError(f"a table is a file, a frame or a list of rows, but got {shown(source)}.")
    return Numbered(enumerate(source), Rows(columns, passed).spoken, "row")


def _refuse_index(frame: Any, header: list[Any], columns: Columns) -> None:
    """Raises where the index of a pandas frame is what should be a column, as a sum over groups leaves it."""
    for name in getattr(getattr(frame, "index", None), "names", ()):
        ours = isinstance(name, str) and (name.removeprefix("do:") in columns.names or name == columns.count_key)
        if ours and name not in header:
            raise ParseError(
                f"variables and counts are columns of a frame, but {name!r} is its index. Give frame.reset_index()."
            )


def read_each(source: Numbered, read: Callable[[Any], Read]) -> list[Read]:
    """What `read` makes of each row, or ParseError with the first problems, and where they are. A thousand rows of 0
    and 1 are few: equal ones are read once, and are one object."""
    found: list[Read] = []
    problems: list[tuple[int, str]] = []
    known: dict[Any, Any] = {}
    for number, row in source.rows:
        key = _key_of(row)
        one = known.get(key, _OTHER)
        if one is _OTHER:
            try:
                one = read(row)
            except (InterventionError, ObservationError, ParseError) as error:
                problems.append((number, str(error)))
                if len(problems) == _MOST_PROBLEMS:
                    break
                continue
            if key is not None and len(known) < _MOST_KNOWN:
                known[key] = one
        found.append(one)
    if problems:
        number, first = problems[0]
        others = [f"\n{source.unit} {other}: {message}" for other, message in problems[1:]]
        line = number if source.unit == "line" else None
        raise ParseError("".join([first, *others]), where=f"{source.unit} {number}", line=line)
    return found


def _key_of(row: Any) -> Any:
    """What is equal for equal rows; None where that is not known, as of what is no row: it may have no end."""
    cells = isinstance(row, (list, tuple))
    if not cells and not isinstance(row, (dict, Mapping)):
        return None
    try:
        key = tuple(row if cells else row.items())
        hash(key)
    except TypeError:  # a pair of mappings, or a value that is none: for the reader to say
        pairs = cells and all(type(part) is dict for part in row)
        return _key_of([tuple(part.items()) for part in row]) if pairs else None
    return key


# -- CSV ---------------------------------------------------------------------------------------------------------


def _from_csv(text: str, columns: Columns, passed: list[str] | None) -> Numbered:
    if not text.strip():
        raise ParseError("a CSV file begins with the names of its columns, but this one is empty.")
    delimiter = max(_DELIMITERS, key=lambda one: _known_names(text, one, columns))
    records = _records(text, delimiter)
    line, header = next(records)
    try:
        means = Header(header, columns, passed)
    except ParseError as error:
        raise ParseError(error.message, line=line, where=f"line {line}") from None
    return Numbered(records, means.spoken, "line")


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

    def __init__(self, columns: Columns, passed: list[str] | None = None) -> None:
        self.columns, self.passed = columns, passed
        self._headers: dict[tuple[Any, ...], Header] = {}  # rows of one source mostly have the same keys

    def spoken(self, row: Any) -> Spoken | None:
        if isinstance(row, (tuple, list)) and len(row) == 2:
            if isinstance(row[1], Mapping) and "count" in row[1] and "count" not in self.columns.graph:
                way = '{"do": {...}, "observation": {...}, "count": 3}'
                raise ParseError(f"an observation holds variables, and no count. Give the row as {way}.")
            return Spoken(row[0], row[1])
        if not isinstance(row, Mapping):
            raise ParseError(f"a row is a pair (do, observation) or a mapping, but got {shown(row)}.")
        if self._is_flat(row):
            names = tuple(row)
            if names not in self._headers:
                self._headers[names] = Header(names, self.columns, self.passed)
            return self._headers[names].spoken(list(row.values()))
        for key in row:
            if key not in _KEYS:
                hint = closest(key, ("do", "observation"))
                raise ParseError(f"a row with do or observation has no further keys, but got {shown(key)}.{hint}")
        if not _was_told(row.get("state", TOLD)):
            return None
        number = number_of(row.get("trial", row.get("number")))
        return Spoken(row.get("do"), row.get("observation"), count_of(row.get("count", 1)), number)

    def _is_flat(self, row: Mapping[Any, Any]) -> bool:
        """Whether a row has variables for keys. One with do={...} beside its variables has, too."""
        if not isinstance(row.get("do"), Mapping):
            return not isinstance(row.get("observation"), (Mapping, list))
        return "observation" not in row and any(name in self.columns.graph for name in row if name not in _KEYS)


def plain_row(row: Any, columns: Columns) -> Spoken | None:
    """A row of what was seen, where it is a dictionary of variables with numbers, perhaps with a count: a name means
    nothing else there. None for any other row."""
    if type(row) is not dict:
        return None
    seen = {name: value for name, value in row.items() if name != columns.count_key}
    return Spoken(None, seen, count_of(row.get(columns.count_key, 1))) if columns.holds(seen) else None


class Header:
    """What the columns of a table mean."""

    def __init__(self, header: Sequence[Any], columns: Columns, passed: list[str] | None = None) -> None:
        self.size, self.known = len(header), columns.names
        found: dict[str, dict[str, int]] = {DO: {}, SEEN: {}, TRIAL: {}, MARK: {}}  # where each stands
        for i, name in enumerate(header):
            means = meaning(name, columns)
            if means is None:
                if passed is None or _looks_meant(name, columns):
                    raise _unknown(name, i, columns)
                if str(name) not in passed:
                    passed.append(str(name))
                continue
            _one_meaning(name, means, header, columns)
            kind, variable = means
            if variable in found[kind]:
                raise ParseError(f"each column stands once, but {name!r} stands twice. Keep one.")
            found[kind][variable] = i
        self.do, self.seen, self.log, self.marks = found.values()  # log: what a log says of its trials
        if len(self.marks) > 1:
            raise ParseError(f"one column says what was set, but {' and '.join(map(repr, self.marks))} do. Keep one.")
        if not self.seen and not self.do:
            what = listed([str(name) for name in header], 4)
            raise ParseError(
                f"a table has a column for each variable, but of its columns, {what}, none is one. The variables are "
                f"{listed(columns.names)}; columns are separated by commas, semicolons, tabs or |."
            )

    def spoken(self, cells: Sequence[Any]) -> Spoken | None:
        if len(cells) != self.size:
            raise ParseError(f"a row has a cell for each of the {self.size} columns, but this one has {len(cells)}.")
        if _STATE in self.log and not _was_told(cells[self.log[_STATE]]):
            return None
        try:
            words = [_WORDS.get(cell, _OTHER) for cell in cells]
        except TypeError:  # a cell that is no value at all
            words = [_OTHER] * self.size
        do, seen = (
            {
                name: value
                for name, i in places.items()
                if (value := _cell(cells[i], prefix + name) if words[i] is _OTHER else words[i]) is not None
            }
            for prefix, places in ((DO, self.do), ("", self.seen))
        )
        for mark, i in self.marks.items():
            for name, value in marked(cells[i], mark, self.known, seen.get).items():
                if do.setdefault(name, value) != value:
                    raise ParseError(
                        f"a variable is set to one value, but {DO + name!r} has {shown(do[name])} and {mark!r} says "
                        f"{shown(value)}. Correct one of the two."
                    )
        times = count_of(cells[self.log[_COUNT]]) if _COUNT in self.log else 1
        return Spoken(do, seen, times, number_of(cells[self.log[_NUMBER]]) if _NUMBER in self.log else None)


def meaning(name: object, columns: Columns) -> tuple[str, str] | None:
    """(DO or SEEN, variable), (TRIAL, column) or (MARK, column) of a column's name; None where it has none."""
    if not isinstance(name, str):
        return None
    return _meant(name, columns) or _meant(name.strip(), columns)


def _meant(text: str, columns: Columns) -> tuple[str, str] | None:
    for prefix in (SEEN, DO):
        if text.startswith(prefix) and text.removeprefix(prefix) in columns.graph:
            return prefix, text.removeprefix(prefix)
    if text in BOOKKEEPING:
        return TRIAL, text
    if text in columns.graph:
        return SEEN, text
    if text == columns.count_key:
        return TRIAL, _COUNT
    return (MARK, text) if text in MARKS else None


def _one_meaning(name: str, means: tuple[str, str], header: Sequence[Any], columns: Columns) -> None:
    """Refuse a column that is called like a variable, but means something else. Exports have seen:NAME beside it."""
    text = name if _meant(name, columns) else name.strip()
    if text in columns.graph and means != (SEEN, text) and SEEN + text not in header:
        of = repr(means[1])
        other = {TRIAL: "what a log says of its trials", DO: f"what {of} was set to", SEEN: f"what was seen of {of}"}
        raise ParseError(
            f"the column {text!r} could be the variable of that name, or {other[means[0]]}. Call it {SEEN + text!r} if "
            f"it is the variable; beside a column {SEEN + text!r} it is the other."
        )


def _looks_meant(name: object, columns: Columns) -> bool:
    """Whether an unknown column is probably a slip: near a known name, or with a prefix that means something."""
    if not isinstance(name, str) or not name.strip():
        return False
    text = name.strip()
    known = [*columns.names, *columns.latent, *MARKS, "count"]
    return text in columns.latent or text.startswith((DO, SEEN, TRIAL)) or bool(closest(text, known))


def _unknown(name: object, at: int, columns: Columns) -> ParseError:
    if not isinstance(name, str) or not name.strip():
        return ParseError(f"a column has the name of a variable, but column {at + 1} has {shown(name)}. Leave it out.")
    if name.strip().removeprefix(DO) in columns.latent:
        return ParseError(f"hidden variables cannot be set or seen, but column {name!r} is of one. Leave it out.")
    known = [*headings(columns), *MARKS, "count"]
    hint = closest(name.strip(), known) or " Leave it out."
    return ParseError(f"a column is NAME or do:NAME of a variable, but {shown(name)} is none.{hint}")


def _was_told(state: object) -> bool:
    if state not in (PENDING, TOLD, FAILED, ABANDONED):
        raise ParseError(f"the state of a trial is told, failed, abandoned or pending, but got {shown(state)}.")
    return state == TOLD


def count_of(cell: Any) -> int:
    """How often a row was seen; 0 in a table of all patterns means that it was not."""
    count = _whole(cell)
    if count is None or count > MOST_ROUNDS:
        raise ParseError(
            f"the count of a row is a whole number from 0 to {MOST_ROUNDS:,}, how often it was seen, but got "
            f"{shown(cell)}."
        )
    return count


def number_of(cell: Any) -> int | None:
    """The number of the trial that a row is of; None where the cell is empty."""
    if absent(cell) or (isinstance(cell, str) and not cell.strip()):
        return None
    number = _whole(cell)
    if number is None or number >= 2**63:
        raise ParseError(
            f"the number of a trial is a whole number from 0, the same in all of its rows, but got {shown(cell)}. "
            "Correct it, or leave it out."
        )
    return number


def _whole(cell: Any) -> int | None:
    """The whole number from 0 on that a cell is, however it is written; None where it is none."""
    with suppress(TypeError, ValueError, OverflowError):
        number = float(cell)
        if not isinstance(cell, bool) and number.is_integer() and number >= 0:
            exact = is_whole(cell) or (isinstance(cell, str) and cell.isdecimal())  # floats are so up to 2**53
            return int(cell) if exact else int(number)
    return None


def _cell(cell: Any, column: str) -> Any:
    """The value of a cell that is none of the usual words, None where it is empty; what is no text is left for the
    columns to judge."""
    if not isinstance(cell, str):
        return None if absent(cell) else cell
    try:
        number = float(cell)
    except ValueError:
        word = cell.strip().lower()
        if word not in _WORDS:
            raise _no_cell(cell, column) from None
        return _WORDS[word]
    if "_" in cell:  # which Python allows within numbers
        raise _no_cell(cell, column)
    return None if absent(number) else number


def _no_cell(cell: str, column: str) -> ParseError:
    return ParseError(
        f"a cell is 0 or 1 (or true and false, yes and no), a number, or empty, but {column!r} has {shown(cell)}."
    )
