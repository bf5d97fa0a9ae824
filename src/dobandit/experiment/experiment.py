"""Experiment: ask what to set, tell what was seen.

Everything that matters is in the storage. An Experiment is a view of it that can be thrown away at any time: several
processes and threads may hold one of the same experiment.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, overload

from dobandit.checks import is_whole, shown
from dobandit.errors import ExperimentError
from dobandit.experiment.answers import (
    BestObserved,
    EdgeEstimate,
    best_observed,
    diagnosis_of,
    edge_estimates,
    observed_of,
)
from dobandit.experiment.batches import Batch, Seen, batch_of
from dobandit.experiment.choosing import Asked, ChoosingLog
from dobandit.experiment.definition import lease_seconds
from dobandit.experiment.known import View
from dobandit.experiment.log import number_of
from dobandit.experiment.reasons import is_reached
from dobandit.experiment.status import Status, status_of
from dobandit.experiment.storage.base import PENDING, TOLD, StoredTrial
from dobandit.experiment.table_columns import MOST_ROUNDS
from dobandit.experiment.tally import Progress
from dobandit.experiment.trial import Told, Trial

if TYPE_CHECKING:
    from dobandit.experiment.advice import Verdict
    from dobandit.experiment.diagnosis import Diagnosis
    from dobandit.experiment.explanation import Explanation
    from dobandit.model.weights import Do
    from dobandit.policy.answers import Recommendation
    from dobandit.policy.learner import Learner

_MOST_AT_ONCE = 10_000


class Experiment(ChoosingLog):
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

    _diagnosed: tuple[int, Diagnosis] | None = None  # the position in the log, and the diagnosis there

    # -- ask -----------------------------------------------------------------------------------------------------

    @overload
    def ask(
        self,
        available: Iterable[str] | None = None,
        n: Literal[1] = 1,
        lease: float | timedelta | None = None,
        *,
        size: int = 1,
        control: bool | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Trial: ...

    @overload
    def ask(
        self,
        available: Iterable[str] | None = None,
        n: int = 1,
        lease: float | timedelta | None = None,
        *,
        size: int = 1,
        control: bool | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Trial | list[Trial]: ...

    def ask(
        self,
        available: Iterable[str] | None = None,
        n: int = 1,
        lease: float | timedelta | None = None,
        *,
        size: int = 1,
        control: bool | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Trial | list[Trial]:
        """The next trial to carry out; a list of trials where n > 1.

        available  the variables that can be set in this round; default: all that the rules allow
        n          how many trials to hand out
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
        if not is_whole(n) or not 1 <= n <= _MOST_AT_ONCE:
            raise ExperimentError(f"n must be a whole number from 1 to {_MOST_AT_ONCE:,}, but got {shown(n)}.")
        if not is_whole(size) or not 1 <= size <= MOST_ROUNDS:
            raise ExperimentError(
                f"size is how many rounds a trial is planned for, a whole number from 1 to {MOST_ROUNDS:,}, but got "
                f"{shown(size)}."
            )
        if control is not None and not isinstance(control, bool):
            raise ExperimentError(f"control is True, False or None, but got {shown(control)}.")
        known = self.columns.context_row(context)
        with self._lock:
            names = self._names(available)
            seconds = self.definition.lease if lease is None else lease_seconds(lease)
            now = self._clock()
            expires = None if seconds is None else max(now + seconds, math.nextafter(now, math.inf))
            told = None if known is None else self.columns.encode(known)
            trials = self._asked(Asked(names, int(size), control, told, int(n), now, expires))
            self._held.update({trial.number: trial.issued for trial in trials})
        return trials[0] if n == 1 else trials

    # -- tell ----------------------------------------------------------------------------------------------------

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
        if isinstance(number, Trial):
            issued, number = number.issued if issued is None else issued, number.number
        if issued is not None and (not is_whole(issued) or issued < 1):
            raise ExperimentError(f"issued is a whole number from 1, as the trial says, but got {shown(issued)}.")
        # Rows may take long to read, which is done before others are kept out.
        ahead = None if isinstance(observation, Mapping) else self._seen_ahead(number, observation)
        with self.storage.writing(self._id) as writer:
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
                    f"{issued}. Give issued=... as the trial says."
                )
            now = self._clock()
            holder = issued or self._held.get(trial.number, 1)
            late = trial.issued > holder or (trial.lease_expires is not None and now >= trial.lease_expires)
            position = writer.close(trial._replace(state=TOLD, closed_at=now, late=late, **seen.stored()))
        self._closed(trial.number, position)
        return Told(trial.number, late, seen.partial, False, seen.rounds, seen.missing, seen.untaught)

    def _seen_in(self, trial: StoredTrial, observation: Seen) -> Batch:
        context = None if trial.context is None else self.columns.values(trial.context)
        return batch_of(observation, self.columns, self.columns.values(trial.do), context)

    def _seen_ahead(self, number: int, observation: Seen) -> Batch | None:
        """What was seen; None where there is no such trial. What a trial sets, and its context, never change."""
        trial = self.storage.trial(self._id, number_of(number))
        return None if trial is None else self._seen_in(trial, observation)

    # -- answers -------------------------------------------------------------------------------------------------

    def recommend(
        self, available: Iterable[str] | None = None, *, context: Mapping[str, object] | None = None
    ) -> Recommendation:
        """The set that looks best under the model's estimate, without optimism, and what speaks for and against it.

        available  the variables that can be set; default: all that the rules allow
        context    the value of each context variable, where the graph has some

        Returns E[target] with its interval, that of doing nothing and the uplift, what the rounds with exactly this set
        say by themselves, how likely it is to be the best, by how much another may be better at most, and a verdict on
        the model: see `Recommendation`.

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy"), ("mail", "buy")], target="buy")
        >>> rows = [{"do:ad": 1, "mail": 0, "buy": 1, "count": 30}, {"ad": 0, "do:mail": 1, "buy": 0, "count": 30}]
        >>> experiment = dob.create_experiment("recommended", graph, budget=1, storage="memory", history=rows)
        >>> experiment.recommend().do
        {'ad': 1}
        """
        return self._assessed(None, available, context)

    def evaluate(self, do: Do | None, *, context: Mapping[str, object] | None = None) -> Recommendation:
        """All that `recommend` says, of an action of your choice, whether the rules allow it or not.

        do       what is set: {"coupon": 1}; {} is doing nothing
        context  the value of each context variable, where the graph has some

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> rows = [{"do:ad": 1, "buy": 1, "count": 15}, {"do:ad": 1, "buy": 0, "count": 15}]
        >>> experiment = dob.create_experiment("evaluated", graph, budget=1, storage="memory", history=rows)
        >>> experiment.evaluate({"ad": 1}).observed.mean
        0.5
        """
        return self._assessed({} if do is None else do, None, context)

    def _assessed(
        self, do: Do | None, available: Iterable[str] | None, context: Mapping[str, object] | None
    ) -> Recommendation:
        from dobandit.experiment.advice import advice

        known = self.columns.context_row(context)  # in the words of an ask
        given = None if known is None else self.columns.decode(self.columns.encode(known))
        with self._reading:
            view = self._view()
            told = view.learner.assess(do, available, given)
            ledger = self._followed_ledger(view.position)
            told = told._replace(observed=observed_of(ledger, told.do, known))
            reached = is_reached(told.gap, self.definition.stop_within)
            return advice(told, self._verdict(view, reached), view.learner, view.doubts, ledger.tried())

    def _verdict(self, view: View, reached: bool) -> Verdict:
        """Whether the rounds bear the model out, if they are not too many to look into, or one might stop."""
        from dobandit.experiment.advice import MOST_DIAGNOSED, TOO_LONG, verdict_of

        if view.learner.rounds > MOST_DIAGNOSED and not reached:
            return TOO_LONG
        return verdict_of(self._diagnosis(view), view.learner)

    def _diagnosis(self, view: View) -> Diagnosis:
        """Worked out once for each state of the log."""
        if self._diagnosed is None or self._diagnosed[0] != view.position:
            self._diagnosed = (
                view.position,
                diagnosis_of(view.learner, self._followed_ledger(view.position, predictions=True)),
            )
        return self._diagnosed[1]

    def best_observed(
        self, available: Iterable[str] | None = None, *, context: Mapping[str, object] | None = None
    ) -> BestObserved | None:
        """The allowed set that the data alone speak for; None where no round with one saw the target. Setting nothing
        counts where smaller sets do.

        available  the variables that can be set; default: all that the rules allow
        context    only rounds in which these variables of the context had these values; default: all rounds

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> rows = [{"do:ad": 1, "buy": 1, "count": 15}, {"ad": 0, "buy": 0, "count": 30}]
        >>> experiment = dob.create_experiment("seen", graph, budget=1, storage="memory", history=rows)
        >>> experiment.best_observed()[:2]
        ({'ad': 1}, 1.0)
        """
        known = self.columns.context_row(context, whole=False)
        with self._reading:
            problem = self.definition.problem
            return best_observed(self._followed_ledger(), problem, problem.settable(available), known)

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

        with self._reading:
            return explain(self, number)

    def estimates(self) -> list[EdgeEstimate]:
        """Every edge's weight with its confidence interval, and every bias: see `EdgeEstimate`.

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy", bias=["buy"])
        >>> experiment = dob.create_experiment("estimated", graph, budget=1, storage="memory")
        >>> [(edge.cause, edge.effect, edge.rows) for edge in experiment.estimates()]
        [(None, 'buy', 0), ('ad', 'buy', 0)]
        """
        with self._reading:
            return edge_estimates(self._view().learner)

    def status(self, progress: Progress | None = None) -> Status:
        """How far the experiment is: trials by state, rounds, and the mean of the target. See `Status`.

        progress  called with how many closed trials were added up, and how many there are, where many have to be

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("begun", graph, budget=1, storage="memory")
        >>> number = experiment.record({"ad": 1}, {"buy": 1})
        >>> experiment.status().told, experiment.status().mean_target
        (1, 1.0)
        """
        gap: float | None = None
        doubts: tuple[str, ...] = ()
        with self._reading:
            if self.definition.stop_within is not None and not self.definition.problem.graph.context:
                gap = self._view().learner.gap()
                doubts = self.recommend().doubts if is_reached(gap, self.definition.stop_within) else ()
            tally, trials = self._followed_tally(progress)
            pending = self.storage.pending(self._id)
            return status_of(self, tally, trials, pending, self._created_at, self._clock(), gap, doubts)

    def diagnose(self) -> Diagnosis:
        """Whether the data agree with the model: calibration, links, assumptions, the graph. See `Diagnosis`.

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> dob.create_experiment("diagnosed", graph, budget=1, storage="memory").diagnose().lines()
        ['0 rounds with CausalUCB.', 'There are no rounds yet.']
        """
        with self._reading:
            return self._diagnosis(self._view())

    # -- what is known -------------------------------------------------------------------------------------------

    @property
    def learner(self) -> Learner:
        """A copy of the policy at work, up to the last closed trial: to look at, and to play with."""
        with self._reading:
            return self._view().learner.copy()
