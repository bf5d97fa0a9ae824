"""What was seen in one trial: a row, or many, which the log keeps as distinct rows with how often each was seen.

The order in which rows are told does not matter: they are sorted by their texts, and equal ones counted together. So
the same rows in another order, or summed up with counts, are the same content, and teach the same to the last bit.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dobandit.checks import shown
from dobandit.errors import InterventionError, ObservationError, ParseError
from dobandit.experiment.columnar import is_frame, is_parquet
from dobandit.experiment.rounds import Columns
from dobandit.experiment.row_texts import Row, batch_text
from dobandit.experiment.storage.base import TOLD, StoredTrial
from dobandit.experiment.tables import (
    MOST_ROUNDS,
    Numbered,
    Spoken,
    is_file,
    named,
    numbered_rows,
    plain_row,
    read_each,
    text_of,
)

# What was seen in a trial: {"visit": 1, "buy": 0}, a list of such rows, a pandas.DataFrame, the path of a CSV file or
# an open text file.
Seen = Any


class Batch(NamedTuple):
    """What a trial brought, as the log keeps it.

    rounds   how many rounds, counts included
    missing  variables whose values were not told in some round
    untaught  variables that some round says nothing about, for want of these values
    """

    observation: str
    counts: str | None
    rounds: int
    partial: bool
    missing: tuple[str, ...] = ()
    untaught: tuple[str, ...] = ()

    def stored(self) -> dict[str, Any]:
        """The fields of a trial that it fills."""
        return {name: getattr(self, name) for name in ("observation", "counts", "rounds", "partial")}

    def trial(self, source: str, do: str, now: float | None) -> StoredTrial:
        """A trial that nobody asked for, and that is told already."""
        return StoredTrial(0, source, do, state=TOLD, closed_at=now, **self.stored())


class _Text(io.StringIO):
    """The text of a file, which knows where it is from."""

    source: Any = None


def at_hand(seen: Seen) -> Seen:
    """What has to be read, read: this may take long, and while a trial is being closed nobody else can write."""
    if is_file(seen) and not is_parquet(seen):
        with named(seen):
            text = _Text(text_of(seen))
        text.source = seen
        return text
    return list(seen) if isinstance(seen, Iterator) else seen


def batch_of(seen: Any, columns: Columns, do_row: Row, known: Row | None = None, past: bool = False) -> Batch:
    """What was seen where `do_row` was set, given what was known before (the context).

    seen  a mapping, or rows: mappings, a pandas.DataFrame, the path of a CSV file, or an open text file; see `at_hand`
    past  whether this is compared with what was told before, which older versions checked less
    """
    if is_file(seen) or is_frame(seen) or (isinstance(seen, Iterable) and not _is_row(seen)):
        return _many(seen, columns, do_row, known, past)
    if isinstance(seen, Mapping) and columns.count_key in seen:
        return _many([seen], columns, do_row, known, past)
    return summed([(columns.observation_row(seen, do_row, known, past), 1)], columns, do_row)


def summed(rows: Iterable[tuple[Row, int]], columns: Columns, do_row: Row) -> Batch:
    """The batch of rows in columns, each with how often it was seen."""
    found: Counter[str] = Counter()
    for row, count in rows:
        found[columns.encode(row)] += count
    return _counted(found, columns, do_row)


def _is_row(seen: Any) -> bool:
    """Whether this is a single row; a row of a pandas frame is iterable, too."""
    return isinstance(seen, (Mapping, bytes)) or hasattr(seen, "to_dict")


def _many(seen: Any, columns: Columns, do_row: Row, known: Row | None, past: bool) -> Batch:
    def read(row: Any) -> tuple[str, int] | None:
        said = _said(row, source, columns, do_row)
        if said is None or not said.times:
            return None
        return columns.encode(columns.observation_row(said.observation, do_row, known, past)), said.times

    with named(getattr(seen, "source", None)):
        source = numbered_rows(seen, columns)
        try:
            rows = Counter(filter(None, read_each(source, read)))
        except ParseError as error:
            if source.unit == "line":
                raise
            raise ObservationError(str(error)) from None
    found: Counter[str] = Counter()
    for (text, count), times in rows.items():
        found[text] += count * times
    if not found:
        raise ObservationError(
            "a trial is told with at least one row, but there is none. Mark it as failed, if nothing was seen."
        )
    return _counted(found, columns, do_row)


def _said(row: Any, source: Numbered, columns: Columns, do_row: Row) -> Spoken | None:
    if (plain := plain_row(row, columns)) is not None:  # the common case
        return plain
    if not isinstance(row, Mapping) and source.unit == "row" and not isinstance(row, tuple):
        raise ObservationError(f"a row of what was seen maps names to values, but got {shown(row)}.")
    said = source.spoken(row)
    if said is not None and said.do and columns.do_row(said.do) != do_row:
        raise InterventionError(
            f"what was set is the trial's own, but this row says that {shown(dict(said.do))} was set. Leave the do: "
            "columns out, or record the row as a round of its own."
        )
    return said


def _counted(found: dict[str, int], columns: Columns, do_row: Row) -> Batch:
    rounds = sum(found.values())
    if rounds > MOST_ROUNDS:
        raise ObservationError(
            f"a trial has at most {MOST_ROUNDS:,} rounds, but got {rounds:,}. Tell a part, and record the rest."
        )
    partial = [columns.values(text) for text in found if "null" in text]
    missing = {name for row in partial for name in columns.missing(row)}
    untaught = {name for row in partial for name in columns.untaught(row, do_row)}
    in_order = (tuple(name for name in columns.names if name in names) for names in (missing, untaught))
    return Batch(*batch_text(found), rounds, bool(missing), *in_order)
