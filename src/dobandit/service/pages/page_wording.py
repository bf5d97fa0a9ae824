"""What pages say: numbers, sets, and the one sentence on top of an experiment."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from dobandit.experiment.reasons import (
    CONTRADICTED,
    NOTHING_YET,
    effect_words,
    lever_words,
    listed,
    may_stop,
    nothing_yet,
    stop_words,
)
from dobandit.policy.answers import Guaranteed, Recommendation
from dobandit.policy.answers import percent as sure_of
from dobandit.texts import NOT_KNOWN, action_words, counted, decimals, fixed, in_a_sentence, percent, shortened

SURE, LIKELY = 0.95, 0.8  # probabilities of being the best
_NAMED = 4  # variables of a context that are named with their values; of more, those that are not 0
VERDICTS = {
    "fits": "The model fits the rounds so far.",
    "untested": "The model predicts the rounds so far; its graph was not tested.",
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


def estimate(told: Recommendation) -> str:
    """The value with its interval and level: 0.50 (0.17 to 0.83, 95%)."""
    return f"{digits(told.value, 2, told.interval)} ({span(told.interval, 2)}{level(told.interval_words)})"


class Headline(NamedTuple):
    """What to do now, and how sure we are. tone: "go", "wait" or "doubt".

    act, sure   the sentence: what to set, and what that brings
    more        how likely it is to be the best, and whether one may stop
    guaranteed  what is proved
    """

    act: str
    sure: str
    tone: str
    more: str = ""
    guaranteed: str = ""


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
    name = shortened(target, 40)
    if told is None:
        return Headline(_begun(f"{where}no set can be recommended."), trouble, "doubt")
    if not rounds:
        return Headline(
            "Nothing was told yet: ask for the first round.",
            f"Below stands what causes {name}; how strongly, the rounds will tell.",
            "wait",
        )
    if untold := nothing_yet(told):
        return Headline(f"{NOTHING_YET}.", untold.removeprefix(f"{NOTHING_YET}: "), "wait")
    told = told._replace(do={shortened(one, 60): value for one, value in told.do.items()})
    act, sure = _begun(f"{where}set {listed(told.do)}:"), _minus(f"{effect_words(told, name)}.")
    proof = "" if told.guaranteed is None else _guaranteed(told.guaranteed, bool(told.do), name, delta)
    if told.verdict == CONTRADICTED:
        return Headline(act, f"{sure} Do not rely on this: the rounds contradict the model.", "doubt")
    stop, more = "", _sureness(told, keeps_model)
    if within is not None and told.gap is not None:
        doubts = told.doubts and ["something speaks against it, see the caveats"]
        stop = stop_words(may_stop(told, within), told.gap, told.more_rounds, doubts, within, delta)
        more = f"{more} May I stop{' in this context' if known else ''}? {_begun(stop)}."
    return Headline(act, sure, "go" if may_stop(told, within) else _tone(told), more, proof)


def _guaranteed(proof: Guaranteed, acts: bool, target: str, delta: float) -> str:
    """What is proved, in one line."""
    parts = [f"{target} is {span(proof.interval, 2)}"]
    if acts and proof.uplift is not None:
        parts.append(f"the uplift is {span(proof.uplift, 2)}")
    if proof.gap is not None:
        parts.append("no other set is better" + (f" by more than {digits(proof.gap, 2)}" if proof.gap else ""))
    return f"Guaranteed ({sure_of(delta)}, at every look, as far as the graph is right): {in_a_sentence(parts)}."


def lever_lines(told: Recommendation, target: str) -> list[str]:
    """The levers that harm, and those that do nothing, as sentences."""
    levers = tuple(one._replace(name=shortened(one.name, 40)) for one in told.levers)
    return [f"{_minus(line)}." for line in lever_words(told._replace(levers=levers), shortened(target, 40))]


def _minus(text: str) -> str:
    """With the sign that stands before negative numbers in print."""
    return re.sub(r"(?<!\S)-(?=\d)|(?<=\()-(?=\d)", "−", text)


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


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
