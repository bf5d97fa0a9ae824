"""An experiment behind an address, with the methods of the local one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack, overload

from dobandit.checks import shown
from dobandit.client import values
from dobandit.client.connection import Connected, Connection
from dobandit.diagnosis.diagnose import Diagnosis
from dobandit.documents.live import read, stored_trial_of
from dobandit.errors import DobanditWarning, MissingError
from dobandit.experiment.answers import BestObserved, EdgeEstimate
from dobandit.experiment.definition import Definition, lease_seconds
from dobandit.experiment.explanation import Explanation
from dobandit.experiment.log import check_page, checked_path, number_of
from dobandit.experiment.status import Status
from dobandit.policy.answers import Recommendation
from dobandit.rows.columns import columns_of
from dobandit.rows.trial import AskWords, Lease, Names, Told, Trial
from dobandit.text_files import write_atomically

if TYPE_CHECKING:
    from dobandit.model.weights import Do

_PAGE = 1000


class RemoteExperiment(Connected):
    """An experiment of a service. Made by `create_experiment` or `open_experiment` of a connection. What each method
    means is said at `dobandit.Experiment`, with an example, and so are its answers and errors. Its `learner` and its
    `storage` stay with the service: `estimates`, `evaluate`, `trials` and `to_csv` give what they hold.
    """

    def __init__(self, connection: Connection, number: int, name: str, definition: Mapping[str, Any]) -> None:
        self.id, self.name, self.definition = number, name, Definition(definition)
        self.graph, self.columns = self.definition.graph, columns_of(self.definition.problem)
        self._connection, self._at = connection, f"/experiments/{number}"
        self._held: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.definition.policy_text}, {self._connection.url})"

    # -- rounds --------------------------------------------------------------------------------------------------

    @overload
    def ask(self, available: Names = None, n: None = None, lease: Lease = None, **words: Unpack[AskWords]) -> Trial: ...

    @overload
    def ask(
        self, available: Names = None, *, n: int, lease: Lease = None, **words: Unpack[AskWords]
    ) -> list[Trial]: ...

    def ask(
        self,
        available: Names = None,
        n: int | None = None,
        lease: Lease = None,
        *,
        size: int = 1,
        control: bool | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Trial | list[Trial]:
        """The next trial to carry out; with `n`, a list of so many.

        available, context   the variables that can be set in this round, and the value of each context variable
        n, size              how many trials, and how many rounds each is planned for
        lease                seconds, or a timedelta, after which an untold trial is handed out again
        control              True: nothing is set; False: no control round; default: the experiment's share decides
        """
        wish = {"available": available, "control": control, "context": context}
        said = {key: values.plain(value) for key, value in wish.items() if value is not None}
        said |= {"n": 1 if n is None else values.plain(n), "size": values.plain(size)}
        if lease is not None:
            said["lease"] = lease_seconds(lease)
        trials = [read(Trial, one) for one in self._post("/ask", said, once=True)["trials"]]
        self._held |= {trial.number: trial.issued for trial in trials}
        return trials[0] if n is None else trials

    def tell(self, number: int | Trial, observation: Any, issued: int | None = None) -> Told:
        """What was seen in a trial.

        number       the trial's, or the trial itself
        observation  what was seen: a mapping, or rows, a frame or a file, which is read here
        issued       of which hand-out it is, as the trial says

        Returns what became of it: see `Told`.
        """
        if isinstance(number, Trial):
            issued, number = number.issued if issued is None else issued, number.number
        path = f"{self._trial(number)}/tell"
        holder = self._held.get(number, 1) if issued is None else issued
        said = {**values.seen(observation), "issued": values.plain(holder)}
        told = read(Told, self._post(path, said))
        self._held.pop(told.number, None)
        return told

    def tell_failed(self, number: int | Trial, reason: str = "") -> None:
        """The trial of this number was tried, but gave no valid observation; `reason` says why."""
        self._post(f"{self._trial(number)}/fail", {"reason": values.plain(reason)})
        self._held.pop(number_of(number), None)

    def abandon(self, number: int | Trial) -> None:
        """Nobody will carry the trial of this number out."""
        self._post(f"{self._trial(number)}/abandon", {})
        self._held.pop(number_of(number), None)

    def record(self, do: Do | None, observation: Any, *, randomised: bool = False) -> int:
        """A round that nobody asked for: what was set (`do`), and what was seen (`observation`); `randomised`: it was
        chosen at random. Returns its number."""
        said = {"do": values.plain(do), **values.seen(observation), "randomised": randomised}
        return int(self._post("/record", said, once=True)["trial"])

    def import_history(self, source: Any, *, randomised: bool = False) -> range:
        """Many such rounds, `source`: all of them, or none if one is wrong. Files are read here, and rows become
        trials, `randomised` or not, as in `Experiment.import_history`. Returns the numbers of the trials.
        """
        rows = values.rounds(source, self.columns)
        said = self._post("/import", {"rows": rows, "randomised": randomised}, once=True)
        for doubt in said["warnings"]:
            warnings.warn(doubt, DobanditWarning, stacklevel=2)
        return range(said["first"], said["last"] + 1)

    # -- answers -------------------------------------------------------------------------------------------------

    def recommend(
        self, available: Iterable[str] | None = None, *, context: Mapping[str, object] | None = None
    ) -> Recommendation:
        """The set that looks best under the model's estimate, and what speaks for and against it.

        available, context  the variables that can be set, and the value of each context variable
        """
        return read(Recommendation, self._get("/recommend", available, context=context))

    def evaluate(self, do: Do | None, *, context: Mapping[str, object] | None = None) -> Recommendation:
        """All that `recommend` says, of an action of your choice, `do`, in a `context` where the graph has one."""
        action = dict.fromkeys(do, 1) if do is not None and not isinstance(do, Mapping) else do or {}
        return read(Recommendation, self._get("/evaluate", do=action, context=context))

    def best_observed(
        self, available: Iterable[str] | None = None, *, context: Mapping[str, object] | None = None
    ) -> BestObserved | None:
        """The allowed set that the data alone speak for; None where no round with one saw the target.

        available, context  the variables that can be set, and what was so in the rounds that count
        """
        said = self._get("/best-observed", available, context=context)
        return None if said is None else read(BestObserved, said)

    def explain(self, number: int | Trial) -> Explanation:
        """Why the trial of this number set what it set."""
        return read(Explanation, self._get(f"{self._trial(number)}/explain"))

    def estimates(self) -> list[EdgeEstimate]:
        """Every edge's weight with its confidence interval."""
        return [read(EdgeEstimate, row) for row in self._get("/estimates")["estimates"]]

    def status(self) -> Status:
        """How far the experiment is."""
        return read(Status, self._get("/status"), storage=self._connection.url)

    def diagnose(self) -> Diagnosis:
        """Whether the data agree with the model."""
        return read(Diagnosis, self._get("/diagnose"))

    @property
    def interval_words(self) -> str:
        """What the intervals of values promise: that they hold at every round one looks, or at this round only."""
        return str(self._get("/promises")["interval_words"])

    @property
    def delta(self) -> float:
        """With what probability a guaranteed gap is wrong at some round."""
        return float(self._get("/promises")["delta"])

    # -- the log -------------------------------------------------------------------------------------------------

    def trials(
        self, after: int = -1, limit: int | None = None, state: str | None = None, *, last: int | None = None
    ) -> list[dict[str, Any]]:
        """The log, a row per trial, by number; `after`, `limit`, `state` and `last` give a part of it."""
        check_page(after, limit, state, last)
        if last is not None and last <= _PAGE:
            end = {"last": last} | ({} if state is None else {"state": state})
            newest: list[dict[str, Any]] = self._connection.get(f"{self._at}/trials", end)["trials"]
            return newest
        found: list[dict[str, Any]] = []
        while limit is None or len(found) < limit:
            most = _PAGE if limit is None else min(limit - len(found), _PAGE)
            parameters = {"after": after, "limit": most} | ({} if state is None else {"state": state})
            page = self._connection.get(f"{self._at}/trials", parameters)
            found += page["trials"]
            if page["next"] is None:
                break
            after = page["next"]
        return found if last is None else found[-last:]

    def trial(self, number: int | Trial) -> dict[str, Any]:
        """The row of the log with this number."""
        row: dict[str, Any] = self._get(self._trial(number))
        return row

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """The log as CSV, into the file `path`; None: return the text."""
        checked_path(path)
        text = self._connection.send("GET", f"{self._at}/export.csv").text
        if path is None:
            return text
        write_atomically(path, text)
        return None

    def csv_parts(self) -> Iterator[str]:
        """The log as CSV, a part at a time: here it comes as a whole."""
        yield self.to_csv() or ""

    def to_pandas(self) -> Any:
        """The log as a pandas frame (needs pandas); its times are exact to the millisecond."""
        from dobandit.rows.export import to_pandas

        return to_pandas((stored_trial_of(row, self.columns) for row in self.trials()), self.columns)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """The log as a Parquet file, written to `path`."""
        checked_path(path)
        write_atomically(path, self._connection.send("GET", f"{self._at}/export.parquet").content)

    @property
    def told_rounds(self) -> int:
        """How many rounds were told, counts included."""
        return self.status().rounds

    def rounds_in(self, numbers: range) -> int:
        """How many rounds an import brought, by the numbers of its trials."""
        return sum(row["rounds"] for row in self.trials(numbers[0] - 1, len(numbers)))

    # ------------------------------------------------------------------------------------------------------------

    def _trial(self, given: object) -> str:
        number = number_of(given)
        if number < 0:
            raise MissingError(f"experiment {self.name!r} has no trial {shown(given)}.")
        return f"/trials/{number}"

    def _get(self, path: str, available: Iterable[str] | None = None, **objects: Mapping[str, object] | None) -> Any:
        parameters: list[tuple[str, str]] = [("available", name) for name in available or ()]
        parameters += [(key, values.text(value)) for key, value in objects.items() if value is not None]
        return self._connection.get(self._at + path, parameters)

    def _post(self, path: str, document: Any, once: bool = False) -> Any:
        return self._connection.post(self._at + path, document, once)
