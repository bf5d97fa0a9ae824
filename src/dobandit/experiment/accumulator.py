"""Something that is added up over the closed trials of a log, in order, each read once: told rounds, what had been
predicted of them, and the sums of a status."""

from __future__ import annotations

import gc
import json
import math
import time
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext, suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dobandit.diagnosis.calibration import DiagnosisTimeoutError, Foretold
from dobandit.errors import StorageError
from dobandit.rows.columns import Columns, Row, split_batch
from dobandit.rows.stored_trial import ABANDONED, ASKED, FAILED, OWN, TOLD
from dobandit.storage.contract import Storage
from dobandit.storage.storage_errors import damaged

if TYPE_CHECKING:
    from dobandit.policy.engine import Rounds

PART = 10_000  # closed trials in memory at a time
EVERY = 1000  # closed trials after which the sums of a status are kept
CONTROL, TREATED = "control", "treated"


class Accumulator(ABC):
    """Over the first `position` closed trials. It makes no difference how many of them are taken in at once.

    fields  of a trial that it needs
    """

    fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, columns: Columns) -> None:
        self.columns, self.position = columns, 0
        self.target = columns.names.index(columns.graph.target)

    @abstractmethod
    def add(self, part: Sequence[Any]) -> None:
        """Take in the next closed trials: all of them, or none where one cannot be read."""

    def read(self, storage: Storage, experiment: int, most: int) -> Sequence[Any]:
        """The next closed trials."""
        return storage.closed_fields(experiment, self.position, most, self.fields)

    def follow(self, storage: Storage, experiment: int, until: int, deadline: float = math.inf) -> None:
        """Take in the closed trials up to `until`, in parts: a long log is never in memory as a whole. deadline: of the
        monotonic clock; what was taken in by then stays."""
        with _without_collector() if until - self.position > PART else nullcontext():
            while self.position < until:
                if time.monotonic() > deadline:
                    raise DiagnosisTimeoutError
                part = self.read(storage, experiment, min(PART, until - self.position))
                if not part:
                    storage.counters(experiment)  # which raises where it was deleted meanwhile
                    raise damaged(experiment, storage.url)
                reached = self.position + len(part)
                self.add(part)
                self.position = reached


@contextmanager
def _without_collector() -> Iterator[None]:
    """Rows of a log hold no cycles, but a million of them make Python look for some again and again, in all that is in
    memory: that takes nearly half of the time in which a log is read."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class RoundCounts(Accumulator):
    """How often each distinct round happened. A log of 0 and 1 has few of them, however long it is.

    counts  by what was set, and what was seen
    own     only rounds that were asked for or randomised. In others, what decided on the action may have moved the
            target, too: what came of them is not what the action brings by itself
    """

    fields = ("state", "source", "do", "observation", "counts")

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.own: Counter[tuple[str, str]] = Counter()

    def add(self, part: Sequence[Any]) -> None:
        rows, own = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for (state, source, do, seen, counts), trials in Counter(part).items():
            for text, times in zip(*split_batch(seen or "", counts), strict=True) if state == TOLD else ():
                self.columns.values(text)  # all can be read, or nothing is taken in
                rows[do, text] += trials * times
                if source in OWN:
                    own[do, text] += trials * times
        self.counts.update(rows)
        self.own.update(own)

    def sums(self, context: Row | None = None, do: str | None = None) -> Mapping[str, tuple[int, float]]:
        """Own rounds that saw the target, and its sum, by what was set.

        context  only rounds that saw these values
        do       only rounds that set just this
        """
        wanted = [(i, value) for i, value in enumerate(context or []) if value is not None]
        found: dict[str, tuple[list[int], list[float]]] = {}
        for (did, seen), times in self.own.items():
            if do not in (None, did):
                continue
            row = self.columns.values(seen)
            value = row[self.target]
            if value is not None and all(row[i] == given for i, given in wanted):
                rounds, totals = found.setdefault(did, ([], []))
                rounds.append(times)
                totals.append(times * value)
        return {did: (sum(rounds), math.fsum(totals)) for did, (rounds, totals) in found.items()}

    @property
    def own_actions(self) -> set[str]:
        """The different sets of own rounds."""
        return {do for do, _ in self.own}

    def rounds(self, history: bool = False) -> Rounds:
        """The distinct rounds, with how often each happened; of a history: those that are not own rounds."""
        from dobandit.policy.engine import Rounds

        counts = self.counts - self.own if history else self.counts
        rows = sorted(counts)
        values, was_set = self.columns.arrays([seen for _, seen in rows]), self.columns.masks([do for do, _ in rows])
        return Rounds(values, was_set, np.array([counts[row] for row in rows], dtype=np.int64))


class Predictions(Accumulator):
    """What was predicted of each told round, and what came; a long log takes a while."""

    fields = ("position", "state", "do", "observation", "counts", "predicted")

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self._kept: dict[str, tuple[array[Any], ...]] = {}  # by what was set: the fields of Foretold

    def add(self, part: Sequence[Any]) -> None:
        for position, state, do, seen, counts, predicted in part:
            if state != TOLD or predicted is None:
                continue
            for text, times in zip(*split_batch(seen or "", counts), strict=True):
                came = self.columns.values(text)[self.target]
                if came is not None:
                    kept = self._kept.setdefault(do, (array("d"), array("d"), array("q")))
                    for column, value in zip(kept, (predicted, came, position), strict=True):
                        column.extend([value] * times)

    def of(self, actions: Set[str]) -> Foretold:
        """What was predicted, and what then came, where one of these was set."""
        kept = [columns for do, columns in self._kept.items() if do in actions]
        if not kept:
            return Foretold(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))
        found = Foretold(*(np.concatenate(columns) for columns in zip(*kept, strict=True)))
        return found.only(np.argsort(found.trial, kind="stable"))


class StatusSums(Accumulator):
    """Trials by state, rounds, and the sum of the target, as a status needs them.

    The storage keeps them now and then, so that nobody has to go through a long log again: whoever opens it adds what
    was closed since.
    """

    fields = ("state", "source", "control", "do", "observation", "counts", "late", "partial", "rounds", "closed_at")

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.kept = 0  # the position that the storage has
        self.states = dict.fromkeys((TOLD, FAILED, ABANDONED), 0)
        self.late = self.partial = self.rounds = 0
        self.last_told_at: float | None = None
        self.seen: dict[str, tuple[int, Fraction]] = {}  # by whose rounds they are: how many saw the target, its sum
        self.untaught = dict.fromkeys(columns.names, 0)

    def add(self, part: Sequence[Any]) -> None:
        groups = Counter(row[:-1] for row in part)  # but for the time, trials repeat themselves
        for _, _, _, do, seen, counts, *_ in groups:
            self.columns.values(do)
            for text in split_batch(seen, counts)[0] if seen is not None else ():
                self.columns.values(text)
        for (state, source, control, do, seen, counts, late, partial, rounds), times in groups.items():
            self.states[state] += times
            self.late += late * times
            self.partial += partial * times
            if state == TOLD and seen is not None:
                whose = source if source != ASKED else CONTROL if control else TREATED
                for text, count in zip(*split_batch(seen, counts), strict=True):
                    self._add_rounds(whose, do, text, times * count)
                self.rounds += rounds * times
        told_at = [row[-1] for row in part if row[0] == TOLD and row[-1] is not None]
        self.last_told_at = max([*told_at, self.last_told_at or -math.inf]) if told_at else self.last_told_at

    def _add_rounds(self, whose: str, do: str, text: str, times: int) -> None:
        row = self.columns.values(text)
        value = row[self.target]
        if value is not None:
            rounds, total = self.seen.get(whose, (0, Fraction(0)))
            exact = value if type(value) is int else Fraction(value)  # in whatever order it is added
            self.seen[whose] = rounds + times, total + times * exact
        if None in row:
            for name in self.columns.untaught(row, self.columns.values(do)):
                self.untaught[name] += times

    def mean(self, *of: str) -> tuple[float, int] | None:
        """The sum of the target and the rounds that saw it, of these kinds; of all where none is named."""
        some = [sums for whose, sums in self.seen.items() if not of or whose in of]
        rounds = sum(rounds for rounds, _ in some)
        return (float(sum((total for _, total in some), Fraction(0))), rounds) if rounds else None

    def to_text(self) -> str:
        sums = {name: getattr(self, name) for name in ("states", "late", "partial", "rounds", "last_told_at")}
        sums["untaught"] = {name: rounds for name, rounds in self.untaught.items() if rounds}
        sums["seen"] = {whose: [rounds, str(total)] for whose, (rounds, total) in self.seen.items()}
        return json.dumps(sums, ensure_ascii=False)

    @classmethod
    def kept_in(cls, storage: Storage, experiment: int, columns: Columns) -> Self:
        """What the storage has kept; nothing where that cannot be read: it can always be added up again."""
        kept, sums = storage.tally(experiment), cls(columns)
        if kept is None:
            return sums
        try:
            said = json.loads(kept[1])
            sums.seen = {whose: (int(n), Fraction(total)) for whose, (n, total) in said["seen"].items()}
            sums.states |= {state: int(n) for state, n in said["states"].items() if state in sums.states}
            sums.untaught |= {name: int(n) for name, n in said["untaught"].items() if name in sums.untaught}
            sums.late, sums.partial, sums.rounds = (int(said[name]) for name in ("late", "partial", "rounds"))
            sums.last_told_at = None if said["last_told_at"] is None else float(said["last_told_at"])
            sums.position = sums.kept = int(kept[0])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ZeroDivisionError):
            return cls(columns)
        return sums if sum(sums.states.values()) == sums.position else cls(columns)

    def keep(self, storage: Storage, experiment: int) -> None:
        """Where it is worth it. What may not be written is not needed either: it only saves time."""
        if self.position - self.kept >= EVERY:
            with suppress(StorageError):
                storage.keep_tally(experiment, self.position, self.to_text())
            self.kept = self.position
