"""Short texts: what to do in one sentence, when to stop, why a set was chosen, and how a trial was closed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dobandit.policy.answers import percent
from dobandit.policy.engine import Choice
from dobandit.policy.questions import AddsBonus
from dobandit.rows.stored_trial import ABANDONED, FAILED
from dobandit.texts import action_words, counted, decimals, fixed, in_a_sentence, with_interval

if TYPE_CHECKING:
    from dobandit.policy.answers import Recommendation
    from dobandit.policy.engine import Interval
    from dobandit.policy.learner import Learner

# Whether the rounds bear the model out; "untested": its predictions, while the graph was not tested.
FITS, CONTRADICTED, UNKNOWN, UNTESTED = "fits", "contradicted", "unknown", "untested"
_MOST_LEVERS = 8  # that are named one by one
_OPEN = "this is not certain yet"
NOTHING_YET = "Nothing can be told yet"  # how the doubt begins where the target was the same in every round


# -- what to do ----------------------------------------------------------------------------------------------------


def sentence_of(told: Recommendation, target: str, recommended: bool = True) -> str:
    """What to do, by how much that is better than doing nothing, and how sure it is.

    recommended  whether the action is advice; otherwise somebody wants to know about it
    """
    if untold := nothing_yet(told):
        return untold
    start = f"Set {listed(told.do)}:" if recommended else f"With {listed(told.do)} set,"
    against = " But there are doubts: see the notes." if told.doubts else ""
    against = " Do not rely on this: the rounds contradict the model." if told.verdict == CONTRADICTED else against
    return f"{start} {effect_words(told, target)}.{against}"


def nothing_yet(told: Recommendation) -> str:
    """Why no action can be told from another yet; "" where that is not so."""
    return next((doubt for doubt in told.doubts if doubt.startswith(NOTHING_YET)), "")


def listed(do: Mapping[str, float]) -> str:
    """What is set, within a sentence: coupon, email and price = 0."""
    return in_a_sentence([action_words({name: value}) for name, value in do.items()]) or "nothing"


def effect_words(told: Recommendation, target: str) -> str:
    """By how much an action is better than doing nothing, and how sure that is; its value, where it sets nothing or
    nothing is known of doing nothing."""
    if math.isnan(told.value):
        return f"what {target} is then, the policy cannot tell yet"
    if not told.do or told.uplift is None:
        return f"{target} is estimated at {_measured(told.value, told.interval, told.interval_words)}"
    value, (low, high) = told.uplift
    if value < 0.0:
        change = f"{_measured(-value, (-high, -low), told.interval_words)} below doing nothing"
        return f"{target} falls by {change}" if high < 0.0 else f"{target} may fall by {change}; {_OPEN}"
    change = f"{_measured(value, (low, high), told.interval_words)} over doing nothing"
    return f"{target} rises by {change}" if low > 0.0 else f"{target} may rise by {change}; {_OPEN}"


def _measured(value: float, interval: Interval | tuple[float, float], promise: str) -> str:
    """0.12 (0.05 to 0.19; 95%, at every look); of what is next to 0: less than 0.01 (...)"""
    sure = promise.replace(" (asymptotic)", "").replace(" at every round you look", ", at every look")
    low, high = interval
    size, ends = with_interval(value, low, high, usual=2).split(" ", 1)
    if not float(size):
        size = f"less than {size[:-1]}1"
    return f"{size} {ends[:-1]}; {sure.removeprefix('holds with ')})"


def lever_words(told: Recommendation, target: str) -> list[str]:
    """The levers that harm, and those that do nothing, in sentences without a full stop."""
    found = []
    for one in told.levers:
        if one.harms:
            low, high = one.interval
            found.append(
                f"{listed({one.name: one.value})} lowers {target} by {with_interval(-one.effect, -high, -low, usual=2)}"
            )
    for one in told.levers:
        if one.does_nothing and not one.harms:
            ends = " to ".join(fixed(end, decimals(one.interval, usual=2)) for end in one.interval)
            found.append(f"{listed({one.name: one.value})} does next to nothing: {ends}")
    more = len(found) - _MOST_LEVERS
    return [*found[:_MOST_LEVERS], f"so it is with {counted(more, 'other')}"] if more > 0 else found


# -- when to stop --------------------------------------------------------------------------------------------------


def gap_words(gap: float, delta: float) -> str:
    """What a gap means that is wrong at some look with probability delta."""
    more = f" by more than {gap:.3g}" if gap > 0.0 else ""
    return f"no allowed action is better{more}, with {percent(delta)}, at every look"


def more_words(more: int | None) -> str:
    """How many rounds are still needed, roughly: two digits are more than one can know."""
    if more is None:
        return ""
    step = 10 ** max(len(str(more)) - 2, 0)
    return f"about {counted(-(-more // step) * step, 'more round')}"


def is_reached(gap: float | None, within: float | None) -> bool:
    """Whether the gap is as small as it was to be; whether one may stop also depends on what speaks against it."""
    return gap is not None and within is not None and gap <= within


def may_stop(told: Recommendation, within: float | None) -> bool:
    """Whether the gap is small enough, nothing forbids to rely on it, and the rounds bear the model out."""
    return is_reached(told.gap, within) and not told.doubts and told.verdict in (FITS, UNTESTED)


def stop_words(may: bool, gap: float, more: int | None, doubts: Sequence[str], within: float, delta: float) -> str:
    """Whether one may stop, and if not, what is missing."""
    if may:
        return f"yes: {gap_words(gap, delta)}"
    if not is_reached(gap, within):
        needed = f"; {more_words(more)}" if more else ""
        return f"not yet: another allowed action may be better by up to {gap:.3g} (wanted: {within:g}){needed}"
    return f"no: {' '.join(doubts)}" if doubts else "not yet: the rounds have not tested the model"


# -- trials --------------------------------------------------------------------------------------------------------


def closed_words(state: str, reason: str | None) -> str:
    if state == FAILED:
        return f"marked as failed ({reason})" if reason else "marked as failed"
    return "abandoned" if state == ABANDONED else state


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
    if not learner.keeps_model and isinstance(learner.engine, AddsBonus):
        return f"largest index: mean {mean} + {fixed(bonus, places)} {learner.engine.bonus_words}"
    if not learner.keeps_model:
        return f"its index is {fixed(choice.value, places)}, with a mean of {target} of {mean} so far"
    unproved = "" if choice.proved else f"; {APPROXIMATE}"
    if choice.value >= 1.0:
        return f"estimate {mean}, and too little is known to rule out that E[{target}] is 1{unproved}"
    sign = "+" if bonus >= 0 else "-"
    return f"largest optimistic E[{target}]: estimate {mean} {sign} {more}{unproved}"
