"""Evidence against a graph, valid at any time: is there a node that depends on more than its parents?

v: the pattern of a node's parents in a round.  x: the node's value.  z: an extra bit, the value of a variable that is
no parent, or whether a parent was set.  n, s: how often (v, z) was seen, and how often x was 1 then.
null        x is Bernoulli(p(v)), any p: what every link says, and every table.  Likelihood at its largest over p.
alternative x is Bernoulli(p(v, z)).  Half of it is a table of independent cells with Jeffreys' prior (Krichevsky-
            Trofimov); half is split over SHIFTS of the log odds by z that are the same for every v, with Jeffreys'
            prior on p(v, 0), on a grid. The first finds anything in the end, the second finds a plain effect sooner.
R_v         alternative / null over the rows with pattern v in which z was seen. The null is at least as likely there as
            the truth, so that R_v is at most a martingale that starts at 1, whatever made the learner set what it set.
E           sum over a node's alternatives j of w_j product over v of (1/2 + R_v / 2), w_j = 1 / (their number). The
            half kept aside bounds what a pattern can cost that says nothing of z, by log 2: most do.
A row is in one R_v, so that E too is at most a martingale, and E >= 1 / alpha ever has a chance of at most alpha (Ville
1939; universal inference: Wasserman, Ramdas, Balakrishnan 2020).
Everything follows from the counts, in whatever order the rounds of a batch came, so a row costs an addition per
alternative and E is computed when it is asked for; of a pattern that no row came to since, what it gave then is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.estimation.belief import Layout, named_parents
from dobandit.graph.ordering import offsets

SHIFTS = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)
GRID = 64  # points of Jeffreys' prior: far apart by 1 / 40 at p = 1/2, which is as much as 400 rows can tell
_FAR = 20.0  # nats below the best point of the grid from which on points are left out: E is the smaller for it
MOST_SHIFTED = 64  # parent patterns up to which shifts are tried
_LOG_PI = math.log(math.pi)


class Alternative(NamedTuple):
    """One more parent of a node (ids): the value of `extra`, or whether `extra`, a parent, was set."""

    node: int
    extra: int
    by_set: bool


class Watch(NamedTuple):
    """What is looked at; alternative a of the i-th node: first[i] <= a < first[i + 1]."""

    nodes: NDArray[np.int64]
    patterns: NDArray[np.int64]  # per node, of its parents
    first: NDArray[np.int64]
    extra: NDArray[np.int64]
    by_set: NDArray[np.bool_]
    cell: NDArray[np.int64]  # where an alternative's table begins: (v, z) is at cell + 2 v + z
    log_p: NDArray[np.float64]  # (1 + shifts, GRID) of the grid, and of the grid shifted
    log_q: NDArray[np.float64]


class Evidence(NamedTuple):
    """What was seen, and what was worked out of it: of an alternative's pattern, at cell // 2 + v."""

    seen: NDArray[np.int64]
    ones: NDArray[np.int64]
    rows: NDArray[np.int64]  # per alternative
    shares: NDArray[np.float64]  # (patterns, 1 + shifts) of log E, of the table and of each shift
    shared: NDArray[np.int64]  # (patterns,) the rows that were in `shares`


def watch_of(layout: Layout, alternatives: Sequence[Alternative]) -> tuple[Watch, Evidence]:
    """Arrays for alternatives that are sorted by node, and the state before any round."""
    nodes = sorted({each.node for each in alternatives})
    named = named_parents(layout)
    ends = offsets([2 << int(named[each.node]) for each in alternatives])
    first = np.searchsorted([each.node for each in alternatives], [*nodes, len(layout.ptr)])
    p = np.sin(math.pi * (np.arange(GRID) + 0.5) / (2 * GRID)) ** 2  # Gauss-Chebyshev: equal weights
    odds = np.log(p) - np.log1p(-p) + np.array([0.0, *SHIFTS])[:, None]
    watch = Watch(
        np.array(nodes, dtype=np.int64),
        np.left_shift(1, named[nodes]),
        first.astype(np.int64),
        np.array([each.extra for each in alternatives], dtype=np.int64),
        np.array([each.by_set for each in alternatives], dtype=np.bool_),
        ends[:-1].copy(),
        -np.logaddexp(0.0, -odds),
        -np.logaddexp(0.0, odds),
    )
    cells = int(ends[-1])
    seen, ones, rows, shared = (np.zeros(n, dtype=np.int64) for n in (cells, cells, len(alternatives), cells // 2))
    return watch, Evidence(seen, ones, rows, np.zeros((cells // 2, 1 + len(SHIFTS))), shared)


@kernel
def count_rounds(layout: Any, watch: Any, state: Any, values: Any, was_set: Any, counts: Any) -> None:
    """Rounds in which a node was set, or it or a parent was not seen, tell nothing of it; those in which z was not
    seen tell nothing of that alternative."""
    for t in range(len(values)):
        for i in range(len(watch.nodes)):
            v, pattern, bit = watch.nodes[i], 0, 1
            told = not (was_set[t, v] or math.isnan(values[t, v]))
            for slot in range(layout.ptr[v], layout.ptr[v + 1]):
                p = layout.parent[slot]
                if p > 0:
                    told = told and not math.isnan(values[t, p])
                    pattern += bit * int(values[t, p] > 0.5)
                    bit *= 2
            if not told:
                continue
            one = values[t, v] > 0.5
            for a in range(watch.first[i], watch.first[i + 1]):
                w = watch.extra[a]
                if watch.by_set[a]:
                    z = int(was_set[t, w])
                elif math.isnan(values[t, w]):
                    continue
                else:
                    z = int(values[t, w] > 0.5)
                at = watch.cell[a] + 2 * pattern + z
                state.seen[at] += counts[t]
                state.rows[a] += counts[t]
                if one:
                    state.ones[at] += counts[t]


@inlined
def largest(n: float, s: float) -> float:
    """Log-likelihood of s ones in n rows at p = s / n."""
    total = 0.0
    if s > 0.0:
        total += s * math.log(s / n)
    if s < n:
        total += (n - s) * math.log((n - s) / n)
    return total


@inlined
def jeffreys(n: float, s: float) -> float:
    """Log chance of rows with s ones of n, p drawn from Beta(1/2, 1/2)."""
    return math.lgamma(s + 0.5) + math.lgamma(n - s + 0.5) - math.lgamma(n + 1.0) - _LOG_PI


@inlined
def log_add(a: float, b: float) -> float:
    top = max(a, b)
    return top + math.log1p(math.exp(min(a, b) - top)) if top > -math.inf else top


@inlined
def half_aside(x: float) -> float:
    """log(1/2 + exp(x) / 2)."""
    return log_add(0.0, x) - math.log(2.0)


@kernel
def ceiling(watch: Any, state: Any, i: int, a: int) -> float:
    """What alternative a could reach at most: both likelihoods at their largest. It is cheap, and seldom large."""
    total = 0.0
    for k in range(watch.patterns[i]):
        at = watch.cell[a] + 2 * k
        n0, s0, n1, s1 = state.seen[at], state.ones[at], state.seen[at + 1], state.ones[at + 1]
        if n0 > 0 and n1 > 0:
            total += half_aside(largest(n0, s0) + largest(n1, s1) - largest(n0 + n1, s0 + s1))
    return total


@kernel
def log_ratio(watch: Any, state: Any, i: int, a: int) -> float:
    """log of the product over v of (1/2 + R_v / 2), half for the table and half for the shifts together."""
    members, ratio = len(watch.log_p) if watch.patterns[i] <= MOST_SHIFTED else 1, -math.inf
    first, last = watch.cell[a] // 2, watch.cell[a] // 2 + watch.patterns[i]
    for k in range(first, last):
        n0, s0, n1, s1 = state.seen[2 * k], state.ones[2 * k], state.seen[2 * k + 1], state.ones[2 * k + 1]
        if n0 + n1 == state.shared[k]:
            continue
        null, state.shared[k] = largest(n0 + n1, s0 + s1), n0 + n1
        state.shares[k, 0] = half_aside(jeffreys(n0, s0) + jeffreys(n1, s1) - null)
        for shift in range(1, members):
            evidence = shifted(watch.log_p, watch.log_q, shift, float(s0), float(n0 - s0), float(s1), float(n1 - s1))
            state.shares[k, shift] = half_aside(evidence - null)
    for member in range(members):
        total = 0.0
        for k in range(first, last):
            total += state.shares[k, member]
        share = 1 if members == 1 else 2 if member == 0 else 2 * (members - 1)
        ratio = log_add(ratio, total - math.log(share))
    return ratio


@kernel
def shifted(log_p: Any, log_q: Any, shift: int, s0: float, f0: float, s1: float, f1: float) -> float:
    """The log-likelihood of one shift. It has one peak over the grid: from the point next to the rate, walk up to it,
    and add what lies around."""
    grid, rate = log_p.shape[1], (s0 + s1) / (s0 + f0 + s1 + f1)
    peak = min(int(math.asin(math.sqrt(rate)) * 2.0 / math.pi * grid), grid - 1)
    top, mass = on_grid(log_p, log_q, shift, peak, s0, f0, s1, f1), 1.0
    for step in (-1, 1):
        while 0 <= peak + step < grid:
            x = on_grid(log_p, log_q, shift, peak + step, s0, f0, s1, f1)
            if x <= top:
                break
            peak, top = peak + step, x
    for step in (-1, 1):
        m = peak + step
        while 0 <= m < grid:
            x = on_grid(log_p, log_q, shift, m, s0, f0, s1, f1)
            if x < top - _FAR:
                break
            mass += math.exp(x - top)
            m += step
    return top + math.log(mass / grid)


@inlined
def on_grid(log_p: Any, log_q: Any, shift: int, m: int, s0: float, f0: float, s1: float, f1: float) -> float:
    return s0 * log_p[0, m] + f0 * log_q[0, m] + s1 * log_p[shift, m] + f1 * log_q[shift, m]


@kernel
def weigh(watch: Any, state: Any, least: float, total: Any, single: Any) -> None:
    """log E of every node, and of every alternative alone. Of a node whose E is below exp(least) for certain, by what
    its alternatives could reach at most, total and single hold these bounds."""
    for i in range(len(watch.nodes)):
        share = math.log(float(watch.first[i + 1] - watch.first[i]))
        for exact in (False, True):
            total[i] = -math.inf
            for a in range(watch.first[i], watch.first[i + 1]):
                single[a] = log_ratio(watch, state, i, a) if exact else ceiling(watch, state, i, a)
                total[i] = log_add(total[i], single[a] - share)
            if total[i] < least:
                break
