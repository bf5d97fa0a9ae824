"""The log of an experiment as rows and tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from dobandit.errors import ExperimentError
from dobandit.experiment.log import TrialLog, check_page, checked_path
from dobandit.rows import export
from dobandit.rows.columns import Columns
from dobandit.rows.trial import Trial
from dobandit.storage.contract import Storage


class LogTables:
    """What an Experiment gives of its log; `import_history` reads all of it."""

    storage: Storage
    columns: Columns
    log: TrialLog

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
        number = self.log.experiment
        rows = (
            self.storage.rows(number, after, limit, state) if last is None else self.storage.last(number, last, state)
        )
        return [export.row_of(trial, self.columns) for trial in rows]

    def trial(self, number: int | Trial) -> dict[str, Any]:
        """One row of the log, as `trials` gives all of them. Raises MissingError where there is none.

        number  the trial's, or the trial itself
        """
        return export.row_of(self.log.stored_trial(number), self.columns)

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
        return export.write_csv(self.log.stored_trials(), self.columns, self._outside(path))

    def csv_parts(self) -> Iterator[str]:
        """The log as CSV, some lines at a time: a long log need not be in memory as a whole."""
        return export.csv_parts(self.log.stored_trials(), self.columns)

    def to_parquet(self, path: Any) -> None:
        """The log as a Parquet file (needs pyarrow), with the rows of `to_csv`.

        path  the file

        >>> import dobandit as dob
        >>> import tempfile
        >>> experiment = dob.create_experiment("kept", dob.paper.G4, budget=1, storage="memory")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     experiment.to_parquet(f"{folder}/log.parquet")
        """
        export.write_parquet(self.log.stored_trials(), self.columns, self._outside(path))

    def to_pandas(self) -> Any:
        """The log as a pandas frame (needs pandas), with the rows of `to_csv`."""
        return export.to_pandas(self.log.stored_trials(), self.columns)

    def _outside(self, path: Any) -> Any:
        """A path that is not the log itself."""
        if checked_path(path) is not None and os.path.realpath(path) in map(os.path.realpath, self.storage.files()):
            raise ExperimentError(f"a table cannot replace the storage itself, but {path} is it. Choose another file.")
        return path
