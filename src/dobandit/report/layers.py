"""A DAG in layers, from causes on the left to effects on the right, with few crossings.

An edge that skips layers is cut into steps by bends, so that it goes around the nodes between its ends. Vertices are
the node names and, for bends, tuples (cause, effect, layer).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from dobandit.graph.causal_graph import CausalGraph, Edge

Vertex = str | tuple[str, str, int]
_SWEEPS = 12


class Layers(NamedTuple):
    rows: list[list[Vertex]]  # by layer, from top to bottom
    chains: dict[Edge, list[Vertex]]  # each edge's vertices, from cause to effect
    above: dict[Vertex, list[Vertex]]  # neighbours one layer to the left
    below: dict[Vertex, list[Vertex]]  # neighbours one layer to the right


def layers_of(graph: CausalGraph) -> Layers:
    depth = _depths(graph)
    rows: list[list[Vertex]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in graph.nodes:
        rows[depth[name]].append(name)
    chains: dict[Edge, list[Vertex]] = {}
    for cause, effect in graph.edges:
        bends: list[Vertex] = [(cause, effect, layer) for layer in range(depth[cause] + 1, depth[effect])]
        for layer, bend in enumerate(bends, start=depth[cause] + 1):
            rows[layer].append(bend)
        chains[cause, effect] = [cause, *bends, effect]
    above: dict[Vertex, list[Vertex]] = {vertex: [] for row in rows for vertex in row}
    below: dict[Vertex, list[Vertex]] = {vertex: [] for row in rows for vertex in row}
    for chain in chains.values():
        for left, right in pairwise(chain):
            below[left].append(right)
            above[right].append(left)
    return _uncrossed(Layers(rows, chains, above, below))


def _depths(graph: CausalGraph) -> dict[str, int]:
    """The longest path from a root; roots move right until they stand beside their first effect."""
    depth: dict[str, int] = {}
    for name in graph.nodes:
        depth[name] = max((depth[parent] + 1 for parent in graph.parents(name)), default=0)
    for name in graph.nodes:
        if not graph.parents(name) and graph.children(name):
            depth[name] = min(depth[child] for child in graph.children(name)) - 1
    return depth


def _uncrossed(layers: Layers) -> Layers:
    """Barycentre sweeps to and fro; the order with the fewest crossings wins, the given one in a draw."""
    rows = [list(row) for row in layers.rows]
    best, fewest = [list(row) for row in rows], _crossings(rows, layers.below)
    for sweep in _sweeps(layers):
        if fewest == 0:
            break
        for i, before, neighbours in sweep:
            place = {vertex: j for j, vertex in enumerate(rows[before])}
            here = {vertex: j for j, vertex in enumerate(rows[i])}
            rows[i].sort(key=lambda v, p=place, h=here, n=neighbours: _mean([p[u] for u in n[v]], h[v]))  # type: ignore[misc]
        crossings = _crossings(rows, layers.below)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return layers._replace(rows=best)


def _sweeps(layers: Layers) -> Iterator[list[tuple[int, int, dict[Vertex, list[Vertex]]]]]:
    """To and fro: (layer, the one that was passed before it, neighbours there)."""
    last = len(layers.rows) - 1
    there = [(i, i - 1, layers.above) for i in range(1, last + 1)]
    back = [(i, i + 1, layers.below) for i in range(last - 1, -1, -1)]
    return (back if sweep % 2 else there for sweep in range(_SWEEPS))


def _mean(places: Sequence[float], otherwise: float) -> float:
    return sum(places) / len(places) if places else float(otherwise)


def _crossings(rows: list[list[Vertex]], below: Mapping[Vertex, list[Vertex]]) -> int:
    total = 0
    for left, right in pairwise(rows):
        place = {vertex: j for j, vertex in enumerate(right)}
        ends = [end for vertex in left for end in sorted(place[u] for u in below[vertex])]
        total += sum(a > b for i, a in enumerate(ends) for b in ends[i + 1 :])
    return total


def heights(layers: Layers, size: Callable[[Vertex], float]) -> tuple[dict[Vertex, float], float]:
    """The vertical place of every vertex, near the middle of its neighbours, and the height of the whole.

    size: the room that a vertex takes.
    """
    gaps = [[(size(a) + size(b)) / 2 for a, b in pairwise(row)] for row in layers.rows]
    height = max(sum(map(size, row)) for row in layers.rows)
    y: dict[Vertex, float] = {}
    for row, gap in zip(layers.rows, gaps, strict=True):
        start = (height - sum(gap)) / 2
        for j, vertex in enumerate(row):
            y[vertex] = start + sum(gap[:j])
    for sweep in _sweeps(layers):
        for i, _, neighbours in sweep:
            row = layers.rows[i]
            wanted = [_mean([y[u] for u in neighbours[v]], y[v]) for v in row]
            y.update(zip(row, spread(wanted, gaps[i], size(row[0]) / 2, height - size(row[-1]) / 2), strict=True))
    # Relaxing may have left room above and below.
    top = min(place - size(vertex) / 2 for vertex, place in y.items())
    bottom = max(place + size(vertex) / 2 for vertex, place in y.items())
    return {vertex: place - top for vertex, place in y.items()}, bottom - top


# -- places on a line, moved as little as possible so that they keep their distance ----------------------------------


def spread(wanted: Sequence[float], gaps: Sequence[float], low: float, high: float) -> list[float]:
    """Places within [low, high] in the order given, place i + 1 at least gaps[i] after place i.

    They have the least sum of squared moves: with the gaps taken off, "in order and apart" is "not decreasing", and
    the nearest nondecreasing sequence comes from pooling neighbours that stand the wrong way round. Where the gaps do
    not fit, they shrink in proportion.
    """
    if not wanted:
        return []
    room, needed = high - low, sum(gaps)
    scale = min(1.0, room / needed) if needed > 0 else 1.0
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap * scale)
    pools: list[tuple[float, int]] = []  # (mean, size)
    for place, offset in zip(wanted, offsets, strict=True):
        mean, size = place - offset, 1
        while pools and pools[-1][0] >= mean:
            before, count = pools.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        pools.append((mean, size))
    flat = [mean for mean, size in pools for _ in range(size)]
    return [min(max(place, low), max(low, high - offsets[-1])) + o for place, o in zip(flat, offsets, strict=True)]
