"""What a log looks like from afar: sums over a bounded number of stretches of equal length, whatever its length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from dobandit.experiment.accumulator import Accumulator
from dobandit.rows.columns import Columns, split_batch
from dobandit.rows.stored_trial import TOLD

STRETCHES = 96  # at most
CONTEXTS = 12  # at most that are listed


@dataclass
class Stretch:
    """Sums over consecutive closed trials."""

    trials: int = 0
    rounds: int = 0  # that saw the target
    total: float = 0.0  # of the target over these
    foretold: float = 0.0  # rounds that saw the target and had a prediction
    predicted: float = 0.0  # sums over these
    low: float = 0.0
    high: float = 0.0
    tried: Counter[str] = field(default_factory=Counter)  # trials by what was set, as the log keeps it

    def add(self, other: Stretch) -> None:
        for name in ("trials", "rounds", "total", "foretold", "predicted", "low", "high"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.tried.update(other.tried)


class Contexts(NamedTuple):
    """In which contexts the told rounds were.

    most       those seen most often, with their rounds; first comes the most frequent
    different  how many were seen
    rounds     that were told, those of which the context is not wholly known included
    """

    most: Sequence[tuple[dict[str, float], int]] = ()
    different: int = 0
    rounds: int = 0


class Stretches(Accumulator):
    """The closed trials in stretches of `width`; and the contexts of the told rounds."""

    fields = ("position", "state", "do", "observation", "counts", "predicted", "low", "high")

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.width = 1
        self.every: list[Stretch] = []
        self.told = 0  # trials
        self._context = [columns.names.index(name) for name in columns.context]
        self._seen: Counter[tuple[float | None, ...]] = Counter()  # told rounds by their context

    def add(self, part: Sequence[Any]) -> None:
        while part[-1][0] // self.width >= STRETCHES:
            for left, right in zip(self.every[::2], self.every[1::2], strict=False):
                left.add(right)
            self.every, self.width = self.every[::2], 2 * self.width
        for i, rows in groupby(part, key=lambda row: row[0] // self.width):
            while len(self.every) <= i:
                self.every.append(Stretch())
            self._add(self.every[i], list(rows))

    def _add(self, stretch: Stretch, rows: Sequence[tuple[Any, ...]]) -> None:
        stretch.trials += len(rows)
        stretch.tried.update(row[2] for row in rows)
        told = [row for row in rows if row[1] == TOLD]
        self.told += len(told)
        known = {batch: self._sums(*batch) for batch in {row[3:5] for row in told if row[3] is not None}}
        for _, _, _, seen, counts, predicted, low, high in told:
            if seen is None:
                continue
            rounds, total, contexts = known[seen, counts]
            self._seen.update(contexts)
            stretch.rounds += rounds
            stretch.total += total
            if predicted is not None and low is not None and high is not None:
                stretch.foretold += rounds
                stretch.predicted += rounds * predicted
                stretch.low += rounds * low
                stretch.high += rounds * high

    def _sums(self, seen: str, counts: str | None) -> tuple[int, float, dict[tuple[float | None, ...], int]]:
        """How many rounds of a trial saw the target, its sum over these, and the rounds by their context."""
        rounds, total, contexts = 0, 0.0, Counter[tuple[float | None, ...]]()
        for text, count in zip(*split_batch(seen, counts), strict=True):
            values = self.columns.values(text)
            value = values[self.target]
            if value is not None:
                rounds, total = rounds + count, total + count * value
            if self._context:
                contexts[tuple(values[i] for i in self._context)] += count
        return rounds, total, contexts

    def contexts(self) -> Contexts:
        """Those that were seen."""
        whole = Counter({values: rounds for values, rounds in self._seen.items() if None not in values})
        most = [
            (
                {name: value for name, value in zip(self.columns.context, values, strict=True) if value is not None},
                rounds,
            )
            for values, rounds in whole.most_common(CONTEXTS)
        ]
        return Contexts(most, len(whole), self._seen.total())

    def rounds_in(self, context: Mapping[str, float]) -> int:
        """How many told rounds were in a context."""
        return self._seen[tuple(context[name] for name in self.columns.context)]

    def parts(self, most: int) -> list[tuple[int, Stretch]]:
        """The log in at most so many stretches of equal length, each with its first closed trial."""
        found, per = [], max(1, -(-len(self.every) // most))
        for start in range(0, len(self.every), per):
            part = Stretch()
            for stretch in self.every[start : start + per]:
                part.add(stretch)
            found.append((start * self.width, part))
        return found

    def sets(self, most: int) -> tuple[list[str], int]:
        """What was set most often, as the log keeps it, most often first; and how many different ones there were."""
        counts: Counter[str] = Counter()
        for stretch in self.every:
            counts.update(stretch.tried)
        return [text for text, _ in counts.most_common(most)], len(counts)
