"""Experiment: ask what to set, tell what was seen.

Everything that matters is in the storage. An Experiment is a view of it that can be thrown away at any time: several
processes and threads may hold one of the same experiment.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from dobandit.errors import DobanditWarning
from dobandit.experiment.answers import BestObserved, EdgeEstimate, best_observed, edge_estimates
from dobandit.experiment.ask import ask_of, asked
from dobandit.experiment.definition import Definition, definition_from_text
from dobandit.experiment.log import TrialLog
from dobandit.experiment.plain_work import answering
from dobandit.experiment.state import LogState
from dobandit.experiment.status import Status, status_of
from dobandit.rows import export
from dobandit.rows.batches import Seen
from dobandit.rows.columns import columns_of
from dobandit.rows.stored_trial import ABANDONED, FAILED
from dobandit.rows.trial import AskWords, Lease, Names, Told, Trial, trial_of
from dobandit.storage.contract import Storage, StoredExperiment
from dobandit.texts import as_html

if TYPE_CHECKING:
    from dobandit.diagnosis.diagnose import Diagnosis
    from dobandit.experiment.explanation import Explanation
    from dobandit.model.weights import Do
    from dobandit.policy.answers import Recommendation
    from dobandit.policy.learner import Learner


class Experiment:
    """A live experiment. Made by `create_experiment` or `open_experiment`; `close` it, or use it in a `with` block.

    >>> import dobandit as dob
    >>> graph = dob.CausalGraph([("ad", "visit"), ("visit", "buy")], target="buy", controllable=["ad"])
    >>> experiment = dob.create_experiment("asked", graph, budget=1, storage="memory", seed=1)
    >>> trial = experiment.ask()
    >>> experiment.tell(trial, {"ad": 0, "visit": 1, "buy": 1, **trial.do}).repeated
    False
    >>> experiment.recommend().nothing is not None
    True
    >>> experiment.abandon(experiment.ask().number)
    >>> experiment.trial(1)["state"]
    'abandoned'
    >>> "".join(experiment.csv_parts()) == experiment.to_csv()
    True
    >>> experiment.close()
    """

    def __init__(
        self,
        storage: Storage,
        stored: StoredExperiment,
        clock: Callable[[], float] = time.time,
        definition: Definition | None = None,
    ) -> None:
        self.storage = storage
        self.definition = definition_from_text(stored.document) if definition is None else definition
        self.graph, self.columns = self.definition.graph, columns_of(self.definition.problem)
        self._state = LogState(storage, stored.id, self.definition, self.columns)
        self.log = TrialLog(stored, self._state, clock)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.definition.policy_text}, {self.storage.url})"

    def __str__(self) -> str:
        return str(self.status())

    _repr_html_ = as_html

    def __dir__(self) -> list[str]:
        """What users need: `log` is for the parts of an experiment."""
        return [word for word in super().__dir__() if word != "log"]

    @property
    def name(self) -> str:
        """How it is called."""
        return self.log.name

    # -- ask and tell --------------------------------------------------------------------------------------------

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

        available  the variables that can be set in this round; default: all that the rules allow
        n          how many trials to hand out, which are then a list; default: one trial
        lease      seconds, or a timedelta, after which an untold trial is handed out again; default: the experiment's
        size       how many rounds will be carried out with what the trial says, such as the people who are shown it
        control    True: nothing is set, required variables neither; False: no control round; default: the
                   experiment's share of control rounds decides, by the trial's own random number
        context    the value of each context variable, where the graph has some: {"mobile": 1}

        A pending trial whose lease ran out comes first, under its old number, where it fits: the same size, context
        and wish for a control round. Otherwise the policy chooses, with the news that pending trials are expected to
        bring counted in, so that parallel workers try different things.

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("several", graph, budget=1, storage="memory", policy="random")
        >>> [trial.number for trial in experiment.ask(n=2)]
        [0, 1]
        """
        count = 1 if n is None else n
        wanted = ask_of(self._state, available, count, lease, size, control, context, self.log.clock())
        trials = [trial_of(trial, self.columns) for trial in asked(self._state, wanted)]
        self.log.held.update({trial.number: trial.issued for trial in trials})
        return trials[0] if n is None else trials

    def tell(self, number: int | Trial, observation: Seen, issued: int | None = None) -> Told:
        """What was seen in a trial.

        number       the trial's, or the trial itself
        observation  what was seen: {"visit": 1, "buy": 0}. Variables left out were not seen, but for those without any
                     cause: where nobody sets them, they are 0
        issued       of which hand-out it is, as the trial says

        A trial that was carried out many times has a row per round: a list of mappings, a pandas.DataFrame, the path of
        a CSV file or an open text file. Equal rows may be summed up, with how often each was seen as `count`. All of
        them are one entry of the log, and their order does not matter.

        When this returns, the rounds are on the disk. The same told twice changes nothing; something else is refused.
        A tell after the lease ran out is accepted and flagged as late. Where a trial was handed out again, it matters
        who tells: pass the trial itself, or `issued` as it says. Otherwise the last hand-out by this object counts, or
        the first of all if there is none.

        Returns what became of it: see `Told`.

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("told", graph, budget=1, storage="memory", policy="random")
        >>> experiment.tell(experiment.ask(size=50), [{"buy": 1, "count": 20}, {"buy": 0, "count": 30}]).rounds
        50
        """
        return self.log.tell(number, observation, issued)

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
        self.log.close(number, FAILED, reason)

    def abandon(self, number: int | Trial) -> None:
        """Nobody will carry the trial out. The learner takes nothing from it.

        number  the trial's, or the trial itself
        """
        self.log.close(number, ABANDONED, None)

    def record(self, do: Do | None, observation: Seen, *, randomised: bool = False) -> int:
        """A round that nobody asked for. Returns its number.

        do           what was set: {"coupon": 1}, names that were set to 1, or None for nothing
        observation  what was seen, as in `tell`: a mapping, with a `count` where it was seen more than once, or rows
        randomised   what was set was chosen at random: its outcomes count as the set's own, as those of `ask` do

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("recorded", graph, budget=1, storage="memory")
        >>> experiment.record({"ad": 1}, {"buy": 1}), experiment.record(None, {"buy": 0, "count": 20})
        (0, 1)
        """
        return self.log.record(do, observation, randomised)

    def import_history(self, source: Any, *, randomised: bool = False) -> range:
        """Many rounds that nobody asked for: all of them, or none if one is wrong. Returns the numbers of their trials.

        source      the path of a CSV or Parquet file, a frame, or rows
        randomised  what was set in the rows was chosen at random, or by an `ask` of another experiment. Otherwise the
                    model learns from the rows, but what came of a set does not count as the set's own outcomes: what
                    decided on it may have moved the target, too

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
        warn = partial(warnings.warn, category=DobanditWarning, stacklevel=3)
        return self.log.import_noted(source, warn, randomised)

    def rounds_in(self, numbers: range) -> int:
        """How many rounds an import brought, counts included.

        numbers  those of its trials, as `import_history` returned them

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("counted", graph, budget=1, storage="memory")
        >>> experiment.rounds_in(experiment.import_history([{"ad": 1, "buy": 1, "count": 30}]))
        30
        """
        return self.log.rounds_in(numbers)

    # -- the log as rows and tables -------------------------------------------------------------------------------

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
        return [export.row_of(trial, self.columns) for trial in self.log.page(after, limit, state, last)]

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
        return export.write_csv(self.log.stored_trials(), self.columns, self.log.table_path(path))

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
        export.write_parquet(self.log.stored_trials(), self.columns, self.log.table_path(path))

    def to_pandas(self) -> Any:
        """The log as a pandas frame (needs pandas), with the rows of `to_csv`."""
        return export.to_pandas(self.log.stored_trials(), self.columns)

    # -- answers -------------------------------------------------------------------------------------------------

    def recommend(
        self, available: Iterable[str] | None = None, *, context: Mapping[str, object] | None = None
    ) -> Recommendation:
        """The set that looks best under the model's estimate, without optimism, and what speaks for and against it.

        available  the variables that can be set; default: all that the rules allow
        context    the value of each context variable, where the graph has some

        Returns E[target] with its interval, that of doing nothing and the uplift, what the rounds with exactly this set
        say by themselves (those that were asked for or randomised), how likely it is to be the best, by how much
        another may be better at most, and a verdict on the model: see `Recommendation`.

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy"), ("mail", "buy")], target="buy")
        >>> rows = [{"do:ad": 1, "mail": 0, "buy": 1, "count": 30}, {"ad": 0, "do:mail": 1, "buy": 0, "count": 30}]
        >>> experiment = dob.create_experiment("recommended", graph, budget=1, storage="memory", history=rows)
        >>> experiment.recommend().do
        {'ad': 1}
        """
        from dobandit.experiment.advice import advised  # needs Numba, and a tell does not

        return advised(self._state, None, available, context)

    def evaluate(self, do: Do | None, *, context: Mapping[str, object] | None = None) -> Recommendation:
        """All that `recommend` says, of an action of your choice, whether the rules allow it or not.

        do       what is set: {"coupon": 1}; {} is doing nothing
        context  the value of each context variable, where the graph has some

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> rows = [{"do:ad": 1, "buy": 1, "count": 15}, {"do:ad": 1, "buy": 0, "count": 15}]
        >>> experiment = dob.create_experiment("evaluated", graph, budget=1, storage="memory")
        >>> numbers = experiment.import_history(rows, randomised=True)
        >>> experiment.evaluate({"ad": 1}).observed.mean
        0.5
        """
        from dobandit.experiment.advice import advised

        return advised(self._state, {} if do is None else do, None, context)

    def best_observed(
        self, available: Iterable[str] | None = None, *, context: Mapping[str, object] | None = None
    ) -> BestObserved | None:
        """The allowed set that the data alone speak for; None where no round with one saw the target. Setting nothing
        counts where smaller sets do. Rounds count that were asked for or randomised.

        available  the variables that can be set; default: all that the rules allow
        context    only rounds in which these variables of the context had these values; default: all rounds

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> rows = [{"do:ad": 1, "buy": 1, "count": 15}, {"ad": 0, "buy": 0, "count": 30}]
        >>> experiment = dob.create_experiment("seen", graph, budget=1, storage="memory")
        >>> numbers = experiment.import_history(rows, randomised=True)
        >>> experiment.best_observed()[:2]
        ({'ad': 1}, 1.0)
        """
        known = self.columns.context_row(context, whole=False)
        with self._state.answering:
            problem = self.definition.problem
            return best_observed(self._state.counts(), problem, problem.settable(available), known)

    def explain(self, number: int | Trial) -> Explanation:
        """Why a trial set what it set, by what was known when it was asked.

        number  the trial's, or the trial itself

        Returns the estimate, the optimism on top of it, what each causal path contributes, and the runner-up: see
        `Explanation`.

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy"), ("mail", "buy")], target="buy")
        >>> experiment = dob.create_experiment("explained", graph, budget=1, storage="memory", seed=1)
        >>> experiment.explain(experiment.ask().number).margin  # two sets of which nothing is known yet
        0.0
        """
        from dobandit.experiment.explanation import explain

        with self._state.answering:
            return explain(self.log, number)

    def estimates(self) -> list[EdgeEstimate]:
        """Every edge's weight with its confidence interval, and every bias: see `EdgeEstimate`.

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy", bias=["buy"])
        >>> experiment = dob.create_experiment("estimated", graph, budget=1, storage="memory")
        >>> [(edge.cause, edge.effect, edge.rows) for edge in experiment.estimates()]
        [(None, 'buy', 0), ('ad', 'buy', 0)]
        """
        with self._state.answering:
            learner = self._state.now().learner
            with answering(learner.engine):
                return edge_estimates(learner)

    def status(self) -> Status:
        """How far the experiment is: trials by state, rounds, and the mean of the target. See `Status`.

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("begun", graph, budget=1, storage="memory")
        >>> number = experiment.record({"ad": 1}, {"buy": 1})
        >>> experiment.status().told, experiment.status().mean_target
        (1, 1.0)
        """
        stops = self.definition.stop_within is not None and not self.definition.problem.graph.context
        with self._state.answering:
            told = self.recommend() if stops else None
            sums, trials = self._state.sums()
            pending = self.storage.pending(self._state.experiment)
            return status_of(self, sums, trials, pending, told)

    def diagnose(self) -> Diagnosis:
        """Whether the data agree with the model: calibration, links, assumptions, the graph. See `Diagnosis`.

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> dob.create_experiment("diagnosed", graph, budget=1, storage="memory").diagnose().lines()
        ['0 rounds with CausalUCB.', 'There are no rounds yet.']
        """
        with self._state.answering:
            return self._state.diagnosis(self._state.now())

    @property
    def learner(self) -> Learner:
        """A copy of the policy at work, up to the last closed trial: to look at, and to play with."""
        with self._state.answering:
            return self._state.now().learner.copy()

    @property
    def interval_words(self) -> str:
        """What the intervals of values promise: that they hold at every round one looks, or at this round only."""
        with self._state.asking:
            return self._state.learner.learner.interval_words

    @property
    def delta(self) -> float:
        """With what probability a guaranteed gap is wrong at some round."""
        with self._state.asking:
            return self._state.learner.learner.engine.delta

    @property
    def told_rounds(self) -> int:
        """How many rounds were told, counts included."""
        with self._state.answering:
            return self._state.sums()[0].rounds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the storage's connections."""
        self.storage.close()
