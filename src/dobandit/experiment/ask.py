"""Choosing which trial comes next, by the closed trials, those under way, and the random numbers of its own number.

A choice may take long, so that it is made outside of the write transaction: the trial is stored if no other one was
added meanwhile, and chosen anew otherwise. Trials that are closed meanwhile do no harm: `asked_after` says how much of
the log was known, and what was closed later counts as under way. Whoever loses three times chooses inside.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from dobandit.checks import is_whole, shown
from dobandit.errors import ExperimentError
from dobandit.experiment.definition import lease_seconds
from dobandit.experiment.plain_work import asking
from dobandit.experiment.reasons import gap_words, is_reached, reason_for, with_doubts
from dobandit.experiment.state import LogState
from dobandit.oracle.actions import NOTHING
from dobandit.policy.questions import Stops
from dobandit.rows.columns import Row
from dobandit.rows.stored_trial import ASKED, StoredTrial
from dobandit.rows.table_columns import MOST_ROUNDS
from dobandit.storage.contract import Writer

if TYPE_CHECKING:
    from dobandit.policy.engine import Pending

CONTROL = "control: nothing is set, for an honest comparison"
UNTRIED = "tried once: no round has set this, and nobody should stop on what nobody tried"
_UNLESS = " if recommend says so too"  # its checks take longer than an ask may
_RACES = 3
_MOST_AT_ONCE = 10_000


class Ask(NamedTuple):
    """An ask, checked: what it wants of a trial, as the log keeps it; how many of them; when, and until when."""

    available: tuple[str, ...] | None
    size: int
    control: bool | None
    context: str | None
    n: int
    now: float
    expires: float | None


def ask_of(
    state: LogState,
    available: Iterable[str] | None,
    n: int,
    lease: float | timedelta | None,
    size: int,
    control: bool | None,
    context: Mapping[str, object] | None,
    now: float,
) -> Ask:
    """What `Experiment.ask` was given, checked."""
    if not is_whole(n) or not 1 <= n <= _MOST_AT_ONCE:
        raise ExperimentError(f"n must be a whole number from 1 to {_MOST_AT_ONCE:,}, but got {shown(n)}.")
    if not is_whole(size) or not 1 <= size <= MOST_ROUNDS:
        raise ExperimentError(
            f"size is how many rounds a trial is planned for, a whole number from 1 to {MOST_ROUNDS:,}, but got "
            f"{shown(size)}."
        )
    if control is not None and not isinstance(control, bool):
        raise ExperimentError(f"control is True, False or None, but got {shown(control)}.")
    row, problem = state.columns.context_row(context), state.definition.problem
    ids = problem.settable(available)
    names = None if ids is None else tuple(problem.graph.nodes[i - 1] for i in ids)
    seconds = state.definition.lease if lease is None else lease_seconds(lease)
    expires = None if seconds is None else max(now + seconds, math.nextafter(now, math.inf))
    return Ask(names, int(size), control, None if row is None else state.columns.encode(row), int(n), now, expires)


class Plan(NamedTuple):
    """What an ask hands out, as long as the next number is `number`: trials whose leases ran out, and new ones."""

    number: int
    due: list[StoredTrial]
    new: list[StoredTrial]

    def holds(self, writer: Writer) -> bool:
        """Whether nobody added a trial, nor told or took one that was due. Then the same trials are under way."""
        return writer.trials == self.number and all(writer.trial(trial.number) == trial for trial in self.due)


def asked(state: LogState, ask: Ask) -> list[StoredTrial]:
    """The trials of an ask, stored."""
    with state.asking:
        for _ in range(_RACES):
            plan = _plan(state, ask)
            if plan is not None:
                with state.storage.writing(state.experiment) as writer:
                    if plan.holds(writer):
                        return _store(writer, plan, ask)
        with state.storage.writing(state.experiment) as writer:
            state.learner.add(writer.closed_since(state.learner.position))
            return _store(writer, _chosen(state, ask, writer.trials, writer.pending()), ask)


def _plan(state: LogState, ask: Ask) -> Plan | None:
    """Choose without keeping others out; None where a trial was closed while the log was read."""
    trials = state.follow()
    pending = [trial for trial in state.storage.pending(state.experiment) if trial.number < trials]
    if len(pending) != trials - state.learner.position:
        return None
    return _chosen(state, ask, trials, pending)


def _chosen(state: LogState, ask: Ask, number: int, pending: Sequence[StoredTrial]) -> Plan:
    """What is handed out again, and new trials from `number` on, by what the learner knows."""
    due = [trial for trial in pending if _may_go_out_again(state, trial, ask)][: ask.n]
    under_way, new = [state.learner.pending(trial) for trial in pending], []
    wanted, stops = ask.n - len(due), state.definition.stop_within is not None
    with asking(state.learner.learner.engine, wanted + len(pending), stops):
        for k in range(wanted):
            new.append(_new(state, number + k, under_way, ask))
            under_way.append(state.learner.pending(new[-1]))
    return Plan(number, due, new)


def _store(writer: Writer, plan: Plan, ask: Ask) -> list[StoredTrial]:
    for trial in plan.due:
        writer.reissue(trial.number, ask.expires)
    again = [trial._replace(lease_expires=ask.expires, issued=trial.issued + 1) for trial in plan.due]
    if plan.new:
        writer.add(plan.new)
    return again + plan.new


def _may_go_out_again(state: LogState, trial: StoredTrial, ask: Ask) -> bool:
    expired = trial.lease_expires is not None and trial.lease_expires <= ask.now
    same = trial.size == ask.size and trial.context == ask.context and ask.control in (None, trial.control)
    return expired and same and (ask.available is None or state.columns.decode(trial.do).keys() <= {*ask.available})


def _new(state: LogState, number: int, under_way: list[Pending], ask: Ask) -> StoredTrial:
    """Let the policy choose, or nobody in a control round."""
    known, within = state.learner, state.definition.stop_within
    learner, context = known.learner, known.known(ask.context)
    control = known.is_control(number) if ask.control is None else ask.control
    reached = within is not None and not known.doubts and is_reached(known.gap(ask.available, context), within)
    untried = known.untried(ask.available, under_way) if reached and not control else None
    if control or untried is not None:
        action, why = (NOTHING, CONTROL) if untried is None else (untried, UNTRIED)
        value, (predicted, low, high) = math.nan, known.predict(action, context)
    else:
        situation = known.situation(number, ask.available, under_way, context)
        choice = learner.engine.choose(situation)
        action, value = learner.problem.checked(choice.action, learner.label), choice.value
        predicted, low, high = known.predict(action, context)
        usual = reason_for(choice, predicted, learner.graph.target, learner)
        why = learner.engine.reason(situation) if isinstance(learner.engine, Stops) else usual
        why = with_doubts(why, known.doubts)
    if within is not None and reached and untried is None:
        why = f"{why}; may stop{_UNLESS}: {gap_words(within, learner.engine.delta)}"
    do: Row = [None] * len(state.columns.names)
    for i, setting in zip(action.ids, action.values, strict=True):
        do[i - 1] = setting
    return StoredTrial(
        number=number,
        source=ASKED,
        do=state.columns.encode(do),
        asked_after=known.position,
        available=None if ask.available is None else json.dumps(ask.available, ensure_ascii=False),
        predicted=None if math.isnan(predicted) else predicted,
        low=low,
        high=high,
        optimistic=None if math.isnan(value) else value,
        why=why,
        asked_at=ask.now,
        lease_expires=ask.expires,
        context=ask.context,
        size=ask.size,
        control=control,
    )
