"""Segments: the patterns of a node's parents that are context, each with a straight line of its own.

A shared line says that a lever does the same everywhere, which is what one experiment for all segments is tempted to
believe; with a line of its own, a segment is judged by its own rounds alone. Line `first[v] + g` is that of node v's
segment g; where its numbers are stands in `layout`, as for nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined
from dobandit.estimation.statistics import Layout
from dobandit.graph.ordering import offsets


class Segments(NamedTuple):
    """What stays fixed."""

    first: NDArray[np.int64]  # (n + 1,)
    bit: NDArray[np.int64]  # by slot of the graph: which bit of the segment's number a parent is; -1: none
    layout: Layout  # of the lines


def segments_of(layout: Layout, context: NDArray[np.bool_]) -> Segments:
    """The segments of every node. context: by slot, whether the parent tells the node's segments apart."""
    sizes = np.diff(layout.ptr)
    node = np.repeat(np.arange(len(sizes)), sizes)
    before: NDArray[np.int64] = np.cumsum(context) - context  # of all slots, then of the node's own
    bit = np.where(context, before - before[layout.ptr[node]], -1)
    counts = np.bincount(node[context], minlength=len(sizes))
    lines = np.where(counts > 0, 1 << counts, 0)
    first = np.cumsum(lines) - lines + 1  # line 0 is nobody's, as node 0 is the constant
    size = np.concatenate([[0], np.repeat(sizes, lines)])
    ptr, square = offsets(size), offsets(size**2)
    return Segments(first, bit.astype(np.int64), Layout(ptr, layout.parent, square, layout.target))


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
