"""A node's rounds by the pattern of its parents: what tests and fits of a link are computed from."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.policy.engine import Array, Rounds

_BY_TABLE = 16  # parents up to which all patterns are counted in a table
_BY_CODE = 62  # parents up to which a pattern is a number
_ENOUGH = 30  # rows of a pattern for a share in it


class RoundsByVariable:
    """What the rounds set and saw: one row per variable, one column per round, or per distinct round with how often it
    happened."""

    def __init__(self, rounds: Rounds) -> None:
        self.values, self.was_set = rounds.values.T.copy(), rounds.was_set.T.copy()
        self.values[0] = 1.0
        self.seen, self.counts = ~np.isnan(self.values), rounds.counts.astype(float)
        self.ones = (self.values == 1.0).astype(np.int64)


class Cells(NamedTuple):
    V: Array  # (cells, d)
    n: Array
    total: Array


def cells_of(table: RoundsByVariable, v: int, parents: list[int], continuous: bool) -> Cells:
    """Rows that tell of v, by parent pattern; rows one by one where patterns would hardly repeat."""
    rows = ~table.was_set[v] & table.seen[v] & table.seen[parents].all(axis=0)
    x, times, named = table.values[v][rows], table.counts[rows], [p for p in parents if p]
    if continuous or len(named) > _BY_CODE:
        return Cells(table.values[parents][:, rows].T, times, times * x)
    kinds, code = np.unique(_codes(table, named)[rows], return_inverse=True)
    n, total = (np.bincount(code, weights=weights).astype(float) for weights in (times, times * x))
    V = (kinds[:, None] >> np.arange(len(named)) & 1).astype(float)
    return Cells(np.hstack([np.ones((len(V), len(parents) - len(named))), V]), n, total)


def _codes(table: RoundsByVariable, named: list[int]) -> NDArray[np.int64]:
    code = np.zeros(table.values.shape[1], dtype=np.int64)
    for j, p in enumerate(named):
        code |= table.ones[p] << j
    return code


def zeta_of(table: RoundsByVariable, named: list[int]) -> float | None:
    """The least share of a parent's value among rows that agree in the other parents, of which there are enough."""
    if not 0 < len(named) <= _BY_TABLE:
        return None
    rows = table.seen[named].all(axis=0) & ~table.was_set[named].any(axis=0)
    codes = _codes(table, named)[rows]
    counts = np.bincount(codes, table.counts[rows], minlength=1 << len(named)).reshape((2,) * len(named))
    least = None
    for axis in range(len(named)):
        total = counts.sum(axis=axis)
        share = counts.min(axis=axis)[total >= _ENOUGH] / total[total >= _ENOUGH]
        least = min(share.min(initial=math.inf), math.inf if least is None else least)
    return None if least is None or math.isinf(least) else float(least)
