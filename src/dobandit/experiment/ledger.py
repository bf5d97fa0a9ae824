"""What the closed trials add up to, kept while an experiment is open: each answer reads only what is new.

A log of 0 and 1 has few distinct rounds, however long it is. Of these the ledger keeps how often each happened, and
for a diagnosis also what came after each prediction.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.experiment.columns import Columns
from dobandit.experiment.row_encoding import Row, split_batch
from dobandit.experiment.storage.base import TOLD, Storage
from dobandit.experiment.storage.errors import damaged

if TYPE_CHECKING:
    from dobandit.policy.engine import Array, Rounds

FIELDS = ("state", "do", "observation", "counts")
_FORETOLD = ("position", *FIELDS, "predicted")
PART = 10_000  # closed trials in memory at a time


class Foretold(NamedTuple):
    """E[target] as it was predicted before a round, what then came, and which trial it is of, in the log's order."""

    predicted: Array
    came: Array
    trial: NDArray[np.int64]

    def only(self, which: NDArray[Any]) -> Foretold:
        return Foretold(self.predicted[which], self.came[which], self.trial[which])


def closed_parts(
    storage: Storage, experiment: int, position: int, until: int, fields: tuple[str, ...]
) -> Iterator[Sequence[tuple[Any, ...]]]:
    """These fields of the closed trials from `position` up to `until`, part by part."""
    while position < until:
        part = storage.closed_fields(experiment, position, min(PART, until - position), fields)
        if not part:
            storage.counters(experiment)  # which raises where it was deleted meanwhile
            raise damaged(experiment, storage.url)
        yield part
        position += len(part)


def distinct_rows(groups: Iterable[tuple[Any, ...]]) -> Counter[tuple[str, str]]:
    """The told rounds of trials by what was set, and what was seen. groups: the FIELDS of equal trials, and how many
    there are of them."""
    rows: Counter[tuple[str, str]] = Counter()
    for state, do, seen, counts, times in groups:
        for text, count in zip(*split_batch(seen or "", counts), strict=True) if state == TOLD else ():
            rows[do, text] += times * count
    return rows


class Ledger:
    """The told rounds among the first `position` closed trials. What it says does not depend on how it came to know
    them: at once, or one after the other."""

    def __init__(self, columns: Columns) -> None:
        self.columns, self.position = columns, 0
        self.counts: Counter[tuple[str, str]] = Counter()  # by what was set, and what was seen
        self._foretold = 0  # closed trials whose predictions are known
        self._predictions: dict[str, tuple[array[Any], ...]] = {}  # by what was set: the fields of Foretold
        self._target = columns.names.index(columns.graph.target)

    def follow(self, storage: Storage, experiment: int, until: int) -> None:
        """Take in the closed trials up to `until`."""
        for part in closed_parts(storage, experiment, self.position, until, FIELDS):
            rows = distinct_rows((*fields, times) for fields, times in Counter(part).items())
            for _, text in rows:
                self.columns.values(text)  # one that cannot be read is refused before anything is taken in
            self.counts.update(rows)
            self.position += len(part)

    def follow_predictions(self, storage: Storage, experiment: int) -> None:
        """What was predicted in the trials that were taken in; a long log takes a while."""
        for part in closed_parts(storage, experiment, self._foretold, self.position, _FORETOLD):
            for position, state, do, seen, counts, predicted in part:
                if state == TOLD and predicted is not None:
                    for text, times in zip(*split_batch(seen or "", counts), strict=True):
                        self._compare(position, do, text, times, predicted)
            self._foretold = part[-1][0] + 1

    def _compare(self, position: int, do: str, seen: str, times: int, predicted: float) -> None:
        came = self.columns.values(seen)[self._target]
        if came is not None:
            kept = self._predictions.setdefault(do, (array("d"), array("d"), array("q")))
            for column, value in zip(kept, (predicted, came, position), strict=True):
                column.extend([value] * times)

    # -- what it says ----------------------------------------------------------------------------------------------

    def sums(self, context: Row | None = None, do: str | None = None) -> Mapping[str, tuple[int, float]]:
        """Rounds that saw the target, and its sum, by what was set.

        context  only rounds that saw these values
        do       only rounds that set just this
        """
        wanted = [(i, value) for i, value in enumerate(context or []) if value is not None]
        found: dict[str, tuple[list[int], list[float]]] = {}
        for (did, seen), times in self.counts.items():
            if do not in (None, did):
                continue
            row = self.columns.values(seen)
            value = row[self._target]
            if value is not None and all(row[i] == given for i, given in wanted):
                rounds, totals = found.setdefault(did, ([], []))
                rounds.append(times)
                totals.append(times * value)
        return {did: (sum(rounds), math.fsum(totals)) for did, (rounds, totals) in found.items()}

    @property
    def sets_tried(self) -> int:
        """How many different sets were tried."""
        return len({do for do, _ in self.counts})

    def tried(self) -> set[tuple[str, float]]:
        """What was set to what in some round."""
        return {setting for do in {do for do, _ in self.counts} for setting in self.columns.decode(do).items()}

    def rounds(self) -> Rounds:
        """The distinct rounds, with how often each happened."""
        from dobandit.policy.engine import Rounds

        rows = sorted(self.counts)
        values, was_set = self.columns.arrays([seen for _, seen in rows]), self.columns.masks([do for do, _ in rows])
        return Rounds(values, was_set, np.array([self.counts[row] for row in rows], dtype=np.int64))

    def predictions(self, actions: Set[str]) -> Foretold:
        """What was predicted, and what then came, where one of these was set."""
        kept = [columns for do, columns in self._predictions.items() if do in actions]
        if not kept:
            return Foretold(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))
        found = Foretold(*(np.concatenate(columns) for columns in zip(*kept, strict=True)))
        return found.only(np.argsort(found.trial, kind="stable"))
