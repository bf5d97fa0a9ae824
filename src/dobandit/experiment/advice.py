"""A recommendation that hides nothing: beside the model's value stand what was observed, and what speaks against it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from dobandit.experiment.diagnosis.parts import AGREES
from dobandit.texts import decimals, fixed

if TYPE_CHECKING:
    from dobandit.experiment.diagnosis import Diagnosis
    from dobandit.policy.answers import Recommendation
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


def advice(told: Recommendation, verdict: Verdict, learner: Learner, doubts: tuple[str, ...] = ()) -> Recommendation:
    """The recommendation with its verdict and warnings. doubts: what the rounds say against the graph."""
    against = [f"The rounds speak against the graph: {doubt}. See diagnose." for doubt in doubts]
    warnings = [*against, *verdict.reasons, *_warnings(told, learner)]
    return told._replace(verdict="contradicted" if doubts else verdict.word, warnings=tuple(warnings))


def _warnings(told: Recommendation, learner: Learner) -> Iterator[str]:
    target, action = learner.graph.target, learner.action(told.do)
    if not learner.problem.allows(action):
        yield "The rules of the experiment do not allow this action."
    if reason := learner.unknowable(action):
        yield f"The model cannot tell its value: {reason}."
    if told.observed is None:
        if (told.do or learner.rounds) and not math.isnan(told.value):
            yield f"No round with exactly this action has seen {target}: its value is concluded from other rounds."
    elif not math.isnan(told.value):
        low, high = told.observed.interval
        if high < told.interval.low or low > told.interval.high:
            mean, *ends = (fixed(one, decimals((low, high))) for one in (told.observed.mean, low, high))
            yield (
                f"{target} was {mean} on average in {told.observed.rounds:,} rounds with exactly this action "
                f"({' to '.join(ends)}), outside of the interval of its value."
            )
    if told.do and told.uplift is not None and told.uplift.interval.low <= 0.0:
        yield "It is not proved yet that this is better than doing nothing: the interval of the uplift reaches 0."
