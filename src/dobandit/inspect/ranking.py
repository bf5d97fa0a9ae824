"""Every allowed action by what it would bring, from data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dobandit.diagnosis.mechanism_nodes import unshown
from dobandit.experiment.advice import seen_outside
from dobandit.experiment.status import anytime_mean, mean_of
from dobandit.inspect.fit import Fit
from dobandit.oracle.actions import NOTHING, Action, action_of
from dobandit.policy.answers import Observed, Worth
from dobandit.policy.engine import Array, Interval
from dobandit.rows.export import document
from dobandit.texts import setting_words, with_interval

_FREE = -1  # not set
_MOST_PRINTED = 10  # actions
_MOST_NAMED = 4  # sets of which the rows say nothing
_NOT_RANDOMISED = "If chance chose these rows, the model is wrong; otherwise whatever chose them may explain it."


class Ranked(NamedTuple):
    """An action with what it would bring.

    do        what is set
    value     E[target];  interval: its confidence interval. NaN, and from 0 to 1, where the rows say nothing of it:
              hidden causes have moved along in all of them what the action would cut off
    uplift    what it adds to doing nothing; None where nothing is known of one of the two
    observed  what the rounds with exactly this action say by themselves; None: there are none
    """

    do: dict[str, float]
    value: float
    interval: Interval
    uplift: Worth | None
    observed: Observed | None


class Ranking:
    """Every allowed action, best first.

    actions   see `Ranked`; of equals the one that sets fewer variables comes first
    nothing   E[target] of doing nothing; None where nothing is known of it, as where a variable is always set
    fit       what the data say of each node
    context   the values for which this holds, where the graph has context variables
    undecided  how many other actions may be better than the first, by the intervals of the differences
    """

    def __init__(self, fit: Fit, context: Mapping[str, float] | None = None) -> None:
        self.fit, self.context = fit, dict(context or {})
        self.target, self.rounds = fit.graph.target, fit.rounds
        self.interval_words = fit.engine.interval_words
        self.actions, self.nothing = _ranked(fit, context)
        self.undecided = _undecided(fit, self.actions, context)

    @property
    def best(self) -> Ranked:
        """The first of the actions."""
        return self.actions[0]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against the graph or the links, in sentences, and what the first set to which this applies
        brought by itself, where that does not fit."""
        seen = [one for one in self.actions if one.do and one.observed is not None]
        for one in seen:
            mean, rounds, *_ = one.observed  # type: ignore[misc]
            observed = Observed(mean, rounds, anytime_mean(mean * rounds, rounds, len(seen)).interval)
            if outside := seen_outside(self.target, one.value, one.interval, observed):
                return *self.fit.warnings, f"Setting {setting_words(one.do)}: {outside} {_NOT_RANDOMISED}"
        return self.fit.warnings

    @property
    def sentence(self) -> str:
        """What the ranking says, in words."""
        best = self.best
        if math.isnan(best.value):
            return f"The rows say of no set what it would bring to {self.target}."
        what = setting_words(best.do)
        value = with_interval(best.value, *best.interval)
        if not best.do:
            found = f"Doing nothing looks best: E[{self.target}] is {value}."
        elif best.uplift is None:
            found = f"Setting {what} looks best: E[{self.target}] is {value}."
        else:
            sure = "" if best.uplift.interval.low > 0.0 else "; it is not certain yet that this is better"
            uplift = with_interval(best.uplift.value, *best.uplift.interval, sign="+")
            found = f"Setting {what} looks best: E[{self.target}] is {value}, {uplift} against doing nothing{sure}."
        if unknown := [setting_words(one.do) for one in self.actions if math.isnan(one.value)]:
            more = f" and {len(unknown) - _MOST_NAMED:,} more" if len(unknown) > _MOST_NAMED else ""
            found += f" The rows say nothing of {', '.join(unknown[:_MOST_NAMED])}{more}."
        left = self.undecided
        if left:
            return f"{found} {left:,} of the {len(self.actions) - 1:,} other sets may be better still."
        return f"{found} No other set can be better." if len(self.actions) > 1 else found

    def to_document(self, top: int | None = None) -> dict[str, Any]:
        """As JSON, best first.

        top  only so many actions; default: all

        >>> import dobandit as dob
        >>> rows = [{"ad": 1, "buy": 1, "count": 30}, {"ad": 0, "buy": 0, "count": 50}]
        >>> ranking = dob.rank(dob.CausalGraph([("ad", "buy")], target="buy"), rows, budget=1)
        >>> ranking.to_document(top=1)["actions"][0]["do"]
        {'ad': 1}
        """
        return {
            "target": self.target,
            "rounds": self.rounds,
            "sets": len(self.actions),
            "sentence": self.sentence,
            "interval_words": self.interval_words,
            "context": self.context,
            "actions": document(self.actions[:top]),
            "nothing": document(self.nothing),
            "nodes": self.fit.to_document()["nodes"],
            "warnings": list(self.warnings),
        }

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.actions):,} sets. {self.sentence})"


def _ranked(fit: Fit, context: Mapping[str, float] | None) -> tuple[tuple[Ranked, ...], Worth | None]:
    learner, engine, problem = fit.learner, fit.engine, fit.learner.problem
    known = learner.context(context)
    allowed = problem.allowed().rows()
    rows = [allowed.row(i) for i in range(len(allowed.ids))]
    told, seen = np.array(engine.predict_many(rows, known)), _seen(fit, known)
    silent = [bool(unshown(learner, row)) for row in rows]
    told[:, silent] = np.array([[math.nan], [0.0], [1.0]])
    idle = None if learner.unset(NOTHING) or unshown(learner, NOTHING) else fit.expect(context=context)
    ahead = None if idle is None else engine.contrast(NOTHING, rows, known)
    found = []
    for i in np.lexsort((np.count_nonzero(allowed.ids, axis=1), -told[0])).tolist():
        value, low, high = told[:, i].tolist()
        uplift = None
        if ahead is not None and not silent[i]:
            uplift = Worth(float(ahead.value[i]), Interval(float(ahead.low[i]), float(ahead.high[i])))
        found.append(_entry(fit, rows[i], value, Interval(low, high), uplift, seen.get(rows[i])))
    return tuple(found), idle


def _undecided(fit: Fit, actions: Sequence[Ranked], context: Mapping[str, float] | None) -> int:
    """Where two intervals do not overlap, the difference of the two is decided."""
    best, *others = actions
    if math.isnan(best.value):
        return len(others)
    near = [fit.learner.action(other.do) for other in others if other.interval.high > best.interval.low]
    if not near:
        return 0
    told = fit.engine.contrast(fit.learner.action(best.do), near, fit.learner.context(context))
    return int(np.count_nonzero(told.high > 0.0))


def _seen(fit: Fit, context: Array) -> dict[Action, tuple[int, float]]:
    """Rounds that saw the target in this context, and its sum, by what was set."""
    rows, target = fit.rows, fit.graph.arrays.target
    told = ~np.isnan(rows.values[:, target]) & ((rows.values == context) | np.isnan(context))[:, 1:].all(axis=1)
    counts, y = rows.counts[told], rows.values[told, target]
    done = np.where(rows.was_set, rows.values, _FREE)[told].astype(np.int8)  # 0 and 1 alone: compared faster
    kinds, which = np.unique(done, axis=0, return_inverse=True)
    rounds, total = (np.bincount(which.ravel(), weights=weights).tolist() for weights in (counts, counts * y))
    actions = [action_of(kind) for kind in np.where(kinds == _FREE, np.nan, kinds)]
    return {action: (int(n), ones) for action, n, ones in zip(actions, rounds, total, strict=True)}


def _entry(
    fit: Fit, action: Action, value: float, interval: Interval, uplift: Worth | None, seen: tuple[int, float] | None
) -> Ranked:
    observed = None
    if seen is not None:
        mean = mean_of(seen[1], seen[0])
        observed = Observed(mean.value, mean.rounds, mean.interval)
    return Ranked(action.named(fit.graph), value, interval, uplift, observed)
