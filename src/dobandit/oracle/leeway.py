"""Of the actions whose intervals reach up nearly as far as the farthest, the one that an index speaks most for.

low, high: the ends of E[Y | do(S)] that hold at every round (`anytime_values`).  w = high - low.  c: the leeway.
S may be played if high(S) + c w(S) >= max over S' of high(S'). While the intervals hold, playing it then loses
    E[Y | do(best)] - E[Y | do(S)] <= max high - low(S) <= (1 + c) w(S),
where always playing the farthest (c = 0) loses w(S) at most: what is guaranteed of the sum over all rounds, which only
needs that the widths of played actions shrink, is the same but for the factor 1 + c.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dobandit.oracle.anytime_values import AnytimeValues, bound_kept
from dobandit.oracle.listing import Listing, floor_of, pick_best, propose, score


class Leeway(NamedTuple):
    """The oracle: actions, their intervals, and the index that chooses among those that may be played."""

    listing: Listing
    bounds: AnytimeValues  # of the same actions, whose upper ends have a place of their own
    index: Any  # an oracle on `listing`
    share: float  # c


def leeway(bounds: AnytimeValues, index: Any, share: float) -> Leeway:
    """The oracle for the actions of an index, in whose list the values are its own, not those of the bounds."""
    own = index.listing._replace(values=np.zeros(len(index.listing.values)))
    return Leeway(index.listing, bounds._replace(listing=own, joint=None), index, share)


@score.of(Leeway)
def score_leeway(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """The index of every action that may be played, -inf for the others; without optimism (rho 0) of all of them."""
    score(oracle.index, layout, state, rho, fixed)
    if rho[layout.target] > 0.0:
        bound_kept(oracle.bounds, state, fixed)
        values, low, high = oracle.listing.values, oracle.bounds.lower, oracle.bounds.listing.values
        least = floor_of(high)
        for i in range(len(values)):
            if high[i] + oracle.share * (high[i] - low[i]) < least:
                values[i] = -math.inf


propose.of(Leeway)(pick_best)
