"""Places on a line, moved as little as possible so that they keep their distance."""

from __future__ import annotations

from collections.abc import Sequence


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
