"""Actions to choose from, as a list that is walked so that neighbours share work.

Every objective here is a pass over the target's ancestors in topological order: what was computed for the variables
before the first one on which an action differs from the action before it stays valid, and only the rest is computed
again. A search has a list of one row, into which it writes what it finds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit import kernels
from dobandit.compiled import by_type, inlined
from dobandit.oracle.actions import Action, Actions

# Values this close (relative, at least absolute) are ties: rounding must not choose for us.
TIE = 1e-9
IDLE = -1  # the index of setting nothing but what is required


class Listing(NamedTuple):
    """The target's ancestors in topological order, the target last, and actions on them."""

    order: NDArray[np.int64]  # (depths,) ids
    ids: NDArray[np.int32]  # (count, size) ids; 0 for none
    to: NDArray[np.float64]  # (count, size) the values they are set to
    member: NDArray[np.int64]  # (count, size + flags) depths in `order` of what it sets, ascending; `depths` for none
    member_to: NDArray[np.float64]  # (count, size + flags) the values, in the order of `member`
    first: NDArray[np.int64]  # (count,) depth from which an action differs from the one before it
    rank: NDArray[np.int64]  # (count,) of actions with equal indices those of the largest rank are played
    values: NDArray[np.float64]  # (count,) scratch: the index of each action

    @property
    def actions(self) -> Actions:
        return Actions(self.ids, self.to)


def listing_of(
    order: list[int], actions: Actions, largest: bool = False, flags: Sequence[tuple[int, int]] = ()
) -> Listing:
    """A list of given actions, reordered so that neighbours share the most work.

    largest  whether of equal actions those are played that set the most variables; otherwise chance alone decides
    flags    (flag, variable) ids: an action that sets the variable sets the flag to 1, which is no part of the action
    """
    depths, (ids, to) = len(order), actions
    sets, set_to = ids, to
    for flag, of in flags:
        held = (ids == of).any(axis=1)[:, None]
        sets, set_to = np.hstack([sets, np.where(held, flag, 0)]), np.hstack([set_to, held])
    place = np.full(max([*order, int(sets.max(initial=0))]) + 1, depths, dtype=np.int64)
    place[order] = np.arange(depths)
    member = place[sets]
    inside = np.argsort(member, axis=1, kind="stable")
    member, member_to = np.take_along_axis(member, inside, axis=1), np.take_along_axis(set_to, inside, axis=1)
    member_to = np.where(member == depths, 0.0, member_to)
    keys = np.concatenate([member, member_to], axis=1)
    ranking = np.lexsort(keys.T[::-1]) if member.shape[1] else np.arange(len(ids))
    ids, to = np.ascontiguousarray(ids[ranking]), np.ascontiguousarray(to[ranking])
    member, member_to = np.ascontiguousarray(member[ranking]), np.ascontiguousarray(member_to[ranking])
    first = np.zeros(len(ids), dtype=np.int64)
    if member.shape[1]:
        differs = (member[1:] != member[:-1]) | (member_to[1:] != member_to[:-1])
        first[1:] = np.where(differs, np.minimum(member[1:], member[:-1]), depths).min(axis=1)
    rank = np.count_nonzero(ids, axis=1) if largest else np.zeros(len(ids))
    depths_of = np.array(order, dtype=np.int64)
    return Listing(depths_of, ids, to, member, member_to, first, rank.astype(np.int64), np.zeros(len(ids)))


def write_row(listing: Listing, action: Action) -> None:
    """Make an action, with its flags, the only row of a list that has room for them."""
    place = {v: depth for depth, v in enumerate(listing.order.tolist())}
    depths = len(place)
    held = sorted((place.get(v, depths), to) for v, to in zip(action.ids, action.values, strict=True))
    listing.ids[0], listing.to[0], listing.member[0], listing.member_to[0] = 0, 0.0, depths, 0.0
    listing.ids[0, : len(held)], listing.to[0, : len(held)] = action.ids, action.values
    for i, (depth, to) in enumerate(held):
        listing.member[0, i], listing.member_to[0, i] = depth, to


@by_type
def score(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """oracle.listing.values[i] = the largest E[Y] of action i that the regions allow.

    state: what an estimator knows; rho: radii by id; fixed: the context, NaN where a node is free.
    """


@by_type
def prepare(oracle: Any, layout: Any, state: Any, rho: Any) -> None:
    """Work out what no action changes; once per round, for searches."""


def prepare_nothing(oracle: Any, layout: Any, state: Any, rho: Any) -> None:
    """Where every action is worked out from the start."""


@by_type
def score_prepared(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """`score` after `prepare`, for searches, which write row after row."""


@by_type
def propose(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any, draws: Any) -> Any:
    """The row of oracle.listing with the largest index; equal ones are told apart by their rank, and then by the first
    of the round's draws. Without draws nothing is chosen, and the list holds what `score` makes of it: one kernel does
    for both. (Searches have no list, and are always given draws.)"""


def pick_best(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any, draws: Any) -> int:
    """Look at every action."""
    score(oracle, layout, state, rho, fixed)
    return pick_ranked(oracle.listing.values, draws[0], oracle.listing.rank) if len(draws) > 0 else IDLE


@inlined
def members_before(member: Any, i: int, depth: int) -> int:
    """How many variables of action i stand before `depth`."""
    count = 0
    while count < member.shape[1] and member[i, count] < depth:
        count += 1
    return count


@inlined
def held_at(listing: Any, i: int, depth: int, at: int, fixed: Any) -> tuple[float, int]:
    """What action i, whose next variable is its at-th, or else the context holds the node at `depth` to (NaN:
    free), and which of the action's variables is next then."""
    if at < listing.member.shape[1] and listing.member[i, at] == depth:
        return listing.member_to[i, at], at + 1
    return fixed[listing.order[depth]], at


@inlined
def hold(listing: Any, i: int, first: int, fixed: Any, known: Any) -> None:
    """known[depth] = what action i, or else the context, holds a node to, from the depth `first` on."""
    at = members_before(listing.member, i, first)
    for depth in range(first, len(listing.order)):
        known[depth], at = held_at(listing, i, depth, at, fixed)


@kernels.inlined
def floor_of(values: Any) -> float:
    """What a value must reach to tie with the largest; infinite values tie too."""
    a = b = c = d = values[0]  # four largest of every fourth: one alone would be waited for at each step
    fours = len(values) // 4 * 4
    for i in range(0, fours, 4):
        a, b = max(a, values[i]), max(b, values[i + 1])
        c, d = max(c, values[i + 2]), max(d, values[i + 3])
    for i in range(fours, len(values)):
        a = max(a, values[i])
    best = max(max(a, b), max(c, d))
    return best - TIE * max(1.0, abs(best)) if best < math.inf else best


@kernels.inlined
def pick(values: Any, uniform: float) -> int:
    """The index of the largest value; ties are broken by the given uniform number."""
    floor, ties = floor_of(values), 0
    for i in range(len(values)):
        if values[i] >= floor:
            ties += 1
    wanted = min(int(uniform * ties), ties - 1)
    for i in range(len(values)):
        if values[i] >= floor:
            if wanted == 0:
                return i
            wanted -= 1
    return 0


@kernels.inlined
def pick_ranked(values: Any, uniform: float, rank: Any) -> int:
    """The same among those of the largest values that have the largest rank."""
    floor, highest, ties = floor_of(values), 0, 0
    for i in range(len(values)):
        if values[i] >= floor:
            if rank[i] > highest:
                highest, ties = rank[i], 0
            if rank[i] == highest:
                ties += 1
    wanted = min(int(uniform * ties), ties - 1)
    for i in range(len(values)):
        if values[i] >= floor and rank[i] == highest:
            if wanted == 0:
                return i
            wanted -= 1
    return 0
