"""Actions to choose from, as a list that is walked so that neighbours share work, with the scores of each.

Every evaluator is a pass over the target's ancestors in topological order: what was computed for the variables before
the first one on which an action differs from the action before it stays valid. A search has a list of one row, into
which it writes what it finds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.kernels import inlined, kernel, record
from dobandit.oracle.actions import Action, Actions

# Values this close (relative, at least absolute) are ties: rounding must not choose for us.
TIE = 1e-9
IDLE = -1  # the number of setting nothing but what is required
HELD = record(depth="i8", to="f8")  # where in the order a variable stands, and what it is set to
# What evaluators leave of an action: E[Y], its standard deviation, the ends of an interval with a proof, and the index
# by which it is chosen.  first: the depth from which it differs from the action before it.  rank: of actions with equal
# indices those of the largest are played.  regime: which pass of a frontier it takes (`oracle.frontier`).
SCORE = record(first="i8", rank="i8", regime="i8", mean="f8", sd="f8", low="f8", high="f8", index="f8")


class ActionList(NamedTuple):
    """Actions on the target's ancestors, which are listed in topological order, the target last."""

    order: NDArray[np.int64]  # (depths,) ids
    ids: NDArray[np.int32]  # (count, size) ids; 0 for none
    to: NDArray[np.float64]  # (count, size) the values they are set to
    held: NDArray[Any]  # (count, size + flags) HELD: what an action sets, ascending; the depth `depths` for none
    scores: NDArray[Any]  # (count,) SCORE

    @property
    def actions(self) -> Actions:
        return Actions(self.ids, self.to)


def action_list(
    order: Sequence[int],
    actions: Actions,
    largest: bool = False,
    flags: Sequence[tuple[int, int]] = (),
    regimes: NDArray[np.int64] | None = None,
) -> ActionList:
    """A list of given actions, reordered so that neighbours share the most work.

    largest  whether of equal actions those are played that set the most variables; otherwise chance alone decides
    flags    (flag, variable) ids: an action that sets the variable sets the flag to 1, which is no part of the action
    regimes  the regime of each action; default: all are of one
    """
    depths, (ids, to) = len(order), actions
    sets, set_to = ids, to
    for flag, of in flags:
        is_set = (ids == of).any(axis=1)[:, None]
        sets, set_to = np.hstack([sets, np.where(is_set, flag, 0)]), np.hstack([set_to, is_set])
    place = np.full(max([*order, int(sets.max(initial=0))]) + 1, depths, dtype=np.int64)
    place[list(order)] = np.arange(depths)
    depth = place[sets]
    inside = np.argsort(depth, axis=1, kind="stable")
    depth, value = np.take_along_axis(depth, inside, axis=1), np.take_along_axis(set_to, inside, axis=1)
    value = np.where(depth == depths, 0.0, value)
    regimes = np.zeros(len(ids), dtype=np.int64) if regimes is None else regimes
    keys = np.concatenate([regimes[:, None], depth, value], axis=1)
    ranking = np.lexsort(keys.T[::-1])
    ids, to = np.ascontiguousarray(ids[ranking]), np.ascontiguousarray(to[ranking])
    held, scores = np.zeros(depth.shape, HELD), np.zeros(len(ids), SCORE)
    held["depth"], held["to"] = depth[ranking], value[ranking]
    if depth.shape[1]:
        differs, (before, after) = held[1:] != held[:-1], (held["depth"][:-1], held["depth"][1:])
        scores["first"][1:] = np.where(differs, np.minimum(before, after), depths).min(axis=1)
    scores["rank"], scores["regime"] = np.count_nonzero(ids, axis=1) if largest else 0, regimes[ranking]
    return ActionList(np.array(order, dtype=np.int64), ids, to, held, scores)


def write_row(actions: ActionList, action: Action, regime: int = 0) -> None:
    """Make an action, with its flags, the only row of a list that has room for them."""
    place = {v: depth for depth, v in enumerate(actions.order.tolist())}
    depths = len(place)
    held = sorted((place.get(v, depths), to) for v, to in zip(action.ids, action.values, strict=True))
    actions.ids[0], actions.to[0], actions.held[0], actions.scores[0]["regime"] = 0, 0.0, (depths, 0.0), regime
    actions.ids[0, : len(held)], actions.to[0, : len(held)] = action.ids, action.values
    for i, one in enumerate(held):
        actions.held[0, i] = one


@inlined
def held_at(held: Any, i: int, depth: int, at: int, otherwise: float) -> tuple[float, int]:
    """What action i, whose next variable is its at-th, holds the node at `depth` to, or else `otherwise`, and which of
    the action's variables is next then."""
    if at < held.shape[1] and held[i, at]["depth"] == depth:
        return held[i, at]["to"], at + 1
    return otherwise, at


@inlined
def held_before(held: Any, i: int, depth: int) -> int:
    """How many variables of action i stand before `depth`."""
    count = 0
    while count < held.shape[1] and held[i, count]["depth"] < depth:
        count += 1
    return count


@inlined
def tie_floor(best: float) -> float:
    """What a value must reach to tie with the largest; infinite values tie too."""
    return best - TIE * max(1.0, abs(best)) if best < math.inf else best


@inlined
def pick(values: Any, uniform: float) -> int:
    """The index of the largest value; ties are broken by the given uniform number."""
    best, ties = values[0], 0
    for i in range(len(values)):
        best = max(best, values[i])
    floor = tie_floor(best)
    for i in range(len(values)):
        ties += values[i] >= floor
    wanted = min(int(uniform * ties), ties - 1)
    for i in range(len(values)):
        if values[i] >= floor:
            if wanted == 0:
                return i
            wanted -= 1
    return 0


@kernel
def pick_action(scores: Any, uniform: float) -> int:
    """The action with the largest index; of ties those with the largest rank, and of these one by a uniform number."""
    best = -math.inf
    for i in range(len(scores)):
        best = max(best, scores[i]["index"])
    floor, highest, ties = tie_floor(best), 0, 0
    for i in range(len(scores)):
        if scores[i]["index"] >= floor:
            if scores[i]["rank"] > highest:
                highest, ties = scores[i]["rank"], 0
            ties += scores[i]["rank"] == highest
    wanted = min(int(uniform * ties), ties - 1)
    for i in range(len(scores)):
        if scores[i]["index"] >= floor and scores[i]["rank"] == highest:
            if wanted == 0:
                return i
            wanted -= 1
    return 0
