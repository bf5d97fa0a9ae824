"""Whatever comes from a database is checked before anybody learns from it: types of values, and a checksum per closed
trial, over all that a learner takes from it.

It guards against failing disks and slips, not against people: whoever can write the file can write a checksum, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar
from zlib import crc32

from dobandit.errors import StorageError
from dobandit.rows.stored_trial import ClosedTrial, StoredTrial, types_of
from dobandit.storage.contract import StoredExperiment
from dobandit.storage.storage_errors import unreadable

Row = TypeVar("Row", StoredTrial, StoredExperiment)

_NUMBER, _POSITION = 2_654_435_761, 2_246_822_519  # odd, so that no two places close to each other have the same sum
_LARGEST = 0xFFFF_FFFF
_TYPES = {row: types_of(row) for row in (StoredTrial, StoredExperiment)}


@lru_cache(maxsize=4096)  # rows repeat themselves
def _text_sum(state: str, do: str, observation: str | None, counts: str | None, rounds: int) -> int:
    return crc32(f"{state}\0{do}\0{observation or ''}\0{counts or ''}\0{rounds}".encode("utf-8", "surrogatepass"))


def checksum(closed: ClosedTrial) -> int:
    """A whole number of 32 bits, made of a trial's texts and of its place in the log."""
    position, number, *contents, _ = closed
    return _text_sum(*contents) ^ ((number * _NUMBER + position * _POSITION) & _LARGEST)


def row_from(kind: type[Row], values: Iterable[Any], url: str) -> Row:
    """A trial or an experiment, whose values have the types that they must have."""
    row = kind._make(values)
    for value, (name, allowed) in zip(row, _TYPES[kind].items(), strict=True):
        if type(value) not in allowed:
            whose = f"{'trial' if kind is StoredTrial else 'experiment'} {row[0]!r:.40}"
            raise unreadable(url, f"{name} of {whose} is of the type {type(value).__name__}")
    return row


def counters_from(row: Sequence[Any], url: str) -> tuple[int, int]:
    """How many trials there are, and how many are closed."""
    trials, closed = row
    if type(trials) is not int or type(closed) is not int:
        raise unreadable(url, "how many trials there are is no whole number")
    return trials, closed


def check_columns(fields: Iterable[str], columns: Iterable[Iterable[Any]], url: str) -> None:
    """Fields of many trials, whose values must have the types that they must have."""
    for name, column in zip(fields, columns, strict=True):
        if wrong := set(map(type, column)).difference(_TYPES[StoredTrial][name]):
            raise unreadable(url, f"{name} of some closed trial is of the type {wrong.pop().__name__}")


def closed_from(rows: Sequence[Sequence[Any]], url: str) -> list[ClosedTrial]:
    """Closed trials, from rows with their checksums as the last column."""
    if not rows:
        return []
    *columns, checksums = zip(*rows, strict=True)
    check_columns(ClosedTrial._fields, columns, url)
    closed = [ClosedTrial._make(values) for values in zip(*columns, strict=True)]
    for trial, stored in zip(closed, checksums, strict=True):
        if stored != checksum(trial):
            raise StorageError(
                f"{url}: trial {trial.number} is not what was stored: its values and its checksum disagree. The "
                "file or its disk is damaged: restore it from a backup."
            )
    return closed
