"""What each action of a list brought by itself, in each context: rounds and sum of the target, without any model."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.oracle.actions import Action, Actions
from dobandit.policy.engine import Array, Pending, Rounds


class OwnOutcomes(NamedTuple):
    """A column per action of the list, a row per context."""

    context: NDArray[np.int32]  # ids of the context variables
    target: int
    plays: Array  # (contexts, actions)
    total: Array  # (contexts, actions) sum of Y
    rounds: Array  # (1,) those in which something was set; none where outcomes are not kept


def own_outcomes(context: NDArray[np.int32], target: int, count: int) -> OwnOutcomes:
    """Before any round of `count` actions."""
    plays, total = np.zeros((2, 1 << len(context), count))
    return OwnOutcomes(context, target, plays, total, np.zeros(1))


NOT_KEPT = OwnOutcomes(np.zeros(0, dtype=np.int32), 0, np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0))


def numbered(actions: Actions) -> dict[Action, int]:
    """The column of each action."""
    return {actions.row(i): i for i in range(len(actions.ids))}


@kernel
def pattern_of(context: Any, fixed: Any) -> int:
    """The number of the context that is known, as `see_context` counts them."""
    code = 0
    for i in range(len(context)):
        code |= int(fixed[context[i]] > 0.5) << i
    return code


def note_rounds(own: OwnOutcomes, number: dict[Action, int], rounds: Rounds) -> None:
    """Take rounds in. One whose context or target was not seen says nothing of what its action does by itself, nor does
    one with an action that is not in the list."""
    for values, was_set, count in zip(*rounds, strict=True):
        ids = np.flatnonzero(was_set).tolist()
        column = number.get(Action(tuple(ids), tuple(values[ids].tolist())), -1)
        if column >= 0 and not math.isnan(values[own.target]) and not np.isnan(values[own.context]).any():
            pattern = pattern_of(own.context, values)
            own.plays[pattern, column] += count
            own.total[pattern, column] += count * values[own.target]
            own.rounds[0] += count if ids else 0


@inlined
def note_play(own: Any, ids: Any, pattern: int, action: int, reward: float) -> None:
    """Take in that a listed action (below 0: none) was played in a context, and what came of it. ids: of the list."""
    if len(own.rounds) > 0 and action >= 0 and not math.isnan(reward):
        own.plays[pattern, action] += 1.0
        own.total[pattern, action] += reward
        if ids.shape[1] > 0 and ids[action, 0] > 0:
            own.rounds[0] += 1.0


def outcomes_of(own: OwnOutcomes, columns: NDArray[np.int64], context: Array) -> tuple[Array, Array]:
    """(rounds, sum of Y) in a context of actions with these columns; 0 of those with the column -1."""
    pattern = pattern_of(own.context, context)
    return tuple(np.where(columns >= 0, part[pattern, columns], 0.0) for part in (own.plays, own.total))  # type: ignore[return-value]


def expect_outcomes(own: OwnOutcomes, number: dict[Action, int], pending: tuple[Pending, ...]) -> OwnOutcomes:
    """With what is under way: it counts as played, with the mean that the action has (with 1/2 where it has none)."""
    if not pending:
        return own
    plays, total = own.plays.copy(), own.total.copy()
    for one in pending:
        if (column := number.get(one.action, -1)) >= 0:
            pattern = pattern_of(own.context, one.context)
            known = own.plays[pattern, column]
            plays[pattern, column] += one.size
            total[pattern, column] += one.size * (own.total[pattern, column] / known if known else 0.5)
    return own._replace(plays=plays, total=total)
