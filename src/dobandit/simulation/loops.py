"""The compiled rounds: propose, act, record, update. One loop an engine, since kernels are not passed as arguments
(Numba would compile the loop anew in every process)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.policy.arms import propose_arm, update_arm
from dobandit.policy.optimist import (
    propose_boxed,
    propose_general,
    propose_linear,
    propose_search,
    update_general,
    update_linear,
)
from dobandit.simulation.world import act, linear_value


class Recorder(NamedTuple):
    """What a run leaves behind. Row i of `expected` is E[Y | do(set i)], its last row that of setting nothing."""

    expected: NDArray[np.float64]  # (sets + 1,)
    best: float
    grid: NDArray[np.int64]  # rounds at which the curves are recorded, ascending, from 1
    regret: NDArray[np.float64]  # (grid,) cumulative expected regret
    reward: NDArray[np.float64]  # (grid,) cumulative Y
    plays: NDArray[np.int64]  # (sets + 1,)
    total: NDArray[np.float64]  # (2,) running regret and reward
    at: NDArray[np.int64]  # (2,) rounds played, next grid point
    values: NDArray[np.float64]  # (learner's n + 1,) what the learner sees
    was_set: NDArray[np.bool_]
    nothing: NDArray[np.int32]  # (0,)


@inlined
def record(recorder: Any, index: int, reward: float) -> None:
    """Count a round in which set `index` was played (-1: nothing) and Y was `reward`."""
    recorder.total[0] += recorder.best - recorder.expected[index]
    recorder.total[1] += reward
    recorder.plays[index] += 1
    recorder.at[0] += 1
    k = recorder.at[1]
    if k < len(recorder.grid) and recorder.grid[k] == recorder.at[0]:
        recorder.regret[k] = recorder.total[0]
        recorder.reward[k] = recorder.total[1]
        recorder.at[1] += 1


@kernel
def run_linear(plan: Any, state: Any, world: Any, recorder: Any, world_draws: Any, policy_draws: Any) -> None:
    layout, target = plan.layout, plan.layout.target
    values, was_set = recorder.values, recorder.was_set
    for t in range(len(world_draws)):
        index = propose_linear(plan, state, policy_draws[t, 0])
        chosen = plan.tree.sets[index] if index >= 0 else recorder.nothing
        act(world, chosen, world_draws[t], values, was_set)
        record(recorder, index, values[target])
        update_linear(plan.settings.initial, layout, plan.thresholds, state, values, was_set)


@kernel
def run_boxed(plan: Any, state: Any, world: Any, recorder: Any, world_draws: Any, policy_draws: Any) -> None:
    linear, target = plan.linear, plan.linear.layout.target
    values, was_set = recorder.values, recorder.was_set
    for t in range(len(world_draws)):
        index = propose_boxed(plan, state, policy_draws[t, 0])
        chosen = linear.tree.sets[index] if index >= 0 else recorder.nothing
        act(world, chosen, world_draws[t], values, was_set)
        record(recorder, index, values[target])
        update_linear(linear.settings.initial, linear.layout, linear.thresholds, state, values, was_set)


@kernel
def run_search(plan: Any, state: Any, world: Any, recorder: Any, world_draws: Any, policy_draws: Any) -> None:
    linear, target = plan.linear, plan.linear.layout.target
    values, was_set = recorder.values, recorder.was_set
    for t in range(len(world_draws)):
        count = propose_search(plan, state, policy_draws[t, 0], state.clock[0])
        chosen = plan.search.best[: max(count, 0)]
        act(world, chosen, world_draws[t], values, was_set)
        recorder.expected[0] = linear_value(world, chosen)
        best = recorder.expected[0] >= recorder.best - 1e-12
        record(recorder, 0, values[target])
        recorder.plays[-1] += best  # sets have no numbers here: the last counts the optimal ones
        update_linear(linear.settings.initial, linear.layout, linear.thresholds, state, values, was_set)


@kernel
def run_general(plan: Any, state: Any, world: Any, recorder: Any, world_draws: Any, policy_draws: Any) -> None:
    target = plan.linear.layout.target
    values, was_set = recorder.values, recorder.was_set
    for t in range(len(world_draws)):
        index = propose_general(plan, state, policy_draws[t, 0])
        chosen = plan.linear.tree.sets[index] if index >= 0 else recorder.nothing
        act(world, chosen, world_draws[t], values, was_set)
        record(recorder, index, values[target])
        update_general(plan, state, values, was_set)


@kernel
def run_arms(plan: Any, state: Any, world: Any, recorder: Any, world_draws: Any, policy_draws: Any) -> None:
    values, was_set = recorder.values, recorder.was_set
    for t in range(len(world_draws)):
        arm = propose_arm(plan, state, policy_draws[t])
        act(world, plan.sets[arm], world_draws[t], values, was_set)
        record(recorder, arm, values[plan.target])
        update_arm(plan, state, arm, values[plan.target])
