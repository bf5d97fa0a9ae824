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
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.kl import code_length, largest_likelihood
from dobandit.graph.causal_graph import GraphArrays
from dobandit.graph.ordering import offsets
from dobandit.kernels import kernel, record

SHIFTS = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)
GRID = 64  # points of Jeffreys' prior: far apart by 1 / 40 at p = 1/2, which is as much as 400 rows can tell
_FAR = 20.0  # nats below the best point of the grid from which on points are left out: E is the smaller for it
MOST_SHIFTED = 64  # parent patterns up to which shifts are tried
_P = np.sin(math.pi * (np.arange(GRID) + 0.5) / (2 * GRID)) ** 2  # Gauss-Chebyshev: equal weights
_LOG_ODDS = np.log(_P) - np.log1p(-_P) + np.array([0.0, *SHIFTS])[:, None]
LOG_P, LOG_Q = -np.logaddexp(0.0, -_LOG_ODDS), -np.logaddexp(0.0, _LOG_ODDS)  # of the grid, and of the grid shifted

# A node that is looked at: its parents and its alternatives, from the first up to the last; log E
WATCHED = record(node=int, parent=int, last_parent=int, first=int, last=int, evidence=float)
# z is the value of `extra`, or whether `extra`, a parent, was set; (v, z) is counted in cell + 2 v + z; the rows that
# were counted; log of the product over v
ALTERNATIVE = record(extra=int, by_set=int, patterns=int, cell=int, rows=int, ratio=float)
CELL = record(seen=int, ones=int, shared=int)  # n, s, and what n was when the pattern's shares were worked out


class Evidence(NamedTuple):
    """What is looked at, what was seen of it, and what was worked out of that."""

    nodes: NDArray[Any]  # WATCHED
    parents: NDArray[np.int64]
    alternatives: NDArray[Any]  # ALTERNATIVE
    cells: NDArray[Any]  # CELL
    shares: NDArray[np.float64]  # (cells / 2, 1 + shifts) log(1/2 + R_v / 2) of the table and of each shift


def start_evidence(graph: GraphArrays, extras: Mapping[int, Sequence[tuple[int, bool]]]) -> Evidence:
    """Before any round; extras: (extra, by_set) of the alternatives of each node that is looked at."""
    parents = [graph.parents_of(v) for v in extras]
    parent, first = offsets([len(each) for each in parents]), offsets([len(each) for each in extras.values()])
    nodes, alternatives = np.zeros(len(extras), WATCHED), np.zeros(first[-1], ALTERNATIVE)
    nodes["node"], nodes["first"], nodes["last"] = list(extras), first[:-1], first[1:]
    nodes["parent"], nodes["last_parent"] = parent[:-1], parent[1:]
    for i, (extra, by_set) in enumerate(pair for each in extras.values() for pair in each):
        alternatives[i]["extra"], alternatives[i]["by_set"] = extra, by_set
    alternatives["patterns"] = np.repeat(1 << np.diff(parent), np.diff(first))
    cell = offsets(2 * alternatives["patterns"])
    alternatives["cell"] = cell[:-1]
    flat = np.array([p for each in parents for p in each], dtype=np.int64)
    return Evidence(nodes, flat, alternatives, np.zeros(cell[-1], CELL), np.zeros((cell[-1] // 2, 1 + len(SHIFTS))))


@kernel
def count_rounds(
    nodes: Any, parents: Any, alternatives: Any, cells: Any, values: Any, was_set: Any, counts: Any
) -> None:
    """Rounds in which a node was set, or it or a parent was not seen, tell nothing of it; those in which z was not
    seen tell nothing of that alternative."""
    for t in range(len(values)):
        for i in range(len(nodes)):
            node, pattern, bit = nodes[i], 0, 2
            v = node["node"]
            told = not (was_set[t, v] or math.isnan(values[t, v]))
            for slot in range(node["parent"], node["last_parent"]):
                p = parents[slot]
                told = told and not math.isnan(values[t, p])
                pattern += bit * int(values[t, p] > 0.5)
                bit *= 2
            if not told:
                continue
            ones = counts[t] * int(values[t, v] > 0.5)
            for a in range(node["first"], node["last"]):
                alternative = alternatives[a]
                w = alternative["extra"]
                if alternative["by_set"] == 1:
                    z = int(was_set[t, w])
                elif math.isnan(values[t, w]):
                    continue
                else:
                    z = int(values[t, w] > 0.5)
                cell = cells[alternative["cell"] + pattern + z]
                cell["seen"] += counts[t]
                cell["ones"] += ones
                alternative["rows"] += counts[t]


@kernel
def log_add(a: float, b: float) -> float:
    top = max(a, b)
    return top + math.log1p(math.exp(min(a, b) - top)) if top > -math.inf else top


@kernel
def half_aside(x: float) -> float:
    """log(1/2 + exp(x) / 2)."""
    return log_add(0.0, x) - math.log(2.0)


@kernel
def ceiling(alternative: Any, cells: Any) -> float:
    """What an alternative could reach at most: both likelihoods at their largest. It is cheap, and seldom large."""
    total = 0.0
    for at in range(alternative["cell"], alternative["cell"] + 2 * alternative["patterns"], 2):
        n0, s0, n1, s1 = cells[at]["seen"], cells[at]["ones"], cells[at + 1]["seen"], cells[at + 1]["ones"]
        if n0 > 0 and n1 > 0:
            total += half_aside(
                largest_likelihood(n0, s0) + largest_likelihood(n1, s1) - largest_likelihood(n0 + n1, s0 + s1)
            )
    return total


@kernel
def log_ratio(alternative: Any, cells: Any, shares: Any) -> float:
    """log of the product over v of (1/2 + R_v / 2), half for the table and half for the shifts together."""
    members, ratio = len(LOG_P) if alternative["patterns"] <= MOST_SHIFTED else 1, -math.inf
    first, last = alternative["cell"] // 2, alternative["cell"] // 2 + alternative["patterns"]
    for k in range(first, last):
        zero, one = cells[2 * k], cells[2 * k + 1]
        n0, s0, n1, s1 = zero["seen"], zero["ones"], one["seen"], one["ones"]
        if n0 == zero["shared"] and n1 == one["shared"]:
            continue
        null, zero["shared"], one["shared"] = largest_likelihood(n0 + n1, s0 + s1), n0, n1
        shares[k, 0] = half_aside(-code_length(n0, s0) - code_length(n1, s1) - null)
        for shift in range(1, members):
            evidence = shifted(shift, float(s0), float(n0 - s0), float(s1), float(n1 - s1))
            shares[k, shift] = half_aside(evidence - null)
    for member in range(members):
        total = 0.0
        for k in range(first, last):
            total += shares[k, member]
        share = 1 if members == 1 else 2 if member == 0 else 2 * (members - 1)
        ratio = log_add(ratio, total - math.log(share))
    return ratio


@kernel
def shifted(shift: int, s0: float, f0: float, s1: float, f1: float) -> float:
    """The log-likelihood of one shift. It has one peak over the grid: from the point next to the rate, walk up to it,
    and add what lies around."""
    rate = (s0 + s1) / (s0 + f0 + s1 + f1)
    peak = min(int(math.asin(math.sqrt(rate)) * 2.0 / math.pi * GRID), GRID - 1)
    top, mass = on_grid(shift, peak, s0, f0, s1, f1), 1.0
    for step in (-1, 1):
        while 0 <= peak + step < GRID:
            x = on_grid(shift, peak + step, s0, f0, s1, f1)
            if x <= top:
                break
            peak, top = peak + step, x
    for step in (-1, 1):
        m = peak + step
        while 0 <= m < GRID:
            x = on_grid(shift, m, s0, f0, s1, f1)
            if x < top - _FAR:
                break
            mass += math.exp(x - top)
            m += step
    return top + math.log(mass / GRID)


@kernel
def on_grid(shift: int, m: int, s0: float, f0: float, s1: float, f1: float) -> float:
    return s0 * LOG_P[0, m] + f0 * LOG_Q[0, m] + s1 * LOG_P[shift, m] + f1 * LOG_Q[shift, m]


@kernel
def weigh(nodes: Any, alternatives: Any, cells: Any, shares: Any, least: float) -> None:
    """log E of every node, and of every alternative alone. Of a node whose E is below exp(least) for certain, by what
    its alternatives could reach at most, the records hold these bounds."""
    for i in range(len(nodes)):
        node = nodes[i]
        number = math.log(float(node["last"] - node["first"]))
        for exact in (False, True):
            total = -math.inf
            for a in range(node["first"], node["last"]):
                alternative = alternatives[a]
                ratio = log_ratio(alternative, cells, shares) if exact else ceiling(alternative, cells)
                alternative["ratio"] = ratio
                total = log_add(total, ratio - number)
            node["evidence"] = total
            if total < least:
                break
