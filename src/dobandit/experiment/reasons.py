"""Short texts about trials: why a set was chosen, and how a trial was closed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dobandit.experiment.storage.base import ABANDONED, FAILED
from dobandit.policy.engine import Choice, percent
from dobandit.texts import decimals, fixed

if TYPE_CHECKING:
    from dobandit.policy.answers import Recommendation
    from dobandit.policy.learner import Learner

FITS, CONTRADICTED, UNKNOWN = "fits", "contradicted", "unknown"  # whether the rounds bear the model out


def closed_words(state: str, reason: str | None) -> str:
    if state == FAILED:
        return f"marked as failed ({reason})" if reason else "marked as failed"
    return "abandoned" if state == ABANDONED else state


def gap_words(gap: float, delta: float) -> str:
    """What a gap means that is wrong at some look with probability delta."""
    return f"no allowed action is better by more than {gap:.3g}, with {percent(delta)}, at every look"


def more_words(more: int | None) -> str:
    """How many rounds are still needed, roughly: two digits are more than one can know."""
    if more is None:
        return ""
    step = 10 ** max(len(str(more)) - 2, 0)
    return f"about {-(-more // step) * step:,} more rounds"


def is_reached(gap: float | None, within: float | None) -> bool:
    """Whether the gap is as small as it was to be; whether one may stop also depends on what speaks against it."""
    return gap is not None and within is not None and gap <= within


def may_stop(told: Recommendation, within: float | None) -> bool:
    """Whether the gap is small enough, nothing forbids to rely on it, and the rounds bear the model out."""
    return is_reached(told.gap, within) and not told.doubts and told.verdict == FITS


APPROXIMATE = "approximate: a local search found it, since there are too many sets to compare all"


def with_doubts(why: str, doubts: tuple[str, ...]) -> str:
    """A reason, with what the rounds say against the graph that it rests on."""
    return f"{why}; but the rounds speak against the graph: {'; '.join(doubts)} (see diagnose)" if doubts else why


def reason_for(choice: Choice, predicted: float, target: str, learner: Learner) -> str:
    """Why the policy chose a set."""
    if math.isnan(choice.value):
        if learner.keeps_model:
            return "observing without intervening first, to learn what the variables do by themselves"
        return f"{learner.label} compares nothing in this round"
    if math.isnan(predicted) or not math.isfinite(choice.value):
        return "not tried yet"
    bonus = choice.value - predicted
    places = decimals((predicted, choice.value))
    mean, more, index = (fixed(one, places) for one in (predicted, abs(bonus), min(choice.value, 1.0)))
    if choice.note:
        return f"{choice.note}: {target} may be {index} by these"
    if not learner.keeps_model and choice.value == predicted:
        return f"largest mean of {target} so far: {mean}"
    if not learner.keeps_model and learner.engine.bonus_words:
        return f"largest index: mean {mean} + {fixed(bonus, places)} {learner.engine.bonus_words}"
    if not learner.keeps_model:
        return f"its index is {fixed(choice.value, places)}, with a mean of {target} of {mean} so far"
    unproved = "" if choice.proved else f"; {APPROXIMATE}"
    if choice.value >= 1.0:
        return f"estimate {mean}, and too little is known to rule out that E[{target}] is 1{unproved}"
    sign = "+" if bonus >= 0 else "-"
    return f"largest optimistic E[{target}]: estimate {mean} {sign} {more}{unproved}"
