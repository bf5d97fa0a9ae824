"""Trials that enter the log together are kept in parts of some thousands: the distinct ones, and which each trial is.

Rounds of an import repeat themselves, and differ in few fields. So a part is a JSON object: what all of its trials
share, the fields in which they differ, a row of these per distinct trial, and an index into the rows per trial. Numbers
and positions are not in it: they follow from where the import stands in the log, which is known only when all of its
parts are there. A checksum over the text is compared before anybody learns from it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import repeat
from operator import is_
from typing import Any, NamedTuple
from zlib import crc32

from dobandit.experiment.storage.base import StoredTrial
from dobandit.experiment.storage.checksums import place_sum

MOST = 5_000  # trials in a part; there are none with more
_PLACES = ("number", "position")
_FIELDS = tuple(name for name in StoredTrial._fields if name not in _PLACES)
_DEFAULTS = StoredTrial._field_defaults


class Run(NamedTuple):
    """Trials of the log that are kept in parts: `size` of them, from `number` and `position` on."""

    key: int
    number: int
    position: int
    size: int


def run_sum(run: Run) -> int:
    """The checksum of where an import stands in the log."""
    return crc32(f"{run.key}\0{run.size}".encode()) ^ place_sum(run.number, run.position)


def part_text(trials: Sequence[StoredTrial]) -> str:
    """What `Part` reads. Trials that are the same object are looked at once."""
    distinct = {id(trial): trial for trial in trials}
    index = {key: i for i, key in enumerate(distinct)}
    columns = {name: [getattr(trial, name) for trial in distinct.values()] for name in _FIELDS}
    shared = {name: column[0] for name, column in columns.items() if all(map(is_, column, repeat(column[0])))}
    own = [name for name in _FIELDS if name not in shared]
    rows = list(zip(*(columns[name] for name in own), strict=True)) if own else [()]
    which = [index[id(trial)] for trial in trials]
    return json.dumps({"shared": shared, "fields": own, "rows": rows, "which": which}, separators=(",", ":"))


def part_sum(key: int, first: int, text: str) -> int:
    """The checksum of a part, by which import it is of, and of which of its trials."""
    return crc32(f"{key}\0{first}\0{text}".encode("utf-8", "surrogatepass"))


class Part:
    """Trials `first` to `stop` - 1 of a run, counted from 0."""

    def __init__(self, run: Run, first: int, text: str) -> None:
        said = json.loads(text)
        self.run, self.first = run, first
        self.which: list[int] = said["which"]
        self.stop = first + len(self.which)
        self._shared: dict[str, Any] = {**_DEFAULTS, **said["shared"]}
        self._rows: list[list[Any]] = said["rows"]
        self._own = {name: i for i, name in enumerate(said["fields"])}

    def distinct(self, field: str) -> list[Any]:
        """A field of each distinct trial."""
        i = self._own.get(field)
        return [self._shared[field]] * len(self._rows) if i is None else [row[i] for row in self._rows]

    def column(self, field: str, first: int, stop: int) -> Sequence[Any]:
        """A field of the run's trials from `first` to `stop` - 1, which must be in this part."""
        if field in _PLACES:
            base = self.run.number if field == "number" else self.run.position
            return range(base + first, base + stop)
        values = self.distinct(field)
        return [values[i] for i in self.which[first - self.first : stop - self.first]]

    def groups(self, fields: tuple[str, ...], first: int, stop: int) -> Iterator[tuple[Any, ...]]:
        """A row per distinct trial: these fields, how many of the trials it is, and when it was closed."""
        times = Counter(self.which[first - self.first : stop - self.first])
        values = [self.distinct(field) for field in fields]
        for i, closed_at in enumerate(self.distinct("closed_at")):
            if times[i]:
                yield *(column[i] for column in values), times[i], closed_at

    def trials(self, first: int, stop: int) -> Iterator[StoredTrial]:
        """The trials, whole."""
        made: dict[int, StoredTrial] = {}
        for at in range(first, stop):
            which = self.which[at - self.first]
            if which not in made:
                own = dict(zip(self._own, self._rows[which], strict=True))
                made[which] = StoredTrial(0, **{**self._shared, **own})
            yield made[which]._replace(number=self.run.number + at, position=self.run.position + at)


def stretches(first: int, stop: int, runs: Sequence[Run], by: str) -> Iterator[tuple[int, int, Run | None]]:
    """The places from `first` to `stop` - 1, cut where a run begins or ends: (first, stop, the run or None).

    by  "number" or "position"; runs come in their order, which is the same for both
    """
    for run in runs:
        begins = getattr(run, by)
        ends = begins + run.size
        if ends <= first or begins >= stop:
            continue
        if first < begins:
            yield first, begins, None
        yield max(first, begins), min(stop, ends), run
        first = min(stop, ends)
    if first < stop:
        yield first, stop, None
