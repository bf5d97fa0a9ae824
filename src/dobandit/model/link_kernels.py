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

from dobandit import kernels
from dobandit.compiled import kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.kernels import f8, i8, record
from dobandit.model.links import BUILDERS, Link

CODES = {name: code for code, name in enumerate(BUILDERS)}
IDENTITY, LOGISTIC, PROBIT, EXPONENTIAL, RATIONAL = (
    CODES[name] for name in ("identity", "logistic", "probit", "exponential", "rational")
)
TABLE = -1  # no link: the node's probabilities stand in a table, see NodeArrays
_PIECES = 1 << 16
_STRAY = 30.0  # how far an estimate may stray: the length of the largest weight vector that is tried


# What a record of a node needs for its link: code >= 100 is a user's own, tabulated from `point` on over x = low,
# low + step, ...
LINK_FIELDS = [
    ("link", np.int64),
    ("parameter", np.float64),
    ("point", np.int64),
    ("low", np.float64),
    ("step", np.float64),
]
POINT = np.dtype([("value", np.float64), ("slope", np.float64)])  # of a tabulated link


def write_links(nodes: NDArray[Any], links: LinkArrays) -> NDArray[Any]:
    """Write the links of a model or a problem into the records of its nodes; returns the points of tabulated ones."""
    own = np.maximum(links.code - 100, 0)
    n = len(links.code)
    nodes["link"][:n], nodes["parameter"][:n] = links.code, links.parameter
    if len(links.low):
        tabulated = links.code >= 100
        nodes["point"][:n] = np.where(tabulated, own * (_PIECES + 1), 0)
        nodes["low"][:n] = np.where(tabulated, links.low[own], 0.0)
        nodes["step"][:n] = np.where(tabulated, links.step[own], 0.0)
    points = np.zeros(links.values.size, POINT)
    points["value"], points["slope"] = links.values.ravel(), links.slopes.ravel()
    return points


class LinkArrays(NamedTuple):
    """One link per node id (slot 0, the constant, is unused). code >= 100: row code - 100 of the tables."""

    code: NDArray[np.int64]  # (n + 1,)
    parameter: NDArray[np.float64]  # (n + 1,)
    values: NDArray[np.float64]  # (own links, pieces + 1)
    slopes: NDArray[np.float64]
    low: NDArray[np.float64]  # (own links,)
    step: NDArray[np.float64]


# A node of a model: its parents' slots, its link, its noise, 1 where it is a number between 0 and 1; and, while rounds
# are drawn, its value, and 1 where it is set
MODEL_NODE = record(start=i8, width=i8, **dict(LINK_FIELDS), noise=f8, continuous=i8, value=f8, is_set=i8)
MODEL_SLOT = record(parent=i8, weight=f8)


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
    code = np.zeros(len(links) + 1, dtype=np.int64)
    parameter = np.zeros(len(links) + 1)
    own: dict[int, list[int]] = {}  # nodes by the user's link they share
    for v, link in enumerate(links, start=1):
        if link.name in CODES:
            code[v] = CODES[link.name]
            parameter[v] = link.parameters[0][1] if link.parameters else 0.0
        else:
            own.setdefault(id(link), []).append(v)
    tables: list[tuple[Any, Any, float, float]] = []
    for nodes in own.values():
        link, high = links[nodes[0] - 1], max(abs(highest[v - 1]) for v in nodes)
        far = max(2.0 * high + 1.0, _STRAY * math.sqrt(high))
        low, top = max(link.domain[0], -far), min(link.domain[1], far)
        x = np.linspace(low, top, _PIECES + 1)
        code[nodes] = 100 + len(tables)
        tables.append((link.value(x), link.slope(x), low, (top - low) / _PIECES))
    return LinkArrays(
        code,
        parameter,
        np.array([t[0] for t in tables], dtype=np.float64).reshape(len(tables), _PIECES + 1),
        np.array([t[1] for t in tables], dtype=np.float64).reshape(len(tables), _PIECES + 1),
        np.array([t[2] for t in tables], dtype=np.float64),
        np.array([t[3] for t in tables], dtype=np.float64),
    )


@kernel
def link_value(links: Any, v: int, x: float) -> float:
    """f_v(x)."""
    code, a = links.code[v], links.parameter[v]
    if code == IDENTITY:
        return x
    if code == LOGISTIC:
        z = math.exp(-abs(x - a))
        return 1.0 / (1.0 + z) if x >= a else z / (1.0 + z)
    if code == PROBIT:
        return 0.5 * math.erfc((a - x) / math.sqrt(2.0))
    if code == EXPONENTIAL:
        return -math.expm1(-x) if x >= 0.0 else x
    if code == RATIONAL:
        return a * x / (a * x + 1.0) if x >= 0.0 else a * x
    return hermite(links, code - 100, x, False)


@kernel
def link_slope(links: Any, v: int, x: float) -> float:
    """f_v'(x)."""
    code, a = links.code[v], links.parameter[v]
    if code == IDENTITY:
        return 1.0
    if code == LOGISTIC:
        z = math.exp(-abs(x - a))
        return z / (1.0 + z) ** 2
    if code == PROBIT:
        return math.exp(-0.5 * (x - a) * (x - a)) / math.sqrt(2.0 * math.pi)
    if code == EXPONENTIAL:
        return math.exp(-x) if x >= 0.0 else 1.0
    if code == RATIONAL:
        return a / (a * x + 1.0) ** 2 if x >= 0.0 else a
    return hermite(links, code - 100, x, True)


@kernel
def hermite(links: Any, table: int, x: float, slope: bool) -> float:
    """The tabulated f (or f') at x; a straight line along the end's tangent outside the table."""
    low, h = links.low[table], links.step[table]
    pieces = links.values.shape[1] - 1
    end = -1
    if x <= low:
        end = 0
    elif x >= low + h * pieces:
        end = pieces
    if end >= 0:
        g = links.slopes[table, end]
        return g if slope else links.values[table, end] + g * (x - (low + h * end))
    i = min(int((x - low) / h), pieces - 1)
    s = (x - low) / h - i
    f0, f1 = links.values[table, i], links.values[table, i + 1]
    g0, g1 = links.slopes[table, i] * h, links.slopes[table, i + 1] * h
    if slope:
        rise = 6.0 * s * (1.0 - s) * (f1 - f0)
        return (rise + (1.0 - s) * (1.0 - 3.0 * s) * g0 + s * (3.0 * s - 2.0) * g1) / h
    return (
        (1.0 + 2.0 * s) * (1.0 - s) ** 2 * f0
        + s * (1.0 - s) ** 2 * g0
        + s * s * (3.0 - 2.0 * s) * f1
        + s * s * (s - 1.0) * g1
    )


@kernels.inlined
def value_at(node: Any, points: Any, x: float) -> float:
    """f(x), f the link of a node's record."""
    code, a = node["link"], node["parameter"]
    if code == IDENTITY:
        return x
    if code == LOGISTIC:
        z = math.exp(-abs(x - a))
        return 1.0 / (1.0 + z) if x >= a else z / (1.0 + z)
    if code == PROBIT:
        return 0.5 * math.erfc((a - x) / math.sqrt(2.0))
    if code == EXPONENTIAL:
        return -math.expm1(-x) if x >= 0.0 else x
    if code == RATIONAL:
        return a * x / (a * x + 1.0) if x >= 0.0 else a * x
    return tabulated(node, points, x, False)


@kernels.kernel
def slope_at(node: Any, points: Any, x: float) -> float:
    """f'(x)."""
    code, a = node["link"], node["parameter"]
    if code == IDENTITY:
        return 1.0
    if code == LOGISTIC:
        z = math.exp(-abs(x - a))
        return z / (1.0 + z) ** 2
    if code == PROBIT:
        return math.exp(-0.5 * (x - a) * (x - a)) / math.sqrt(2.0 * math.pi)
    if code == EXPONENTIAL:
        return math.exp(-x) if x >= 0.0 else 1.0
    if code == RATIONAL:
        return a / (a * x + 1.0) ** 2 if x >= 0.0 else a
    return tabulated(node, points, x, True)


@kernels.kernel
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
