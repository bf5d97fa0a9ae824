"""Links inside compiled code: a link is a code, a parameter and, for a user's own link, a table.

A user's own f is tabulated over the x that its nodes can reach (and an estimate on its way can stray to), with cubic
Hermite pieces through the exact f and f'. On 65536 pieces the error is below 1e-10 for a smooth f.
Below its domain a link goes on along its tangent, so that an estimate on its way to the optimum never meets a pole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.kernels import inlined, kernel
from dobandit.model.links import BUILDERS, Link

CODES = {name: code for code, name in enumerate(BUILDERS)}
IDENTITY, LOGISTIC, PROBIT, EXPONENTIAL, RATIONAL = (
    CODES[name] for name in ("identity", "logistic", "probit", "exponential", "rational")
)
OWN = 100  # codes from here on are of a user's own links
TABLE = -1  # no link: the node's probabilities stand in a table, see NodeArrays
_PIECES = 1 << 16
_STRAY = 30.0  # how far an estimate may stray: the length of the largest weight vector that is tried


# What a record of a node needs for its link; a user's own is tabulated from `point` on over x = low, low + step, ...
LINK_FIELDS = [
    ("link", np.int64),
    ("parameter", np.float64),
    ("point", np.int64),
    ("low", np.float64),
    ("step", np.float64),
]
POINT = np.dtype([("value", np.float64), ("slope", np.float64)], align=True)  # of a tabulated link


class LinkArrays(NamedTuple):
    """One link per node id (0, the constant, is unused)."""

    nodes: NDArray[Any]  # (n + 1,) LINK_FIELDS
    points: NDArray[Any]  # POINT


# A node of a model: its parents' slots, its link, its noise, 1 where it is a number between 0 and 1; and, while rounds
# are drawn, its value, and 1 where it is set
MODEL_NODE = np.dtype(
    [
        ("start", np.int64),
        ("width", np.int64),
        *LINK_FIELDS,
        ("noise", np.float64),
        ("continuous", np.int64),
        ("value", np.float64),
        ("is_set", np.int64),
    ]
)
MODEL_SLOT = np.dtype([("parent", np.int64), ("weight", np.float64)])


class NodeArrays(NamedTuple):
    """The nodes of a model for compiled loops.

    Where a node's link is TABLE, its parents' weights are 1, 2, 4, ... (the constant's is 0), so that its weighted sum
    is the number of the parents' pattern, and P(node = 1) given that is the value of the point so many behind `point`.
    """

    nodes: NDArray[Any]  # (n + 1,) MODEL_NODE
    slots: NDArray[Any]  # MODEL_SLOT, as graph.arrays.parent
    points: NDArray[Any]  # POINT


def node_arrays(graph: CausalGraph, weights: NDArray[np.float64], links: LinkArrays) -> NodeArrays:
    """The nodes of a model with these weights, one per slot of graph.arrays.parent, and links."""
    ptr, nodes, slots = (
        graph.arrays.parent_ptr,
        np.zeros(len(graph) + 1, MODEL_NODE),
        np.zeros(len(weights), MODEL_SLOT),
    )
    nodes["start"], nodes["width"], nodes["value"] = ptr[:-1], np.diff(ptr), 1.0
    slots["parent"], slots["weight"] = graph.arrays.parent, weights
    return NodeArrays(nodes, slots, write_links(nodes, links))


def link_arrays(links: Sequence[Link], highest: Sequence[float]) -> LinkArrays:
    """Compile the links of nodes 1..n; `highest[i]`: the largest |weighted sum| that node i + 1 has to serve."""
    nodes = np.zeros(len(links) + 1, np.dtype(LINK_FIELDS, align=True))
    own: dict[int, list[int]] = {}  # nodes by the user's link they share
    for v, link in enumerate(links, start=1):
        if link.name in CODES:
            nodes[v]["link"] = CODES[link.name]
            nodes[v]["parameter"] = link.parameters[0][1] if link.parameters else 0.0
        else:
            own.setdefault(id(link), []).append(v)
    points = np.zeros((len(own), _PIECES + 1), POINT)
    for i, sharing in enumerate(own.values()):
        link, high = links[sharing[0] - 1], max(abs(highest[v - 1]) for v in sharing)
        far = max(2.0 * high + 1.0, _STRAY * math.sqrt(high))
        low, top = max(link.domain[0], -far), min(link.domain[1], far)
        x = np.linspace(low, top, _PIECES + 1)
        points[i]["value"], points[i]["slope"] = link.value(x), link.slope(x)
        nodes[sharing] = OWN + i, 0.0, i * (_PIECES + 1), low, (top - low) / _PIECES
    return LinkArrays(nodes, points.ravel())


def write_links(nodes: NDArray[Any], links: LinkArrays) -> NDArray[Any]:
    """Write links into the records of nodes; returns the points of those that are tabulated."""
    for name, _ in LINK_FIELDS:
        nodes[name][: len(links.nodes)] = links.nodes[name]
    return links.points


@inlined
def value_at(node: Any, points: Any, x: float) -> float:
    """f(x), f the link of a node's record."""
    if node["link"] < OWN:
        return value_of(node["link"], node["parameter"], x)
    return tabulated(node, points, x, False)


@inlined
def slope_at(node: Any, points: Any, x: float) -> float:
    """f'(x)."""
    if node["link"] < OWN:
        return slope_of(node["link"], node["parameter"], x)
    return tabulated(node, points, x, True)


@kernel
def value_of(code: int, a: float, x: float) -> float:
    """f(x) of a built-in link with the parameter a."""
    if code == IDENTITY:
        return x
    if code == LOGISTIC:
        z = math.exp(-abs(x - a))
        return 1.0 / (1.0 + z) if x >= a else z / (1.0 + z)
    if code == PROBIT:
        return 0.5 * math.erfc((a - x) / math.sqrt(2.0))
    if code == EXPONENTIAL:
        return -math.expm1(-x) if x >= 0.0 else x
    return a * x / (a * x + 1.0) if x >= 0.0 else a * x


@kernel
def slope_of(code: int, a: float, x: float) -> float:
    """f'(x) of a built-in link with the parameter a."""
    if code == IDENTITY:
        return 1.0
    if code == LOGISTIC:
        z = math.exp(-abs(x - a))
        return z / (1.0 + z) ** 2
    if code == PROBIT:
        return math.exp(-0.5 * (x - a) * (x - a)) / math.sqrt(2.0 * math.pi)
    if code == EXPONENTIAL:
        return math.exp(-x) if x >= 0.0 else 1.0
    return a / (a * x + 1.0) ** 2 if x >= 0.0 else a


@kernel
def tabulated(node: Any, points: Any, x: float, slope: bool) -> float:
    """The tabulated f (or f') at x; a straight line along the end's tangent outside the table."""
    low, h, first = node["low"], node["step"], node["point"]
    if x <= low or x >= low + h * _PIECES:
        end = 0 if x <= low else _PIECES
        g = points[first + end]["slope"]
        return g if slope else points[first + end]["value"] + g * (x - (low + h * end))
    i = min(int((x - low) / h), _PIECES - 1)
    s = (x - low) / h - i
    f0, f1 = points[first + i]["value"], points[first + i + 1]["value"]
    g0, g1 = points[first + i]["slope"] * h, points[first + i + 1]["slope"] * h
    if slope:
        rise = 6.0 * s * (1.0 - s) * (f1 - f0)
        return (rise + (1.0 - s) * (1.0 - 3.0 * s) * g0 + s * (3.0 * s - 2.0) * g1) / h
    return (
        (1.0 + 2.0 * s) * (1.0 - s) ** 2 * f0
        + s * (1.0 - s) ** 2 * g0
        + s * s * (3.0 - 2.0 * s) * f1
        + s * s * (s - 1.0) * g1
    )
