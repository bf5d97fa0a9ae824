"""`rank`: every allowed action from data, with its picture and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Unpack

from dobandit.checks import whole_number
from dobandit.errors import ReportError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.inspect.fit import fitted
from dobandit.inspect.node_fits import NodeFit
from dobandit.inspect.ranking import Ranked, Ranking
from dobandit.model.causal_model import CausalModel
from dobandit.oracle.rules import Rules, RuleWords, rules_of
from dobandit.policy.engine import Interval
from dobandit.policy.hidden_causes import Hide
from dobandit.policy.problem import Links
from dobandit.report.figures import Figure
from dobandit.report.svg.bar_charts import Scale, Value, values_panel
from dobandit.report.tables import Table, frame_of
from dobandit.rows.export import document
from dobandit.texts import action_words, aligned, decimals, fixed, printable, setting_words, shortened

_MOST_LETTERS = 44
MOST_RANKED = 200_000


class RankingResult(Ranking):
    """Every allowed action, best first, with a picture. Made by `rank`.

    actions   see `Ranked`; of equals the one that sets fewer variables comes first
    nothing   E[target] of doing nothing; None where nothing is known of it, as where a variable is always set
    fit       what the data say of each node
    context   the values for which this holds, where the graph has context variables
    """

    def text(self, top: int = 20, width: int | None = None) -> str:
        """The best actions, what the data say of each variable, and the ranking in a sentence.

        top    how many actions
        width  of the screen in characters; default: any width
        """
        shown = self.actions[:top]
        nodes = [
            (name, f"{node.rows:,}", _link_words(node), _margin_words(node), _fit_words(node))
            for name, node in self.fit.nodes.items()
        ]
        lines = [
            f"The best {len(shown):,} of {len(self.actions):,} sets, from {self.rounds:,} rounds",
            *aligned(
                ["", *self._headings], [(str(i), *row) for i, row in enumerate(_rows(shown), 1)], [0, 2, 3, 4], width
            ),
            "",
            "What the rows say of each variable",
            *aligned(["variable", "rows", "link", "held-out margin, in nats", "fits"], nodes, [1], width),
            *map(printable, self.fit.mechanisms),
            "",
            printable(self.sentence),
            f"Each interval: {self.interval_words}.",
        ]
        return "\n".join(lines)

    def to_pandas(self) -> Any:
        """A row per action, best first, as a pandas DataFrame with the fields of `to_document`."""
        return frame_of(document(self.actions))

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        table = Table(
            self._headings, _rows(self.actions[:20]), [self.sentence, f"Each interval: {self.interval_words}."]
        )
        return f"{self.chart().svg()}\n{table.html()}"

    @property
    def _headings(self) -> list[str]:
        return ["set", f"E[{self.target}]", "against nothing", "seen"]

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
            if isfinite(action.value)
        ]
        nothing = None if self.nothing is None else (self.nothing.value, "doing nothing")
        marks = [x for row in rows for x in (row.low, row.high, row.value, row.seen) if x is not None and isfinite(x)]
        marks += [] if nothing is None else [nothing[0]]
        low, high = min(marks, default=0.0), max(marks, default=1.0)
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


def _rows(actions: Sequence[Ranked]) -> list[list[str]]:
    """A row per action, with as many decimals in each column."""
    of_values = decimals(*(action.interval for action in actions))
    of_uplifts = decimals(*(action.uplift.interval for action in actions if action.uplift is not None and action.do))
    of_means = decimals(*(action.observed.interval for action in actions if action.observed is not None))
    rows = []
    for action in actions:
        uplift, seen = action.uplift if action.do else None, action.observed
        rows.append(
            [
                action_words(action.do),
                _worth_words(action.value, action.interval, of_values),
                "" if uplift is None else _worth_words(uplift.value, uplift.interval, of_uplifts, "+"),
                "-" if seen is None else f"{fixed(seen.mean, of_means)} ({seen.rounds:,})",
            ]
        )
    return rows


def _worth_words(value: float, interval: Interval, places: int, sign: str = "") -> str:
    if not isfinite(value):
        return "not known"
    ends = "..".join(fixed(end, places, sign) for end in interval)
    return f"{fixed(value, places, sign)}, {ends}"


def _link_words(node: NodeFit) -> str:
    if not node.link:
        return "too few rows to choose"
    return f"{node.link} (promised)" if node.promised else node.link


def _margin_words(node: NodeFit) -> str:
    """How clearly the link was chosen."""
    if node.margin is None or node.runner_up is None:
        return "-"
    clear = "" if node.clear else " (not told apart)"
    return f"{node.margin:+.1f} ± {node.margin_error:.1f} over {node.runner_up}{clear}"


def _fit_words(node: NodeFit) -> str:
    if node.link in ("rate", "table"):
        return "nothing to test"
    return node.verdict if node.p is None else f"{node.verdict} (p = {node.p:.2g})"


def _title(ranking: Ranking) -> str:
    best = ranking.best
    if not isfinite(best.value):
        return f"Of no set it is known what it would bring to {ranking.target}"
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
