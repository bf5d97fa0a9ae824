"""The arrows of a graph's picture: their curves, and where the weights stand, in pixels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import Edge
from dobandit.report.layers import Layers, Vertex
from dobandit.report.picture import MANY_ARROWS, PORT, Box, note_place, note_size

_ARROW = 11.0  # length of a head
_PLACES = (0.35, 0.3, 0.4, 0.25, 0.45, 0.2, 0.5, 0.55, 0.6, 0.65, 0.15, 0.7)
Points = NDArray[np.float64]  # (points, 2)
Rectangle = tuple[float, float, float, float]  # its middle, and its size


class Arrow(NamedTuple):
    edge: Edge
    points: Points
    tip: tuple[float, float]
    angle: float  # of the head, degrees clockwise from the right
    strength: float  # size of the weight as a share of the largest, 1 where there are no weights
    harmful: bool  # whether the weight is below 0
    text: str
    text_at: tuple[float, float]


def arrows_of(
    layers: Layers,
    boxes: dict[str, Box],
    x: dict[Vertex, float],
    y: dict[Vertex, float],
    weights: Mapping[Edge, float],
    down: bool = False,
) -> list[Arrow]:
    """An arrow an edge; `weights` is empty where there are none, and may lack some.

    down: effects stand below their causes. The arrows are those of the picture that is mirrored at its diagonal.
    """
    if down:
        mirrored = {name: b._replace(x=b.y, y=b.x, width=b.height, height=b.width) for name, b in boxes.items()}
        return [
            arrow._replace(points=arrow.points[:, ::-1].copy(), tip=arrow.tip[::-1], angle=90.0 - arrow.angle)
            for arrow in arrows_of(layers, mirrored, y, x, weights)
        ]
    largest = max(map(abs, weights.values()), default=0.0) or 1.0
    ports = _ports(layers, boxes, y)
    arrows = []
    for (cause, effect), chain in layers.chains.items():
        path = np.array([(x[vertex], y[vertex]) for vertex in chain])
        path[0] = _start(boxes[cause], path[1])
        path[-1] = ports.get((cause, effect), _border(boxes[effect], path[-2]))
        points = _smooth(path)
        dx, dy = points[-1] - points[-2]
        tip = (float(points[-1, 0]), float(points[-1, 1]))
        # The line ends inside the arrow's head, whose tip is on the border.
        points[-1] -= 0.8 * _ARROW * np.array([dx, dy]) / max(math.hypot(dx, dy), 1e-9)
        weight = weights.get((cause, effect), 0.0 if weights else largest)
        text = f"{weight + 0.0:.3g}".replace("-", "−") if (cause, effect) in weights else ""
        angle = math.degrees(math.atan2(dy, dx))
        arrows.append(Arrow((cause, effect), points, tip, angle, abs(weight) / largest, weight < 0, text, (0.0, 0.0)))
    return arrows


def _ports(layers: Layers, boxes: dict[str, Box], y: dict[Vertex, float]) -> dict[Edge, Points]:
    """Where arrows meet a box with many of them: side by side on its left, in the order they come from."""
    incoming: dict[str, list[tuple[float, Edge]]] = {}
    for edge, chain in layers.chains.items():
        incoming.setdefault(edge[1], []).append((y[chain[-2]], edge))
    ports: dict[Edge, Points] = {}
    for effect, edges in incoming.items():
        if len(edges) >= MANY_ARROWS:
            box, middle = boxes[effect], (len(edges) - 1) / 2
            for k, (_, edge) in enumerate(sorted(edges)):
                ports[edge] = np.array([box.x - box.width / 2 - 2.0, box.y + PORT * (k - middle)])
    return ports


def _start(box: Box, goal: Points) -> Points:
    """Where a line to the right leaves a box; a steep one at its side, or it would run into the next box."""
    dx, dy = goal[0] - box.x, goal[1] - box.y
    if abs(dy) > 1.2 * dx or box.height > box.width:
        return np.array([box.x + box.width / 2 + 1.5, box.y])
    return _border(box, goal)


def _border(box: Box, origin: Points) -> Points:
    """Where the line between a point and a box's middle meets the box, a rectangle with half-circles at its ends."""
    middle = np.array([box.x, box.y])
    dx, dy = origin - middle
    length = math.hypot(dx, dy) or 1.0
    ux, uy = abs(dx) / length, abs(dy) / length
    if box.height > box.width:  # the half-circles are above and below
        ux, uy = uy, ux
    radius, straight = min(box.height, box.width) / 2, abs(box.width - box.height) / 2
    if uy > 0 and radius / uy * ux <= straight:
        reach = radius / uy
    else:
        reach = straight * ux + math.sqrt(max(0.0, radius**2 - (straight * uy) ** 2))
    place: Points = middle + np.array([dx, dy]) / length * (reach + 2.0)
    return place


def _smooth(path: Points) -> Points:
    """A curve through the path's points (cubic, with the slope of each point's neighbours); a straight line for two."""
    if len(path) == 2:
        return path.copy()
    slopes = np.gradient(path, axis=0)
    s = np.linspace(0.0, 1.0, 9)[:-1, None]
    pieces = [
        (2 * s**3 - 3 * s**2 + 1) * path[i]
        + (s**3 - 2 * s**2 + s) * slopes[i]
        + (-2 * s**3 + 3 * s**2) * path[i + 1]
        + (s**3 - s**2) * slopes[i + 1]
        for i in range(len(path) - 1)
    ]
    return np.concatenate([*pieces, path[-1:]])


def labelled(arrows: list[Arrow], boxes: list[Box]) -> list[Arrow]:
    """Each weight at the place along its edge that is freest of boxes, other weights and other edges."""
    taken: list[Rectangle] = [(box.x, box.y, box.width, box.height) for box in boxes]
    taken += [(*note_place(box), *note_size(box)) for box in boxes if box.note]
    sampled = [_along(arrow.points, np.linspace(0.03, 0.97, 60)) for arrow in arrows]
    done = []
    for i, arrow in enumerate(arrows):
        width, height = 7.0 * len(arrow.text) + 10.0, 20.0
        others = np.concatenate([points for j, points in enumerate(sampled) if j != i] or [np.empty((0, 2))])
        spots = _along(arrow.points, np.array(_PLACES))
        costs = [_cost(spot, width, height, taken, others) + 0.1 * k for k, spot in enumerate(spots)]
        across, down = spots[int(np.argmin(costs))].tolist()
        taken.append((across, down, width, height))
        done.append(arrow._replace(text_at=(across, down)))
    return done


def _cost(spot: Points, width: float, height: float, taken: list[Rectangle], others: Points) -> float:
    size, rectangles = np.array([width, height]), np.array(taken)
    overlaps = np.all(np.abs(rectangles[:, :2] - spot) < (rectangles[:, 2:] + size) / 2, axis=1).sum()
    crossed = np.all(np.abs(others - spot) < size / 2, axis=1).sum()
    return 100.0 * float(overlaps) + float(crossed)


def _along(points: Points, shares: NDArray[np.float64]) -> Points:
    """Points at the given shares of the curve's length."""
    steps = np.hypot(*np.diff(points, axis=0).T)
    walked = np.concatenate([[0.0], np.cumsum(steps)])
    at = shares * walked[-1]
    return np.column_stack([np.interp(at, walked, points[:, k]) for k in range(2)])
