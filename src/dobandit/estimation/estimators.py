"""Estimators: what the rounds so far say of every node's weights. What any of them has learned is a `Belief`.

least squares       sums and their inverse; theta = M^+ b, with M = ridge * I at the start (BLM-LR: 1; BLM-OFU: 0)
weighted squares    the sums weighted by what each row can tell, 1 / (p (1 - p)): M is then the precision of theta
maximum likelihood  plain sums, and BGLM-Estimate on the pattern counts of nodes whose link is not the identity
mixture             weighted squares, a curve and a table, weighed by how well they predict (`estimation.mixture`)
Each has a kernel that learns from a round: `learn_sums`, `learn_weighted`, `learn_likelihood`, `learn_mixture`.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import Belief, Layout, add_to_cell, start_belief
from dobandit.estimation.least_squares import add_round, add_row, end_round, gather
from dobandit.estimation.score_equation import STATUS_WORDS, due, fit_node
from dobandit.kernels import inlined, kernel
from dobandit.model.link_kernels import IDENTITY, LinkArrays, write_links

FLOOR = 0.05  # predictions count as at least this far from 0 and 1 when a row is weighed
_NO_ROW = 1e-11  # share of the sums below which a direction holds nothing but rounding
_FIRST_ROOM = 256  # patterns per node, for learners without a horizon; doubled when it runs out
SQUARES, WEIGHTED, LIKELIHOOD, MIXED = "least squares", "weighted squares", "maximum likelihood", "mixture"


class Estimator(NamedTuple):
    """How a belief learns from a round.

    kind    one of SQUARES, WEIGHTED, LIKELIHOOD, MIXED
    learn   the kernel that takes rounds in: (belief, values by id, which ids were set, how often each round counts)
    ridge   M = ridge * I at the start
    shares  instead of a ridge, the precision of weights that are shares of 1 (`start_with_shares`)
    """

    kind: str
    learn: Any
    ridge: float = 0.0
    shares: bool = False

    @property
    def weighs_by_order(self) -> bool:
        """Whether a round weighs by what was predicted before it, so that the order of rounds matters."""
        return self.kind in (WEIGHTED, MIXED)


@inlined
def learn_sums(belief: Any, values: Any, was_set: Any, counts: Any) -> None:
    """Least squares of every node that the rounds say something about."""
    nodes, slots, pairs, row, work = belief.nodes, belief.slots, belief.pairs, belief.row, belief.work
    for t in range(len(values)):
        for _ in range(counts[t]):
            add_round(nodes, slots, pairs, row, work, values[t], was_set[t])
            end_round(nodes, pairs, work, belief.clock)


@inlined
def learn_weighted_row(nodes: Any, slots: Any, pairs: Any, work: Any, v: int, row: Any, x: float) -> None:
    """Take (row, x) into v's sums with the weight 1 / (p (1 - p)), p the prediction before the row.

    p is moved towards 1/2 by its own standard error, so that few rows cannot make the next ones count for nearly
    everything, and held away from 0 and 1. The row is scaled in place.
    """
    start, at, d = nodes[v]["start"], nodes[v]["square"], nodes[v]["width"]
    p = variance = 0.0
    for i in range(d):
        p += row[i] * slots[start + i]["line"]
        for j in range(d):
            variance += row[i] * pairs[at + i * d + j]["inverse"] * row[j]
    error = math.sqrt(max(variance, 0.0))
    p = max(p - error, 0.5) if p > 0.5 else min(p + error, 0.5)
    p = min(max(p, FLOOR), 1.0 - FLOOR)
    root = 1.0 / math.sqrt(p * (1.0 - p))
    for j in range(d):
        row[j] *= root
    add_row(nodes, slots, pairs, work, v, row, x * root)


@kernel
def learn_weighted(belief: Any, values: Any, was_set: Any, counts: Any) -> None:
    """Weighted squares of every node that the rounds say something about."""
    nodes, slots, pairs, row, work = belief.nodes, belief.slots, belief.pairs, belief.row, belief.work
    for t in range(len(values)):
        for _ in range(counts[t]):
            for v in range(1, values.shape[1]):
                if gather(nodes, slots, values[t], was_set[t], v, row):
                    learn_weighted_row(nodes, slots, pairs, work, v, row, values[t, v])
            end_round(nodes, pairs, work, belief.clock)


@kernel
def learn_likelihood(belief: Any, values: Any, was_set: Any, counts: Any) -> None:
    """BGLM-Estimate: sums for every node, and the maximum likelihood of the nonlinear ones."""
    nodes, slots, pairs, row, work = belief.nodes, belief.slots, belief.pairs, belief.row, belief.work
    cells, bits, points = belief.cells, belief.bits, belief.points
    for t in range(len(values)):
        for _ in range(counts[t]):
            add_round(nodes, slots, pairs, row, work, values[t], was_set[t])
            for v in range(1, values.shape[1]):
                node = nodes[v]
                if node["link"] == IDENTITY:
                    for slot in range(node["start"], node["start"] + node["width"]):
                        slots[slot]["curve"] = slots[slot]["line"]
                elif gather(nodes, slots, values[t], was_set[t], v, row):
                    add_to_cell(nodes, cells, bits, v, row, 1.0, values[t, v])
                    node["since"] += 1
                    if due(node):
                        fit_node(node, slots, cells, bits, points, work)
            end_round(nodes, pairs, work, belief.clock)


def estimate_of(estimator: Estimator, state: Belief) -> NDArray[np.float64]:
    """The weights of every node, by slot."""
    return np.asarray(state.slots["curve" if estimator.kind == LIKELIHOOD else "line"])


def start_with_shares(layout: Layout, state: Belief) -> None:
    """Begin as if nothing but this were known: a node's d weights are nonnegative and add up to at most 1.

    The uniform distribution over these has the means 1 / (d + 1) and the precision `precision_of_shares`.
    """
    for v in range(1, len(layout.ptr) - 1):
        d, at = int(layout.ptr[v + 1] - layout.ptr[v]), int(layout.square[v])
        part = slice(layout.ptr[v], layout.ptr[v + 1])
        precision, mean = precision_of_shares(d), np.full(d, 1.0 / (d + 1))
        covariance = (np.diag(mean) - np.outer(mean, mean)) / (d + 2)
        square = slice(at, at + d * d)
        state.pairs["gram"][square], state.pairs["inverse"][square] = precision.ravel(), covariance.ravel()
        state.slots["rhs"][part], state.slots["line"][part] = precision @ mean, mean


def precision_of_shares(d: int) -> NDArray[np.float64]:
    """The inverse covariance of d + 1 numbers that are uniform among those that add up to 1, without the last."""
    return (d + 1.0) * (d + 2.0) * (np.eye(d) + 1.0)


def least_squares(layout: Layout, ridge: float) -> tuple[Estimator, Belief]:
    """Plain least squares before any round."""
    return Estimator(SQUARES, learn_sums, ridge), start_belief(layout, ridge)


def weighted_squares(layout: Layout, ridge: float, shares: bool = False) -> tuple[Estimator, Belief]:
    """Weighted squares before any round; shares: weights are nonnegative with a sum of at most 1."""
    state = start_belief(layout, ridge)
    if shares:
        start_with_shares(layout, state)
    return Estimator(WEIGHTED, learn_weighted, ridge, shares), state


def maximum_likelihood(layout: Layout, links: LinkArrays, horizon: int | None) -> tuple[Estimator, Belief]:
    """The estimator and its belief before any round; room for the patterns of `horizon` rounds, where it is known."""
    room = horizon + 1 if horizon is not None else _FIRST_ROOM
    state = start_belief(layout, 0.0, links.nodes["link"] != IDENTITY, min(room, 1 << 20))
    return Estimator(LIKELIHOOD, learn_likelihood), state._replace(points=write_links(state.nodes, links))


def status_of(estimator: Estimator, state: Belief, v: int, unseen: NDArray[np.float64]) -> str:
    """What is known of node v's estimate: whether the data alone, without a prior, tell its weights apart. unseen: the
    projector on the directions that they have not shown."""
    if estimator.kind == LIKELIHOOD and state.nodes["link"][v] != IDENTITY:
        return STATUS_WORDS[state.nodes["status"][v]]
    return "singular" if np.trace(unseen) > 0.5 else "solved"


def begins_with_prior(estimator: Estimator) -> bool:
    """Whether M holds more than rows: a ridge, or the precision of weights that are shares of 1."""
    return bool(estimator.shares or estimator.ridge)


def unseen_directions(estimator: Estimator, layout: Layout, state: Belief, v: int) -> NDArray[np.float64]:
    """The projector (d, d) on the directions that no row of node v has shown; what it began with is no row."""
    d, at = int(layout.ptr[v + 1] - layout.ptr[v]), int(layout.square[v])
    part = slice(at, at + d * d)
    if not begins_with_prior(estimator) or d == 0:
        return state.pairs["null"][part].reshape(d, d)
    prior = precision_of_shares(d) if estimator.shares else estimator.ridge * np.eye(d)
    rows = state.pairs["gram"][part].reshape(d, d) - prior
    if not state.nodes["rows"][v]:
        return np.eye(d)
    least = _NO_ROW * max(1.0, float(np.trace(rows)))
    if state.nodes["rows"][v] >= d:
        with suppress(np.linalg.LinAlgError):  # the quick way to see that every direction was seen
            np.linalg.cholesky(rows - least * np.eye(d))
            return np.zeros((d, d))
    sizes, vectors = np.linalg.eigh(rows)
    unseen = vectors[:, sizes <= least]
    return np.asarray(unseen @ unseen.T)
