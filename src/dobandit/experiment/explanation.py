"""Why a trial set what it set: the estimate, the optimism, the causal paths, and what came second.

Everything is computed anew from the log as it was when the trial was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dobandit.errors import ExperimentError
from dobandit.experiment.paths import Path, path_product, top_paths
from dobandit.experiment.plain_work import asking
from dobandit.experiment.replayed_learner import ReplayedLearner
from dobandit.oracle.actions import Action
from dobandit.policy.engine import Array, Interval, Pending
from dobandit.policy.questions import Believes, runner_up
from dobandit.rows.stored_trial import ASKED, StoredTrial
from dobandit.texts import as_html, setting_words

if TYPE_CHECKING:
    from dobandit.experiment.log import TrialLog
    from dobandit.rows.trial import Trial

_PATHS = 10
_FEW = 1000  # closed trials that are looked at together
_ROUNDING = 1e-9


class RunnerUp(NamedTuple):
    """The best of the other actions."""

    do: dict[str, float]
    optimistic: float


class Explanation(NamedTuple):
    """Why a trial set what it set.

    number      the trial's;  do: what it set
    predicted   E[target] under the estimate of then;  interval: its confidence interval
    optimistic  an index: above 1 while too little is known to bound E[target]; so are bonus and margin
    bonus       optimistic - predicted: what the policy hopes for beyond the estimate; None where nothing was compared
    paths       what each causal path adds to the estimate, largest first, less than 0 where an estimated weight is;
                `other_paths`: what is not listed, and what cutting means to [0, 1] takes away (linear models, as long
                as the learner reckons with no cause that the graph lacks)
    shares      by how much the estimate would fall without each variable that was set
    runner_up   the action that came next
    margin      optimistic - runner_up.optimistic, None where the action has no index of its own; 0: a tie, broken by
                the trial's random numbers (the paper's policies, where sets may be smaller, look first at how many
                variables are set); below 0: the choice was not the best, because a search stopped early and this
                explanation looked further, which `why` says too
    rounds      how many rounds were known; pending: how many trials were under way
    why         the whole in a sentence
    context     what was known before it was asked
    """

    number: int
    do: dict[str, float]
    predicted: float | None
    interval: Interval
    optimistic: float | None
    bonus: float | None
    paths: tuple[Path, ...]
    other_paths: float | None
    shares: dict[str, float]
    runner_up: RunnerUp | None
    margin: float | None
    rounds: int
    pending: int
    why: str
    context: dict[str, float] = {}  # noqa: RUF012 (a default that nobody writes to)

    def __str__(self) -> str:
        lines = [f"trial {self.number}: set {setting_words(self.do)}", f"  {self.why}"]
        lines += [f"  {path.contribution:+.3f} by {' -> '.join(path.names)}" for path in self.paths]
        if self.runner_up is not None:
            lines.append(f"  next: {setting_words(self.runner_up.do)} ({self.runner_up.optimistic:.3f})")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return as_html(self)


def explain(log: TrialLog, number: int | Trial) -> Explanation:
    trial = log.stored_trial(number)
    if trial.source != ASKED:
        raise ExperimentError(
            f"trial {trial.number} was {trial.source}, not asked for: nobody chose it, so nothing explains it."
        )
    then = log.state.then(trial.asked_after)
    with asking(then.learner.engine, trials=3, stops=False):  # once more, and without variables that were set
        return _explained(log, trial, then)


def _explained(log: TrialLog, trial: StoredTrial, then: ReplayedLearner) -> Explanation:
    columns, context = log.columns, then.known(trial.context)
    action = then.action(trial)
    pending = [then.pending(other) for other in _under_way(log, trial)]
    predicted, low, high = then.predict(action, context)
    paths, rest = _paths(then, action, context, predicted)
    shares = _shares(then, action, context, predicted) if then.learner.keeps_model else {}
    runner_up = _runner_up(then, trial, action, pending, context)
    optimistic = trial.optimistic
    margin = None if runner_up is None or optimistic is None else _ahead(optimistic, runner_up.optimistic)
    return Explanation(
        number=trial.number,
        do=columns.decode(trial.do),
        predicted=trial.predicted,
        interval=Interval(low, high),
        optimistic=optimistic,
        bonus=None if optimistic is None or trial.predicted is None else optimistic - trial.predicted,
        paths=tuple(paths),
        other_paths=rest,
        shares=shares,
        runner_up=runner_up,
        margin=margin,
        rounds=then.learner.rounds,
        pending=len(pending),
        why=_why(trial.why, runner_up, margin),
        context={} if trial.context is None else columns.decode(trial.context),
    )


def _ahead(one: float, other: float) -> float:
    """one - other, where two arms not yet tried (both infinite) are equal, and rounding makes no difference."""
    return 0.0 if one == other or abs(one - other) < _ROUNDING else one - other


def _why(said: str, better: RunnerUp | None, margin: float | None) -> str:
    """Why it was chosen; where a set with a larger index has come to light, that one belongs to the story."""
    if better is None or margin is None or margin >= 0.0:
        return said
    return (
        f"{said}; not the best: a longer look, made for this explanation, finds that setting "
        f"{setting_words(better.do)} has an index that is larger by {-margin:.3g}"
    )


def _under_way(log: TrialLog, trial: StoredTrial) -> list[StoredTrial]:
    """The trials that were under way when this one was asked, by number: all before it, but for the closed ones.

    So their number is known, and the log is read no further than to the last of them.
    """
    few = [other for other in log.storage.pending(log.experiment) if other.number < trial.number]
    missing, position = trial.number - trial.asked_after - len(few), trial.asked_after
    while missing > 0 and (numbers := log.storage.closed_fields(log.experiment, position, _FEW, ("number",))):
        found = [log.stored_trial(number) for (number,) in numbers if number < trial.number]
        few += found
        missing, position = missing - len(found), position + len(numbers)
    return sorted(few, key=lambda other: other.number)


def _shares(then: ReplayedLearner, action: Action, context: Array, whole: float) -> dict[str, float]:
    """By how much the estimate would fall without each variable that was set; they need not add up."""
    shares = {}
    for k, v in enumerate(action.ids):
        rest = Action(action.ids[:k] + action.ids[k + 1 :], action.values[:k] + action.values[k + 1 :])
        shares[then.columns.names[v - 1]] = whole - then.predict(rest, context).value
    return shares


def _paths(then: ReplayedLearner, action: Action, context: Array, predicted: float) -> tuple[list[Path], float | None]:
    engine = then.learner.engine
    if not isinstance(engine, Believes) or not then.learner.problem.is_linear or engine.revisions:
        return [], None
    graph, theta, fixed = then.learner.graph, engine.beliefs().theta, action.over(context)
    found, _ = top_paths(graph, np.abs(theta), fixed, _PATHS)
    paths = [path._replace(contribution=path_product(graph, theta, path, fixed)) for path in found]
    rest = predicted - sum(path.contribution for path in paths)
    return paths, 0.0 if abs(rest) < _ROUNDING else rest


def _runner_up(
    then: ReplayedLearner, trial: StoredTrial, action: Action, pending: Sequence[Pending], context: Array
) -> RunnerUp | None:
    """The best of the other actions that the policy compared; a control round was compared with nothing."""
    if trial.control:
        return None
    available = then.columns.listed(trial.available) if trial.available else None
    found = runner_up(then.learner.engine, action, then.situation(trial.number, available, pending, context))
    return None if found is None else RunnerUp(found[0].named(then.learner.graph), found[1])
