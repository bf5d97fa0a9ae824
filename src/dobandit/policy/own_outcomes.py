"""What each action of a list brought by itself, in each context: rounds and sum of the target, without any model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import PolicyError
from dobandit.kernels import inlined, kernel
from dobandit.oracle.actions import Action, Actions
from dobandit.policy.engine import Array, Pending, Rounds

_MOST_CELLS = 1 << 22  # actions x contexts


class OwnOutcomes(NamedTuple):
    """A column per action of the list, a row per context."""

    context: NDArray[np.int32]  # ids of the context variables
    target: int
    sets: NDArray[np.bool_]  # (actions,) whether an action sets anything
    plays: Array  # (contexts, actions)
    total: Array  # (contexts, actions) sum of Y
    rounds: Array  # (1,) those in which something was set; none where outcomes are not kept


def own_outcomes(context: NDArray[np.int32], target: int, actions: Actions) -> OwnOutcomes:
    """Before any round of these actions."""
    plays, total = np.zeros((2, 1 << len(context), len(actions.ids)))
    # A copy of the ids that can be written, as where there are none: kernels would be compiled again for any other.
    return OwnOutcomes(np.array(context), target, np.any(actions.ids > 0, axis=1), plays, total, np.zeros(1))


_NONE = np.zeros((0, 0))
NO_CONTEXT: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
NOT_KEPT = OwnOutcomes(NO_CONTEXT, 0, np.zeros(0, dtype=np.bool_), _NONE, _NONE, np.zeros(0))


def numbered(actions: Actions) -> dict[Action, int]:
    """The column of each action."""
    return {actions.row(i): i for i in range(len(actions.ids))}


def require_room(who: str, actions: int, contexts: int) -> None:
    """Refuse more actions and context variables than there is room for."""
    if actions << contexts > _MOST_CELLS:
        raise PolicyError(
            f"{who} keeps the outcomes of every allowed action in every context, but {actions:,} actions and "
            f"{contexts} context variables are too many. Make fewer variables context, or leave {who} out."
        )


@kernel
def pattern_of(context: Any, fixed: Any) -> int:
    """The number of the context that is known, as `see_context` counts them."""
    code = 0
    for i in range(len(context)):
        code |= int(fixed[context[i]] > 0.5) << i
    return code


def actions_in(rounds: Rounds) -> list[Action]:
    """What each round set. A long log repeats a few actions, and each of them is read once."""
    told = np.where(rounds.was_set, rounds.values, np.nan)
    text, size, read = told.tobytes(), told.itemsize * told.shape[1], dict[bytes, Action]()
    actions = []
    for i, start in enumerate(range(0, len(text), size)):
        key = text[start : start + size]
        if key not in read:
            ids = np.flatnonzero(rounds.was_set[i]).tolist()
            read[key] = Action(tuple(ids), tuple(rounds.values[i, ids].tolist()))
        actions.append(read[key])
    return actions


def note_rounds(own: OwnOutcomes, number: dict[Action, int], rounds: Rounds, every: bool = False) -> OwnOutcomes:
    """Take rounds in. One whose context or target was not seen says nothing of what its action does by itself, nor does
    one with an action that is not in the list, unless every action counts: then it gets a column behind the others."""
    actions = actions_in(rounds)
    new = [action for action in dict.fromkeys(actions) if every and action not in number]
    if new:
        number.update(zip(new, range(len(number), len(number) + len(new)), strict=True))
        plays, total = (np.pad(part, ((0, 0), (0, len(new)))) for part in (own.plays, own.total))
        own = own._replace(sets=np.append(own.sets, [bool(action.ids) for action in new]), plays=plays, total=total)
    columns = np.array([number.get(action, -1) for action in actions], dtype=np.int64)
    note_rows(*own, columns, rounds.values, rounds.counts)
    return own


@kernel
def note_rows(
    context: Any, target: int, sets: Any, plays: Any, total: Any, rounds: Any, columns: Any, values: Any, counts: Any
) -> None:
    """Rounds in their order, each as often as it counts: a multiple would be another number in the last bit."""
    for t in range(len(columns)):
        unseen = False
        for v in context:
            unseen = unseen or math.isnan(values[t, v])
        for _ in range(0 if unseen else counts[t]):
            note_play(sets, plays, total, rounds, pattern_of(context, values[t]), columns[t], values[t, target])


@inlined
def note_play(sets: Any, plays: Any, total: Any, rounds: Any, pattern: int, action: int, reward: float) -> None:
    """Take in that a listed action (below 0: none) was played in a context, and what came of it."""
    if action >= 0 and not math.isnan(reward):
        plays[pattern, action] += 1.0
        total[pattern, action] += reward
        rounds[0] += sets[action]


def outcomes_of(
    own: OwnOutcomes,
    number: dict[Action, int],
    actions: Sequence[Action],
    context: Array,
    pending: Iterable[Pending] = (),
    expected: Callable[[Action], float] | None = None,
) -> tuple[Array, Array]:
    """(rounds, sum of Y) of each action in a context. What is under way counts as played, with the mean that is
    expected of it: by default the one that the action has, or 1/2."""
    pattern, columns = pattern_of(own.context, context), np.array([number.get(each, -1) for each in actions])
    plays, total = (np.where(columns >= 0, part[pattern, columns], 0.0) for part in (own.plays, own.total))
    under_way = Counter[Action]()
    for one in pending:
        under_way[one.action] += one.size if pattern_of(own.context, one.context) == pattern else 0
    for i, action in enumerate(actions if under_way else ()):
        if size := under_way[action]:
            mean = total[i] / plays[i] if plays[i] else 0.5
            plays[i] += size
            total[i] += size * (mean if expected is None else expected(action))
    return plays, total
