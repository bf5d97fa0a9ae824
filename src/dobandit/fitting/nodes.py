"""What the data say of each node: its link, by the log-likelihood of rows that were held out, its weights, and whether
that fits.

Cell c: a pattern V_c of the node's parents (the constant's 1 first), seen in n_c rows, in s_c of them with the node
at 1. The rows are shuffled, always in the same way, and cut into FOLDS parts; each part is predicted by weights fitted
to the others. A link that bends to the rows gains nothing by it.
identity     f(x) = x, logistic, exponential (1 - exp(-x), weights from 0 on): maximum likelihood by Fisher's scoring,
             with the curves' prior of the learners (`estimation.mixture`) for the logistic one
table        (s + k p) / (n + k), p what the line and the logistic curve say on average, k = BACK
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.confidence import Z95, holm, wilson
from dobandit.estimation.mixture import BACK, PRIOR
from dobandit.experiment.diagnosis.link_test import Cells, Fitted, RoundsByVariable, cells_of, chi_square
from dobandit.experiment.diagnosis.nodes import AGREES, CONTRADICTS, LEVEL, UNTESTED
from dobandit.model.links import Link, auto, exponential, identity, logistic
from dobandit.oracle.frontier import MOST_PARENTS
from dobandit.policy.engine import Interval, Rounds
from dobandit.policy.problem import Problem
from dobandit.rows.export import document

Array = NDArray[np.float64]
FOLDS = 5
SURE = 2.0  # standard errors that are more than chance
FEWEST = 4 * FOLDS  # rows for a choice
TABLE = "table"
CURVES: dict[str, Link] = {"identity": identity, "logistic": logistic(), "exponential": exponential}
_SEED = 20_230_207
_STEPS = 40
_DONE = 1e-9  # nats per row
_DIGITS = 9  # of nats per row: of equals the simpler one, which comes first, is taken
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
    promised = link != auto and not problem.assumed_lines
    settled = link != auto
    choice = choose_link(cells, link.name if settled else None)
    if choice is None:
        node = NodeFit(rows, link.name if settled else "", promised)
        return _weighed(node, cells, link, parents, problem) if settled and rows else node
    chosen = link.name if settled else choice.link
    node = NodeFit(rows, chosen, promised, choice.scores)
    if chosen == choice.link:
        node = replace(node, runner_up=choice.runner_up, margin=choice.margin, margin_error=choice.error)
    if chosen == TABLE:
        return replace(node, patterns=_patterns(cells, [graph.nodes[p - 1] for p in parents if p]))
    return _weighed(node, cells, link if settled else CURVES[chosen], parents, problem)


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


# -- the choice of a link ----------------------------------------------------------------------------------------------


class Choice(NamedTuple):
    """What was chosen for a node.

    link       the one under which the held-out rows are most likely; a table only where it is better than every curve
               by more than two standard errors, since it can always imitate them
    scores     log-likelihood of a held-out row on average, by link
    runner_up  the next best
    margin     how much more likely all held-out rows are under the chosen one, in nats
    error      the standard error of the margin; below two of them the two are not told apart
    """

    link: str
    scores: dict[str, float]
    runner_up: str
    margin: float
    error: float


def choose_link(cells: Cells, wanted: str | None = None) -> Choice | None:
    """The link of a node from its rows; None where there are too few, or nothing to choose without parents.

    wanted  a link that is taken whatever the rows say: the margin is then that over the best other one
    """
    rows = round(float(cells.n.sum()))
    parents = int(np.count_nonzero(np.ptp(cells.V, axis=0))) if rows else 0  # that have shown both values
    if rows < FEWEST or not parents:
        return None
    folds = _folds(cells)
    names = [*CURVES, *([TABLE] if parents <= MOST_PARENTS else [])]
    ones, zeros = (np.zeros((len(names), FOLDS, len(cells.n))) for _ in range(2))
    for fold in range(FOLDS):
        others = np.arange(FOLDS) != fold
        n, s = folds[others].sum(axis=(0, 2)), folds[others, :, 1].sum(axis=0)
        for k, p in enumerate(_predictions(Cells(cells.V, n, s), names)):
            ones[k, fold], zeros[k, fold] = np.log(p), np.log1p(-p)
    held = folds.transpose(2, 0, 1)  # (zeros and ones, fold, cell)
    totals = (held[1] * ones + held[0] * zeros).sum(axis=(1, 2))
    ranked = sorted(range(len(names)), key=lambda k: (-round(float(totals[k]) / rows, _DIGITS), k))
    best = names.index(wanted) if wanted in names else ranked[0]
    second = next(k for k in ranked if k != best)

    def apart(one: int, other: int) -> tuple[float, float]:
        """How much more likely the held-out rows are under one link than under another, and the standard error."""
        up, down = ones[one] - ones[other], zeros[one] - zeros[other]
        more = float((held[1] * up + held[0] * down).sum())
        squares = float((held[1] * up**2 + held[0] * down**2).sum())
        return more, math.sqrt(max(squares - more * more / rows, 0.0))

    margin, error = apart(best, second)
    if wanted is None and names[best] == TABLE and margin <= SURE * error:
        best, second, margin = second, best, -margin
    scores = {name: float(total) / rows for name, total in zip(names, totals.tolist(), strict=True)}
    return Choice(names[best], scores, names[second], margin, error)


def fit_weights(cells: Cells, link: Link) -> Array:
    """Weights of maximum likelihood among those that the link allows, whatever their signs."""
    V, n, s = cells
    n, V, s = n[n > 0], V[n > 0], s[n > 0]
    if not V.shape[1] or not len(n):
        return np.zeros(V.shape[1])
    ridge, bounded = (PRIOR if link.name == "logistic" else 1e-9), link.weight_range[0] == 0.0
    rates, floor = s / n, 1.0 / (float(n.sum()) + 2.0)
    x = _inverse(link, (s + 0.5) / (n + 1.0))
    theta = _solve(V, n, x, ridge, bounded)
    likelihood = _log_likelihood(cells, link, theta, floor) - 0.5 * ridge * float(theta @ theta)
    for _ in range(_STEPS):
        x = np.clip(V @ theta, *link.domain) if bounded else V @ theta
        value, slope = np.asarray(link.value(x), dtype=float), np.maximum(np.asarray(link.slope(x), dtype=float), 1e-9)
        p = np.clip(value, floor, 1.0 - floor)
        goal = _solve(V, n * slope**2 / (p * (1.0 - p)), x + (rates - value) / slope, ridge, bounded)
        share, ahead = 1.0, -math.inf
        while share > 1e-4:
            trial = theta + share * (goal - theta)
            ahead = _log_likelihood(cells, link, trial, floor) - 0.5 * ridge * float(trial @ trial)
            if ahead >= likelihood:
                break
            share *= 0.5
        if ahead < likelihood:
            break
        theta, gained, likelihood = trial, ahead - likelihood, ahead
        if gained < _DONE * float(n.sum()):
            break
    return theta


def _predictions(cells: Cells, names: list[str]) -> list[Array]:
    """What each link says of every cell, never quite sure, from the rows in `cells`."""
    floor = 1.0 / (float(cells.n.sum()) + 2.0)
    found = [
        np.clip(link.probability(cells.V @ fit_weights(cells, link)), floor, 1.0 - floor) for link in CURVES.values()
    ]
    if TABLE in names:
        prior = 0.5 * (found[0] + found[1])
        found.append((cells.total + BACK * prior) / (cells.n + BACK))
    return found


def _folds(cells: Cells) -> Array:
    """(FOLDS, cells, 2) how many rows of each cell with the node at 0 and at 1 are in each part."""
    ones = np.rint(cells.total).astype(np.int64)
    counts = np.stack([np.rint(cells.n).astype(np.int64) - ones, ones], axis=1)
    rows = np.random.default_rng(_SEED).permutation(np.repeat(np.arange(counts.size), counts.ravel()))
    return np.stack(
        [np.bincount(rows[fold::FOLDS], minlength=counts.size).reshape(counts.shape) for fold in range(FOLDS)]
    ).astype(float)


def _inverse(link: Link, p: Array) -> Array:
    if link.name == "logistic":
        return np.log(p / (1.0 - p))
    return -np.log1p(-p) if link.name == "exponential" else p


def _solve(V: Array, weight: Array, x: Array, ridge: float, bounded: bool) -> Array:
    """argmin of sum of weight (V theta - x)^2 + ridge |theta|^2, theta from 0 on where it is bounded."""
    root = np.sqrt(weight)
    A = np.vstack([V * root[:, None], math.sqrt(ridge) * np.eye(V.shape[1])])
    b = np.concatenate([x * root, np.zeros(V.shape[1])])
    if bounded:
        from scipy.optimize import nnls  # not at the start: it takes long to import

        return np.asarray(nnls(A, b, maxiter=1000)[0])
    return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0])


def _log_likelihood(cells: Cells, link: Link, theta: Array, floor: float) -> float:
    p = np.clip(link.probability(cells.V @ theta), floor, 1.0 - floor)
    return float(cells.total @ np.log(p) + (cells.n - cells.total) @ np.log1p(-p))
