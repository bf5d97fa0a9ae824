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
from dobandit.estimation.statistics import Layout, gather, named_parents
from dobandit.graph.ordering import offsets

SHIFTS = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)
GRID = 64  # points of Jeffreys' prior: far apart by 1 / 40 at p = 1/2, which is as much as 400 rows can tell
_FAR = 20.0  # nats below the best point of the grid from which on points are left out: E is the smaller for it
MOST_SHIFTED = 64  # parent patterns up to which shifts are tried
_LOG_PI, _HALF_PI = math.log(math.pi), 0.5 * math.pi


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
    row: NDArray[np.float64]  # scratch
    sums: NDArray[np.float64]  # (1 + shifts,) scratch


class Evidence(NamedTuple):
    """What was seen."""

    seen: NDArray[np.int64]
    ones: NDArray[np.int64]
    rows: NDArray[np.int64]  # per alternative


class Kept(NamedTuple):
    """What was worked out of an alternative's pattern, at cell // 2 + v, and after how many rows; whoever counts by
    itself keeps its own."""

    shares: NDArray[np.float64]  # (patterns, 1 + shifts) of log E, of the table and of each shift
    rows: NDArray[np.int64]
    loud: NDArray[np.bool_]  # per node: whether its E reached what was asked about


def kept_of(watch: Watch, state: Evidence) -> Kept:
    """Nothing is worked out yet."""
    patterns = len(state.seen) // 2
    shares = np.zeros((patterns, len(watch.log_p)))
    return Kept(shares, np.zeros(patterns, dtype=np.int64), np.zeros(len(watch.nodes), dtype=np.bool_))


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
        np.zeros(int(np.diff(layout.ptr).max(initial=1))),
        np.zeros(1 + len(SHIFTS)),
    )
    cells = int(ends[-1])
    rows = np.zeros(len(alternatives), dtype=np.int64)
    return watch, Evidence(np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64), rows)


@kernel
def count_rounds(layout: Any, watch: Any, state: Any, values: Any, was_set: Any, counts: Any) -> None:
    """Rounds in which a node was set, or it or a parent was not seen, tell nothing of it; those in which z was not
    seen tell nothing of that alternative."""
    for t in range(len(values)):
        for i in range(len(watch.nodes)):
            v = watch.nodes[i]
            if not gather(layout, values[t], was_set[t], v, watch.row):
                continue
            start, pattern, bit = layout.ptr[v], 0, 1
            for j in range(layout.ptr[v + 1] - start):
                if layout.parent[start + j] > 0:
                    pattern += bit * int(watch.row[j] > 0.5)
                    bit *= 2
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
def log_ratio(watch: Any, state: Any, kept: Any, i: int, a: int) -> float:
    """log of the product over v of (1/2 + R_v / 2)."""
    bent, first, table = watch.patterns[i] <= MOST_SHIFTED, watch.cell[a] // 2, 0.0
    for k in range(first, first + watch.patterns[i]):
        rows = state.seen[2 * k] + state.seen[2 * k + 1]
        if rows != kept.rows[k]:
            work_out(watch, state, kept, k, bent)
            kept.rows[k] = rows
        table += kept.shares[k, 0]
    if not bent:
        return table
    shifts, together = len(watch.log_p) - 1, -math.inf
    for shift in range(1, shifts + 1):
        total = 0.0
        for k in range(first, first + watch.patterns[i]):
            total += kept.shares[k, shift]
        together = log_add(together, total)
    return log_add(table, together - math.log(shifts)) - math.log(2.0)


@kernel
def work_out(watch: Any, state: Any, kept: Any, k: int, bent: bool) -> None:
    """The shares of one pattern, in which there are rows."""
    n0, s0, n1, s1 = state.seen[2 * k], state.ones[2 * k], state.seen[2 * k + 1], state.ones[2 * k + 1]
    null = largest(n0 + n1, s0 + s1)
    kept.shares[k, 0] = half_aside(jeffreys(n0, s0) + jeffreys(n1, s1) - null)
    for shift in range(1, len(watch.log_p) if bent else 1):
        evidence = shifted(watch, shift, float(s0), float(n0 - s0), float(s1), float(n1 - s1))
        kept.shares[k, shift] = half_aside(evidence - null)


@kernel
def shifted(watch: Any, shift: int, s0: float, f0: float, s1: float, f1: float) -> float:
    """The log-likelihood of one shift. It has one peak over the grid: walk up to it, and add what lies around."""
    log_p, log_q, grid = watch.log_p, watch.log_q, watch.log_p.shape[1]
    guess = first_guess(s0 + s1, s0 + f0 + s1 + f1, grid)
    peak, top = peak_on_grid(log_p, log_q, shift, guess, s0, f0, s1, f1)
    mass = 1.0
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


@inlined
def first_guess(ones: float, rows: float, grid: int) -> int:
    """The point of the grid next to the rate."""
    return min(int(math.asin(math.sqrt(ones / rows)) * 2.0 / math.pi * grid), grid - 1)


@inlined
def peak_on_grid(
    log_p: Any, log_q: Any, shift: int, peak: int, s0: float, f0: float, s1: float, f1: float
) -> tuple[int, float]:
    """Where the likelihood is largest, walking up from a guess, and its logarithm there."""
    top, grid = on_grid(log_p, log_q, shift, peak, s0, f0, s1, f1), log_p.shape[1]
    for step in (-1, 1):
        while 0 <= peak + step < grid:
            x = on_grid(log_p, log_q, shift, peak + step, s0, f0, s1, f1)
            if x <= top:
                break
            peak, top = peak + step, x
    return peak, top


@kernel
def closer_ceiling(watch: Any, state: Any, i: int, a: int) -> float:
    """What `log_ratio` could be at most, for a fraction of its cost: Jeffreys' chance of n rows is at most
    sqrt(2 / (pi n)) of the largest likelihood, and a shift's is at most the likelihood at its peak."""
    log_p, log_q, grid, table, shifts = watch.log_p, watch.log_q, watch.log_p.shape[1], 0.0, len(watch.log_p) - 1
    bent = watch.patterns[i] <= MOST_SHIFTED
    for shift in range(1, shifts + 1):
        watch.sums[shift] = 0.0
    for k in range(watch.patterns[i]):
        at = watch.cell[a] + 2 * k
        s0, s1 = float(state.ones[at]), float(state.ones[at + 1])
        n0, n1 = float(state.seen[at]), float(state.seen[at + 1])
        if n0 + n1 == 0.0:
            continue
        null = largest(n0 + n1, s0 + s1)
        most = largest(n0, s0) + largest(n1, s1) - null if n0 > 0.0 and n1 > 0.0 else 0.0
        table += half_aside(most - 0.5 * math.log(max(n0 * _HALF_PI, 1.0) * max(n1 * _HALF_PI, 1.0)))
        guess = first_guess(s0 + s1, n0 + n1, grid)
        for shift in range(1, shifts + 1 if bent else 1):
            _, top = peak_on_grid(log_p, log_q, shift, guess, s0, n0 - s0, s1, n1 - s1)
            watch.sums[shift] += half_aside(top - null)
    if not bent:
        return table
    together = -math.inf
    for shift in range(1, shifts + 1):
        together = log_add(together, watch.sums[shift])
    return log_add(table, together - math.log(shifts)) - math.log(2.0)


@kernel
def weigh(watch: Any, state: Any, kept: Any, least: float, total: Any, single: Any) -> None:
    """log E of every node, and of every alternative alone.

    A node whose E is below exp(least) for certain is passed over: total then holds a bound, and single none. What an
    alternative could reach at most is enough to know of those that cannot matter much.
    """
    for i in range(len(watch.nodes)):
        if not kept.loud[i] and passed_over(watch, state, i, least, total, single):
            continue
        total[i], share = -math.inf, log_number(watch, i)
        for a in range(watch.first[i], watch.first[i + 1]):
            single[a] = log_ratio(watch, state, kept, i, a)
            total[i] = log_add(total[i], single[a] - share)
        kept.loud[i] = total[i] >= least


@kernel
def passed_over(watch: Any, state: Any, i: int, least: float, total: Any, single: Any) -> bool:
    """Whether a node's E cannot reach exp(least), by what its alternatives could reach at most, from coarse to fine."""
    total[i], share = -math.inf, log_number(watch, i)
    for a in range(watch.first[i], watch.first[i + 1]):
        single[a] = ceiling(watch, state, i, a)
        total[i] = log_add(total[i], single[a] - share)
    if total[i] < least:
        return True
    total[i] = -math.inf
    for a in range(watch.first[i], watch.first[i + 1]):
        if single[a] > least - 1.0:  # all others together are below exp(least - 1)
            single[a] = min(single[a], closer_ceiling(watch, state, i, a))
        total[i] = log_add(total[i], single[a] - share)
    return bool(total[i] < least)


@inlined
def log_number(watch: Any, i: int) -> float:
    """log of how many alternatives a node has."""
    return math.log(float(watch.first[i + 1] - watch.first[i]))
