"""Whatever comes from a database is checked before anybody learns from it: types of values, and a checksum per closed
trial, over all that a learner takes from it.

Rows repeat themselves, so the sum is made of two parts: one of the texts, which is computed once for equal rows, and
one of the trial's place in the log, which is computed for thousands of rows at a time. It guards against failing disks
and slips, not against people: whoever can write the file can write a checksum, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import StorageError
from dobandit.rows.stored_trial import ClosedTrial, StoredTrial, types_of
from dobandit.storage.contract import StoredExperiment
from dobandit.storage.storage_errors import unreadable

Whole = TypeVar("Whole", int, NDArray[np.uint64])
Row = TypeVar("Row", StoredTrial, StoredExperiment)

_NUMBER, _POSITION = 2_654_435_761, 2_246_822_519  # odd, so that no two places close to each other have the same sum
_LARGEST = 0xFFFF_FFFF
_MOST_KINDS = 1000


@lru_cache(maxsize=4096)
def _text_sum(state: str, do: str, observation: str | None, counts: str | None, rounds: int) -> int:
    return crc32(f"{state}\0{do}\0{observation or ''}\0{counts or ''}\0{rounds}".encode("utf-8", "surrogatepass"))


def _place_sum(number: Whole, position: Whole) -> Whole:
    return (number * _NUMBER + position * _POSITION) & _LARGEST  # type: ignore[return-value]


def checksum(
    number: int, position: int, state: str, do: str, observation: str | None, counts: str | None, rounds: int
) -> int:
    """Of a closed trial: a whole number of 32 bits."""
    return _text_sum(state, do, observation, counts, rounds) ^ _place_sum(number, position)


_allowed = {row: types_of(row) for row in (StoredTrial, StoredExperiment)}
_good: set[tuple[type, ...]] = set()  # types of whole rows that were found good: nearly all rows are of a few kinds


def row_from(kind: type[Row], values: Iterable[Any], url: str) -> Row:
    """A trial or an experiment, whose values have the types that they must have."""
    row = kind._make(values)
    found = tuple(map(type, row))
    if found not in _good:
        for one, (name, allowed) in zip(found, _allowed[kind].items(), strict=True):
            if one not in allowed:
                whose = f"{'trial' if kind is StoredTrial else 'experiment'} {row[0]!r:.40}"
                raise unreadable(url, f"{name} of {whose} is of the type {one.__name__}")
        if len(_good) < _MOST_KINDS:
            _good.add(found)
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
        if wrong := set(map(type, column)).difference(_allowed[StoredTrial][name]):
            raise unreadable(url, f"{name} of some closed trial is of the type {wrong.pop().__name__}")


def closed_from(rows: Sequence[Sequence[Any]], url: str) -> list[ClosedTrial]:
    """Closed trials, from rows with their checksums as the last column."""
    if not rows:
        return []
    *columns, sums = zip(*rows, strict=True)
    check_columns(ClosedTrial._fields, columns, url)
    positions, numbers, *texts_of, _ = columns
    contents = list(zip(*texts_of, strict=True))
    known = {content: _text_sum(*content) for content in set(contents)}
    texts = np.array([known[content] for content in contents], dtype=np.uint64)
    try:
        wrong = np.array(sums, np.uint64) != texts ^ _place_sum(
            np.array(numbers, np.uint64), np.array(positions, np.uint64)
        )
    except (OverflowError, TypeError, ValueError):  # negative, or no number at all
        wrong = np.ones(len(rows), dtype=bool)
    if wrong.any():
        raise StorageError(
            f"{url}: trial {numbers[int(np.argmax(wrong))]} is not what was stored: its values and its checksum "
            "disagree. The file or its disk is damaged: restore it from a backup."
        )
    return [*map(tuple.__new__, repeat(ClosedTrial), zip(*columns, strict=True))]  # as ClosedTrial(...), in C
