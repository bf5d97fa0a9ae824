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

from dobandit.compiled import inlined, kernel
from dobandit.estimation.belief import DENSE, MEMBER, Belief, Layout, add_to_cell, cell_of, named_parents, start_belief
from dobandit.estimation.estimators import WeightedSquares, learn, learn_weighted_row, start_with_shares
from dobandit.estimation.least_squares import dot, factorise, gather, inverse_entry, invert_factor, solve_factored
from dobandit.estimation.score_equation import scores
from dobandit.graph.ordering import offsets
from dobandit.model.link_kernels import CODES, EXPONENTIAL, IDENTITY, RATIONAL, LinkArrays, link_value, write_links


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
def line_of(segments: Any, layout: Any, v: int, row: Any) -> int:
    """The line of the segment that a row of v's parents is in."""
    start, segment = layout.ptr[v], 0
    for j in range(layout.ptr[v + 1] - start):
        if segments.bit[start + j] >= 0 and row[j] > 0.5:
            segment |= 1 << segments.bit[start + j]
    return segments.first[v] + segment


@inlined
def segments_at(segments: Any, layout: Any, v: int) -> int:
    """How many segments v has."""
    count = 1
    for slot in range(layout.ptr[v], layout.ptr[v + 1]):
        if segments.bit[slot] >= 0:
            count *= 2
    return count


@inlined
def context_bits(segments: Any, layout: Any, v: int) -> int:
    """The bits of a parents' pattern that say the segment, lower ones first. Bit j: the j-th parent that is not the
    constant. `part = (part - bits) & bits` goes through the segments in the order of their numbers."""
    start, bits = layout.ptr[v], 0
    if layout.parent[start] == 0:
        start += 1
    for slot in range(start, layout.ptr[v + 1]):
        if segments.bit[slot] >= 0:
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


class Mixture(NamedTuple):
    """What stays fixed. has[v, k]: whether member k is there for node v."""

    straight: WeightedSquares
    links: LinkArrays
    has: NDArray[np.bool_]  # (n + 1, members)
    back: NDArray[np.float64]  # (n + 1, members) where a share of the weight goes back to
    apart: NDArray[np.bool_]  # (n + 1,) whether the curve's weight takes no part in that
    segments: Segments


def mixture(
    layout: Layout,
    links: LinkArrays,
    has: NDArray[np.bool_],
    ridge: float,
    floor: float,
    room: int,
    shares: bool,
    context: NDArray[np.bool_],
) -> tuple[Mixture, Belief]:
    """The estimator and its belief before any round. Patterns are counted at every node with few parents, straight
    lines too: intervals that hold at every round are made of the counts (`estimation.anytime`).

    shares  weights are promised to be nonnegative with a sum of at most 1 (`start_with_shares`)
    context  by slot, whether a parent tells the node's segments apart
    """
    segments, nodes = segments_of(layout, context), len(layout.ptr) - 1
    counted = has[:, CURVED] | (has.any(axis=1) & (named_parents(layout) <= DENSE))
    lines = len(segments.layout.ptr) - 1 - nodes
    state = start_belief(segments.layout, ridge, np.append(counted, np.zeros(lines, dtype=np.bool_)), room)
    if shares:
        start_with_shares(layout, state)
    state.pairs["covariance"] = np.concatenate([np.eye(size).ravel() / PRIOR for size in np.diff(segments.layout.ptr)])
    odds = has * np.where(has[:, OWN_LINES:], ODDS_BY_SEGMENT, ODDS)
    start = odds / np.maximum(odds.sum(axis=1, keepdims=True), 1.0)
    apart, back = has[:, OWN_LINES].copy(), start.copy()
    back[apart, CURVED] = 0.0
    back[apart] /= back[apart].sum(axis=1, keepdims=True)
    estimator = Mixture(WeightedSquares(ridge, floor, shares), links, has, back, apart, segments)
    points = write_links(state.nodes, links)
    nodes_with = state.nodes[:nodes]
    nodes_with["link"][~has[:, CURVED]], nodes_with["parameter"][~has[:, CURVED]] = IDENTITY, 0.0
    nodes_with["promised"] = promised_nodes(layout, has, nodes_with["link"])
    nodes_with["segments"], nodes_with["apart"] = segments.first, apart
    state.slots["segment"][: len(segments.bit)] = segments.bit
    members = np.zeros(has.size, MEMBER)
    members["there"], members["weight"], members["back"] = has.ravel(), start.ravel(), back.ravel()
    return estimator, state._replace(weight=start.copy(), points=points, members=members)


def promised_nodes(layout: Layout, has: NDArray[np.bool_], code: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n + 1,) the nodes with one member, a line or a curve whose likelihood is convex, and fewer weights than patterns;
    any other is a table to intervals with a proof."""
    alone = has.sum(axis=1) == 1
    convex = np.isin(code, [CODES[name] for name in ("identity", "logistic", "probit", "exponential")])
    fewer = np.diff(layout.ptr) < np.exp2(named_parents(layout))
    return alone & (has[:, STRAIGHT] | has[:, CURVED]) & convex & fewer


_FORMS = ("a straight line", "a curve", "a table by pattern", "a straight line in each segment")


def form_in_words(estimator: Any, state: Any, v: int) -> str:
    """Which member carries the weight at node v: "a table by pattern (97%)"; "" where there is one, or no row yet."""
    if not isinstance(estimator, Mixture) or estimator.has[v].sum() < 2 or state.nodes["rows"][v] == 0:
        return ""
    weight = state.weight[v]
    best = int(np.argmax(weight))
    return f"{_FORMS[best]} ({100 * weight[best]:.0f}%)"


def is_curve(estimator: Any, v: int) -> bool:
    """Whether node v is a curve and nothing else: its link was promised."""
    return isinstance(estimator, Mixture) and bool(estimator.has[v, CURVED]) and int(estimator.has[v].sum()) == 1


@inlined
def within(p: float, low: float) -> float:
    return min(max(p, low), 1.0 - low)


@inlined
def straight_mean(layout: Any, theta: Any, v: int, row: Any) -> float:
    return dot(row, 0, theta, layout.ptr[v], layout.ptr[v + 1] - layout.ptr[v])


@kernel
def curved_mean(layout: Any, links: Any, state: Any, v: int, row: Any) -> float:
    """f at theta . V, drawn towards its middle by how little theta . V is known (MacKay's approximation)."""
    start, at = layout.ptr[v], layout.square[v]
    d = layout.ptr[v + 1] - start
    x = variance = 0.0
    for i in range(d):
        x += row[i] * state.slots["curve"][start + i]
        for j in range(d):
            variance += row[i] * state.pairs["covariance"][at + i * d + j] * row[j]
    shift = links.parameter[v]
    return link_value(links, v, shift + (x - shift) / math.sqrt(1.0 + 0.3927 * variance))


@kernel
def member_means(layout: Any, mix: Any, state: Any, v: int, row: Any, out: Any) -> None:
    """What each member says of a pattern, and of all together in out[4]."""
    floor = 1.0 / (state.nodes["rows"][v] + 2.0)
    others = weight = 0.0
    if mix.has[v, STRAIGHT]:
        out[STRAIGHT] = within(straight_mean(layout, state.slots["line"], v, row), floor)
        others += state.weight[v, STRAIGHT] * out[STRAIGHT]
        weight += state.weight[v, STRAIGHT]
    if mix.has[v, CURVED]:
        out[CURVED] = within(curved_mean(layout, mix.links, state, v, row), _SURE)
        others += state.weight[v, CURVED] * out[CURVED]
        weight += state.weight[v, CURVED]
    if mix.has[v, OWN_LINES]:
        line = line_of(mix.segments, layout, v, row)
        low = 1.0 / (state.nodes["rows"][line] + 2.0)
        out[OWN_LINES] = within(straight_mean(mix.segments.layout, state.slots["line"], line, row), low)
        others += state.weight[v, OWN_LINES] * out[OWN_LINES]
        weight += state.weight[v, OWN_LINES]
    out[4] = others
    if mix.has[v, TABLE]:
        prior = others / weight if weight > 1e-12 else middle_of(mix, v, out)
        d = layout.ptr[v + 1] - layout.ptr[v]
        cell = state.nodes["cell"][v] + cell_of(state, v, d, row)
        seen, ones = state.cells["seen"][cell], state.cells["total"][cell]
        out[TABLE] = (ones + BACK * prior + 0.5 * EVEN) / (seen + BACK + EVEN)
        out[4] += state.weight[v, TABLE] * out[TABLE]


@inlined
def middle_of(mix: Any, v: int, out: Any) -> float:
    """The mean of the members besides the table, where none of them has any weight left."""
    total = count = 0.0
    for k in range(4):
        if mix.has[v, k] and k != TABLE:
            total += out[k]
            count += 1.0
    return total / count if count > 0.0 else 0.5


@learn.of(Mixture)
def learn_mixture(mix: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """Judge the members by the row, then let each learn from it."""
    for v in range(1, len(layout.ptr) - 1):
        row = state.row
        if not gather(layout, values, was_set, v, row):
            continue
        d = layout.ptr[v + 1] - layout.ptr[v]
        judge(layout, mix, state, v, row, values[v])
        if state.nodes["room"][v] > 0:
            add_to_cell(state, v, d, row, 1.0, values[v])
        if mix.has[v, CURVED] and state.nodes["rows"][v] >= state.nodes["due"][v]:
            fit_curve(layout, mix.links, state, v)
            state.nodes["due"][v] = state.nodes["rows"][v] + 1 + max(state.nodes["rows"][v] - _ALWAYS, 0) // 16
        if mix.has[v, OWN_LINES]:
            line = line_of(mix.segments, layout, v, row)
            learn_weighted_row(mix.straight, mix.segments.layout, state, line, values[v])
            gather(layout, values, was_set, v, row)  # it was scaled
        learn_weighted_row(mix.straight, layout, state, v, values[v])


@kernel
def judge(layout: Any, mix: Any, state: Any, v: int, row: Any, x: float) -> None:
    """Weigh the members anew: each by P(x) of its prediction, and all by a share of what they weighed at the start."""
    means = state.work[0:5]
    member_means(layout, mix, state, v, row, means)
    total = 0.0
    for k in range(4):
        if mix.has[v, k]:
            p = within(means[k], _SURE)
            state.weight[v, k] *= p if x > 0.5 else 1.0 - p
            total += state.weight[v, k]
    share = 1.0 / (state.nodes["rows"][v] + 2.0)
    if mix.apart[v]:
        share_apart(mix, state, v, total, share)
        return
    for k in range(4):
        if mix.has[v, k]:
            state.weight[v, k] = (1.0 - share) * state.weight[v, k] / total + share * mix.back[v, k]


@inlined
def share_apart(mix: Any, state: Any, v: int, total: float, share: float) -> None:
    """Bring the weights to a sum of 1, with a share of what the others weigh given back among them: the curve's weight
    against theirs is what the rows say, from the first to the last."""
    others = 0.0
    for k in range(4):
        if mix.has[v, k]:
            state.weight[v, k] /= total
            if k != CURVED:
                others += state.weight[v, k]
    for k in range(4):
        if mix.has[v, k] and k != CURVED:
            state.weight[v, k] = (1.0 - share) * state.weight[v, k] + share * others * mix.back[v, k]


@kernel
def fit_curve(layout: Any, links: Any, state: Any, v: int) -> None:
    """A few Newton steps towards the maximum a posteriori from where the last fit ended; leaves theta and its
    covariance. A step that leaps is cut: a curve far out is flat, and Newton would not come back."""
    start, at = layout.ptr[v], layout.square[v]
    d = layout.ptr[v + 1] - start
    theta = state.slots["curve"][start : start + d]
    grad, step = state.work[0:d], state.work[d : 2 * d]
    hess = state.work[3 * d : 3 * d + d * d]
    for turn in range(_NEWTON + 1):
        scores(layout, links, state, v, theta, True, PRIOR, grad, hess)
        if not factorise(hess, d):
            return
        if turn == _NEWTON:
            break
        far = newton(hess, grad, step, theta, d)
        if links.code[v] == EXPONENTIAL or links.code[v] == RATIONAL:
            for j in range(d):
                theta[j] = max(theta[j], 0.0)  # these links begin at 0
        if far < 1e-8:
            break
    invert_factor(hess, d)
    for i in range(d):
        for j in range(i + 1):
            state.pairs["covariance"][at + i * d + j] = inverse_entry(hess, d, i, j)
            state.pairs["covariance"][at + j * d + i] = state.pairs["covariance"][at + i * d + j]


@kernel
def newton(factor: Any, grad: Any, step: Any, theta: Any, d: int) -> float:
    """Move theta by the Newton step, at most 2 in any coordinate; returns how far it went."""
    solve_factored(factor, d, grad, step)
    longest = 0.0
    for i in range(d):
        longest = max(longest, abs(step[i]))
    share = min(1.0, 2.0 / longest) if longest > 0.0 else 1.0
    for i in range(d):
        theta[i] += share * step[i]
    return share * longest
