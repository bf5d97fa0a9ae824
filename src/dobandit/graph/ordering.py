"""Canonical order of a graph's nodes: the first topological order in the natural order of names (X2 before X10).

It depends on the graph alone, never on the order in which edges were listed, so equal graphs have equal arrays.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DIGITS = re.compile(r"([0-9]+)")


def natural_key(name: str) -> tuple[object, ...]:
    """Sort key under which X2 < X10; digits compare by value without being converted (they may be huge)."""
    parts: list[object] = []
    for position, part in enumerate(_DIGITS.split(name)):
        digits = part.lstrip("0")
        parts.append((len(digits), digits) if position % 2 else part)
    return (parts, name)


def offsets(sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Where parts of these sizes begin in one array after the other; at last, where all of them end."""
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, dtype=np.int64, out=starts[1:])
    return starts


def csr(keys: NDArray[np.int64], values: NDArray[np.int64], size: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Group `values` by key (0..size-1), each group ascending: (pointers, grouped values)."""
    order = np.lexsort((values, keys))
    return offsets(np.bincount(keys, minlength=size)), values[order].astype(np.int32)


def topological_order(
    sources: NDArray[np.int64], destinations: NDArray[np.int64], size: int
) -> tuple[list[int], list[int]]:
    """(order, leftover): ids in canonical topological order, and the ids that a cycle keeps from being ordered.

    Kahn's algorithm, which always takes the smallest free id.
    """
    child_ptr, child = (array.tolist() for array in csr(sources, destinations, size))
    waiting = np.bincount(destinations, minlength=size).tolist()  # parents that are not yet ordered
    free = [v for v in range(size) if waiting[v] == 0]
    order = []
    while free:
        v = heapq.heappop(free)
        order.append(v)
        for w in child[child_ptr[v] : child_ptr[v + 1]]:
            waiting[w] -= 1
            if waiting[w] == 0:
                heapq.heappush(free, w)
    return order, [v for v in range(size) if waiting[v]]


def find_cycle(sources: NDArray[np.int64], destinations: NDArray[np.int64], leftover: Sequence[int]) -> list[int]:
    """A cycle among `leftover`, first node repeated at the end; every leftover node has a leftover parent."""
    inside = np.isin(sources, leftover) & np.isin(destinations, leftover)
    some_parent = dict(zip(destinations[inside].tolist(), sources[inside].tolist(), strict=True))
    seen: dict[int, int] = {}
    walk: list[int] = []
    v = min(leftover)
    while v not in seen:
        seen[v] = len(walk)
        walk.append(v)
        v = some_parent[v]
    cycle = walk[seen[v] :][::-1]
    start = cycle.index(min(cycle))
    cycle = cycle[start:] + cycle[:start]
    return [*cycle, cycle[0]]


def reached_from(
    start: object, names: list[str], sources: NDArray[np.int64], destinations: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """By position in `names`: whether a path leads there from `start`. False for all where there is no such name."""
    reached = np.zeros(len(names), dtype=np.bool_)
    origin = names.index(start) if isinstance(start, str) and start in names else -1
    new = sources == origin
    while new.any():
        reached[destinations[new]] = True
        new = reached[sources] & ~reached[destinations]
    return reached


def bad_edge(
    names: Sequence[str], sources: NDArray[np.int64], destinations: NDArray[np.int64]
) -> tuple[int, str] | None:
    """(number, what is wrong) of the first edge that leads from a node to itself, or else that was listed before."""
    loops = np.flatnonzero(sources == destinations)
    if len(loops):
        name = names[sources[loops[0]]]
        return int(loops[0]), f"a node does not cause itself, but {name!r} -> {name!r} is an edge. Remove it."
    _, first = np.unique(sources * len(names) + destinations, return_index=True)
    if len(first) == len(sources):
        return None
    again = np.ones(len(sources), dtype=np.bool_)
    again[first] = False  # np.setdiff1d would load numpy.ma, a tenth of what every command takes
    at = int(np.argmax(again))
    edge = f"{names[sources[at]]!r} -> {names[destinations[at]]!r}"
    return at, f"each edge is listed once, but {edge} is listed again. Keep one."
