"""A recommendation that hides nothing: beside the model's value stand what was observed, and what speaks against it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from dobandit.experiment.answers import observed_of
from dobandit.experiment.diagnosis.nodes import AGREES
from dobandit.experiment.reasons import is_reached
from dobandit.texts import decimals, fixed

if TYPE_CHECKING:
    from dobandit.experiment.diagnosis import Diagnosis
    from dobandit.experiment.state import LogState
    from dobandit.model.weights import Do
    from dobandit.policy.answers import Observed, Recommendation
    from dobandit.policy.engine import Interval
    from dobandit.policy.learner import Learner

FITS, CONTRADICTED, UNKNOWN = "fits", "contradicted", "unknown"
MOST_DIAGNOSED = 20_000  # rounds: beyond, a recommendation would wait for the diagnosis


class Verdict(NamedTuple):
    """Whether the rounds bear the model out, in a word, and why not."""

    word: str
    reasons: tuple[str, ...] = ()


TOO_LONG = Verdict(
    UNKNOWN,
    (
        f"Whether the rounds bear the model out was not tested, since there are more than {MOST_DIAGNOSED:,}: see "
        "diagnose.",
    ),
)


def verdict_of(diagnosis: Diagnosis, learner: Learner) -> Verdict:
    """From a diagnosis.

    contradicted  a variable that the target depends on contradicts its link, or recent predictions were off by more
                  than chance allows
    fits          neither, and at least one of these could be tested
    unknown       nothing could be tested yet
    Where no model is kept, the predictions alone are tested.
    """
    matters = {learner.graph.nodes[v - 1] for v in learner.problem.order}
    matters -= set(learner.graph.context)  # which is given, not predicted
    wrong = [name for name in diagnosis.contradictions if name in matters]
    reasons = [
        f"The rounds contradict what the model takes {name} to depend on, and how; see diagnose." for name in wrong
    ]
    off = diagnosis.verdict.startswith("predictions are")
    if off:
        reasons.append(
            f"Of late the {'model' if learner.keeps_model else 'policy'}'s {diagnosis.verdict}; see diagnose."
        )
    if reasons:
        return Verdict(CONTRADICTED, tuple(reasons))
    tested = diagnosis.verdict == "calibrated" or any(n.verdict == AGREES for n in diagnosis.nodes if n.name in matters)
    return Verdict(FITS if tested else UNKNOWN)


def advised(
    state: LogState, do: Do | None, available: Iterable[str] | None, context: Mapping[str, object] | None
) -> Recommendation:
    """What the model says of an action, or of the best one where `do` is None, with what was observed, the verdict,
    warnings and doubts."""
    row = state.columns.context_row(context)  # in the words of an ask
    given = None if row is None else state.columns.decode(state.columns.encode(row))
    with state.answering:
        now = state.now()
        told, counts = now.learner.assess(do, available, given), state.counts(now.position)
        told = told._replace(observed=observed_of(counts, told.do, row))
        verdict = TOO_LONG  # to look into, unless one might stop
        if now.learner.rounds <= MOST_DIAGNOSED or is_reached(told.gap, state.definition.stop_within):
            verdict = verdict_of(state.diagnosis(now), now.learner)
        return advice(told, verdict, now.learner, now.doubts, counts.tried())


def advice(
    told: Recommendation, verdict: Verdict, learner: Learner, against: tuple[str, ...], tried: Set[tuple[str, float]]
) -> Recommendation:
    """The recommendation with its verdict, warnings and doubts.

    against  what the rounds say against the graph
    tried    what was set to what in some round
    """
    doubts = [f"The rounds speak against the graph: {one}. See diagnose." for one in against]
    doubts += verdict.reasons if verdict.word == CONTRADICTED else ()
    new = [f"{name} to {value:g}" for name, value in told.do.items() if (name, value) not in tried]
    if new and learner.keeps_model and learner.rounds:
        doubts.append(never_set(new))
    if outside := seen_outside(learner.graph.target, told.value, told.interval, told.observed):
        doubts.append(outside)
    if learner.problem.assumption is not None and learner.keeps_model:
        doubts.append(f"Nobody promised it, but {learner.problem.assumption}.")
    others = [*(() if verdict.word == CONTRADICTED else verdict.reasons), *_warnings(told, learner)]
    word = CONTRADICTED if against else verdict.word
    return told._replace(verdict=word, warnings=(*doubts, *others), doubts=tuple(doubts))


def never_set(what: Sequence[str]) -> str:
    """What it means that no round has set these variables."""
    return (
        f"No round has set {', '.join(what)}: what that brings is concluded from rounds in which it was so by itself, "
        "which is right only if nothing that is not in the graph moves it along with the target."
    )


def seen_outside(target: str, value: float, interval: Interval, observed: Observed | None) -> str | None:
    """What the rounds with exactly one action say, where that does not fit the interval of its value."""
    if observed is None or math.isnan(value):
        return None
    low, high = observed.interval
    if high >= interval.low and low <= interval.high:
        return None
    mean, *ends = (fixed(one, decimals((low, high))) for one in (observed.mean, low, high))
    return (
        f"{target} was {mean} on average in {observed.rounds:,} rounds with exactly this action ({' to '.join(ends)}), "
        "outside of the interval of its value."
    )


def _warnings(told: Recommendation, learner: Learner) -> Iterator[str]:
    target, action = learner.graph.target, learner.action(told.do)
    if not learner.problem.allows(action):
        yield "The rules of the experiment do not allow this action."
    if reason := learner.unknowable(action):
        yield f"The model cannot tell its value: {reason}."
    if told.observed is None and (told.do or learner.rounds) and not math.isnan(told.value):
        yield f"No round with exactly this action has seen {target}: its value is concluded from other rounds."
    if told.do and told.uplift is not None and told.uplift.interval.low <= 0.0:
        yield "It is not proved yet that this is better than doing nothing: the interval of the uplift reaches 0."
