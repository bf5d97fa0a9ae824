"""Bringing an import into the database in slices, between which others write; nobody sees it until it is published.

A slice holds the write lock for as long as it takes to store about a megabyte. Whoever dies in the middle leaves parts
that nobody reads: every slice says until when its writer is taken to be alive, and whoever stages trials after that
clears them away, in slices, too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, takewhile

from sqlalchemy.exc import IntegrityError

from dobandit.errors import StorageError
from dobandit.experiment.storage import statements as do
from dobandit.experiment.storage.base import TOLD, Arrival, StoredTrial
from dobandit.experiment.storage.connected import Connected
from dobandit.experiment.storage.parts import MOST, part_sum, part_text
from dobandit.experiment.storage.refusals import deleted, lost
from dobandit.experiment.storage.writer import inserted

FEW = 1_000  # trials that are added as rows of their own, in one transaction
SLICE = 1_000_000  # characters after which others may write
CLEARED = 50  # parts that are cleared away at a time
PAUSE = 0.01  # seconds between slices: who waits for the lock looks that often
ALIVE = 60.0  # seconds from one slice to the next, at most

Piece = tuple[int, str]  # the first trial of a part, and its text


class Staging(Connected):
    """A database to which imports come."""

    def stage(self, experiment: int, trials: Sequence[StoredTrial]) -> Arrival:
        rounds = sum(trial.rounds for trial in trials)
        if len(trials) <= FEW or any(trial.state != TOLD for trial in _distinct(trials)):
            return Arrival(trials, rounds)
        if not self._opened():
            raise deleted(experiment, self.url)
        self._clear_what_was_left_behind()
        arrival = Arrival(trials, rounds, self._begin(experiment, len(trials)))
        try:
            for pieces in _slices(trials):
                self._keep(experiment, arrival, pieces)
                time.sleep(PAUSE)
        except BaseException:
            self.discard(arrival)
            raise
        return arrival

    def discard(self, arrival: Arrival) -> None:
        if arrival.key is not None:
            with suppress(StorageError):  # whoever stages trials later clears it away
                self._clear(arrival.key, len(arrival.trials), math.inf)

    def _begin(self, experiment: int, size: int) -> int:
        values = {"experiment": experiment, "size": size, "expires": time.time() + ALIVE}
        with self._transaction() as (connection, _):
            try:
                return inserted(connection, do.BEGIN_IMPORT, values)
            except IntegrityError:
                raise deleted(experiment, self.url) from None

    def _keep(self, experiment: int, arrival: Arrival, pieces: list[Piece]) -> None:
        """Store a slice."""
        key = arrival.key or 0
        rows = [
            {"import": key, "first": first, "trials": text, "checksum": part_sum(key, first, text)}
            for first, text in pieces
        ]
        with self._transaction() as (connection, _):
            alive = {"of_import": key, "until": time.time() + ALIVE}
            if connection.execute(do.KEEP_ALIVE, alive).rowcount != 1:
                there = connection.execute(do.COUNTERS, {"of_experiment": experiment}).first()
                raise lost(self.url) if there else deleted(experiment, self.url)
            connection.execute(do.ADD_PART, rows)

    def _clear_what_was_left_behind(self) -> None:
        now = time.time()
        for key, size in self._read(do.LEFT_BEHIND, {"now": now}):
            self._clear(key, size, now)

    def _clear(self, key: int, size: int, now: float) -> None:
        """Remove an import that was not published, unless somebody has said since that it is alive."""
        with self._transaction() as (connection, _):
            if connection.execute(do.CONDEMN, {"of_import": key, "now": now}).rowcount != 1:
                return
        for stop in range(CLEARED * MOST, size, CLEARED * MOST):
            with self._transaction() as (connection, _):
                connection.execute(do.CLEAR_PARTS, {"of_import": key, "stop": stop})
            time.sleep(PAUSE)
        with self._transaction() as (connection, _):
            connection.execute(do.FORGET_IMPORT, {"of_import": key})


def _distinct(trials: Sequence[StoredTrial]) -> Iterable[StoredTrial]:
    """Equal rows of a file are one object."""
    return {id(trial): trial for trial in trials}.values()


def _slices(trials: Sequence[StoredTrial]) -> Iterator[list[Piece]]:
    """The parts, as many together as a slice holds."""
    pieces: list[Piece] = []
    for first, stop in _parts(trials):
        pieces.append((first, part_text(trials[first:stop])))
        if sum(len(text) for _, text in pieces) >= SLICE:
            yield pieces
            pieces = []
    if pieces:
        yield pieces


def _parts(trials: Sequence[StoredTrial]) -> Iterator[tuple[int, int]]:
    """(first, stop) of each part: where trials are long, having many variables or many rows, few of them make one."""
    length = {
        id(trial): len(trial.do) + len(trial.observation or "") + len(trial.counts or "") for trial in _distinct(trials)
    }
    first = 0
    while first < len(trials):
        ends = accumulate(length[id(trial)] for trial in trials[first : first + MOST])
        stop = first + max(1, sum(1 for _ in takewhile(lambda end: end <= SLICE, ends)))
        yield first, stop
        first = stop
