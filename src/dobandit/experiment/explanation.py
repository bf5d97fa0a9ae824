"""Why a trial set what it set: the estimate, the optimism, the causal paths, and what came second.

Everything is computed anew from the log as it was when the trial was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dobandit.errors import ExperimentError, InterventionError
from dobandit.experiment.paths import Path, path_product, share_of_each, top_paths
from dobandit.experiment.replica import Replica
from dobandit.experiment.storage.base import ASKED, StoredTrial
from dobandit.oracle.sets import SetTree
from dobandit.policy.arms_engine import ArmsEngine
from dobandit.policy.base import UNIFORMS, Interval
from dobandit.policy.linear_engines import SearchEngine
from dobandit.policy.optimist_engine import OptimistEngine, ids_of

if TYPE_CHECKING:
    from dobandit.experiment.experiment import Experiment

_PATHS = 10
_ROUNDING = 1e-9


class RunnerUp(NamedTuple):
    """The best of the other sets."""

    do: dict[str, int]
    optimistic: float


class Explanation(NamedTuple):
    """bonus = optimistic - predicted: what the policy hopes for beyond the estimate; None where nothing was compared.

    optimistic  an index: above 1 while too little is known to bound E[target]; so are bonus and margin
    paths     what each causal path adds to the estimate, largest first, less than 0 where an estimated weight is;
              `other_paths`: what is not listed, and what cutting means to [0, 1] takes away (linear models)
    shares    by how much the estimate would fall without each variable that was set
    margin    optimistic - runner_up.optimistic; 0: a tie, broken by the trial's random numbers
    rounds    how many rounds were known; pending: how many trials were under way
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


def explain(experiment: Experiment, number: int) -> Explanation:
    trial = experiment.stored_trial(number)
    if trial.source != ASKED:
        raise ExperimentError(
            f"trial {number} was {trial.source}, not asked for: nobody chose it, so nothing explains it."
        )
    then = Replica(experiment.definition, experiment.columns)
    then.follow(experiment.closed_until(trial.asked_after))
    columns = experiment.columns
    ids = [columns.names.index(name) + 1 for name in columns.decode(trial.do)]
    pending = [
        [columns.names.index(name) + 1 for name in columns.decode(other.do)]
        for other in experiment.stored_trials()
        if other.number < number and _was_pending(other, trial)
    ]
    predicted, interval = then.predict(ids)
    paths, rest = _paths(then, ids, predicted)
    shares = share_of_each(lambda chosen: then.predict(chosen)[0], ids) if then.learner.keeps_model else []
    runner_up = _runner_up(then, trial, ids, pending)
    optimistic = trial.optimistic
    return Explanation(
        number=trial.number,
        do=columns.decode(trial.do),
        predicted=trial.predicted,
        interval=interval,
        optimistic=optimistic,
        bonus=None if optimistic is None or trial.predicted is None else optimistic - trial.predicted,
        paths=tuple(paths),
        other_paths=rest,
        shares={columns.names[i - 1]: share for i, share in zip(ids, shares, strict=False)},
        runner_up=runner_up,
        margin=None if runner_up is None or optimistic is None else _ahead(optimistic, runner_up.optimistic),
        rounds=then.learner.rounds,
        pending=len(pending),
        why=trial.why,
    )


def _ahead(one: float, other: float) -> float:
    """one - other, where two arms not yet tried (both infinite) are equal."""
    return 0.0 if one == other else one - other


def _was_pending(other: StoredTrial, trial: StoredTrial) -> bool:
    """Whether `other` was under way when `trial` was asked."""
    return other.source == ASKED and (other.position is None or other.position >= trial.asked_after)


def _paths(then: Replica, ids: Sequence[int], predicted: float) -> tuple[list[Path], float | None]:
    engine = then.learner.engine
    if not isinstance(engine, OptimistEngine) or not then.learner.problem.is_linear:
        return [], None
    graph, theta = then.learner.graph, engine.theta()
    found, _ = top_paths(graph, np.abs(theta), list(ids), _PATHS)
    paths = [path._replace(contribution=path_product(graph, theta, path)) for path in found]
    rest = predicted - sum(path.contribution for path in paths)
    return paths, 0.0 if abs(rest) < _ROUNDING else rest


def _runner_up(
    then: Replica, trial: StoredTrial, ids: Sequence[int], pending: Sequence[Sequence[int]]
) -> RunnerUp | None:
    """The best of the other sets that the policy compared."""
    engine, learner = then.learner.engine, then.learner
    if trial.optimistic is None:
        return None
    available = learner.available(then.columns.listed(trial.available)) if trial.available else None
    if isinstance(engine, SearchEngine):
        return None if engine.plan.greedy else _searched_runner_up(then, available, ids, pending)
    if isinstance(engine, ArmsEngine):
        sets, values, _ = engine.compare(np.ones(UNIFORMS), available, pending)  # 1: epsilon-greedy does not explore
    elif isinstance(engine, OptimistEngine):
        engine.choose(np.zeros(UNIFORMS), available, pending)
        plan = engine.plan_for(available)
        tree: SetTree = getattr(plan, "linear", plan).tree  # with the values that were compared
        sets, values = tree.sets, tree.values
    others = [k for k, row in enumerate(sets) if set(ids_of(row)) != set(ids)]
    if not others:
        return None
    best = max(others, key=lambda k: float(values[k]))
    return RunnerUp(learner.named(ids_of(sets[best])), float(values[best]))


def _searched_runner_up(
    then: Replica, available: tuple[str, ...] | None, ids: Sequence[int], pending: Sequence[Sequence[int]]
) -> RunnerUp | None:
    """A search has no list: the second best set lacks one of the best set's variables, since more never hurts."""
    learner = then.learner
    best: RunnerUp | None = None
    for i in ids:
        without = [name for name in available or learner.graph.controllable if name != learner.graph.nodes[i - 1]]
        try:
            choice = learner.engine.choose(np.zeros(UNIFORMS), learner.available(without), pending)
        except InterventionError:  # a required variable, or no set without it
            continue
        if best is None or choice.value > best.optimistic:
            best = RunnerUp(learner.named(choice.ids), choice.value)
    return best
