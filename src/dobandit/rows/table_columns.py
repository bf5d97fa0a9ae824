"""What the columns of a table mean, and what its cells say.

NAME is what was seen of a variable, do:NAME what it was set to, `intervention_targets` or `do` which variables were set
(see `read_do_cell`), `count` how often the row was seen (trial.count where a variable has that name, and in exports).
An empty cell of a variable means that it was not seen. Of the other columns of an export (see `export`), trial.state
says which rows are rounds that were told, trial.number (or, without it, trial.closed_at) which rows are of one trial,
and trial.summed whether the rounds of that trial have lost their order; the rest do not matter.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from dobandit.checks import absent, is_whole, shown, value_in
from dobandit.errors import ParseError, closest, listed
from dobandit.rows.columns import Columns
from dobandit.rows.export import BOOKKEEPING, DO, SEEN, TRIAL, headings
from dobandit.rows.stored_trial import STATES, TOLD

MOST_ROUNDS = 10_000_000  # in one trial: a slip of the finger should not make a log that takes hours to replay
DO_COLUMNS = ("intervention_targets", "do")
_SEPARATORS = r"[,;\s]+"
_NOTHING = ("none", "nothing", "na", "nan", "observational")
_DO_CELL = "do cell"  # the kind of a column that names what was set
_STATE, _COUNT, _NUMBER = TRIAL + "state", TRIAL + "count", TRIAL + "number"
_TIME, _SUMMED = TRIAL + "closed_at", TRIAL + "summed"


class Reading(NamedTuple):
    """What a row says: in the user's words at first, and as the log keeps it once it is checked.

    do, seen  what was set and what was seen
    times     how often
    trial     equal for rows of one trial that stand together: its number, or the time at which it was closed; None: the
              source has neither
    summed    whether its trial has lost the order of its rounds, even where there is only one
    """

    do: Any
    seen: Any
    times: int = 1
    trial: Hashable = None
    summed: bool = False


class Header:
    """The columns of a table.

    passed  where unknown columns that are like no known one are listed, and passed over; None: they are refused
    """

    def __init__(self, header: Sequence[Any], columns: Columns, passed: list[str] | None = None) -> None:
        self.size, self.columns = len(header), columns
        found: dict[str, dict[str, int]] = {DO: {}, SEEN: {}, TRIAL: {}, _DO_CELL: {}}  # where each stands
        for i, name in enumerate(header):
            means = meaning(name, columns)
            if isinstance(name, str) and name.strip().removeprefix(SEEN).removeprefix(DO) in columns.graph.effects:
                continue  # what the target causes teaches nothing
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
        self.do, self.seen, self.log, self.do_cells = found.values()  # log: what a log says of its trials
        self.names_trials = _NUMBER in self.log or _TIME in self.log
        said = {name: i for name, i in self.log.items() if name in (_STATE, _COUNT, _SUMMED)}
        read = [i for places in (self.do, self.seen, self.do_cells, said) for i in places.values()]
        if len(self.do_cells) > 1:
            both = " and ".join(map(repr, self.do_cells))
            raise ParseError(f"one column says what was set, but {both} do. Keep one.")
        if not self.seen and not self.do:
            what = listed([str(name) for name in header], 4)
            raise ParseError(
                f"a table has a column for each variable, but none of the columns {what} is a variable of the graph. "
                f"The variables are {listed(columns.names)}; columns are separated by commas, semicolons, tabs or |."
            )
        self._cells_read = itemgetter(*read)

    def key(self, cells: Sequence[Any]) -> Hashable:
        """What is equal for rows that say the same, whatever trials they are of, and whatever other columns hold."""
        return self._cells_read(cells) if len(cells) == self.size else None

    def trial(self, cells: Sequence[Any]) -> Hashable:
        """What is equal for the rows of one trial: its number or, without one, the time at which it was closed."""
        number, time = (cells[self.log[name]] if name in self.log else None for name in (_NUMBER, _TIME))
        return trial_of(number, time)

    def entry(self, cells: Sequence[Any]) -> Reading | None:
        """What a row says; None where its trial was not told."""
        if len(cells) != self.size:
            raise ParseError(f"a row has a cell for each of the {self.size} columns, but this one has {len(cells)}.")
        log = {name: cells[i] for name, i in self.log.items()}
        if not was_told(log.get(_STATE, TOLD)):
            return None
        do = {name: value for name, i in self.do.items() if (value := _cell(cells[i])) is not None}
        seen = {name: value for name, i in self.seen.items() if (value := _cell(cells[i])) is not None}
        for column, i in self.do_cells.items():
            for name, value in read_do_cell(cells[i], column, self.columns.names, seen.get).items():
                if do.setdefault(name, value) != value:
                    raise ParseError(
                        f"a variable is set to one value, but {DO + name!r} has {shown(do[name])} and {column!r} says "
                        f"{shown(value)}. Correct one of the two."
                    )
        summed = bool(_cell(log.get(_SUMMED)))
        return Reading(do, seen, count_of(log.get(_COUNT, 1)), self.trial(cells), summed)


def key_of_cells(cells: Sequence[Any]) -> tuple[Any, ...] | None:
    """What is equal for equal cells, empty ones included, though NaN is not equal to itself; None: not known."""
    try:
        return tuple([None if cell != cell else cell for cell in cells])
    except (TypeError, ValueError):  # a cell that is an array: for the reader to judge
        return None


def meaning(name: object, columns: Columns) -> tuple[str, str] | None:
    """(DO or SEEN, variable), (TRIAL, column) or (_DO_CELL, column) of a column's name; None where it has none."""
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
    return (_DO_CELL, text) if text in DO_COLUMNS else None


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
    known = [*columns.names, *columns.latent, *DO_COLUMNS, "count"]
    return text in columns.latent or text.startswith((DO, SEEN, TRIAL)) or bool(closest(text, known))


def _unknown(name: object, at: int, columns: Columns) -> ParseError:
    if not isinstance(name, str) or not name.strip():
        return ParseError(f"a column has the name of a variable, but column {at + 1} has {shown(name)}. Leave it out.")
    if name.strip().removeprefix(DO) in columns.latent:
        return ParseError(f"hidden variables cannot be set or seen, but column {name!r} is of one. Leave it out.")
    hint = closest(name.strip(), [*headings(columns), *DO_COLUMNS, "count"]) or " Leave it out."
    return ParseError(f"a column is NAME or do:NAME of a variable, but {shown(name)} is none.{hint}")


# -- cells ---------------------------------------------------------------------------------------------------------


def was_told(state: object) -> bool:
    if state not in STATES:
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


def trial_of(number: Any, time: Any) -> Hashable:
    """What is equal for the rows of one trial: its number or, without one, the time at which it was closed."""
    if not _empty(number):
        whole = _whole(number)
        if whole is None or whole >= 2**63:
            raise ParseError(
                "the number of a trial is a whole number from 0, the same in all of its rows, but got "
                f"{shown(number)}. Correct it, or leave it out."
            )
        return whole
    return None if _empty(time) else str(time)


def _empty(cell: Any) -> bool:
    return absent(cell) or (isinstance(cell, str) and not cell.strip())


def _whole(cell: Any) -> int | None:
    """The whole number from 0 on that a cell is, however it is written; None where it is none."""
    with suppress(TypeError, ValueError, OverflowError):
        number = float(cell)
        if not isinstance(cell, bool) and number.is_integer() and number >= 0:
            exact = is_whole(cell) or (isinstance(cell, str) and cell.isdecimal())  # floats are so up to 2**53
            return int(cell) if exact else int(number)
    return None


def _cell(cell: Any) -> Any:
    """The value of a cell, None where it is empty; what is no number is left for the columns to judge."""
    if not isinstance(cell, str):
        return None if absent(cell) else cell
    try:
        return value_in(cell)
    except ValueError:
        return cell


# -- cells that say what was set ---------------------------------------------------------------------------------------


def read_do_cell(cell: Any, column: str, known: Collection[str], value_of: Callable[[str], Any]) -> dict[str, Any]:
    """What was set, by name, from a cell of `column`.

    Names are separated by commas, semicolons or spaces, or come as a list; what a variable was set to stands in its own
    column then. A mapping (in a file: a JSON object, or price=0) says the values itself: {"price": 0}. Lists and
    mappings may be spelled as Python prints them, which is how frames write them. An empty cell: nothing was set.

    known     the variables, one of which may be called like the words for nothing, or hold a space
    value_of  the value that the row has for a variable; None where it has none
    """
    if isinstance(cell, str):
        said = _do_text(cell.strip(), tuple(known))
    else:
        said = [] if absent(cell) else getattr(cell, "tolist", lambda: cell)()  # an array, as Parquet gives lists
        said = list(said) if isinstance(said, Iterable) and not isinstance(said, Mapping) else said
    if isinstance(said, Mapping):
        return {str(name): value for name, value in said.items()}
    if not isinstance(said, list) or not all(isinstance(name, str) for name in said):
        raise ParseError(
            f'{column!r} names the variables that were set, such as "email, price", or has a JSON object with their '
            f'values, such as {{"price": 0}}, but got {shown(cell)}.'
        )
    found = {}
    for name in said:
        value = value_of(name) if name in known else 1  # an unknown name is for the columns to refuse
        if value is None:
            raise ParseError(
                f"{column!r} says that {name!r} was set, but the row does not say to what. Fill in its column, or "
                f'write {{"{name}": 1}} into {column!r}.'
            )
        found[name] = value
    return found


@lru_cache(maxsize=4096)  # few of thousands of rows differ in what was set
def _do_text(text: str, known: tuple[str, ...]) -> Any:
    """The names, or a mapping with values, that a text says; anything else where it says nothing."""
    if text in known:
        return [text]
    if not text or text.lower() in _NOTHING:
        return []
    if text[0] in "{[(":  # as JSON, or as Python prints it
        with suppress(ValueError, RecursionError):
            return json.loads(text)
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            said = ast.literal_eval(text)
            return sorted(said, key=str) if isinstance(said, set) else list(said) if isinstance(said, tuple) else said
        return None
    parts = [part for part in re.split(_SEPARATORS, text) if part]
    pairs = [part.rpartition("=") for part in parts]
    if all(name in known and value in ("0", "1") for name, _, value in pairs):
        return {name: int(value) for name, _, value in pairs}
    return parts
