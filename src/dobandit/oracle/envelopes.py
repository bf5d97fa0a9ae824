"""Between which numbers E[f(x)] lies for a link f, where x is within a range and its mean is known: the envelopes of f.

E[f(x)] is at most the least concave function above f over the range, at the mean of x, and at least the largest convex
one below f. f rises, bending upwards to the left of its inflection and downwards to the right of it. Above f is then
the tangent that goes through f at the range's left end, as far as it touches f, and f itself from there on.
For the links of which that is known, inside kernels; `oracle.bounds` has envelopes of any link, by a grid.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import inlined, kernel
from dobandit.model.link_kernels import LOGISTIC, PROBIT, link_slope, link_value

_HALVINGS = 50


@inlined
def inflection(links: Any, v: int) -> float:
    """Where the link of v bends neither way: at its shift, or nowhere."""
    code = links.code[v]
    return links.parameter[v] if code in (LOGISTIC, PROBIT) else -math.inf


@kernel
def envelope(links: Any, v: int, least: float, most: float, mean: float, end: int) -> float:
    """The most (end = 1) or the least (end = 0) that E[f(x)] can be where least <= x <= most and E[x] = mean. The least
    of f is minus the most of -f(-x), which has the same shape."""
    sign = 2.0 * end - 1.0
    left, right, bent = (least, most, inflection(links, v)) if end else (-most, -least, -inflection(links, v))
    x, start = min(max(sign * mean, left), right), sign * link_value(links, v, sign * left)
    if not left < right or left >= bent:
        return sign * risen(links, v, sign, x)
    if right <= bent or above(links, v, sign, left, right) <= start:
        slope = (risen(links, v, sign, right) - start) / (right - left)
        return sign * (start + slope * (x - left))
    short, touch = bent, right
    for _ in range(_HALVINGS):  # `touch` stays where the tangent is above f at the left end
        t = 0.5 * (short + touch)
        if above(links, v, sign, left, t) > start:
            touch = t
        else:
            short = t
    if x >= touch:
        return sign * risen(links, v, sign, x)
    return sign * above(links, v, sign, x, touch)


@inlined
def risen(links: Any, v: int, sign: float, x: float) -> float:
    """f(x), or -f(-x)."""
    return sign * link_value(links, v, sign * x)


@inlined
def above(links: Any, v: int, sign: float, x: float, t: float) -> float:
    """The tangent of f, or of -f(-x), at t, where it stands over x."""
    return risen(links, v, sign, t) + link_slope(links, v, sign * t) * (x - t)
