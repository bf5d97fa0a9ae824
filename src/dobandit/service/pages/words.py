"""What pages say: numbers, sets, and the one sentence on top of an experiment."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from dobandit.experiment.reasons import gap_words, is_reached
from dobandit.policy.answers import Recommendation
from dobandit.texts import NOT_KNOWN, action_words, counted, decimals, fixed, in_a_sentence, percent, shortened

SURE, LIKELY = 0.95, 0.8  # probabilities of being the best
_NAMED = 4  # variables of a context that are named with their values; of more, those that are not 0
VERDICTS = {
    "fits": "The model fits the rounds so far.",
    "contradicted": "The rounds contradict the model.",
    "unknown": "The model was not tested against the rounds.",
}


def digits(value: float | None, usual: int = 3, like: Sequence[float | None] | float | None = None) -> str:
    """A number with the usual decimals, or more where it is small; as many as what it stands beside has, `like`."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    return fixed(value, decimals(value if like is None else like, usual=usual)).replace("-", "−")


def signed(value: float | None, like: Sequence[float | None] | float | None = None) -> str:
    text = digits(value, like=like)
    return text if value is None or not value > 0 else f"+{text}"


def span(interval: Sequence[float | None] | None, usual: int = 3) -> str:
    return NOT_KNOWN if interval is None else " to ".join(digits(end, usual, interval) for end in interval)


def level(promise: str) -> str:
    """How sure an interval is, to stand behind it: ", 95%", from the words that say what it promises."""
    found = re.search(r"[0-9.]+%", promise)
    return f", {found[0]}" if found else ""


def promise(words: str) -> str:
    """What intervals promise, as a sentence."""
    return f"Each interval {words}." if words.startswith("holds") else f"Intervals: {words}."


def moment(at: float | None) -> str:
    """A time as people write it, in the zone of the service."""
    return "never" if at is None else datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")


def sets(do: Mapping[str, float], most: int = 60) -> str:
    """What is set, cut where names are long."""
    return action_words({shortened(name, most): value for name, value in do.items()})


def context(known: Mapping[str, float]) -> str:
    """What is known before acting: mobile = 1, weekend = 0."""
    told = {name: value for name, value in known.items() if value} if len(known) > _NAMED else known
    parts = [f"{shortened(name, 40)} = {value:g}" for name, value in told.items()]
    rest = ["all others = 0" if told else f"all {len(known)} variables = 0"] if len(told) < len(known) else []
    return ", ".join(parts + rest)


def of_rounds(rounds: int, of: int) -> str:
    """3,800 of 4,000 rounds (95.0%)"""
    return f"{rounds:,} of {counted(of, 'round')}" + (f" ({percent(rounds / of)})" if of else "")


def elsewhere(do: Mapping[str, float], others: Sequence[Mapping[str, float]]) -> str:
    """Whether the same looks best in the other contexts of the table."""
    differ = sum(other != do for other in others)
    where = "the other context" if len(others) == 1 else f"all {len(others)} other contexts"
    if 0 < differ < len(others):
        where = f"{differ} of the {len(others)} other contexts"
    return f"In {where} below, {'another' if differ else 'the same'} set looks best."


def _sentence(do: Mapping[str, float]) -> str:
    """What is set, within a sentence: coupon, email and price = 0."""
    return in_a_sentence([sets({name: value}) for name, value in do.items()])


def estimate(told: Recommendation) -> str:
    """The value with its interval and level: 0.50 (0.17 to 0.83, 95%)."""
    return f"{digits(told.value, 2, told.interval)} ({span(told.interval, 2)}{level(told.interval_words)})"


class Headline(NamedTuple):
    """What to do now, and how sure we are. tone: "go", "wait" or "doubt"."""

    act: str
    sure: str
    tone: str


def headline(
    told: Recommendation | None,
    trouble: str,
    target: str,
    rounds: int,
    within: float | None,
    delta: float,
    keeps_model: bool = True,
    known: Mapping[str, float] | None = None,
) -> Headline:
    """known: the context that it speaks of"""
    where = f"Where {context(known)}: " if known else ""
    if told is None:
        return Headline(_begun(f"{where}no set can be recommended."), trouble, "doubt")
    if not rounds:
        return Headline(
            "Nothing was told yet: ask for the first round.",
            f"Below stands what causes {shortened(target, 40)}; how strongly, the rounds will tell.",
            "wait",
        )
    act = _begun(f"{where}set {_sentence(told.do) or 'nothing'}.")
    name = shortened(target, 40)
    if math.isnan(told.value):
        value = f"What {name} is then, the policy cannot tell yet."
    else:
        value = f"Then {name} is estimated at {estimate(told)}."
    if told.verdict == "contradicted":
        return Headline(act, f"{value} Do not rely on it: the rounds contradict the model.", "doubt")
    if stops(told, within) and told.gap is not None:
        stop = "In this context you may stop" if known else "You may stop"
        return Headline(act, f"{value} {stop}: {gap_words(told.gap, delta)}.", "go")
    return Headline(act, f"{value} {_sureness(told, keeps_model)}", _tone(told))


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def stops(told: Recommendation, within: float | None) -> bool:
    """Whether one may stop here; not while anything speaks against the answer."""
    return is_reached(told.gap, within) and not told.doubts


def _tone(told: Recommendation) -> str:
    certain = told.probability_best is None or told.probability_best >= LIKELY
    gains = told.uplift is None or not told.do or told.uplift.interval.low > 0.0
    return "go" if certain and gains else "wait"


def _sureness(told: Recommendation, keeps_model: bool) -> str:
    p = told.probability_best
    if p is None:
        why = "there are too many sets to compare" if keeps_model else "the policy keeps no model of the causes"
        best = f"How likely it is to be the best is not known: {why}."
    elif p >= SURE:
        best = f"It is almost certainly the best allowed set (probability {digits(p, 2)})."
    elif p >= LIKELY:
        best = f"It is probably the best allowed set (probability {digits(p, 2)})."
    else:
        best = f"It is too early to call it the best allowed set (probability {digits(p, 2)}): go on asking."
    return best
