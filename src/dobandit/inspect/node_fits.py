"""What the data say of each node: its link, its weights, and whether that fits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from dobandit.diagnosis.cells import Cells, RoundsByVariable, cells_of
from dobandit.diagnosis.link_test import Fitted, chi_square
from dobandit.diagnosis.node_diagnosis import AGREES, CONTRADICTS, LEVEL, UNTESTED
from dobandit.estimation.confidence import Z95, holm, wilson
from dobandit.inspect.link_choice import CURVES, SURE, TABLE, choose_link, fit_weights
from dobandit.model.links import Link, auto
from dobandit.policy.engine import Array, Interval, Rounds
from dobandit.policy.problem import Problem
from dobandit.rows.export import document

_MOST_PATTERNS = 64  # of a table that are listed


class Weight(NamedTuple):
    """A weight of maximum likelihood with its 95% interval at this look (by Fisher's information); interval None: the
    rows say nothing of it."""

    value: float
    interval: Interval | None


class Pattern(NamedTuple):
    """A row of a table: the causes at 1, how often the node was 1 then, of how many rows, with Wilson's 95%."""

    ones: tuple[str, ...]
    mean: float
    interval: Interval
    rows: int


@dataclass(frozen=True)
class NodeFit:
    """What the rows say of a node. A row says something of it if it and all its causes have values, and it was not set.

    rows       how many do
    link       "identity", "logistic", "exponential" or "table": the one under which held-out rows are most likely (a
               table only where it is clearly better), or the one that was promised; "rate" for a node without causes;
               "" where the rows are too few to choose
    promised   whether the link was promised, and not chosen
    held_out   log-likelihood of a held-out row on average, by link
    runner_up, margin, margin_error   the next best link, how much more likely all held-out rows are under `link` than
               under that (in nats), and the standard error of this; below two of them the two are not told apart
    bias, parents   the weights under `link`; none for a table
    patterns   the table's rows
    statistic, df, p   the test of `link` against any probability by pattern; None where it cannot be tested
    verdict    "agrees", "contradicts" (with all nodes counted, at 1%) or "cannot be tested"
    form       what the learner's beliefs rest on: "a curve (99%)"
    """

    rows: int
    link: str
    promised: bool = False
    held_out: dict[str, float] = field(default_factory=dict)
    runner_up: str | None = None
    margin: float | None = None
    margin_error: float | None = None
    bias: Weight | None = None
    parents: dict[str, Weight] = field(default_factory=dict)
    patterns: tuple[Pattern, ...] = ()
    statistic: float | None = None
    df: int = 0
    p: float | None = None
    verdict: str = UNTESTED
    form: str = ""

    @property
    def clear(self) -> bool:
        """Whether the link is told apart from the next best by more than chance."""
        return self.margin is not None and self.margin_error is not None and abs(self.margin) > SURE * self.margin_error


def fit_nodes(problem: Problem, rounds: Rounds, forms: dict[str, str]) -> dict[str, NodeFit]:
    """Every node that the learner has weights for. forms: what it believes each of them looks like."""
    table, index = RoundsByVariable(rounds), problem.graph.index
    found = {name: replace(_fit_node(problem, table, index(name)), form=form) for name, form in forms.items()}
    corrected = holm([node.p for node in found.values()])  # over the nodes that could be tested
    return {
        name: node if p is None else replace(node, verdict=CONTRADICTS if p < LEVEL else AGREES)
        for (name, node), p in zip(found.items(), corrected, strict=True)
    }


def _fit_node(problem: Problem, table: RoundsByVariable, v: int) -> NodeFit:
    graph, link = problem.graph, problem.links[v - 1]
    slots = slice(*graph.arrays.parent_ptr[v : v + 2].tolist())
    parents: list[int] = graph.arrays.parent[slots].tolist()
    cells = cells_of(table, v, parents, continuous=False)
    rows = round(float(cells.n.sum()))
    if not graph.parents(graph.nodes[v - 1]):
        if not rows or not cells.V.shape[1]:
            return NodeFit(rows, "rate")
        mean = float(cells.total.sum()) / rows
        return NodeFit(rows, "rate", bias=Weight(mean, Interval(*wilson(mean, rows))))
    promised = link != auto
    choice = choose_link(cells, link.name if promised else None)
    if choice is None:
        node = NodeFit(rows, link.name if promised else "", promised)
        return _weighed(node, cells, link, parents, problem) if promised and rows else node
    chosen = link.name if promised else choice.link
    node = NodeFit(rows, chosen, promised, choice.scores)
    if chosen == choice.link:
        node = replace(node, runner_up=choice.runner_up, margin=choice.margin, margin_error=choice.error)
    if chosen == TABLE:
        return replace(node, patterns=_patterns(cells, [graph.nodes[p - 1] for p in parents if p]))
    return _weighed(node, cells, link if promised else CURVES[chosen], parents, problem)


def _weighed(node: NodeFit, cells: Cells, link: Link, parents: list[int], problem: Problem) -> NodeFit:
    """The node with its weights, and the test of its link."""
    theta = fit_weights(cells, link)
    x = np.clip(cells.V @ theta, *link.domain)
    p, slope = link.probability(cells.V @ theta), np.asarray(link.slope(x), dtype=float)
    weights = _weights(cells, theta, p, slope, link)
    has_bias = bool(parents) and parents[0] == 0
    named = dict(zip([problem.graph.nodes[q - 1] for q in parents if q], weights[int(has_bias) :], strict=True))
    node = replace(node, bias=weights[0] if has_bias else None, parents=named)
    free = np.eye(len(theta))[:, theta > 1e-7] if link.weight_range[0] == 0.0 else np.eye(len(theta))
    try:
        test = chi_square(cells, Fitted(p, slope, free))
    except np.linalg.LinAlgError:
        test = None
    if test is None or test.df < 1:
        return node
    return replace(node, statistic=test.statistic, df=test.df, p=test.p)


def _weights(cells: Cells, theta: Array, p: Array, slope: Array, link: Link) -> list[Weight]:
    floor = 1.0 / (float(cells.n.sum()) + 2.0)
    inside = np.clip(p, floor, 1.0 - floor)
    information = (cells.V * (cells.n * slope**2 / (inside * (1.0 - inside)))[:, None]).T @ cells.V
    size, axes = np.linalg.eigh(information)
    known = size > 1e-9 * max(float(size.max(initial=0.0)), 1e-300)
    variance = (axes[:, known] ** 2 / size[known]).sum(axis=1)
    unknown = (axes[:, ~known] ** 2).sum(axis=1) > 1e-9
    found = []
    for value, spread, hidden in zip(theta.tolist(), variance.tolist(), unknown.tolist(), strict=True):
        reach = Z95 * math.sqrt(spread)
        ends = Interval(max(value - reach, link.weight_range[0]), value + reach)
        found.append(Weight(value, None if hidden else ends))
    return found


def _patterns(cells: Cells, names: list[str]) -> tuple[Pattern, ...]:
    """The table, the patterns with the most rows first where there are too many."""
    found = []
    for row, n, total in zip(cells.V[:, cells.V.shape[1] - len(names) :], cells.n, cells.total, strict=True):
        mean, count = float(total / n), round(float(n))
        ones = tuple(name for name, one in zip(names, row, strict=True) if one)
        found.append(Pattern(ones, mean, Interval(*wilson(mean, count)), count))
    if len(found) > _MOST_PATTERNS:
        found = sorted(found, key=lambda pattern: -pattern.rows)[:_MOST_PATTERNS]
    return tuple(found)


def node_document(node: NodeFit) -> dict[str, Any]:
    """As JSON says it; null where nothing is known."""
    said: dict[str, Any] = document(vars(node))
    test = {name: said.pop(name) for name in ("statistic", "df", "p", "verdict")}
    form = said.pop("form")
    return {**said, "link": node.link or None, "lack_of_fit": test, "form": form}
