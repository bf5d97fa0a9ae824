"""A recommendation that hides nothing: beside the model's value stand what was observed, and what speaks against it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dobandit import limits
from dobandit.diagnosis.calibration import DiagnosisTimeoutError
from dobandit.diagnosis.mechanism_nodes import is_covered, never_shown, unshown, ways_of
from dobandit.diagnosis.node_diagnosis import AGREES
from dobandit.estimation.confidence import beta_binomial
from dobandit.experiment import plain_work
from dobandit.experiment.answers import observed_of
from dobandit.experiment.reasons import CONTRADICTED, FITS, NOTHING_YET, UNKNOWN, UNTESTED, is_reached, sentence_of
from dobandit.oracle.actions import Action
from dobandit.policy.answers import Guaranteed, Worth
from dobandit.policy.engine import Interval, Rounds
from dobandit.texts import counted, decimals, fixed

if TYPE_CHECKING:
    from dobandit.diagnosis.diagnose import Diagnosis
    from dobandit.experiment.accumulator import RoundCounts
    from dobandit.experiment.state import LogState
    from dobandit.model.weights import Do
    from dobandit.policy.answers import Observed, Recommendation
    from dobandit.policy.learner import Learner
    from dobandit.rows.columns import Row

_ENOUGH = 300  # rounds that set a variable, or that are compared with the model


class Verdict(NamedTuple):
    """Whether the rounds bear the model out, in a word, and why not."""

    word: str
    reasons: tuple[str, ...] = ()


GRAPH_UNTESTED = (
    "The graph was not tested: where variables share hidden causes, no round is counted against it. That nothing else "
    "is hidden is taken from you."
)
TOO_LONG = Verdict(
    UNKNOWN,
    (
        "Whether the rounds bear the model out was not tested, since that takes longer than "
        f"{limits.DIAGNOSIS_SECONDS:g} s: see diagnose.",
    ),
)


def verdict_of(diagnosis: Diagnosis, learner: Learner) -> Verdict:
    """From a diagnosis.

    contradicted  a variable that the target depends on contradicts its link, or recent predictions were off by more
                  than chance allows
    fits          neither, and at least one of these could be tested
    untested      neither, but where observed variables share hidden causes no round is counted against the graph
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
    if not tested:
        return Verdict(UNKNOWN)
    return Verdict(UNTESTED, (GRAPH_UNTESTED,)) if ways_of(learner) else Verdict(FITS)


def advised(
    state: LogState, do: Do | None, available: Iterable[str] | None, context: Mapping[str, object] | None
) -> Recommendation:
    """What the model says of an action, or of the best one where `do` is None, with what was observed, what is proved,
    the verdict, warnings and doubts."""
    row = state.columns.context_row(context)  # in the words of an ask
    given = None if row is None else state.columns.decode(state.columns.encode(row))
    within = state.definition.stop_within
    with state.answering:
        now = state.now()
        learner, counts = now.learner, state.counts(now.position)
        with plain_work.answering(learner.engine):
            told = learner.assess(do, available, given, within=within, delta=learner.engine.delta / 2)
            told = told._replace(observed=observed_of(counts, told.do, row))
            proof = with_own_outcomes(told, learner, counts, row)
            told = told if proof is None else no_wider_than(told, proof)
            try:
                seconds = math.inf if is_reached(told.gap, within) else limits.DIAGNOSIS_SECONDS
                verdict = verdict_of(state.diagnosis(now, seconds), learner)
            except DiagnosisTimeoutError:
                verdict = TOO_LONG
            if not is_covered(learner, learner.action(told.do)):
                told = told._replace(value=math.nan, interval=Interval(0.0, 1.0), uplift=None, guaranteed=None)
            told = advice(told, verdict, learner, now.doubts, counts)
            return told._replace(sentence=sentence_of(told, learner.graph.target, do is None))


def with_own_outcomes(
    told: Recommendation, learner: Learner, counts: RoundCounts, context: Row | None
) -> Guaranteed | None:
    """What is proved, brought in to what the outcomes of each action prove by themselves, whatever the graph.

    Half of delta is the model's. Of the other half, one half is for doing nothing and one is shared by all allowed
    actions, in each context.
    """
    proof = told.guaranteed
    if proof is None or learner.problem.continuous:
        return proof
    columns, own = counts.columns, counts.sums(context)
    places = 1 << (0 if context is None else len(learner.graph.context))
    alpha = learner.engine.delta / 4 / places
    allowed = learner.problem.allowed(relevant=False).count()

    def ends(do: Do) -> Interval:
        rounds, total = own.get(columns.encode(columns.do_row(do)), (0, 0.0))
        if not rounds:
            return Interval(0.0, 1.0)
        return Interval(*beta_binomial(min(max(total / rounds, 0.0), 1.0), rounds, alpha / allowed if do else alpha))

    mine, idle, uplift = ends(told.do), ends({}), proof.uplift
    if uplift is not None:
        uplift = _within(uplift, Interval(mine.low - idle.high, mine.high - idle.low)) if told.do else uplift
    nothing = None if proof.nothing is None else _within(proof.nothing, idle)
    gap = proof.gap
    if gap is not None and allowed <= len(own):
        others = [columns.decode(do) for do in own]
        gap = min(gap, max((ends(other).high - mine.low for other in others if other != told.do), default=gap))
    return Guaranteed(_within(proof.interval, mine), nothing, uplift, None if gap is None else max(gap, 0.0))


def no_wider_than(told: Recommendation, proof: Guaranteed) -> Recommendation:
    """With the practical intervals brought in to what is proved: where few rows bear on them, they are wider."""

    def brought_in(worth: Worth | None, proved: Interval | None) -> Worth | None:
        return worth if worth is None or proved is None else Worth(worth.value, _around(worth, proved))

    gap = told.gap if told.gap is None or proof.gap is None else min(told.gap, proof.gap)
    return told._replace(
        interval=_around(Worth(told.value, told.interval), proof.interval),
        nothing=brought_in(told.nothing, proof.nothing),
        uplift=brought_in(told.uplift, proof.uplift),
        gap=gap,
        guaranteed=proof,
    )


def _around(worth: Worth, proved: Interval) -> Interval:
    """What both intervals say, with the value inside."""
    low, high = _within(worth.interval, proved)
    return worth.interval if math.isnan(worth.value) else Interval(min(low, worth.value), max(high, worth.value))


def _within(one: Interval, other: Interval) -> Interval:
    """What both say; where they contradict each other, the first: a doubt says that they do."""
    low, high = max(one.low, other.low), min(one.high, other.high)
    return Interval(low, high) if low <= high else one


def advice(
    told: Recommendation, verdict: Verdict, learner: Learner, against: tuple[str, ...], counts: RoundCounts
) -> Recommendation:
    """The recommendation with its verdict, warnings and doubts; against: what the rounds say against the graph."""
    doubts = [f"The rounds speak against the graph: {one}. See diagnose." for one in against]
    doubts += verdict.reasons if verdict.word == CONTRADICTED else ()
    seen = counts.rounds()
    if untold := never_differs(learner.graph.target, seen, learner.graph.arrays.target):
        doubts.append(untold)
        told = told._replace(more_rounds=None)
    if learner.keeps_model and learner.rounds:
        own, others = untried(told, learner, seen, counts.rounds(history=True))
        silent = unshown(learner, learner.action(told.do))
        doubts += never_shown(learner, silent) if silent else [never_set(own)] if own else []
        doubts += [others_never_set(others)] if others else []
    if outside := seen_outside(learner.graph.target, told.value, told.interval, told.observed):
        doubts.append(outside)
        told = _widened(told)
    others = [*(() if verdict.word == CONTRADICTED else verdict.reasons), *_warnings(told, learner)]
    word = CONTRADICTED if against else verdict.word
    # Few trials of many rounds: what the action brought by itself was compared.
    if word == UNKNOWN and told.observed is not None and told.observed.rounds >= _ENOUGH and not outside:
        word = UNTESTED if ways_of(learner) else FITS
    return told._replace(verdict=word, warnings=(*doubts, *others), doubts=tuple(doubts))


def never_differs(target: str, rounds: Rounds, v: int) -> str:
    """That the target was the same in every round, so that no action can be told from another; "" if it was not."""
    was_seen = ~np.isnan(rounds.values[:, v])
    values = np.unique(rounds.values[was_seen, v])
    if len(values) > 1:
        return ""
    if not len(values):
        return f"{NOTHING_YET}: no round has seen {target}."
    times = counted(int(rounds.counts[was_seen].sum()), "round")
    return f"{NOTHING_YET}: {target} was never anything but {values[0]:g} in {times}. Check that it is recorded."


def untried(told: Recommendation, learner: Learner, seen: Rounds, history: Rounds) -> tuple[list[str], list[str]]:
    """What no round has set, or too few beside a history in which it was so by itself: of this action; and of the other
    allowed ones, where the model believes to know what setting it does, since it was so by itself in some round."""
    own, others, graph = [], [], learner.graph
    for name in graph.controllable:
        v = graph.index(name)
        if name in graph.irrelevant:  # nothing leads from it to the target
            continue
        for value in learner.problem.rules.values_of(name):
            there = seen.values[:, v] == value
            alone = history.counts[(history.values[:, v] == value) & ~history.was_set[:, v]].sum()
            if seen.counts[there & seen.was_set[:, v]].sum() >= max(1, min(alone / 10, _ENOUGH)):
                continue
            if told.do.get(name) == value:
                own.append(f"{name} to {value:g}")
            elif there.any() and name not in (*learner.problem.hidden, *learner.problem.rules.forbid):
                if unshown(learner, Action((v,), (float(value),))):
                    continue  # nothing is concluded of it
                others.append(f"{name} to {value:g}")
    own += [f"{name} to {value:g}" for name, value in told.do.items() if name not in graph.controllable]
    return own, others


def _widened(told: Recommendation) -> Recommendation:
    """With the intervals that the model's and what was observed make together."""
    assert told.observed is not None
    low, high = told.observed.interval
    interval = Interval(min(told.interval.low, low), max(told.interval.high, high))
    uplift = told.uplift
    if uplift is not None and told.nothing is not None and told.do:
        ends = low - told.nothing.interval.high, high - told.nothing.interval.low
        uplift = Worth(uplift.value, Interval(min(uplift.interval.low, ends[0]), max(uplift.interval.high, ends[1])))
    return told._replace(interval=interval, uplift=uplift)


def others_never_set(what: Sequence[str]) -> str:
    """What it means for the others that no round has set these variables."""
    return (
        f"No round has set {', '.join(what)}, or too few have: that no other action is better is concluded from rounds "
        "in which it was so by itself. Before you stop, carry out some rounds that set it and record them, or forbid "
        "it if you never would."
    )


def never_set(what: Sequence[str]) -> str:
    """What it means that no round has set these variables."""
    return (
        f"No round has set {', '.join(what)}, or too few have: what that brings is concluded from rounds in which it "
        "was so by itself, which is right only if nothing that is not in the graph moves it along with the target."
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
    if not is_covered(learner, action):
        yield "The model cannot tell its value: no allowed action sets these variables, which share hidden causes."
    if reason := learner.unknowable(action):
        yield f"The model cannot tell its value: {reason}."
    if told.observed is None and (told.do or learner.rounds) and not math.isnan(told.value):
        yield (
            f"No asked or randomised round with exactly this action has seen {target}: its value is concluded from "
            "other rounds."
        )
    if told.do and told.uplift is not None and told.uplift.interval.low <= 0.0 <= told.uplift.interval.high:
        yield "It is not certain yet that this is better than doing nothing: the interval of the uplift reaches 0."
