"""Sums over the closed trials, as a status needs them.

The storage keeps them now and then, so that nobody has to go through a long log again: whoever opens it adds what was
closed since.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import itemgetter
from typing import Any, Self

from dobandit.experiment.ledger import closed_parts
from dobandit.experiment.rounds import Columns
from dobandit.experiment.row_texts import split_batch
from dobandit.experiment.storage.base import ABANDONED, ASKED, FAILED, TOLD, Storage, StoredTrial

FIELDS = ("state", "source", "control", "do", "observation", "counts", "late", "partial", "rounds", "closed_at")
_fields_of = itemgetter(*(StoredTrial._fields.index(field) for field in FIELDS))
CONTROL, TREATED = "control", "treated"
EVERY = 1000  # closed trials after which the sums are kept


class Tally:
    """Sums over the first `position` closed trials."""

    def __init__(self, columns: Columns) -> None:
        self.columns, self.position, self.kept = columns, 0, 0  # kept: the position that the storage has
        self.states = dict.fromkeys((TOLD, FAILED, ABANDONED), 0)
        self.late = self.partial = self.rounds = 0
        self.last_told_at: float | None = None
        self.seen: dict[str, tuple[int, Fraction]] = {}  # by whose rounds they are: how many saw the target, its sum
        self.untaught = dict.fromkeys(columns.names, 0)
        self._target = columns.names.index(columns.graph.target)

    def follow(self, storage: Storage, experiment: int) -> None:
        """Take in what was closed since."""
        for part in closed_parts(storage, experiment, self.position, ("position", *FIELDS)):
            self.add([trial[1:] for trial in part])

    def add(self, part: Sequence[tuple[Any, ...]]) -> None:
        """Take in the next closed trials, by their FIELDS. Equal ones are looked at once."""
        found: Counter[tuple[str, str, str]] = Counter()
        for (state, source, control, do, seen, counts), times in Counter(trial[:6] for trial in part).items():
            self.states[state] += times
            if state == TOLD and seen is not None:
                whose = source if source != ASKED else CONTROL if control else TREATED
                for text, count in zip(*split_batch(seen, counts), strict=True):
                    found[whose, do, text] += times * count
        for (whose, do, text), times in found.items():
            self._add_rounds(whose, do, text, times)
        told = [trial for trial in part if trial[0] == TOLD and trial[4] is not None]
        self.rounds += sum(trial[8] for trial in told)
        self.late += sum(trial[6] for trial in part)
        self.partial += sum(trial[7] for trial in part)
        times_told = [trial[9] for trial in told if trial[9] is not None]
        self.last_told_at = max(
            [*times_told, *([] if self.last_told_at is None else [self.last_told_at])], default=None
        )
        self.position += len(part)

    def add_trials(self, trials: Iterable[StoredTrial]) -> None:
        """Take in the next closed trials, whole."""
        self.add(list(map(_fields_of, trials)))

    def _add_rounds(self, whose: str, do: str, text: str, times: int) -> None:
        row = self.columns.values(text)
        value = row[self._target]
        if value is not None:
            rounds, total = self.seen.get(whose, (0, Fraction(0)))
            self.seen[whose] = rounds + times, total + times * Fraction(value)  # exact: in whatever order it is added
        if None in row:
            for name in self.columns.untaught(row, self.columns.values(do)):
                self.untaught[name] += times

    def mean(self, *of: str) -> tuple[float, int] | None:
        """The sum of the target and the rounds that saw it, of these kinds; of all where none is named."""
        some = [sums for whose, sums in self.seen.items() if not of or whose in of]
        rounds = sum(rounds for rounds, _ in some)
        return (float(sum((total for _, total in some), Fraction(0))), rounds) if rounds else None

    # -- as the storage keeps it -------------------------------------------------------------------------------------

    def to_text(self) -> str:
        sums = {name: getattr(self, name) for name in ("states", "late", "partial", "rounds", "last_told_at")}
        sums["untaught"] = {name: rounds for name, rounds in self.untaught.items() if rounds}
        sums["seen"] = {whose: [rounds, str(total)] for whose, (rounds, total) in self.seen.items()}
        return json.dumps(sums, ensure_ascii=False)

    @classmethod
    def kept_in(cls, storage: Storage, experiment: int, columns: Columns) -> Self:
        """What the storage has kept; nothing where that cannot be read: it can always be added up again."""
        kept, tally = storage.tally(experiment), cls(columns)
        if kept is None:
            return tally
        try:
            sums = json.loads(kept[1])
            tally.seen = {whose: (int(n), Fraction(total)) for whose, (n, total) in sums["seen"].items()}
            tally.states |= {state: int(n) for state, n in sums["states"].items() if state in tally.states}
            tally.untaught |= {name: int(n) for name, n in sums["untaught"].items() if name in tally.untaught}
            tally.late, tally.partial, tally.rounds = (int(sums[name]) for name in ("late", "partial", "rounds"))
            tally.last_told_at = None if sums["last_told_at"] is None else float(sums["last_told_at"])
            tally.position = tally.kept = int(kept[0])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ZeroDivisionError):
            return cls(columns)
        return tally if sum(tally.states.values()) == tally.position else cls(columns)
