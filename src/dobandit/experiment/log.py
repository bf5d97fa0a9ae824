"""The log of an experiment: closing trials, rounds that nobody asked for, and the log as rows and tables."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Any, Self

from dobandit.checks import is_whole, shown
from dobandit.errors import ConflictError, DobanditError, DobanditWarning, ExperimentError, MissingError
from dobandit.experiment import export
from dobandit.experiment.batches import ImportedRows, Seen, batch_of, import_rows
from dobandit.experiment.columns import columns_of
from dobandit.experiment.definition import Definition, definition_from_text
from dobandit.experiment.reasons import closed_words
from dobandit.experiment.storage.base import (
    ABANDONED,
    EVERY,
    FAILED,
    IMPORTED,
    PENDING,
    RECORDED,
    STATES,
    TOLD,
    Storage,
    StoredExperiment,
    StoredTrial,
    Writer,
)
from dobandit.experiment.storage.errors import storable
from dobandit.experiment.trial import Trial
from dobandit.model.weights import Do

_FEWEST = 10  # rounds of an import that are looked for: fewer may well be equal by chance
_NEWEST = 5_000  # closed trials among which they are looked for, lest a long log is read for every import
_CONTENT = ("do", "observation", "counts")  # what makes two trials the same rounds
_content = attrgetter(*_CONTENT)


class ExperimentLog:
    """One experiment of a storage."""

    def __init__(
        self,
        storage: Storage,
        stored: StoredExperiment,
        clock: Callable[[], float] = time.time,
        definition: Definition | None = None,
    ) -> None:
        self.storage, self.name = storage, stored.name
        self._id, self._clock, self._created_at = stored.id, clock, stored.created_at
        self.definition = definition_from_text(stored.document) if definition is None else definition
        self.graph = self.definition.graph
        self.columns = columns_of(self.definition)
        self._held: dict[int, int] = {}  # trials handed out here: how often they had been handed out by then

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.definition.policy_text}, {self.storage.url})"

    # -- closing a trial without an observation ------------------------------------------------------------------

    def tell_failed(self, number: int | Trial, reason: str = "") -> None:
        """The trial was tried, but gave no valid observation. The learner takes nothing from it.

        number  the trial's, or the trial itself
        reason  why, for whoever reads the log

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("failed", graph, budget=1, storage="memory", policy="random")
        >>> experiment.tell_failed(experiment.ask().number, "the page was down")
        >>> experiment.status().failed
        1
        """
        if not isinstance(reason, str):
            raise ExperimentError(f"a reason is a text, but got {shown(reason)}.")
        if not storable(reason):
            raise ExperimentError(f"a reason has neither NUL nor lone surrogates, but got {shown(reason)}.")
        self._close(number, FAILED, reason)

    def abandon(self, number: int | Trial) -> None:
        """Nobody will carry the trial out. The learner takes nothing from it.

        number  the trial's, or the trial itself
        """
        self._close(number, ABANDONED, None)

    def _close(self, number: int | Trial, state: str, reason: str | None) -> None:
        with self.storage.writing(self._id) as writer:
            trial = self._trial(writer, number)
            if trial.state == state and trial.reason == reason:
                return
            if trial.state != PENDING:
                raise self._conflict(trial, closed_words(state, reason))
            position = writer.close(trial._replace(state=state, closed_at=self._clock(), reason=reason))
        self._closed(trial.number, position)

    def _closed(self, number: int, position: int) -> None:
        """Called when it is stored that a trial was closed."""
        self._held.pop(number, None)
        self._keep_sums(position)

    def _keep_sums(self, position: int) -> None:
        """Called when a trial was closed."""

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

    def record(self, do: Do | None, observation: Seen) -> int:
        """A round that nobody asked for. Returns its number.

        do           what was set: {"coupon": 1}, names that were set to 1, or None for nothing
        observation  what was seen, as in `tell`: a mapping, with a `count` where it was seen more than once, or rows

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("recorded", graph, budget=1, storage="memory")
        >>> experiment.record({"ad": 1}, {"buy": 1}), experiment.record(None, {"buy": 0, "count": 20})
        (0, 1)
        """
        row = self.columns.do_row(do)
        seen = batch_of(observation, self.columns, row)
        with self.storage.writing(self._id) as writer:
            position = writer.closed
            number = writer.add([seen.trial(RECORDED, self.columns.encode(row), self._clock())])
        self._keep_sums(position)
        return number

    def import_history(self, source: Any) -> range:
        """Many rounds that nobody asked for: all of them, or none if one is wrong. Returns the numbers of their trials.

        source  the path of a CSV or Parquet file, a frame, or rows

        CSV: a column per variable, blank where it was not seen, columns `do:NAME` with the value that NAME was set to,
        and perhaps a column `count`, how often the row was seen (see docs/experiments.md). Rows: (do, observation)
        pairs, or mappings like the rows of the CSV or those of `trials`.

        Rows are summed up, as with `history=`: their order does not matter, and a million of them are some hundreds of
        trials. Rows that have one trial.number, as in a table that `to_csv` wrote, are one trial, and such trials keep
        their order; so do rows with one trial.closed_at that set the same and stand together.

        Ten rounds or more that were imported before, the same ones as a whole, are imported again with a warning: they
        then count twice. They are looked for among the last few thousand trials.

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("imported", graph, budget=1, storage="memory")
        >>> experiment.import_history([({"ad": 1}, {"buy": 1}), ({}, {"ad": 0, "buy": 0})])
        range(0, 2)
        """
        return self.import_noted(source, lambda doubt: warnings.warn(doubt, DobanditWarning, stacklevel=4))

    def import_noted(self, source: Any, note: Callable[[str], None]) -> range:
        """`import_history`, where `note` is told of rounds that were imported before."""
        imported = import_rows(source, self.columns, self._clock())
        before = self._imported_before(imported)
        if before is not None:
            there = f"trial {before[0]}" if len(before) == 1 else f"trials {before[0]} to {before[-1]}"
            note(
                f"just these rounds were imported before, as {there}, and now count once more. If that is a mistake, "
                "export the log, take the trials of one of the imports out of the table, and import the rest into a "
                "new experiment."
            )
        with self.storage.writing(self._id) as writer:
            first = writer.add(imported.trials)
        return range(first, first + len(imported.trials))

    def _imported_before(self, imported: ImportedRows) -> range | None:
        """The first recent trials of the log that were imported and are just these; None where there are none. The same
        rows in another order are the same trials."""
        new, size = [(IMPORTED, *_content(trial)) for trial in imported.trials], len(imported.trials)
        if imported.rounds < _FEWEST:
            return None
        with suppress(DobanditError):  # whatever is the matter with the log, an import need not know what is in it
            start = max(self.storage.counters(self._id)[1] - max(_NEWEST, 2 * size), 0)
            rows = self.storage.closed_fields(self._id, start, EVERY, ("number", "source", *_CONTENT))
            there = [row[1:] for row in rows]
            for i in range(len(there) - size + 1):
                if there[i] == new[0] and there[i : i + size] == new:
                    return range(rows[i][0], rows[i][0] + size)
        return None

    def rounds_in(self, numbers: range) -> int:
        """How many rounds an import brought, counts included.

        numbers  those of its trials, as `import_history` returned them

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("counted", graph, budget=1, storage="memory")
        >>> experiment.rounds_in(experiment.import_history([{"ad": 1, "buy": 1, "count": 30}]))
        30
        """
        first = self.stored_trial(numbers[0]).position or 0
        return sum(rounds for (rounds,) in self.storage.closed_fields(self._id, first, len(numbers), ("rounds",)))

    def begin_with(self, history: ImportedRows) -> range:
        """Let the log begin with what is known from before, in one transaction; a log that begins with it stays as it
        is. Returns the numbers of its trials."""
        with self.storage.writing(self._id) as writer:
            begun = writer.trials > 0
            if not begun:
                writer.add(history.trials)
        same = [_content(trial) for trial in history.trials]
        if begun and list(self.storage.closed_fields(self._id, 0, len(same), _CONTENT)) != same:
            raise ExperimentError(
                f"a history is the beginning of an experiment, but {self.name!r} has begun with other rounds. "
                "Leave the history out, or import it as rounds of its own with import_history."
            )
        return range(len(history.trials))

    # -- rows and tables -----------------------------------------------------------------------------------------

    def trials(
        self, after: int = -1, limit: int | None = None, state: str | None = None, *, last: int | None = None
    ) -> list[dict[str, Any]]:
        """The log, a row per trial, by number; a trial of many rounds has a list of rows with counts.

        after  only trials with larger numbers
        limit  at most so many: with `after`, a page
        state  only those that are pending, told, failed or abandoned
        last   only the last so many, instead of a page

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("logged", graph, budget=1, storage="memory")
        >>> number = experiment.record({"ad": 1}, {"buy": 1})
        >>> [(row["do"], row["observation"]) for row in experiment.trials(state="told")]
        [({'ad': 1}, {'ad': 1, 'buy': 1})]
        """
        check_page(after, limit, state, last)
        if last is None:
            rows: Iterable[StoredTrial] = self.storage.rows(self._id, after, limit, state)
        else:
            rows = self.storage.last(self._id, last, state)
        return [export.row_of(trial, self.columns) for trial in rows]

    def trial(self, number: int | Trial) -> dict[str, Any]:
        """One row of the log, as `trials` gives all of them. Raises MissingError where there is none.

        number  the trial's, or the trial itself
        """
        return export.row_of(self.stored_trial(number), self.columns)

    def to_csv(self, path: Any = None) -> str | None:
        """The log as CSV, into a file or as text, a line per distinct row of a trial; `import_history` reads it.

        path  the file; None: return the text

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("written", graph, budget=1, storage="memory")
        >>> number = experiment.record({"ad": 1}, {"buy": 1})
        >>> experiment.to_csv().splitlines()[0].split(",")[:4]
        ['trial.number', 'trial.state', 'trial.source', 'do:ad']
        """
        return export.write_csv(self.stored_trials(), self.columns, self._outside(path))

    def csv_parts(self) -> Iterator[str]:
        """The log as CSV, some lines at a time: a long log need not be in memory as a whole."""
        return export.csv_parts(self.stored_trials(), self.columns)

    def to_parquet(self, path: Any) -> None:
        """The log as a Parquet file (needs pyarrow), with the rows of `to_csv`.

        path  the file

        >>> import dobandit as dob
        >>> import tempfile
        >>> experiment = dob.create_experiment("kept", dob.paper.G4, budget=1, storage="memory")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     experiment.to_parquet(f"{folder}/log.parquet")
        """
        export.write_parquet(self.stored_trials(), self.columns, self._outside(path))

    def to_pandas(self) -> Any:
        """The log as a pandas frame (needs pandas), with the rows of `to_csv`."""
        return export.to_pandas(self.stored_trials(), self.columns)

    def _outside(self, path: Any) -> Any:
        """A path that is not the log itself."""
        if checked_path(path) is not None and os.path.realpath(path) in map(os.path.realpath, self.storage.files()):
            raise ExperimentError(f"a table cannot replace the storage itself, but {path} is it. Choose another file.")
        return path

    def _require_there(self) -> None:
        """Raises where the experiment was deleted."""
        self.storage.counters(self._id)

    def stored_trials(self) -> Iterator[StoredTrial]:
        """The log as it is stored, by number; `trials` gives it by names."""
        return self.storage.rows(self._id)

    def stored_trial(self, number: int | Trial) -> StoredTrial:
        """The trial of this number as it is stored; `trial` gives it by names."""
        trial = self.storage.trial(self._id, number_of(number))
        if trial is None:
            self._require_there()
            raise self._no_trial(number)
        return trial

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the storage's connections."""
        self.storage.close()


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
