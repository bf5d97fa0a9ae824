"""What a node looks like is learned: a mixture of a straight line, a curve and a table, weighted by how well each has
predicted the rows so far.

V: a row of parents, the constant first.  c, s: how often a pattern of V was seen, and how often X was 1 then.
straight   X = 1 with probability theta . V: weighted least squares (`estimators.WeightedSquares`)
curved     f(theta . V), f the node's link, or the logistic one: maximum a posteriori on the pattern counts, with the
           precision PRIOR on every weight; its covariance is the inverse Hessian
own lines  in place of the straight line where some of V is context: one for each segment
table      any probability for each pattern: (s + k p + h / 2) / (c + k + h), p what the other members say of it and
           k = BACK, h = EVEN imagined rows: of a pattern that nobody has seen the others speak, of one seen often the
           counts do
A member's weight is multiplied by the probability of each row, predicted before the row (prequential), so that a member
that bends to the data gains nothing by it; there is no threshold. At the n-th row a share 1 / (n + 1) of all weight
goes back to where it was at the start: a table, which predicts worse while its cells are empty, is not held to that for
ever (fixed share, Herbster and Warmuth 1998; the catch-up phenomenon, van Erven, Grunwald and de Rooij 2012).
Where there are segments, the curve that all of them share stands apart: the others share weight among themselves, and
the curve neither gives nor takes any. Once the rows have refuted it, it does not come back.
Segments are the patterns of a node's parents that are context. A shared line says that a lever does the same
everywhere, which is what one experiment for all segments is tempted to believe; with a line of its own, a segment is
judged by its own rounds alone. Line `first[v] + g` is that of node v's segment g; where its numbers are stands in the
`layout` of `Segments`, as for nodes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import DENSE, MEMBER, Belief, Layout, add_to_cell, cell_of, named_parents, start_belief
from dobandit.estimation.cholesky import factorise, inverse_entry, invert_factor, solve_factored
from dobandit.estimation.estimators import MIXED, Estimator, learn_weighted_row, start_with_shares
from dobandit.estimation.least_squares import end_round, gather
from dobandit.estimation.score_equation import GRAD, HESS, STEP, THETA, scores
from dobandit.graph.ordering import offsets
from dobandit.kernels import inlined, kernel
from dobandit.model.link_kernels import CODES, EXPONENTIAL, IDENTITY, RATIONAL, LinkArrays, value_at, write_links


class Segments(NamedTuple):
    """What stays fixed."""

    first: NDArray[np.int64]  # (n + 1,)
    bit: NDArray[np.int64]  # by slot of the graph: which bit of the segment's number a parent is; -1: none
    layout: Layout  # of the nodes, and behind them of the lines


def segments_of(layout: Layout, context: NDArray[np.bool_]) -> Segments:
    """The segments of every node. context: by slot, whether the parent tells the node's segments apart."""
    sizes = np.diff(layout.ptr)
    node = np.repeat(np.arange(len(sizes)), sizes)
    before: NDArray[np.int64] = np.cumsum(context) - context  # of all slots, then of the node's own
    bit = np.where(context, before - before[layout.ptr[node]], -1)
    counts = np.bincount(node[context], minlength=len(sizes))
    lines = np.where(counts > 0, 1 << counts, 0)
    first = len(sizes) + np.cumsum(lines) - lines
    of = np.repeat(np.arange(len(sizes)), lines)  # the node of each line
    ptr, square = offsets(np.append(sizes, sizes[of])), offsets(np.append(sizes, sizes[of]) ** 2)
    parents = [layout.parent[layout.ptr[v] : layout.ptr[v + 1]] for v in of]
    parent = np.concatenate([layout.parent, *parents]).astype(np.int32)
    return Segments(first, bit.astype(np.int64), Layout(ptr, parent, square, layout.target))


@inlined
def line_of(nodes: Any, slots: Any, v: int, row: Any) -> int:
    """The line of the segment that a row of v's parents is in."""
    start, segment = nodes[v]["start"], 0
    for j in range(nodes[v]["width"]):
        bit = slots[start + j]["segment"]
        if bit >= 0 and row[j] > 0.5:
            segment |= 1 << bit
    return nodes[v]["segments"] + segment


@inlined
def context_bits(nodes: Any, slots: Any, v: int) -> int:
    """The bits of a parents' pattern that say the segment, lower ones first. Bit j: the j-th parent that is not the
    constant. `part = (part - bits) & bits` goes through the segments in the order of their numbers."""
    start, bits = nodes[v]["start"] + nodes[v]["constant"], 0
    for slot in range(start, nodes[v]["start"] + nodes[v]["width"]):
        if slots[slot]["segment"] >= 0:
            bits |= 1 << (slot - start)
    return bits


STRAIGHT, CURVED, TABLE, OWN_LINES = 0, 1, 2, 3
MEMBERS = ("straight", "curved", "table", "own lines")
PRIOR = 0.1  # precision of each weight of a curve: a standard deviation of about 3
BACK, EVEN = 1.0, 0.5  # imagined rows of a table's cell: at what the others say, and at 1/2
# Odds of the members at the start. The table's are the highest: what the others say of one pattern by what was seen of
# another they have to earn; where they are right, the table loses little by not knowing. Where there are segments,
# their own lines come before the curve that all of them share.
ODDS, ODDS_BY_SEGMENT = (1.0, 1.0, 20.0, 0.0), (0.0, 0.005, 20.0, 4.0)
_SURE = 1e-9
_NEWTON = 3  # steps per fit; the last fit is the start of the next
_ALWAYS = 64  # rows up to which a curve is fitted after each of them
_ROOM = 256  # rows of a node with many parents at first


def mixture(
    layout: Layout, links: LinkArrays, has: NDArray[np.bool_], ridge: float, shares: bool, context: NDArray[np.bool_]
) -> tuple[Estimator, Belief]:
    """The estimator and its belief before any round. Patterns are counted at every node with few parents, straight
    lines too: intervals that hold at every round are made of the counts (`estimation.anytime`).

    has      (n + 1, members) which members each node has
    shares   weights are promised to be nonnegative with a sum of at most 1 (`start_with_shares`)
    context  by slot, whether a parent tells the node's segments apart
    """
    segments, nodes = segments_of(layout, context), len(layout.ptr) - 1
    counted = has[:, CURVED] | (has.any(axis=1) & (named_parents(layout) <= DENSE))
    lines = len(segments.layout.ptr) - 1 - nodes
    state = start_belief(segments.layout, ridge, np.append(counted, np.zeros(lines, dtype=np.bool_)), _ROOM)
    if shares:
        start_with_shares(layout, state)
    state.pairs["covariance"] = np.concatenate([np.eye(size).ravel() / PRIOR for size in np.diff(segments.layout.ptr)])
    odds = has * np.where(has[:, OWN_LINES:], ODDS_BY_SEGMENT, ODDS)
    start = odds / np.maximum(odds.sum(axis=1, keepdims=True), 1.0)
    apart, back = has[:, OWN_LINES], start.copy()
    back[apart, CURVED] = 0.0
    back[apart] /= back[apart].sum(axis=1, keepdims=True)
    members = np.zeros(has.size, MEMBER)
    members["there"], members["weight"], members["back"] = has.ravel(), start.ravel(), back.ravel()
    points, own = write_links(state.nodes, links), state.nodes[:nodes]
    own["link"][~has[:, CURVED]], own["parameter"][~has[:, CURVED]] = IDENTITY, 0.0
    own["promised"] = promised_nodes(layout, has, own["link"])
    own["segments"], own["apart"] = segments.first, apart
    state.slots["segment"][: len(segments.bit)] = segments.bit
    return Estimator(MIXED, learn_mixture, ridge, shares), state._replace(points=points, members=members)


def members_of(state: Belief) -> NDArray[np.bool_]:
    """(n + 1, members) which members each node has."""
    return state.members["there"].reshape(-1, len(MEMBERS)) > 0


def weights_of(state: Belief) -> NDArray[np.float64]:
    """(n + 1, members) how much each member of a node is believed."""
    return np.asarray(state.members["weight"].reshape(-1, len(MEMBERS)))


def promised_nodes(layout: Layout, has: NDArray[np.bool_], code: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n + 1,) the nodes with one member, a line or a curve with a convex likelihood, and fewer weights than patterns;
    any other is a table to intervals with a proof."""
    alone = has.sum(axis=1) == 1
    convex = np.isin(code, [CODES[name] for name in ("identity", "logistic", "probit", "exponential")])
    fewer = np.diff(layout.ptr) < np.exp2(named_parents(layout))
    return alone & (has[:, STRAIGHT] | has[:, CURVED]) & convex & fewer


_FORMS = ("a straight line", "a curve", "a table by pattern", "a straight line in each segment")


def form_in_words(estimator: Estimator, state: Belief, v: int) -> str:
    """Which member carries the weight at node v: "a table by pattern (97%)"; "" where there is one, or no row yet."""
    if estimator.kind != MIXED or members_of(state)[v].sum() < 2 or state.nodes["rows"][v] == 0:
        return ""
    weight = weights_of(state)[v]
    best = int(np.argmax(weight))
    return f"{_FORMS[best]} ({100 * weight[best]:.0f}%)"


def is_curve(estimator: Estimator, state: Belief, v: int) -> bool:
    """Whether node v is a curve and nothing else: its link was promised."""
    return estimator.kind == MIXED and members_of(state)[v].tolist() == [k == CURVED for k in range(len(MEMBERS))]


@inlined
def within(p: float, low: float) -> float:
    return min(max(p, low), 1.0 - low)


@inlined
def straight_mean(nodes: Any, slots: Any, line: int, row: Any) -> float:
    """theta . V of a line, held off 0 and 1 by how few rows it has."""
    total, start = 0.0, nodes[line]["start"]
    for j in range(nodes[line]["width"]):
        total += row[j] * slots[start + j]["line"]
    return within(total, 1.0 / (nodes[line]["rows"] + 2.0))


@inlined
def curved_mean(nodes: Any, slots: Any, pairs: Any, points: Any, v: int, row: Any) -> float:
    """f at theta . V, drawn towards its middle by how little theta . V is known (MacKay's approximation)."""
    node = nodes[v]
    start, at, d = node["start"], node["square"], node["width"]
    x = variance = 0.0
    for i in range(d):
        x += row[i] * slots[start + i]["curve"]
        for j in range(d):
            variance += row[i] * pairs[at + i * d + j]["covariance"] * row[j]
    shift = node["parameter"]
    return within(value_at(node, points, shift + (x - shift) / math.sqrt(1.0 + 0.3927 * variance)), _SURE)


@inlined
def member_means(
    nodes: Any, slots: Any, pairs: Any, cells: Any, bits: Any, points: Any, members: Any, v: int, row: Any
) -> tuple[float, float, float, float, float]:
    """What each member says of a pattern, in their order, and all together."""
    first = 4 * v
    straight = curved = table = own = others = weight = 0.0
    if members[first + STRAIGHT]["there"]:
        straight = straight_mean(nodes, slots, v, row)
        others += members[first + STRAIGHT]["weight"] * straight
        weight += members[first + STRAIGHT]["weight"]
    if members[first + CURVED]["there"]:
        curved = curved_mean(nodes, slots, pairs, points, v, row)
        others += members[first + CURVED]["weight"] * curved
        weight += members[first + CURVED]["weight"]
    if members[first + OWN_LINES]["there"]:
        own = straight_mean(nodes, slots, line_of(nodes, slots, v, row), row)
        others += members[first + OWN_LINES]["weight"] * own
        weight += members[first + OWN_LINES]["weight"]
    mean = others
    if members[first + TABLE]["there"]:
        prior = others / weight if weight > 1e-12 else middle_of(members, first, straight, curved, own)
        cell = cells[nodes[v]["cell"] + cell_of(nodes, bits, v, row)]
        table = (cell["total"] + BACK * prior + 0.5 * EVEN) / (cell["seen"] + BACK + EVEN)
        mean += members[first + TABLE]["weight"] * table
    return straight, curved, table, own, mean


@inlined
def middle_of(members: Any, first: int, straight: float, curved: float, own: float) -> float:
    """The mean of the members besides the table, where none of them has any weight left."""
    a, b, c = members[first + STRAIGHT]["there"], members[first + CURVED]["there"], members[first + OWN_LINES]["there"]
    return (a * straight + b * curved + c * own) / (a + b + c) if a + b + c > 0 else 0.5


@kernel
def learn_mixture(belief: Any, values: Any, was_set: Any, counts: Any) -> None:
    """Judge the members of every node by each round, then let them learn from it."""
    for t in range(len(values)):
        for _ in range(counts[t]):
            mix_round(belief, values[t], was_set[t])


@inlined
def mix_round(belief: Any, values: Any, was_set: Any) -> None:
    """One round."""
    nodes, slots, pairs, row, work = belief.nodes, belief.slots, belief.pairs, belief.row, belief.work
    cells, bits, points, members = belief.cells, belief.bits, belief.points, belief.members
    for v in range(1, len(values)):
        if not gather(nodes, slots, values, was_set, v, row):
            continue
        node = nodes[v]
        judge(nodes, slots, pairs, cells, bits, points, members, v, row, values[v])
        if node["room"] > 0:
            add_to_cell(nodes, cells, bits, v, row, 1.0, values[v])
        if members[4 * v + CURVED]["there"] and node["rows"] >= node["due"]:
            fit_curve(node, slots, pairs, cells, bits, points, work)
            node["due"] = node["rows"] + 1 + max(node["rows"] - _ALWAYS, 0) // 16
        if members[4 * v + OWN_LINES]["there"]:
            learn_weighted_row(nodes, slots, pairs, work, line_of(nodes, slots, v, row), row, values[v])
            gather(nodes, slots, values, was_set, v, row)  # it was scaled
        learn_weighted_row(nodes, slots, pairs, work, v, row, values[v])
    end_round(nodes, pairs, work, belief.clock)


@inlined
def judge(
    nodes: Any, slots: Any, pairs: Any, cells: Any, bits: Any, points: Any, members: Any, v: int, row: Any, x: float
) -> None:
    """Weigh the members anew: each by P(x) of its prediction, and all by a share of what they weighed at the start.
    Where the curve stands apart, only the others share what they weigh."""
    means = member_means(nodes, slots, pairs, cells, bits, points, members, v, row)
    total = others = 0.0
    for k in range(4):
        member = members[4 * v + k]
        if member["there"]:
            p = within(means[k], _SURE)
            member["weight"] *= p if x > 0.5 else 1.0 - p
            total += member["weight"]
    share, apart = 1.0 / (nodes[v]["rows"] + 2.0), nodes[v]["apart"]
    for k in range(4):
        if members[4 * v + k]["there"]:
            members[4 * v + k]["weight"] /= total
            if not (apart and k == CURVED):
                others += members[4 * v + k]["weight"]
    for k in range(4):
        member = members[4 * v + k]
        if member["there"] and not (apart and k == CURVED):
            member["weight"] = (1.0 - share) * member["weight"] + share * (others if apart else 1.0) * member["back"]


@kernel
def fit_curve(node: Any, slots: Any, pairs: Any, cells: Any, bits: Any, points: Any, work: Any) -> None:
    """A few Newton steps towards the maximum a posteriori from where the last fit ended; leaves theta and its
    covariance. A step that leaps is cut: a curve far out is flat, and Newton would not come back."""
    start, at, d = node["start"], node["square"], node["width"]
    theta, hess, sound = THETA * d, HESS * d, True
    for j in range(d):
        work[theta + j] = slots[start + j]["curve"]
    for turn in range(_NEWTON + 1):
        scores(node, cells, bits, points, work, theta, True, PRIOR)
        sound = factorise(work, hess, d)
        if not sound or turn == _NEWTON:
            break
        far = newton(work, d)
        if node["link"] == EXPONENTIAL or node["link"] == RATIONAL:
            for j in range(d):
                work[theta + j] = max(work[theta + j], 0.0)  # these links begin at 0
        if far < 1e-8:
            break
    for j in range(d):
        slots[start + j]["curve"] = work[theta + j]
    if sound:
        invert_factor(work, hess, d)
        for i in range(d):
            for j in range(i + 1):
                entry = inverse_entry(work, hess, d, i, j)
                pairs[at + i * d + j]["covariance"] = pairs[at + j * d + i]["covariance"] = entry


@inlined
def newton(work: Any, d: int) -> float:
    """Move theta by the Newton step, at most 2 in any coordinate; returns how far it went."""
    solve_factored(work, HESS * d, d, GRAD * d, STEP * d)
    longest = 0.0
    for i in range(d):
        longest = max(longest, abs(work[STEP * d + i]))
    share = min(1.0, 2.0 / longest) if longest > 0.0 else 1.0
    for i in range(d):
        work[THETA * d + i] += share * work[STEP * d + i]
    return share * longest
