"""Least squares of each node's value on its parents', row by row (`belief` has the notation).

M^+ follows each row by a rank-one update (Sherman-Morrison inside M's range, Meyer 1973 when the row is new to it),
so a row costs O(d^2) whatever t is, and a singular M needs no special case. Rounding is wiped out every
REFRESH rows by a Cholesky factorisation: M^+ = (M + cN)^-1 - N/c.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.estimation.cholesky import factorise, inverse_entry, invert_factor
from dobandit.kernels import inlined, kernel

REFRESH = 1024
# Squared share of a row that must lie outside M's range to count as new; 0/1 rows are far from this on both sides.
NEW_DIRECTION = 1e-9


@inlined
def gather(nodes: Any, slots: Any, values: Any, was_set: Any, v: int, row: Any) -> bool:
    """Copy v's parent values into `row`; False if the round says nothing about v: it was set, or a value is missing."""
    if was_set[v] or math.isnan(values[v]):
        return False
    start = nodes[v]["start"]
    for j in range(nodes[v]["width"]):
        row[j] = values[slots[start + j]["parent"]]
        if math.isnan(row[j]):
            return False
    return True


@inlined
def pattern_row(node: Any, pattern: int, row: Any) -> None:
    """row = the values of a node's parents, of which it has some, in a pattern. Bit j: the j-th that is not the
    constant."""
    first = node["constant"]
    row[0] = 1.0
    for j in range(first, node["width"]):
        row[j] = float((pattern >> (j - first)) & 1)


@inlined
def add_round(nodes: Any, slots: Any, pairs: Any, row: Any, work: Any, values: Any, was_set: Any) -> None:
    """Take a round into the sums of every node that it says something about. row, work: scratch."""
    for v in range(1, len(values)):
        if gather(nodes, slots, values, was_set, v, row):
            add_row(nodes, slots, pairs, work, v, row, values[v])


@inlined
def add_row(nodes: Any, slots: Any, pairs: Any, work: Any, v: int, row: Any, x: float) -> None:
    """Take the pair (row, x) into v's sums, inverse and least-squares weights."""
    node = nodes[v]
    d, start, at = node["width"], node["start"], node["square"]
    beta = 1.0
    for i in range(d):
        slots[start + i]["rhs"] += x * row[i]
        total = 0.0
        base = at + i * d
        for j in range(d):
            pair = pairs[base + j]
            pair["gram"] += row[i] * row[j]
            total += pair["inverse"] * row[j]
        work[i] = total  # M^+ row
        beta += total * row[i]
    if node["rank"] == d or not widen(nodes, pairs, work, v, row, beta):
        for i in range(d):
            base = at + i * d
            scaled = work[i] / beta
            for j in range(d):
                pairs[base + j]["inverse"] -= scaled * work[j]
    node["rows"] += 1
    node["fresh"] += 1
    if node["fresh"] >= REFRESH:
        refresh(nodes, pairs, work, v)
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += pairs[at + i * d + j]["inverse"] * slots[start + j]["rhs"]
        slots[start + i]["line"] = total


@kernel
def widen(nodes: Any, pairs: Any, work: Any, v: int, row: Any, beta: float) -> bool:
    """Meyer's update for a row with a part outside M's range; False, and nothing done, if there is none.

    The scratch begins with k = M^+ row; beta = 1 + row . k.
    """
    node = nodes[v]
    d, at = node["width"], node["square"]
    size = outside = 0.0
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += pairs[at + i * d + j]["null"] * row[j]
        work[d + i] = total  # u, the part of the row outside
        size += row[i] * row[i]
        outside += total * total
    if outside <= NEW_DIRECTION * size:
        return False
    for i in range(d):
        for j in range(d):
            pair, u, u2 = pairs[at + i * d + j], work[d + i], work[d + j]
            pair["inverse"] += beta * u * u2 / (outside * outside) - (work[i] * u2 + u * work[j]) / outside
            pair["null"] -= u * u2 / outside
    node["rank"] += 1
    if node["rank"] == d:
        for i in range(d * d):  # what is left of it is rounding, and so is part of the inverse: factorise M now
            pairs[at + i]["null"] = 0.0
        node["fresh"] = REFRESH
    return True


@kernel
def refresh(nodes: Any, pairs: Any, work: Any, v: int) -> None:
    """Recompute v's M^+ from its sums: M^+ = (M + cN)^-1 - N/c, by Cholesky."""
    node = nodes[v]
    d, at = node["width"], node["square"]
    node["fresh"] = 0
    trace = 0.0
    for i in range(d):
        trace += pairs[at + i * d + i]["gram"]
    if trace <= 0.0:
        return
    c = trace / d
    for i in range(d * d):
        work[i] = pairs[at + i]["gram"] + c * pairs[at + i]["null"]
    if not factorise(work, 0, d):
        return  # rounding made it indefinite: the updated inverse is the better one
    invert_factor(work, 0, d)
    for i in range(d):
        for j in range(i + 1):
            total = inverse_entry(work, 0, d, i, j) - pairs[at + i * d + j]["null"] / c
            pairs[at + i * d + j]["inverse"] = total
            pairs[at + j * d + i]["inverse"] = total


@kernel
def reaches_lambda(nodes: Any, pairs: Any, work: Any, v: int) -> bool:
    """Whether lambda_min(M_v) has reached the node's threshold: M - threshold * I has a Cholesky factor."""
    node = nodes[v]
    d, at, threshold = node["width"], node["square"], node["threshold"]
    if node["rows"] < threshold or node["rank"] < d:
        return False
    for i in range(d * d):
        work[i] = pairs[at + i]["gram"]
    # A hair below the threshold, so that a lambda_min of exactly the threshold counts.
    for i in range(d):
        work[i * d + i] -= threshold * (1.0 - 1e-12)
    return factorise(work, 0, d)


@inlined
def end_round(nodes: Any, pairs: Any, work: Any, clock: Any) -> None:
    """Count the round, and end an initialisation that waits for it when every node's lambda_min is large enough
    (Eq. 3)."""
    clock[0] += 1
    if clock[2] == 1 and clock[1] == 0:
        clock[1] = 1
        for v in range(1, len(nodes)):
            if clock[1] == 1 and not reaches_lambda(nodes, pairs, work, v):
                clock[1] = 0
