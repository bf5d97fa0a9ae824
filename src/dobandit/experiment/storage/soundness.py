"""What comes from a database is looked at before it is believed: kinds of values, places in the log, checksums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args, get_type_hints

import numpy as np

from dobandit.experiment.storage.base import ClosedTrial, StoredExperiment, StoredTrial
from dobandit.experiment.storage.checksums import place_sum, text_sum
from dobandit.experiment.storage.refusals import flipped, unreadable

_MOST_KINDS = 1000
_BOOL = {0: False, 1: True}


def _kinds(row: type) -> list[tuple[type, ...]]:
    """What a named tuple's annotations allow in each field."""
    return [get_args(hint) or (hint,) for hint in get_type_hints(row).values()]


_BOOLS = [StoredTrial._fields.index(name) for name in ("late", "partial", "control")]
_of_trial, _of_experiment = _kinds(StoredTrial), _kinds(StoredExperiment)
_good: set[tuple[type, ...]] = set()  # kinds of whole rows that were found good: nearly all rows are of a few kinds


def trial_from(row: Iterable[Any], url: str) -> StoredTrial:
    """A row of the log, whose values are of the kinds that they must be; 0 and 1 stand for False and True, too."""
    values = list(row)
    for i in _BOOLS:  # which SQLite has not
        values[i] = _BOOL.get(values[i], values[i])
    trial = StoredTrial._make(values)
    _require(trial, _of_trial, f"trial {trial.number!r:.40}", url)
    return trial


def experiment_from(row: Iterable[Any], url: str) -> StoredExperiment:
    """An experiment, whose values are of the kinds that they must be."""
    experiment = StoredExperiment._make(row)
    _require(experiment, _of_experiment, f"experiment {experiment.id!r:.40}", url)
    return experiment


def _require(row: StoredTrial | StoredExperiment, kinds: list[tuple[type, ...]], whose: str, url: str) -> None:
    found = tuple(map(type, row))
    if found in _good:
        return
    for name, kind, allowed in zip(row._fields, found, kinds, strict=True):
        if kind not in allowed:
            raise unreadable(url, f"{name} of {whose} is of the kind {kind.__name__}")
    if len(_good) < _MOST_KINDS:
        _good.add(found)


def closed_from(rows: Sequence[tuple[Any, ...]], url: str) -> list[ClosedTrial]:
    """Closed trials, from rows with their checksums (the last column; None: of an older version), checked."""
    if not rows:
        return []
    *columns, sums = zip(*rows, strict=True)
    _require_columns(ClosedTrial._fields, columns, "closed trial", url)
    if set(sums) != {None}:
        _check(columns, sums, url)
    return [*map(ClosedTrial._make, zip(*columns, strict=True))]


def fields_from(rows: Sequence[tuple[Any, ...]], fields: tuple[str, ...], url: str) -> Sequence[tuple[Any, ...]]:
    """Some fields of trials, as the driver gives them, whose values are of the kinds that they must be."""
    if rows:
        _require_columns(fields, zip(*rows, strict=True), "trial", url)
    return rows


def _require_columns(fields: tuple[str, ...], columns: Iterable[Iterable[Any]], whose: str, url: str) -> None:
    for name, column in zip(fields, columns, strict=True):
        allowed = _of_trial[StoredTrial._fields.index(name)]
        if wrong := set(map(type, column)).difference(allowed, (int,) if bool in allowed else ()):  # SQLite has no bool
            raise unreadable(url, f"{name} of some {whose} is of the kind {wrong.pop().__name__}")


def _check(columns: Sequence[Sequence[Any]], sums: Sequence[int | None], url: str) -> None:
    """Of equal rows the texts are summed up once, and the places in the log as arrays."""
    positions, numbers, *texts_of = columns
    contents = list(zip(*texts_of, strict=True))
    known = {content: text_sum(*content) for content in set(contents)}
    texts = np.array([known[content] for content in contents], dtype=np.uint64)
    given = np.array([one is not None for one in sums])
    try:
        stored = np.array([one or 0 for one in sums], dtype=np.uint64)
        places = place_sum(np.array(numbers, np.uint64), np.array(positions, np.uint64))
        wrong = given & (stored != (texts ^ places))
    except (OverflowError, TypeError, ValueError):  # negative, or no number at all
        wrong = given
    if wrong.any():
        raise flipped(numbers[int(np.argmax(wrong))], url)
