"""The kernels of the policies that treat each set as an arm and ignore what causes what: UCB, epsilon-greedy, and the
yardsticks that play at random or always the same set."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.oracle.sets import pick

UCB, EPSILON_GREEDY, RANDOM, FIXED = 0, 1, 2, 3


class ArmsPlan(NamedTuple):
    kind: int
    parameter: float  # scale of UCB, epsilon of epsilon-greedy
    target: int
    sets: NDArray[np.int32]  # (arms, size) ids
    values: NDArray[np.float64]  # (arms,) scratch


class ArmsState(NamedTuple):
    """plays and total: rounds and sum of Y by arm. clock: rounds told."""

    plays: NDArray[np.int64]
    total: NDArray[np.float64]
    clock: NDArray[np.int64]


@inlined
def propose_arm(plan: Any, state: Any, uniforms: Any) -> int:
    """The arm to play. An arm not yet played comes first for UCB and counts as mean 1 for epsilon-greedy."""
    arms = len(state.plays)
    if plan.kind == FIXED:
        return 0
    if plan.kind == RANDOM:
        return min(int(uniforms[0] * arms), arms - 1)
    if plan.kind == EPSILON_GREEDY and uniforms[1] < plan.parameter:
        return min(int(uniforms[2] * arms), arms - 1)
    log_t = math.log(state.clock[0] + 1.0)
    all_plays, total, values = state.plays, state.total, plan.values
    for i in range(arms):
        plays = all_plays[i]
        if plan.kind == EPSILON_GREEDY:
            values[i] = total[i] / plays if plays > 0 else 1.0
        elif plays > 0:
            values[i] = total[i] / plays + plan.parameter * math.sqrt(log_t / plays)
        else:
            values[i] = math.inf
    return pick_arm(values, uniforms[0])


@kernel
def pick_arm(values: Any, uniform: float) -> int:
    """`pick`, where infinite values (arms not yet played) tie with each other."""
    infinite = 0
    for i in range(len(values)):
        if values[i] == math.inf:
            infinite += 1
    if infinite == 0:
        return pick(values, uniform)
    wanted = min(int(uniform * infinite), infinite - 1)
    for i in range(len(values)):
        if values[i] == math.inf:
            if wanted == 0:
                return i
            wanted -= 1
    return 0


@inlined
def update_arm(plan: Any, state: Any, arm: int, reward: float) -> None:
    """Take a round in; a round without a reward, or with a set that is no arm, only counts as time."""
    state.clock[0] += 1
    if arm >= 0 and not math.isnan(reward):
        state.plays[arm] += 1
        state.total[arm] += reward
