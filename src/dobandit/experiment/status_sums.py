"""Sums over the closed trials: trials by state, rounds, and the mean of the target, as a status needs them.

The storage keeps them now and then, so that nobody has to go through a long log again: whoever opens it adds what was
closed since.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, Self

from dobandit.errors import StorageError
from dobandit.experiment.accumulator import Accumulator
from dobandit.experiment.columns import Columns, split_batch
from dobandit.experiment.storage.base import ABANDONED, ASKED, FAILED, TOLD, Storage

CONTROL, TREATED = "control", "treated"
EVERY = 1000  # closed trials after which the sums are kept


class StatusSums(Accumulator):
    """Trials by state, rounds, and the sum of the target."""

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
