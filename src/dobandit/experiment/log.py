"""Writing to the log of an experiment: what was seen in its trials, and rounds that nobody asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import Any

from dobandit.checks import is_whole, shown
from dobandit.errors import ConflictError, DobanditError, ExperimentError, MissingError
from dobandit.experiment.reasons import closed_words
from dobandit.experiment.state import LogState
from dobandit.model.weights import Do
from dobandit.rows.batches import Batch, ImportedRows, Seen, batch_of, import_rows, source_of
from dobandit.rows.stored_trial import FAILED, PENDING, RECORDED, STATES, TOLD, StoredTrial
from dobandit.rows.trial import Told, Trial
from dobandit.storage.contract import EVERY, StoredExperiment, Writer
from dobandit.storage.storage_errors import storable
from dobandit.texts import keyword

_FEWEST = 10  # rounds of an import that are looked for: fewer may well be equal by chance
_NEWEST = 5_000  # closed trials among which they are looked for, lest a long log is read for every import
_CONTENT = ("source", "do", "observation", "counts")  # what makes two trials the same rounds
_content = attrgetter(*_CONTENT)


class TrialLog:
    """The trials of one experiment as they are stored, and what is known of them (`state`)."""

    def __init__(self, stored: StoredExperiment, state: LogState, clock: Callable[[], float]) -> None:
        self.name, self.created_at, self.clock = stored.name, stored.created_at, clock
        self.state, self.storage, self.experiment, self.columns = state, state.storage, state.experiment, state.columns
        self.held: dict[int, int] = {}  # trials handed out here: how often they had been handed out by then

    # -- reading -------------------------------------------------------------------------------------------------

    def stored_trials(self) -> Iterator[StoredTrial]:
        """By number."""
        return self.storage.rows(self.experiment)

    def stored_trial(self, number: int | Trial) -> StoredTrial:
        """The trial of this number. Raises MissingError where there is none."""
        trial = self.storage.trial(self.experiment, number_of(number))
        if trial is None:
            self.storage.counters(self.experiment)  # which raises where the experiment was deleted
            raise self._no_trial(number)
        return trial

    def page(self, after: int, limit: int | None, state: str | None, last: int | None) -> Iterable[StoredTrial]:
        """A part of the log by number, or its end."""
        check_page(after, limit, state, last)
        if last is not None:
            return self.storage.last(self.experiment, last, state)
        return self.storage.rows(self.experiment, after, limit, state)

    def table_path(self, path: Any) -> Any:
        """Where a table is written to, which is not the log itself."""
        if checked_path(path) is not None and os.path.realpath(path) in map(os.path.realpath, self.storage.files()):
            raise ExperimentError(f"a table cannot replace the storage itself, but {path} is it. Choose another file.")
        return path

    def rounds_in(self, numbers: range) -> int:
        """How many rounds an import brought, counts included."""
        first = self.stored_trial(numbers[0]).position or 0
        found = self.storage.closed_fields(self.experiment, first, len(numbers), ("rounds",))
        return sum(rounds for (rounds,) in found)

    # -- closing a trial -----------------------------------------------------------------------------------------

    def tell(self, number: int | Trial, observation: Seen, issued: int | None = None) -> Told:
        if isinstance(number, Trial):
            issued, number = number.issued if issued is None else issued, number.number
        if issued is not None and (not is_whole(issued) or issued < 1):
            raise ExperimentError(f"issued is a whole number from 1, as the trial says, but got {shown(issued)}.")
        # Rows may take long to read, which is done before others are kept out.
        # What a trial sets, and its context, never change.
        there = None if isinstance(observation, Mapping) else self.storage.trial(self.experiment, number_of(number))
        ahead = None if there is None else self._seen_in(there, observation)
        with self.storage.writing(self.experiment) as writer:
            trial = self._trial(writer, number)
            seen = self._seen_in(trial, observation) if ahead is None else ahead
            if trial.state == TOLD and (trial.observation, trial.counts) == (seen.observation, seen.counts):
                return Told(trial.number, trial.late, trial.partial, True, seen.rounds, seen.missing, seen.untaught)
            if trial.state != PENDING:
                wanted = f"told {self._seen_text(seen.observation, seen.counts, seen.rounds)}"
                raise self._conflict(trial, wanted)
            if issued is not None and issued > trial.issued:
                raise ExperimentError(
                    f"trial {trial.number} was handed out {trial.issued} times, but the tell is said to be of hand-out "
                    f"{issued}. Give {keyword('issued')} as the trial says."
                )
            now = self.clock()
            holder = issued or self.held.get(trial.number, 1)
            late = trial.issued > holder or (trial.lease_expires is not None and now >= trial.lease_expires)
            position = writer.close(trial._replace(state=TOLD, closed_at=now, late=late, **seen.stored()))
        self._closed(trial.number, position)
        return Told(trial.number, late, seen.partial, False, seen.rounds, seen.missing, seen.untaught)

    def _seen_in(self, trial: StoredTrial, observation: Seen) -> Batch:
        context = None if trial.context is None else self.columns.values(trial.context)
        return batch_of(observation, self.columns, self.columns.values(trial.do), context)

    def close(self, number: int | Trial, state: str, reason: str | None) -> None:
        """Without an observation."""
        if state == FAILED and not isinstance(reason, str):
            raise ExperimentError(f"a reason is a text, but got {shown(reason)}.")
        if reason is not None and not storable(reason):
            raise ExperimentError(f"a reason has neither NUL nor lone surrogates, but got {shown(reason)}.")
        with self.storage.writing(self.experiment) as writer:
            trial = self._trial(writer, number)
            if trial.state == state and trial.reason == reason:
                return
            if trial.state != PENDING:
                raise self._conflict(trial, closed_words(state, reason))
            position = writer.close(trial._replace(state=state, closed_at=self.clock(), reason=reason))
        self._closed(trial.number, position)

    def _closed(self, number: int, position: int) -> None:
        self.held.pop(number, None)
        self.state.keep_sums(position)

    def _trial(self, writer: Writer, number: object) -> StoredTrial:
        trial = writer.trial(number_of(number))
        if trial is None:
            there = f"They run from 0 to {writer.trials - 1}." if writer.trials else "There is none yet: ask first."
            raise self._no_trial(number, there)
        return trial

    def _no_trial(self, given: object, there: str = "") -> MissingError:
        number = given.number if isinstance(given, Trial) else given
        return MissingError(f"experiment {self.name!r} has no trial {shown(number)}. {there}".rstrip())

    def _conflict(self, trial: StoredTrial, wanted: str) -> ConflictError:
        already = closed_words(trial.state, trial.reason)
        if trial.state == TOLD and trial.observation is not None:
            already = f"told {self._seen_text(trial.observation, trial.counts, trial.rounds)}"
        way_out = " If both happened, record the second as a round of its own." if wanted.startswith("told") else ""
        return ConflictError(
            f"a trial is closed once, but trial {trial.number} was already {already}, and is now {wanted}. Nothing was "
            f"changed.{way_out}"
        )

    def _seen_text(self, observation: str, counts: str | None, rounds: int) -> str:
        """What was seen, for a message."""
        text = json.dumps(self.columns.decode_batch(observation, counts), ensure_ascii=False)
        return text if counts is None else f"{rounds:,} rounds: {text if len(text) <= 200 else text[:197] + '...'}"

    # -- rounds that nobody asked for ----------------------------------------------------------------------------

    def record(self, do: Do | None, observation: Seen, randomised: bool = False) -> int:
        row, source = self.columns.do_row(do), source_of(randomised, RECORDED)
        seen = batch_of(observation, self.columns, row)
        with self.storage.writing(self.experiment) as writer:
            position = writer.closed
            number = writer.add([seen.trial(source, self.columns.encode(row), self.clock())])
        self.state.keep_sums(position)
        return number

    def import_noted(self, source: Any, note: Callable[[str], None], randomised: bool = False) -> range:
        """`import_history`, where `note` is told of rounds that were imported before."""
        imported = import_rows(source, self.columns, self.clock(), randomised=randomised)
        before = self._imported_before(imported)
        if before is not None:
            there = f"trial {before[0]}" if len(before) == 1 else f"trials {before[0]} to {before[-1]}"
            note(
                f"just these rounds were imported before, as {there}, and now count once more. If that is a mistake, "
                "export the log, take the trials of one of the imports out of the table, and import the rest into a "
                "new experiment."
            )
        with self.storage.writing(self.experiment) as writer:
            first = writer.add(imported.trials)
        return range(first, first + len(imported.trials))

    def _imported_before(self, imported: ImportedRows) -> range | None:
        """The first recent trials of the log that were imported and are just these; None where there are none. The same
        rows in another order are the same trials."""
        new, size = [_content(trial) for trial in imported.trials], len(imported.trials)
        if imported.rounds < _FEWEST:
            return None
        with suppress(DobanditError):  # whatever is the matter with the log, an import need not know what is in it
            start = max(self.storage.counters(self.experiment)[1] - max(_NEWEST, 2 * size), 0)
            rows = self.storage.closed_fields(self.experiment, start, EVERY, ("number", *_CONTENT))
            there = [row[1:] for row in rows]
            for i in range(len(there) - size + 1):
                if there[i] == new[0] and there[i : i + size] == new:
                    return range(rows[i][0], rows[i][0] + size)
        return None

    def begin_with(self, history: ImportedRows) -> range:
        """Let the log begin with what is known from before, in one transaction; a log that begins with it stays as it
        is. Returns the numbers of its trials."""
        with self.storage.writing(self.experiment) as writer:
            begun = writer.trials > 0
            if not begun:
                writer.add(history.trials)
        same = [_content(trial) for trial in history.trials]
        if begun and list(self.storage.closed_fields(self.experiment, 0, len(same), _CONTENT)) != same:
            raise ExperimentError(
                f"a history is the beginning of an experiment, but {self.name!r} has begun with other rounds. "
                "Leave the history out, or import it as rounds of its own with import_history."
            )
        return range(len(history.trials))


def number_of(given: object) -> int:
    """The number of a trial that is given by its number or as itself; -1, which none has, where none can have it."""
    number = given.number if isinstance(given, Trial) else given
    if not is_whole(number):
        raise MissingError(
            f"a trial is named by its number, a whole number such as trial.number, or given as ask returned it, but "
            f"got {shown(number)}."
        )
    return int(number) if 0 <= number < 2**63 else -1  # type: ignore[call-overload, operator]


def checked_path(path: Any) -> Any:
    """Where a table is written to; None: nowhere."""
    if path is not None and not isinstance(path, (str, os.PathLike)):
        raise ExperimentError(f"a table is written to a path, but got {shown(path)}. Write the path as text.")
    return path


def check_page(after: object, limit: object, state: object, last: object) -> None:
    """Whether this asks for a part of a log; otherwise ExperimentError."""
    if not is_whole(after) or not -1 <= after < 2**63:  # type: ignore[operator]
        raise ExperimentError(f"after is the number of a trial, or -1 for the beginning, but got {shown(after)}.")
    for name, given in (("limit", limit), ("last", last)):
        if given is not None and (not is_whole(given) or not 0 <= given < 2**63):  # type: ignore[operator]
            raise ExperimentError(f"{name} is a whole number from 0, how many trials at most, but got {shown(given)}.")
    if last is not None and (after != -1 or limit is not None):
        raise ExperimentError("last asks for the end of the log, and after and limit for a page. Give one of the two.")
    if state is not None and state not in STATES:
        raise ExperimentError(f"a trial is {', '.join(STATES[:-1])} or {STATES[-1]}, but got {shown(state)}.")
