"""The data of a graph's picture: boxes and arrows with their places, in pixels. No drawing here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import ReportError
from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.model.bglm import WeightedModel
from dobandit.model.links import identity
from dobandit.model.weights import Do
from dobandit.report.layers import Layers, Vertex, heights, layers_of
from dobandit.texts import breadth, columns, fitted, shortened, shortened_apart

_MOST_NODES, _MOST_EDGES = 200, 1_000
_MOST_WEIGHTS = 60  # with more edges than that, thickness alone tells the weight
_LEAST_GAP, _STEP_DOWN = 130.0, 84.0  # pixels between a box and its effects, to its right or below


class Picture(NamedTuple):
    width: float
    height: float
    boxes: list[Box]
    arrows: list[Arrow]
    weights_shown: bool


def drawable(graph: CausalGraph) -> bool:
    """Whether the graph is small enough for a picture."""
    return len(graph) <= _MOST_NODES and graph.edge_count <= _MOST_EDGES


def picture_of(
    model: WeightedModel | CausalGraph,
    chosen: Do = (),
    *,
    weights: Mapping[Edge, float] | None = None,
    notes: Mapping[str, str] | None = None,
    down: bool = False,
) -> Picture:
    """chosen   variables to mark, or what each of them is set to
    weights  of some edges, where they do not come from a model
    notes    what stands beside a box, where it is not the model's bias and link
    down     effects below their causes, for narrow screens; otherwise to their right
    """
    graph = model if isinstance(model, CausalGraph) else model.graph
    if not drawable(graph):
        raise ReportError(
            f"a picture holds at most {_MOST_NODES} nodes and {_MOST_EDGES:,} edges, but the graph has {len(graph):,} "
            f"and {graph.edge_count:,}. Draw a part of it."
        )
    if isinstance(model, WeightedModel):
        weights = {edge: model.weights[edge] for edge in graph.edges} if weights is None else weights
        notes = {name: note_of(model, name) for name in graph.nodes} if notes is None else notes
    given = chosen if isinstance(chosen, Mapping) else dict.fromkeys(chosen, 1.0)
    marked = {graph.nodes[graph.index(name) - 1]: value for name, value in given.items()}
    layers = layers_of(graph)
    short = shortened_apart(graph.nodes, _LONGEST_NAME)
    drafts = {
        name: box_of(graph, (notes or {}).get(name, ""), name, fitted(text, 1.2 * _LONGEST_NAME), marked, down)
        for name, text in short.items()
    }
    x, y, width, height = _places_down(layers, drafts) if down else _places(layers, drafts)
    boxes = {name: box._replace(x=x[name], y=y[name]) for name, box in drafts.items()}
    with_text = weights is not None and graph.edge_count <= _MOST_WEIGHTS
    arrows = arrows_of(layers, boxes, x, y, weights or {}, down)
    if with_text:
        arrows = labelled(arrows, list(boxes.values()))
    return Picture(width, height, list(boxes.values()), arrows, with_text)


def _places_down(
    layers: Layers, boxes: dict[str, Box]
) -> tuple[dict[Vertex, float], dict[Vertex, float], float, float]:
    """Places for effects below their causes, as narrow as the boxes allow."""

    def room(vertex: Vertex) -> float:
        return max(boxes[vertex].width, note_size(boxes[vertex])[0]) + 14.0 if isinstance(vertex, str) else 18.0

    x, width = heights(layers, room)
    y: dict[Vertex, float] = {}
    top = 6.0
    for row in layers.rows:
        column = [boxes[vertex] for vertex in row if isinstance(vertex, str)]
        above = max((note_size(box)[1] + 4.0 for box in column if box.side == "above"), default=0.0)
        tall = max((box.height for box in column), default=0.0)
        below = max((note_size(box)[1] + 4.0 for box in column if box.side == "below"), default=0.0)
        top += above
        for vertex in row:
            y[vertex] = top + tall / 2
        top += tall + below + _STEP_DOWN
    return {vertex: place + 8.0 for vertex, place in x.items()}, y, width + 16.0, top - _STEP_DOWN + 6.0


def _places(layers: Layers, boxes: dict[str, Box]) -> tuple[dict[Vertex, float], dict[Vertex, float], float, float]:
    """Horizontal and vertical places, and the size of the whole. Short layers are drawn wider apart."""
    tallest = max(sum(isinstance(vertex, str) for vertex in row) for row in layers.rows)
    roomy = min(92.0, 340.0 / tallest)

    def room(vertex: Vertex) -> float:
        if not isinstance(vertex, str):
            return 24.0
        box = boxes[vertex]
        below = 14.0 * (box.note.count("\n") + 1) if box.note and box.side == "below" else 0.0
        return max(roomy, box.height + 12.0 + 2 * below)

    y, height = heights(layers, room)
    over = min(y[name] - box.height / 2 for name, box in boxes.items())
    under = height - max(y[name] + box.height / 2 + (32.0 if box.side == "below" else 0) for name, box in boxes.items())
    over, under = max(0.0, over - 4.0), max(0.0, under)  # apart from each other, but not from the title
    y = {vertex: place - over for vertex, place in y.items()}
    x, width = _across(layers, boxes, height)
    return x, y, width, height - over - under


def _across(layers: Layers, boxes: dict[str, Box], height: float) -> tuple[dict[Vertex, float], float]:
    """Horizontal places, and the width of the whole: wide gaps in tall pictures, narrow ones between many layers."""
    columns = [[boxes[vertex] for vertex in row if isinstance(vertex, str)] for row in layers.rows]
    widths = [max((box.width for box in column), default=0.0) for column in columns]
    notes = [max((note_size(box)[0] + 8.0 for box in column if box.side == "left"), default=0.0) for column in columns]
    most = (1300.0 - sum(widths) - sum(notes)) / max(1, len(widths) - 1)
    gap = max(76.0, min(360.0, max(_LEAST_GAP, 0.55 * height), most))
    x: dict[Vertex, float] = {}
    left = 24.0
    for row, width, note in zip(layers.rows, widths, notes, strict=True):
        left += note
        for vertex in row:
            x[vertex] = left + width / 2
        left += width + gap
    return x, left - gap + 24.0


# -- boxes: their texts and sizes, in pixels -------------------------------------------------------------------------

MANY_ARROWS, PORT = 6, 11.0  # arrows into a box that stand side by side, and their distance
_LONGEST_NAME = 20
_BOX, _TARGET_BOX, _CHARACTER = 28.0, 40.0, 7.6


class Box(NamedTuple):
    name: str
    text: str
    note: str  # bias and link, a line each
    side: str  # where the note stands: "left", "above" or "below"
    x: float
    y: float
    width: float
    height: float
    kind: str  # "target", "latent", "context", "chosen" or "plain"


def box_of(graph: CausalGraph, note: str, name: str, text: str, chosen: Mapping[str, float], down: bool = False) -> Box:
    """A box that has no place yet. Many arrows need a tall box, or a wide one where they come from above (down); notes
    of roots stand where no arrow comes in."""
    arrows = len(graph.parents(name))
    if chosen.get(name, 1.0) != 1.0:
        text += f" = {chosen[name]:g}"
    height = _TARGET_BOX if name == graph.target else _BOX
    width = max(_TARGET_BOX, _CHARACTER * max(columns(text), 1.04 * breadth(text)) + 22.0)
    if arrows >= MANY_ARROWS:
        room = PORT * arrows + 17.0
        width, height = (max(width, room), height) if down else (width, room)
    side = "below" if arrows else "above" if down else "left"
    roles = {"target": (graph.target,), "context": graph.context, "latent": graph.latent, "chosen": chosen}
    kind = next((kind for kind, names in roles.items() if name in names), "plain")
    return Box(name, text, note, side, 0.0, 0.0, width, height, kind)


def note_of(model: WeightedModel, name: str) -> str:
    """Bias and link of a node."""
    bias = f"bias {model.weights[name]:.3g}" if model.graph.has_bias(name) else ""
    link = "" if model.link(name) == identity else shortened(model.link(name).name, 16)
    return "\n".join(part for part in (bias, link) if part)


def note_size(box: Box) -> tuple[float, float]:
    lines = box.note.split("\n") if box.note else []
    return 6.0 * max(map(columns, lines), default=0), 13.0 * len(lines)


def note_place(box: Box) -> tuple[float, float]:
    """The middle of a box's note."""
    width, height = note_size(box)
    if box.side == "left":
        return box.x - box.width / 2 - 6.0 - width / 2, box.y
    away = box.height / 2 + 4.0 + height / 2
    return box.x, box.y - away if box.side == "above" else box.y + away


# -- arrows: their curves, where they end, and where their labels stand -----------------------------------------------

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
