"""LUCB over actions: the one that looks best against the one that may be ahead of it the most.

b: largest E[Y] under the estimate.  U, L: the ends of an action's interval, each the tighter of two: what the nodes'
intervals allow (`oracle.anytime_values`), and the Kullback-Leibler interval of the action's own outcomes at the level
of LUCB on arms.  A(c, b) = min(what c can be ahead of b by the nodes' intervals (`oracle.advantages`), U(c) - L(b)).
c: the action with the largest A(c, b). b is the answer as soon as A(c, b) <= epsilon; until then one of both is played,
by a fair coin (Kalyanakrishnan and others 2012 play both).
The nodes' intervals fail with probability delta / 2, the ends by own outcomes that an answer rests on (the upper one of
the truly best action, the lower ones of the others) with delta / 2 together: an answer is wrong with delta at most.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.estimation.kl import kl_level, kl_lower, kl_upper
from dobandit.oracle.advantages import Advantages, advantage, advantages_of
from dobandit.oracle.anytime_values import AnytimeValues, bound_kept
from dobandit.oracle.listing import pick, score


class Contest(NamedTuple):
    """The intervals of the actions of a list, and what it takes to compare two of them."""

    bounds: AnytimeValues
    work: Advantages
    epsilon: float
    none: NDArray[np.float64]  # (n + 1,) no optimism
    ahead: NDArray[np.float64]  # (count,) scratch: A(i, b); -inf where it is no more than another's


def contest(bounds: AnytimeValues, epsilon: float, nodes: int) -> Contest:
    """A contest of the actions of `bounds`, which has an oracle for the estimate too, in a graph of so many nodes."""
    count = len(bounds.listing.values)
    return Contest(bounds, advantages_of(bounds), epsilon, np.zeros(nodes + 1), np.zeros(count))


class Standing(NamedTuple):
    """Rows of the best and of its rival, and by how much the rival can be ahead at most; at least 0."""

    best: int
    rival: int
    gap: float


@kernel
def leader(game: Any, layout: Any, state: Any, fixed: Any) -> int:
    """The first row with the largest estimate."""
    score(game.bounds.joint, layout, state, game.none, fixed)
    best = 0
    for i in range(1, len(game.bounds.listing.values)):
        if game.bounds.listing.values[i] > game.bounds.listing.values[best]:
            best = i
    return best


class Own(NamedTuple):
    """What each action of a list brought by itself: rounds and sum of Y. cells: of how many such counts the intervals
    hold together, but with probability delta."""

    plays: NDArray[np.float64]  # (count,)
    total: NDArray[np.float64]  # (count,)
    cells: int
    delta: float


@kernel
def tighten(game: Any, own: Any) -> None:
    """Bring the ends of every action in to those of its own outcomes, where these are tighter."""
    high, low = game.bounds.listing.values, game.bounds.lower
    for i in range(len(high)):
        n = own.plays[i]
        if n > 0.0:
            mean, level = own.total[i] / n, kl_level(n, own.cells, own.delta)
            high[i] = min(high[i], kl_upper(mean, n, level))
            low[i] = max(low[i], kl_lower(mean, n, level))


@kernel
def rival_of(game: Any, fixed: Any, best: int, uniform: float) -> Any:
    """Who can be ahead of row `best` the most, from the intervals as they stand. A row whose upper end is no higher
    above the lower end of the best than what another was found to have need not be looked at."""
    high, low, ahead = game.bounds.listing.values, game.bounds.lower, game.ahead
    most, start = -math.inf, 0
    for i in range(len(high)):
        ahead[i] = -math.inf
        if i != best and (start == best or high[i] > high[start]):
            start = i
    for k in range(len(high)):
        i = start if k == 0 else (k - 1 if k <= start else k)
        if i != best and high[i] - low[best] >= most:
            ahead[i] = min(advantage(game.bounds, game.work, fixed, i, best), high[i] - low[best])
            most = max(most, ahead[i])
    if most == -math.inf:
        return Standing(best, best, 0.0)
    return Standing(best, pick(ahead, uniform), max(most, 0.0))


@kernel
def standing(game: Any, layout: Any, state: Any, own: Any, fixed: Any, best: int, uniform: float) -> Any:
    """Who is best (below 0: by the estimate), and who may be better."""
    if best < 0:
        best = leader(game, layout, state, fixed)
    bound_kept(game.bounds, state, fixed)
    tighten(game, own)
    return rival_of(game, fixed, best, uniform)


@kernel
def to_play(game: Any, now: Any, uniform: float) -> int:
    """The best once it is the answer; until then one of both by a fair coin."""
    return now.rival if now.gap > game.epsilon and uniform < 0.5 else now.best
