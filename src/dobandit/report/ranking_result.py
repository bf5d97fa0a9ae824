"""`rank`: every allowed action from data, with its picture and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Unpack

from dobandit.checks import whole_number
from dobandit.errors import ReportError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.inspect.fit import fitted
from dobandit.inspect.ranking import Ranked, Ranking
from dobandit.model.causal_model import CausalModel
from dobandit.oracle.rules import Rules, RuleWords, rules_of
from dobandit.policy.hidden_causes import Hide
from dobandit.policy.problem import Links
from dobandit.report.figures import Figure
from dobandit.report.svg.bar_charts import Scale, Value, values_panel
from dobandit.texts import action_words, decimals, fixed, setting_words, shortened

_MOST_LETTERS = 44
MOST_RANKED = 200_000


class RankingResult(Ranking):
    """Every allowed action, best first, with a picture. Made by `rank`.

    actions   see `Ranked`; of equals the one that sets fewer variables comes first
    nothing   E[target] of doing nothing; None where a variable is always set
    fit       what the data say of each node
    context   the values for which this holds, where the graph has context variables
    """

    def chart(self, top: int = 20) -> Figure:
        """The best actions as dots with their intervals, beside doing nothing.

        top  how many of them

        Returns a `Figure`; `.save("ranking.png")` writes it.

        >>> import dobandit as dob
        >>> rows = [{"ad": 1, "buy": 1, "count": 30}, {"ad": 0, "buy": 0, "count": 50}]
        >>> dob.rank(dob.CausalGraph([("ad", "buy")], target="buy"), rows, budget=1).chart().title
        'ad looks best for buy: +0.615 against doing nothing'
        """
        top = whole_number("top", top, 1, ReportError)
        shown = list(self.actions[:top])
        title = _title(self)
        rows = [
            Value(
                action_words(action.do),
                action.value,
                *action.interval,
                kind="other" if place else "model",
                seen=None if action.observed is None else action.observed.mean,
            )
            for place, action in enumerate(shown)
        ]
        nothing = None if self.nothing is None else (self.nothing.value, "doing nothing")
        marks = [x for row in rows for x in (row.low, row.high, row.value, row.seen) if x is not None and isfinite(x)]
        marks += [] if nothing is None else [nothing[0]]
        low, high = min(marks), max(marks)
        room = 0.04 * (high - low) or 0.5
        scale = Scale(low - room, high + room, f"E[{self.target}]", nothing)
        return Figure(title, _legend(self, shown), title, (values_panel(rows, title, scale),))


def rank(
    graph: CausalGraph | CausalModel,
    data: Any,
    budget: int | Rules | None = None,
    links: Links = "auto",
    *,
    context: Mapping[str, float] | None = None,
    hide: Hide = (),
    looks: str | None = None,
    **rules: Unpack[RuleWords],
) -> RankingResult:
    """Every allowed action by what it would bring, best first, from data.

    graph    what causes what; of a model the structure and the links are used, never the weights
    data     as `fit` takes them: a frame, the path of a CSV or Parquet file, or rows
    budget   how many variables may be set at most, or Rules
    links    "auto", or assumed, for all nodes or by node
    context  the value of each context variable, where the graph has some
    hide     observed variables that count as hidden, or "auto", as in `create_experiment`: their columns may be missing
    looks    "once": intervals hold at one look at this table; "every": however often it grows and one looks again.
             Default: as in `fit`
    rules    levers, costs, total_cost, require, forbid, exclusive, smaller, always_set, available: see `Rules`

    Returns a `RankingResult`. `experiment.evaluate(do)` of an experiment that is created with history=data and the same
    rules has the same value of each action, to the last digit, and with looks="every" the same interval; that of the
    uplift is found by draws, and the same for an experiment with seed=0. What was observed has a wider interval there.

    >>> import dobandit as dob
    >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
    >>> rows = [{"ad": 1, "buy": 1, "count": 30}, {"ad": 1, "buy": 0, "count": 20}, {"ad": 0, "buy": 0, "count": 50}]
    >>> dob.rank(graph, rows, budget=1).best.do
    {'ad': 1}
    """
    return RankingResult(fitted(graph, data, rules_of(budget, rules), links, MOST_RANKED, hide, looks), context)


def _title(ranking: Ranking) -> str:
    best = ranking.best
    if not best.do:
        return f"Doing nothing looks best for {ranking.target}"
    found = f"{shortened(action_words(best.do), _MOST_LETTERS)} looks best for {ranking.target}"
    if best.uplift is None:
        return found
    return f"{found}: {fixed(best.uplift.value, decimals(best.uplift.interval), '+')} against doing nothing"


def _legend(ranking: Ranking, shown: list[Ranked]) -> str:
    parts = [
        f"The best {len(shown):,} of {len(ranking.actions):,} sets, from {ranking.rounds:,} rounds."
        if len(shown) < len(ranking.actions)
        else f"All {len(shown):,} sets, from {ranking.rounds:,} rounds.",
        f"Dots: the model's estimate; lines: its interval, which {ranking.interval_words}."
        if ranking.interval_words.startswith("holds")
        else f"Dots: the model's estimate; lines: its interval ({ranking.interval_words}).",
    ]
    if any(action.observed is not None for action in shown):
        parts.append("Diamonds: the mean of the rounds with exactly this set.")
    if ranking.context:
        parts.append(f"With {setting_words(ranking.context)}.")
    return " ".join(parts)
