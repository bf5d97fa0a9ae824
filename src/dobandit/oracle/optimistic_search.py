"""The set with the largest optimistic E[Y], proved, without looking at every set: for linear models and boxed regions.

f(S): the largest E_theta[Y | do(S)] over one theta per region, by the forward recursion of `boxed`.
low_v: E[v | do(S)] at the lowest weights of every region.  high_v: total weight, at the highest weights, of the paths
from v to Y that avoid S.  For any nonnegative theta, adding variables R to S from the target's side backwards leaves
the means of those still to be added unchanged, so with |R| <= r
    f(S + R) <= f(S) + the sum of the r largest max(0, 1 - low_v) high_v                                (first bound)
and no row of weights has to add up to 1. Where regions are wide and weights of paths explode, a second bound cuts in:
    f(S + R) <= the recursion in which every variable that may still be set counts as max(1, its mean)  (second bound)
Sets hold at most K variables: where optimistic means exceed 1, setting a variable can lower f, and nothing is gained.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.oracle.boxed import boxed_maximum
from dobandit.oracle.closed_form import closed_form
from dobandit.oracle.sets import TIE, SetTree


class OptimisticSearch(NamedTuple):
    """Plan and stack; rows are depths, that is, variables set so far."""

    size: int  # K
    order: NDArray[np.int64]  # the target's ancestors and the target, topological
    edge_ptr: NDArray[np.int64]  # edges into these, grouped by cause
    effect: NDArray[np.int64]
    slot: NDArray[np.int64]
    settable: NDArray[np.int64]  # ids
    is_set: NDArray[np.bool_]  # (n + 1,)
    open: NDArray[np.bool_]  # (n + 1,) may still be set
    lowest: NDArray[np.float64]  # by slot
    highest: NDArray[np.float64]
    means: NDArray[np.float64]  # (n + 1,)
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    candidate: NDArray[np.int64]  # (K + 1, settable)
    gain: NDArray[np.float64]
    width: NDArray[np.int64]  # (K + 1,)
    position: NDArray[np.int64]
    value: NDArray[np.float64]
    best: NDArray[np.int64]  # (K,) ids, 0 for none
    report: NDArray[np.float64]  # (3,) best value, bound, sets looked at


def optimistic_search(graph: CausalGraph, tree: SetTree, budget: int) -> OptimisticSearch:
    form = closed_form(graph, tree)
    settable = tree.order[tree.settable]
    size, nodes, slots = min(budget, len(settable)), len(graph) + 1, len(graph.arrays.parent)
    means, low, high = (np.zeros(nodes) for _ in range(3))
    lowest, highest = np.zeros(slots), np.zeros(slots)
    is_set, is_open = (np.zeros(nodes, dtype=np.bool_) for _ in range(2))
    stack = (size + 1, max(len(settable), 1))
    return OptimisticSearch(
        size,
        tree.order,
        form.edge_ptr,
        form.effect,
        form.slot,
        settable.astype(np.int64),
        is_set,
        is_open,
        lowest,
        highest,
        means,
        low,
        high,
        np.zeros(stack, dtype=np.int64),
        np.zeros(stack),
        np.zeros(size + 1, dtype=np.int64),
        np.zeros(size + 1, dtype=np.int64),
        np.zeros(size + 1),
        np.zeros(max(size, 1), dtype=np.int64),
        np.zeros(3),
    )


@kernel
def extreme_weights(layout: Any, s: Any, theta: Any, inverse: Any, null: Any, rho: Any) -> None:
    """The lowest and the highest value of every weight within its region and [0, 1]."""
    for k in range(len(s.order)):
        v = s.order[k]
        start = layout.ptr[v]
        d = layout.ptr[v + 1] - start
        for j in range(d):
            at = layout.square[v] + j * d + j
            reach = math.inf if null[at] > 1e-9 else rho[v] * math.sqrt(max(inverse[at], 0.0))
            # A hair of slack: regions that the box leaves empty were enlarged to their nearest point.
            s.lowest[start + j] = min(max(theta[start + j] - reach - 1e-12, 0.0), 1.0)
            s.highest[start + j] = max(min(theta[start + j] + reach + 1e-12, 1.0), 0.0)


@kernel
def optimistic_value(layout: Any, s: Any, box: Any, theta: Any, gram: Any, rho: Any, relaxed: bool) -> float:
    """f(S); relaxed: the second bound, where open variables count as max(1, mean)."""
    s.means[0] = 1.0
    for k in range(len(s.order)):
        v = s.order[k]
        if s.is_set[v]:
            s.means[v] = 1.0
            continue
        start = layout.ptr[v]
        d = layout.ptr[v + 1] - start
        for j in range(d):
            box.weights[j] = s.means[layout.parent[start + j]]
        mean = boxed_maximum(gram, layout.square[v], d, theta, start, rho[v], box.weights, box)
        s.means[v] = max(mean, 1.0) if relaxed and s.open[v] else mean
    return s.means[layout.target]


@kernel
def bound_gains(layout: Any, s: Any) -> None:
    """low and high under S; the gain of v is at most max(0, 1 - low[v]) high[v]."""
    s.low[0] = 1.0
    for k in range(len(s.order)):
        v = s.order[k]
        total = 0.0
        for slot in range(layout.ptr[v], layout.ptr[v + 1]):
            total += s.lowest[slot] * s.low[layout.parent[slot]]
        s.low[v] = 1.0 if s.is_set[v] else total
    for k in range(len(s.order) - 1, -1, -1):
        v = s.order[k]
        total = 1.0 if v == layout.target else 0.0
        for e in range(s.edge_ptr[v], s.edge_ptr[v + 1]):
            if not s.is_set[s.effect[e]]:
                total += s.highest[s.slot[e]] * s.high[s.effect[e]]
        s.high[v] = total


@kernel
def enter(layout: Any, s: Any, box: Any, theta: Any, gram: Any, rho: Any, k: int, count: int, shift: int) -> None:
    """At a new set: its value, and its candidates sorted by what they can gain at most."""
    s.value[k] = optimistic_value(layout, s, box, theta, gram, rho, False)
    s.report[2] += 1.0
    if s.value[k] > s.report[0] + TIE * max(1.0, abs(s.report[0])):
        s.report[0] = s.value[k]
        for i in range(len(s.best)):
            s.best[i] = s.candidate[i, s.position[i]] if i < k else 0
    s.position[k] = 0
    s.width[k] = count if k < s.size else 0
    if k == s.size:
        return
    bound_gains(layout, s)
    for i in range(count):
        v = s.candidate[k, i]
        s.gain[k, i] = max(1.0 - s.low[v], 0.0) * s.high[v]
    # Insertion sort: lists arrive nearly sorted from the depth above. Equal gains in an order that the round draws.
    modulus = len(s.is_set)
    for i in range(1, count):
        v, gain = s.candidate[k, i], s.gain[k, i]
        j = i - 1
        while j >= 0 and (
            s.gain[k, j] < gain
            or (s.gain[k, j] == gain and (s.candidate[k, j] + shift) % modulus > (v + shift) % modulus)
        ):
            s.candidate[k, j + 1], s.gain[k, j + 1] = s.candidate[k, j], s.gain[k, j]
            j -= 1
        s.candidate[k, j + 1], s.gain[k, j + 1] = v, gain


@kernel
def first_bound(s: Any, k: int) -> float:
    total, left = s.value[k], s.size - k
    for i in range(s.position[k], min(s.position[k] + left, s.width[k])):
        total += s.gain[k, i]
    return total


@kernel
def hopeless(layout: Any, s: Any, box: Any, theta: Any, gram: Any, rho: Any, k: int) -> bool:
    """Whether no set below depth k, with the candidates not yet tried, can beat the best."""
    goal = s.report[0] + TIE * max(1.0, abs(s.report[0]))
    if s.position[k] >= s.width[k] or first_bound(s, k) <= goal:
        return True
    for i in range(s.position[k], s.width[k]):
        s.open[s.candidate[k, i]] = True
    relaxed = optimistic_value(layout, s, box, theta, gram, rho, True)
    for i in range(s.position[k], s.width[k]):
        s.open[s.candidate[k, i]] = False
    return relaxed <= goal


@kernel
def search(layout: Any, s: Any, box: Any, stats: Any, theta: Any, rho: Any, uniform: float, most_sets: int) -> int:
    """Find the best set into s.best; returns its size. s.report holds its value, a bound, and the sets looked at."""
    gram = stats.gram
    extreme_weights(layout, s, theta, stats.inverse, stats.null, rho)
    shift = int(uniform * len(s.is_set))
    s.report[0], s.report[1], s.report[2] = -1.0, -1.0, 0.0
    for i in range(len(s.settable)):
        s.candidate[0, i] = s.settable[i]
        s.is_set[s.settable[i]] = False
    enter(layout, s, box, theta, gram, rho, 0, len(s.settable), shift)
    k = 0
    while k >= 0:
        if s.report[2] >= most_sets:
            break
        if hopeless(layout, s, box, theta, gram, rho, k):
            k -= 1
            if k >= 0:
                s.is_set[s.candidate[k, s.position[k]]] = False
                s.position[k] += 1
            continue
        i = s.position[k]
        s.is_set[s.candidate[k, i]] = True
        rest = s.width[k] - i - 1
        for j in range(rest):
            s.candidate[k + 1, j] = s.candidate[k, i + 1 + j]
        k += 1
        enter(layout, s, box, theta, gram, rho, k, rest, shift)
    s.report[1] = s.report[0]
    for depth in range(k + 1):
        s.report[1] = max(s.report[1], first_bound(s, depth))
    return fill_up(layout, s, box, theta, gram, rho, shift)


@kernel
def fill_up(layout: Any, s: Any, box: Any, theta: Any, gram: Any, rho: Any, shift: int) -> int:
    """Add variables that cost nothing to the best set until it holds K, in an order that the round draws.

    A variable whose optimistic mean is at most 1 does not lower f when it is set. Without this, sets that tie with the
    empty one, as all do in the first rounds, would never be tried.
    """
    for i in range(len(s.settable)):
        s.is_set[s.settable[i]] = False
    count = 0
    while count < s.size and s.best[count] > 0:
        s.is_set[s.best[count]] = True
        count += 1
    i = 0
    while count < s.size and i < len(s.settable):
        optimistic_value(layout, s, box, theta, gram, rho, False)
        while i < len(s.settable):
            v = s.settable[(i + shift) % len(s.settable)]
            i += 1
            if not s.is_set[v] and s.means[v] <= 1.0 + TIE:
                s.is_set[v] = True
                s.best[count] = v
                count += 1
                break
    return count


@kernel
def greedy_search(layout: Any, s: Any, stats: Any, theta: Any, rho: Any, uniform: float) -> int:
    """The standard-oracle variant (Zhang et al. 2022): the highest value of every weight, then greedy on that model.

    The highest weights are at least the true ones, so their E[Y] is optimistic for every set; greedy finds 1 - 1/e of
    its maximum as long as no node's highest weights add up to more than 1. K passes over the edges, however many sets.
    """
    extreme_weights(layout, s, theta, stats.inverse, stats.null, rho)
    shift, modulus = int(uniform * len(s.is_set)), len(s.is_set)
    for i in range(len(s.settable)):
        s.is_set[s.settable[i]] = False
    count = 0
    while True:
        bound_gains(layout, s)
        s.means[0] = 1.0
        for k in range(len(s.order)):
            v = s.order[k]
            total = 0.0
            for slot in range(layout.ptr[v], layout.ptr[v + 1]):
                total += s.highest[slot] * s.means[layout.parent[slot]]
            s.means[v] = 1.0 if s.is_set[v] else total
        if count == s.size:
            break
        best, largest = -1, 0.0
        for i in range(len(s.settable)):
            v = s.settable[i]
            gain = (1.0 - s.means[v]) * s.high[v]
            better = gain > largest + TIE
            tied = best >= 0 and gain >= largest - TIE and (v + shift) % modulus < (best + shift) % modulus
            if not s.is_set[v] and (better or tied):
                best, largest = v, gain
        if best < 0:
            break
        s.is_set[best] = True
        s.best[count] = best
        count += 1
    s.report[0], s.report[1], s.report[2] = s.means[layout.target], math.inf, count + 1.0
    return count
